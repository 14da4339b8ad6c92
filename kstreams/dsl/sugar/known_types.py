"""The types of a stream or table during declaration, for methods that need them at once."""

from __future__ import annotations

from typing import Any

from kstreams.dsl.analysis.facts import flow_types
from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.graph import Node
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at


def types_of(graph: GraphBuilder, node: Node) -> Types:
    """Return the types of the output of a node."""
    return flow_types(graph.graph())[node.name]


def known(type_of: TypeOf, side: str, method: str) -> Any:
    """Return the type or serde of the key or value; raise an error if it is not known.

    Parameters
    ----------
    side : {"key", "value"}
    method : str
        The method that needs the type.

    Raises
    ------
    TopologyError
        If the type is not known: names what to write.
    """
    if type_of.kind is None:
        raise TopologyError(
            f"{method} at {declared_at()} must know the type of its {side}s, which is unknown since {type_of.origin}: "
            f"write {side}=<type>"
        )
    return type_of.kind
