"""Windowed aggregations of expressions by Spark's windows: in append mode for final results, else in update mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.dsl.analysis.types import Types
from kstreams.dsl.analysis.types_of_aggregates import expression_aggregation
from kstreams.dsl.operator import SparkForm
from kstreams.expressions import Aggregation, Expr, Operation, counting
from kstreams.expressions.frame import refusal
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import by_expression, ends_windows, is_final
from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.codecs import SQL_TYPES, decoded, encode_int, encoded
from kstreams.runtime.spark.relational.frame import EVENT_TIME, Frame, leaf_column
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import first_reason, undecodable, unknown_type
from kstreams.runtime.spark.relational.rules.tables import AGGREGATES, ROWS_OF_RECORDS, VIEWS
from kstreams.runtime.spark.relational.rules.tasks_only import CHANGE_STREAM, LATE
from kstreams.runtime.spark.relational.states_in_query import has_state_downstream
from kstreams.serdes import Serde, WindowedSerde
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_AGGREGATES = {
    Operation.ROWS: "count",
    Operation.COUNT: "count",
    Operation.SUM: "sum",
    Operation.MIN: "min",
    Operation.MAX: "max",
}
"""Spark's aggregate function for each slot."""


def windowed_aggregate(node: g.WindowedAggregate, build: RelationalLowering) -> Frame:
    aggregation = slots_of(node, build.typed.of_parent(node))
    read = {f"_slot_{i}": slot.inputs[0] for i, slot in enumerate(aggregation.slots) if slot.inputs}
    frame = build.parent(node).where(F.col("key").isNotNull()).with_computed(read)
    span = _FORMS_OF_WINDOWS[type(node.windows)].span(node.windows)
    slots = [_slot(i, slot).alias(f"_slot_{i}") for i, slot in enumerate(aggregation.slots)]
    grouped = frame.rows.groupBy(span.alias("_window"), "key").agg(*slots, F.max("timestamp").alias("timestamp"))
    since_epoch = F.col("_window.start") >= F.timestamp_millis(F.lit(0))
    return _finished(node, build, grouped.where(since_epoch), aggregation)


def pass_on(node: g.Suppress | g.ToStream, build: RelationalLowering) -> Frame:
    """Return the same frame: it holds final results, or the latest update of each window in a step."""
    return build.parent(node)


def _slot(number: int, slot: Expr) -> Column:
    aggregate: Callable[[Column], Column] = getattr(F, _AGGREGATES[slot.operation])
    return aggregate(F.col(f"_slot_{number}") if slot.inputs else F.lit(1))


def _finished(
    node: g.WindowedAggregate, build: RelationalLowering, grouped: DataFrame, aggregation: Aggregation
) -> Frame:
    """Return keys and values as bytes, from windows and aggregates."""
    key = build.serde(node, "key")
    value = build.serde(node, "value")
    start = F.unix_millis(F.col("_window.start"))
    form = _FORMS_OF_WINDOWS[type(node.windows)]
    slots = [F.col(f"_slot_{i}") for i in range(len(aggregation.slots))]
    # Spark's own time of a window has the watermark, which a computed column would lack.
    timed = [F.window_time("_window").alias(EVENT_TIME)] if has_state_downstream(node, build.typed) else []
    rows = grouped.select(
        F.lit(0).cast("bigint").alias("origin"),
        start.alias("offset"),
        "timestamp",
        form.key(start).alias("key"),
        _value(aggregation, value, slots).alias("value"),
        F.lit(None).cast("array<struct<name: string, value: binary>>").alias("headers"),
        F.lit("?").alias("topic"),
        *([slots[0].alias(leaf_column("value"))] if aggregation.is_count else []),
        *_typed_key(key, form),
        *timed,
    )
    return Frame.read(rows, key, value)


def _typed_key(serde: Serde, form: WindowForm) -> list[Column]:
    """Return the key and its window as columns, if Spark has a type for the key."""
    if not isinstance(serde, WindowedSerde) or serde.inner.arrow_type not in SQL_TYPES:
        return []
    key = decoded(serde.inner, F.col("key")).alias("key")
    start = F.col("_window.start").alias("window_start")
    end = form.end().alias("window_end")
    return [F.struct(key, start, end).alias(leaf_column("key"))]


def _value(aggregation: Aggregation, serde: Serde, slots: list[Column]) -> Column:
    if aggregation.is_count:
        return encoded(serde, slots[0], "bigint")
    return arrow_call("binary", _result, (aggregation, serde), *slots)


