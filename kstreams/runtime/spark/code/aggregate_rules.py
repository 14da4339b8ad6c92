"""The rules of aggregations by expression: by key, in windows of time and in sessions; and of deduplication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.dsl.operator import Difference, SparkForm
from kstreams.dsl.sugar.deduplication import key_of
from kstreams.expressions import Operation, Schema, type_of
from kstreams.runtime.spark.code.columns import aliased, stored_term
from kstreams.runtime.spark.code.rows import Rows, Stream, Window
from kstreams.runtime.spark.code.stateless_rules import KEY_IS_THERE
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.unsayable import Unsayable
from kstreams.runtime.spark.code.windowed_query import emits_updates, ends_windows, is_final
from kstreams.runtime.spark.code.writing import CodeWriter
from kstreams.windows import SessionWindows, TimeWindows, Windows

_FUNCTIONS = "it aggregates by a Python function"


class _Span(NamedTuple):
    """The text of the windows by which Spark groups, and of the condition that their results must meet, if any."""

    text: str
    kind: Window
    calls: tuple[str, ...] = ()


def stream_aggregate(node: g.StreamAggregate, build: CodeWriter) -> Stream:
    """Aggregate the records of each key; with each batch the new value of every key that changed is written."""
    stream = build.parent(node)
    build.require_no_state(node, stream)
    present = '.where(F.col("key").isNotNull() & F.col("value").isNotNull())'
    grouped = stream.then(node, present, '.groupBy("key")', _aggregates(node, stream, build))
    return replace(
        grouped,
        key=build.serde(node, "key"),
        value=build.serde(node, "value"),
        is_checked=False,
        mode="update",
        has_state=True,
    )


def windowed_aggregate(node: g.WindowedAggregate, build: CodeWriter) -> Stream:
    """Aggregate the records of each key and window: updates with each batch, or the last result of closed windows."""
    stream = build.parent(node)
    build.require_no_state(node, stream)
    if stream.window is not None:
        raise Unsayable("its keys have windows")
    is_last = is_final(node, build.typed)
    span = _span(node.windows, is_last=is_last)
    by_window = f'.groupBy({span.text}.alias("window"), "key")'
    grouped = stream.then(node, KEY_IS_THERE, by_window, _aggregates(node, stream, build), *span.calls)
    return replace(
        grouped,
        key=build.key_serde(node),
        value=build.serde(node, "value"),
        is_checked=False,
        window=span.kind,
        mode="append" if is_last else "update",
        has_state=True,
    )


def _span(windows: Windows, *, is_last: bool) -> _Span:
    if isinstance(windows, TimeWindows) and windows.size_ms == windows.advance_ms:
        return _Span(f'F.window("timestamp", "{windows.size_ms} milliseconds")', Window.TIME)
    if isinstance(windows, TimeWindows):
        span = f'F.window("timestamp", "{windows.size_ms} milliseconds", "{windows.advance_ms} milliseconds")'
        since_epoch = '.where(F.col("window.start") >= F.timestamp_millis(F.lit(0)))'
        return _Span(span, Window.TIME, (since_epoch,))
    if not isinstance(windows, SessionWindows):
        raise Unsayable("Spark has no windows of this kind")
    if not is_last:
        raise Unsayable("Spark emits sessions when they are closed, not their updates: add suppress() or emit on close")
    # Spark excludes the end of a gap, Kafka Streams includes it.
    return _Span(f'F.session_window("timestamp", "{windows.gap_ms + 1} milliseconds")', Window.SESSION)


def _aggregates(node: g.StreamAggregate | g.WindowedAggregate, stream: Stream, build: CodeWriter) -> str:
    value = _COLUMNS.get(type(node.aggregation), _by_function)(node, stream, build)
    return f'.agg({value}, F.max("timestamp").alias("timestamp"))'


def _count(node: Node, stream: Stream, build: CodeWriter) -> str:
    return 'F.count(F.lit(1)).alias("value")'


def _expressions(node: g.StreamAggregate | g.WindowedAggregate, stream: Stream, build: CodeWriter) -> str:
    assert isinstance(node.aggregation, g.Expressions)
    leaf = build.leaf(stream)
    schema = build.schema(node)
    terms = {name: stored_term(expr, leaf, schema) for name, expr in node.aggregation.fields.items()}
    return aliased(build.struct(terms, build.serde(node, "value")), "value")


def _by_function(node: Node, stream: Stream, build: CodeWriter) -> str:
    raise Unsayable(_FUNCTIONS)


_COLUMNS: dict[type, Callable[..., str]] = {g.Count: _count, g.Expressions: _expressions}


def suppress(node: g.Suppress, build: CodeWriter) -> Stream:
    """Pass on what Spark emits when a window is closed."""
    parent = build.typed.graph[node.parents[0]]
    if not ends_windows(node, build.typed) or not isinstance(parent, g.WindowedAggregate):
        raise Unsayable("it suppresses updates for a time")
    return build.parent(node)


def to_stream(node: g.ToStream, build: CodeWriter) -> Stream:
    return build.parent(node)


def deduplicate(node: g.Deduplicate, build: CodeWriter) -> Stream:
    """Take the first record of each key within a time; a record without a key has no repeats."""
    stream = build.parent(node)
    build.require_no_state(node, stream)
    if node.supplier.part is not key_of:
        raise Unsayable("it calls a Python function")
    if stream.window is not None:
        raise Unsayable("its keys have windows")
    first = '{0}.where(F.col("key").isNotNull()).dropDuplicatesWithinWatermark(["key"])'
    without_key = '.unionByName({0}.where(F.col("key").isNull()))'
    return replace(stream, rows=Rows(node, first + without_key, (stream.rows,)), has_state=True)


def _adds_fractions(node: g.StreamAggregate | g.WindowedAggregate, typed: TypedGraph) -> bool:
    """Return True if an aggregation adds fractions."""
    if not isinstance(node.aggregation, g.Expressions):
        return False
    types = typed.of_parent(node)
    key = types.key.or_declared(node.grouped.key, node)
    schema = Schema(key.python, types.value.or_declared(node.grouped.value, node).python)
    parts = (part for expr in node.aggregation.fields.values() for part in expr.walk())
    return any(part.operation in _SUMS and type_of(part, schema).kind is float for part in parts)


_SUMS = (Operation.SUM,)
_FRACTIONS = Difference(
    "order", "fractions are added in no particular order, so that a sum may differ in its last digit", _adds_fractions
)

FORMS: dict[type[Node], SparkForm] = {
    g.StreamAggregate: SparkForm(
        write=stream_aggregate,
        differences=(Difference("updates", "one update for each key and batch, in no particular order"), _FRACTIONS),
    ),
    g.WindowedAggregate: SparkForm(
        write=windowed_aggregate,
        differences=(
            Difference(
                "late",
                "a record that is late by less than a batch is counted; final results wait for the partition that is "
                "furthest behind, whose time passes with records that a filter removes too; those of one batch are in "
                "no particular order",
            ),
            Difference("updates", "one update for each window and batch, in no particular order", emits_updates),
            _FRACTIONS,
        ),
    ),
    g.Deduplicate: SparkForm(
        write=deduplicate,
        differences=(
            Difference(
                "repeats",
                "a repeat is dropped until the watermark has passed twice the time, and so is what comes later than "
                "that; which of the repeats of one batch remains is not determined",
            ),
        ),
    ),
    g.Suppress: SparkForm(write=suppress),
    g.ToStream: SparkForm(write=to_stream),
}
