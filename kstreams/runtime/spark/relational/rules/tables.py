"""Tables as streams of upserts, without a store: a row has the new value of its key, or no value to delete the key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.expressions import Expr
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unknown_type, unreadable
from kstreams.runtime.spark.relational.rules.function_calls import FunctionCall, with_result
from kstreams.runtime.spark.relational.rules.stateless import check_one_to_one, condition
from kstreams.runtime.spark.relational.rules.tasks_only import CHANGE_STREAM, UNCOUNTED

ROWS_OF_RECORDS = (g.TableSource, g.ToTable)
VIEWS = (g.TableFilter, g.TableMapValues)
AGGREGATES = (g.StreamAggregate, g.WindowedAggregate)


def table_source(node: g.TableSource, build: RelationalLowering) -> Frame:
    """Read the records of the table's topic."""
    return _keyed(build.read(node, [node.topic]))


def to_table(node: g.ToTable, build: RelationalLowering) -> Frame:
    return _keyed(build.parent(node))


def table_filter(node: g.TableFilter, build: RelationalLowering) -> Frame:
    """Delete the rows that the filter drops."""
    predicate = node.predicate if isinstance(node.predicate, Expr) else _unless_deleted(node.predicate)
    frame, holds = condition(predicate, build.parent(node), node, build)
    return frame.with_value(F.when(~holds if node.negate else holds, F.col("value")), frame.value)


def table_map_values(node: g.TableMapValues, build: RelationalLowering) -> Frame:
    frame = build.parent(node)
    serde = build.serde(node, "value")
    if isinstance(node.function, Expr):
        return frame.with_new({"value": (node.function, serde)}, where=F.col("value").isNotNull())
    call = FunctionCall.on_rows(node, _unless_deleted(node.function), frame, node.with_key, build)
    return with_result(frame, "value", serde, call)


def _keyed(frame: Frame) -> Frame:
    return frame.where(F.col("key").isNotNull())


def _unless_deleted(function: Callable[..., Any]) -> Callable[..., object]:
    """Return a function of the user that is not called for rows without a value."""

    def call(*arguments: object) -> object:
        return None if arguments[-1] is None else function(*arguments)

    return call


def check_table_source(node: g.TableSource, typed: TypedGraph) -> str | None:
    if node.consumed.timestamp_extractor is not None:
        return "its timestamp extractor takes records one after the other"
    return check_rows(node, typed)


def check_rows(node: g.TableSource | g.ToTable, typed: TypedGraph) -> str | None:
    if node.materialized.history_retention_ms is not None:
        return "it keeps versions of its rows"
    types = typed.types[node.name]
    return unknown_type(types.key, "key") or unknown_type(types.value, "value")


def check_table_filter(node: g.TableFilter, typed: TypedGraph) -> str | None:
    return _check_view(node, typed) or unreadable(node.predicate, typed.of_parent(node))


def check_table_map_values(node: g.TableMapValues, typed: TypedGraph) -> str | None:
    return _check_view(node, typed) or check_one_to_one(node, typed)


def _check_view(node: g.TableFilter | g.TableMapValues, typed: TypedGraph) -> str | None:
    is_known = isinstance(typed.graph[node.parents[0]], (*ROWS_OF_RECORDS, *VIEWS, *AGGREGATES))
    return None if is_known else CHANGE_STREAM


TOMBSTONES = "if the table has a store, a row that is filtered out emits a tombstone even if it was never there"

FORMS: dict[type[g.Node], SparkForm] = {
    g.TableSource: SparkForm(check=check_table_source, lower=table_source, difference=UNCOUNTED),
    g.ToTable: SparkForm(check=check_rows, lower=to_table, difference=UNCOUNTED),
    g.TableFilter: SparkForm(check=check_table_filter, lower=table_filter, difference=TOMBSTONES),
    g.TableMapValues: SparkForm(check=check_table_map_values, lower=table_map_values),
}
