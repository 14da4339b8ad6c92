"""The rules of aggregations by expression: of all records of a key, in windows of time, and in sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.columns import aliased, stored_term
from kstreams.runtime.spark.code.rows import Stream, Window
from kstreams.runtime.spark.code.stateless_rules import KEY_IS_THERE
from kstreams.runtime.spark.code.unsayable import Unsayable
from kstreams.runtime.spark.code.windowed_query import ends_windows, is_final
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


AGGREGATES: dict[type[Node], Callable[..., Stream]] = {
    g.StreamAggregate: stream_aggregate,
    g.WindowedAggregate: windowed_aggregate,
    g.Suppress: suppress,
    g.ToStream: to_stream,
}

DIFFERENCES: dict[type[Node], str] = {
    g.StreamAggregate: "one update per key and batch",
    g.WindowedAggregate: (
        "one update per window and batch; a record that is late by less than a batch is counted; windows with final "
        "results wait for the partition that is furthest behind"
    ),
}
