"""Types of a stream or table while it is being declared, for what must know them at once."""

from __future__ import annotations

from typing import Any

from kstreams.dsl.analysis.facts import flow_types
from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.graph import Node
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at


def types_of(graph: GraphBuilder, node: Node) -> Types:
    """What comes out of a node, as far as it is known."""
    return flow_types(graph.graph())[node.name]


def known(type_of: TypeOf, side: str, asker: str) -> Any:
    """The type or serde of one side.

    Parameters
    ----------
    side : {"key", "value"}
    asker : str
        Which method must know it.

    Raises
    ------
    TopologyError
        When it is not known: says what to write.
    """
    if type_of.kind is None:
        raise TopologyError(
            f"{asker} at {declared_at()} must know the type of its {side}s, which is unknown since {type_of.origin}: "
            f"write {side}=<type>"
        )
    return type_of.kind