class WindowForm(NamedTuple):
    """A window kind on the relational path.

    Parameters
    ----------
    span : callable
        `span(windows)` returns the column of windows, by which Spark groups.
    key : callable
        `key(start)` returns the serialized windowed key of a group, which has the columns `key` and `timestamp`. The
        latter is the latest time of the window.
    end : callable
        `end()` returns the end of the window as a time.
    """

    span: Callable[[Any], Column]
    key: Callable[[Column], Column]
    end: Callable[[], Column]


def _time_span(windows: TimeWindows) -> Column:
    return F.window(EVENT_TIME, f"{windows.size_ms} milliseconds", f"{windows.advance_ms} milliseconds")


def _time_key(start: Column) -> Column:
    """Serialize a key and the start of its window, as `TimeWindowedSerde` does."""
    return F.concat(F.col("key"), encode_int(start))


def _session_span(windows: SessionWindows) -> Column:
    """Return Spark's session window with a gap that is 1 ms longer, since Spark excludes the end of a gap."""
    return F.session_window(EVENT_TIME, f"{windows.gap_ms + 1} milliseconds")


def _session_key(start: Column) -> Column:
    """Serialize a key, and the end and the start of its session, as `SessionWindowedSerde` does."""
    return F.concat(F.col("key"), encode_int(F.col("timestamp")), encode_int(start))


def _result(aggregation: Aggregation, serde: Serde, *slots: pa.Array) -> pa.Array:
    initial = aggregation.initial()
    states = zip(*(slot.to_pylist() for slot in slots), strict=True)
    return serde.encode_rows([aggregation.result(_filled(state, initial)) for state in states])


def _filled(state: Iterable[object], initial: Iterable[object]) -> tuple[object, ...]:
    """Return the aggregates of a window, with the initial value in place of null."""
    return tuple(empty if value is None else value for value, empty in zip(state, initial, strict=True))


def check_windowed_aggregate(node: g.WindowedAggregate, typed: TypedGraph) -> str | None:
    if type(node.windows) not in _FORMS_OF_WINDOWS:
        return _WINDOWS.get(type(node.windows), "Spark has no windows of this kind")
    return _check_by_expression(node, typed) if by_expression(node, typed) else _NO_EXPRESSIONS


def _check_by_expression(node: g.WindowedAggregate, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    input_types = typed.of_parent(node)
    slots = _slots(node, input_types)
    refused = first_reason(refusal(slot) for slot in slots)
    if refused is not None:
        return refused
    reads = (undecodable(leaf, input_types) for slot in slots for leaf in slot.leaves)
    return first_reason(reads) or unknown_type(types.key, "key") or unknown_type(types.value, "value")


def check_suppress(node: g.Suppress, typed: TypedGraph) -> str | None:
    parent = typed.graph[node.parents[0]]
    if not isinstance(parent, g.WindowedAggregate) or not is_final(parent, typed):
        return "it suppresses a change stream"
    return None


def check_to_stream(node: g.ToStream, typed: TypedGraph) -> str | None:
    parent = typed.graph[node.parents[0]]
    final = isinstance(parent, g.Suppress) and ends_windows(parent, typed)
    return None if final or isinstance(parent, (*AGGREGATES, *ROWS_OF_RECORDS, *VIEWS)) else CHANGE_STREAM


def slots_of(node: g.WindowedAggregate, input_types: Types) -> Aggregation:
    """Return the aggregation of a node if it consists of expressions."""
    return counting() if isinstance(node.aggregation, g.Count) else expression_aggregation(node, input_types)


def _slots(node: g.WindowedAggregate, input_types: Types) -> tuple[Expr, ...]:
    return slots_of(node, input_types).slots


UPDATES = (
    "updates of expressions are emitted once per step for every window that changed, updates of sessions for every "
    "record; functions and updates of sessions drop a record at the epoch itself; results of expressions have no "
    "headers"
)

_NO_EXPRESSIONS = "Spark aggregates expressions, and emits sessions when they are closed, not their updates"

_WINDOWS: dict[type, str] = {
    UnlimitedWindows: "its windows have no end",
    SlidingWindows: "Spark has no windows around each record",
}
"""The reasons why window kinds have no form in Spark."""

_FORMS_OF_WINDOWS: dict[type, WindowForm] = {
    TimeWindows: WindowForm(_time_span, _time_key, lambda: F.col("_window.end")),
    SessionWindows: WindowForm(_session_span, _session_key, lambda: F.timestamp_millis("timestamp")),
}

FORMS: dict[type[g.Node], SparkForm] = {
    g.WindowedAggregate: SparkForm(
        check=check_windowed_aggregate, lower=windowed_aggregate, difference=f"{LATE.format(done='counted')}; {UPDATES}"
    ),
    g.Suppress: SparkForm(check=check_suppress, lower=pass_on),
    g.ToStream: SparkForm(check=check_to_stream, lower=pass_on),
}
