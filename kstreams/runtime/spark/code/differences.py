"""The differences between programs of PySpark and tasks, by the names by which a user accepts them."""

from __future__ import annotations

from collections.abc import Iterator

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import is_final
from kstreams.runtime.spark.settings import ACCEPTABLE
from kstreams.serdes import BytesSerde, serde_of

_NAMES: dict[type[Node], tuple[str, ...]] = {
    g.To: ("headers",),
    g.Merge: ("order",),
    g.SelectKey: ("order",),
    g.Map: ("order",),
    g.StreamTableJoin: ("table",),
    g.LeftStreamTableJoin: ("table",),
    g.GlobalTableJoin: ("table",),
    g.LeftGlobalTableJoin: ("table",),
    g.StreamAggregate: ("updates",),
    g.StreamJoin: ("late",),
    g.OuterStreamJoin: ("late",),
}
_WITHOUT: frozenset[type[Node]] = frozenset(
    {g.Filter, g.MapValues, g.Split, g.Branch, g.Repartition, g.Suppress, g.ToStream}
)
"""The operators that add no difference."""


def differences_of(node: Node, typed: TypedGraph) -> tuple[str, ...]:
    """Return the names of the differences that an operator has in a program.

    An operator that is not listed has all differences, so that nobody accepts one without knowing.
    """
    if isinstance(node, g.WindowedAggregate):
        return ("late",) if is_final(node, typed) else ("late", "updates")
    if isinstance(node, g.StreamSource | g.TableSource | g.GlobalTableSource):
        return tuple(_of_source(node, typed))
    return () if type(node) in _WITHOUT else _NAMES.get(type(node), tuple(ACCEPTABLE))


def _of_source(node: Node, typed: TypedGraph) -> Iterator[str]:
    types = typed.types[node.name]
    kinds = (side.kind for side in (types.key, types.value))
    if not all(kind is not None and isinstance(serde_of(kind), BytesSerde) for kind in kinds):
        yield "decoding"
