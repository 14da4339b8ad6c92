"""Type rules of aggregations by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kstreams import expressions
from kstreams.dsl import graph as g
from kstreams.dsl.analysis.types import TypeOf, Types, naming
from kstreams.dsl.return_annotations import return_type
from kstreams.expressions.operations import Operation
from kstreams.serdes import Serde


def aggregated(node: g.StreamAggregate, parents: tuple[Types, ...]) -> Types:
    grouped = grouped_types(node, parents[0])
    return Types(grouped.key.or_declared(node.key, node), aggregate_type(node, grouped))


def grouped_types(node: g.StreamAggregate | g.WindowedAggregate, parent: Types) -> Types:
    """Return the types of the grouped records."""
    grouped = node.grouped
    return Types(parent.key.or_declared(grouped.key, node), parent.value.or_declared(grouped.value, node))


def expression_aggregation(
    node: g.StreamAggregate | g.WindowedAggregate, parent: Types, *, in_rows: Sequence[Operation] = ()
) -> Any:
    """Return the aggregation of the named expressions of a node."""
    assert isinstance(node.aggregation, g.Expressions)
    grouped = grouped_types(node, parent)
    result = node.value.type if isinstance(node.value, Serde) else node.value
    with naming(node):
        return expressions.aggregation(
            node.aggregation.fields,
            key=grouped.key.python,
            value=grouped.value.python,
            result=result,
            in_rows=in_rows,
        )


def aggregate_type(node: g.StreamAggregate | g.WindowedAggregate, grouped: Types) -> TypeOf:
    """Return the type of the aggregates, as readers of the table see them."""
    if node.value is not None:
        return TypeOf(node.value, node)
    if isinstance(node.aggregation, g.Reduce):
        return grouped.value
    return TypeOf(_AGGREGATE_TYPES[type(node.aggregation)](node, grouped), node)


def _fold_type(node: g.StreamAggregate | g.WindowedAggregate, grouped: Types) -> Any:
    fold = node.aggregation
    assert isinstance(fold, g.Fold)
    return return_type(fold.aggregator) or return_type(fold.initializer)


_AGGREGATE_TYPES: dict[type, Callable[[Any, Types], Any]] = {
    g.Count: lambda node, grouped: int,
    g.Fold: _fold_type,
    g.Expressions: lambda node, grouped: expression_aggregation(node, grouped).value_type,
}
