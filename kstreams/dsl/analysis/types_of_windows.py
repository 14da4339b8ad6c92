"""Type rules of aggregations by window: the key becomes a key within a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.types import TypeOf, Types, required_serde
from kstreams.dsl.analysis.types_of_aggregates import aggregate_type, grouped_types
from kstreams.dsl.graph import Node, WindowedAggregate
from kstreams.dsl.graph.cogroups import Cogroup, WindowedCogroup
from kstreams.dsl.return_annotations import return_type
from kstreams.dsl.window_kinds import window_kind
from kstreams.windows import Windows

TO_KEEP = "to keep its aggregates"


def windowed(node: WindowedAggregate, parents: tuple[Types, ...]) -> Types:
    grouped = grouped_types(node, parents[0])
    key = grouped.key.or_declared(node.key, node)
    return Types(windowed_key(key, node, node.windows), aggregate_type(node, grouped))


def cogrouped(node: Cogroup, parents: tuple[Types, ...]) -> Types:
    return Types(cogrouped_key(node, parents), _cogrouped_value(node))


def windowed_cogrouped(node: WindowedCogroup, parents: tuple[Types, ...]) -> Types:
    return Types(windowed_key(cogrouped_key(node, parents), node, node.windows), _cogrouped_value(node))


def cogrouped_key(node: Cogroup, parents: tuple[Types, ...]) -> TypeOf:
    """Return the type of the key by which streams are cogrouped: of the first stream whose key type is known."""
    keys = [parent.key.or_declared(group.grouped.key, node) for parent, group in zip(parents, node.inputs, strict=True)]
    return next((key for key in keys if key.kind is not None), keys[0]).or_declared(node.key, node)


def _cogrouped_value(node: Cogroup) -> TypeOf:
    functions: list[Callable[..., Any]] = [*(group.aggregator for group in node.inputs), node.initializer]
    annotated = (return_type(function) for function in functions)
    return TypeOf(node.value or next((kind for kind in annotated if kind is not None), None), node)


def windowed_key(key: TypeOf, node: Node, windows: Windows) -> TypeOf:
    """Return the type of a key within a window; unknown if the type of the key is unknown."""
    if key.kind is None:
        return key
    return TypeOf(window_kind(windows).key_serde(required_serde(key, node, "key", TO_KEEP), windows), node)
