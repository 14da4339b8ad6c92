"""How types flow through aggregations by window: the key becomes one of key and window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.types import TypeOf, Types, aggregate_type, grouped_types, required_serde, types
from kstreams.dsl.graph import Node, WindowedAggregate
from kstreams.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows

TO_KEEP = "to keep its aggregates"


@types.rule(WindowedAggregate)
def windowed(node: WindowedAggregate, parents: tuple[Types, ...]) -> Types:
    grouped = grouped_types(node, parents[0])
    key = grouped.key.or_declared(node.key, node)
    return Types(windowed_key(key, node, node.windows), aggregate_type(node, grouped))


def windowed_key(key: TypeOf, node: Node, windows: Windows) -> TypeOf:
    """The type of a key within a window; unknown as long as that of the key is."""
    if key.kind is None:
        return key
    return TypeOf(_SERDES[type(windows)](required_serde(key, node, "key", TO_KEEP), windows), node)


def _with_start(inner: Serde[Any], windows: Any) -> Serde[Any]:
    return TimeWindowedSerde(inner, windows.size_ms)


_SERDES: dict[type, Callable[[Serde[Any], Any], Serde[Any]]] = {
    TimeWindows: _with_start,
    UnlimitedWindows: _with_start,
    SlidingWindows: _with_start,
    SessionWindows: lambda inner, windows: SessionWindowedSerde(inner),
}
