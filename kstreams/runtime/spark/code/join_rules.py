"""The rules of joins: two streams by a range of time, and a stream with a table as of each batch."""

from __future__ import annotations

from dataclasses import replace

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.dsl.operator import Difference, SparkForm
from kstreams.expressions import Operation
from kstreams.runtime.spark.code.columns import in_quotes
from kstreams.runtime.spark.code.rows import Rows, Stream
from kstreams.runtime.spark.code.stateless_rules import (
    KEY_IS_THERE,
    decoded,
    filtered_rows,
    in_parentheses,
    mapped_rows,
)
from kstreams.runtime.spark.code.unsayable import Unsayable
from kstreams.runtime.spark.code.writing import CodeWriter

_LEFT_AND_RIGHT = {
    Operation.VALUE: "left",
    Operation.FIELD: "left",
    Operation.RIGHT: "right",
    Operation.RIGHT_FIELD: "right",
}
"""The columns of the two values."""

VALUE_IS_THERE = '.where(F.col("value").isNotNull())'


def stream_join(node: g.StreamJoin | g.SelfJoin, build: CodeWriter) -> Stream:
    return _joined_streams(node, build, "inner", (KEY_IS_THERE, KEY_IS_THERE))


def outer_stream_join(node: g.OuterStreamJoin, build: CodeWriter) -> Stream:
    """Emit left records without a match too, when the watermark has passed their window."""
    if node.right_outer:
        return _joined_streams(node, build, "full", ("", ""))
    return _joined_streams(node, build, "left", ("", KEY_IS_THERE))


def _joined_streams(node: g.StreamJoin | g.SelfJoin, build: CodeWriter, how: str, filters: tuple[str, str]) -> Stream:
    left = build.parent(node)
    right = build.parent(node, 1)
    build.require_no_state(node, left, right)
    sides = [
        Rows(node, "{0}", (stream.rows,), (*filter(None, (key_filter,)), VALUE_IS_THERE, _renamed(side)), side)
        for side, stream, key_filter in zip(("left", "right"), (left, right), filters, strict=True)
    ]
    before, after = (f'F.expr("INTERVAL {ms} MILLISECONDS")' for ms in (node.windows.before_ms, node.windows.after_ms))
    times = f'F.col("left_timestamp") - {before}, F.col("left_timestamp") + {after}'
    condition = f'(F.col("left_key") == F.col("right_key")) & F.col("right_timestamp").between({times})'
    keyed = replace(left, rows=sides[0])
    value = build.value_column(node.joiner, keyed, node, _LEFT_AND_RIGHT)
    columns = ", ".join(
        [
            f'{_JOINED_KEY[how]}.alias("key")',
            f'{in_parentheses(value)}.alias("value")',
            'F.greatest("left_timestamp", "right_timestamp").alias("timestamp")',
        ]
    )
    join = f'{{0}}.join({{1}}, {condition}, "{how}")'
    rows = Rows(node, join, (sides[0], sides[1]), (f".select({columns})",))
    return replace(left, rows=rows, value=build.serde(node, "value"), is_checked=False, has_state=True)


_JOINED_KEY = {
    "inner": 'F.col("left_key")',
    "left": 'F.col("left_key")',
    "full": 'F.coalesce("left_key", "right_key")',
}


def _renamed(side: str) -> str:
    columns = {"key": f"{side}_key", "value": side, "timestamp": f"{side}_timestamp"}
    named = (f'F.col("{name}").alias("{new}")' for name, new in columns.items())
    return f".select({', '.join(named)})"


def _table(node: Node, build: CodeWriter) -> Stream:
    """Return the rows of a table as of the batch that asks for it, of which some may be null."""
    if isinstance(node, g.TableFilter | g.TableMapValues):
        rows = _table(build.typed.graph[node.parents[0]], build)
        return filtered_rows(node, rows, build) if isinstance(node, g.TableFilter) else mapped_rows(node, rows, build)
    if not isinstance(node, g.TableSource | g.GlobalTableSource):
        raise Unsayable(f"its table comes from {node.called}: write it to a topic, and read that as a table")
    if node.consumed.timestamp_extractor is not None:
        raise Unsayable("its timestamp extractor is a Python function")
    if build.skips_unreadable and not build.takes_all_bytes(node):
        raise Unsayable(
            "a record that cannot be read leaves the row before it in a table, and only tasks keep that row"
        )
    return decoded(node, f"read_table({in_quotes(node.topic)})", build)


def stream_table_join(node: g.StreamTableJoin, build: CodeWriter) -> Stream:
    if node.grace_ms is not None:
        raise Unsayable("it waits for versions of the table")
    return _joined_with_table(node, build, '"key"')


def global_table_join(node: g.GlobalTableJoin, build: CodeWriter) -> Stream:
    if node.with_mapped_key:
        raise Unsayable("its joiner takes the mapped key")
    stream = build.parent(node)
    table = _table_of(node, build)
    selected = build.column(node.key_selector, stream, node)
    return _joined_with_table(node, build, build.codecs.encoded(table.key, in_parentheses(selected), is_checked=True))


def _joined_with_table(node: g.StreamTableJoin | g.GlobalTableJoin, build: CodeWriter, table_key: str) -> Stream:
    stream = build.parent(node)
    table = _table_of(node, build)
    if stream.window is not None:
        raise Unsayable("its keys have windows")
    keyed = f'.withColumns({{"left": F.col("value"), "table_key": {_as_column(table_key)}}})'
    left = Rows(node, "{0}", (stream.rows,), (VALUE_IS_THERE, keyed), "left")
    renamed = '.select(F.col("key").alias("table_key"), F.col("value").alias("right"))'
    has_all_rows = isinstance(build.typed.graph[node.parents[1]], g.TableSource | g.GlobalTableSource)
    right = Rows(node, "{0}", (table.rows,), (renamed,) if has_all_rows else (VALUE_IS_THERE, renamed), "right")
    value = build.value_column(node.joiner, stream, node, _LEFT_AND_RIGHT)
    how = "left" if node.left_outer else "inner"
    join = f'{{0}}.join(F.broadcast({{1}}), "table_key", "{how}")'
    columns = f'.select("key", {in_parentheses(value)}.alias("value"), "timestamp")'
    rows = Rows(node, join, (left, right), (columns,))
    return replace(stream, rows=rows, value=build.serde(node, "value"), is_checked=False)


def _table_of(node: Node, build: CodeWriter) -> Stream:
    return _table(build.typed.graph[node.parents[1]], build)


def _as_column(column: str) -> str:
    return f"F.col({column})" if column.startswith('"') else column


_LATE = "a record that is late by less than a batch is joined; pairs of one batch are in no particular order"
_UNMATCHED = (
    "a record without a match waits until its grace is over, and for the partition that is furthest behind, where the "
    "native engine gives a late one at once, and its match too"
)
OUT_OF_ORDER = "next to a repartition topic, a record out of order may come after later records of the other topic"
"""The difference in tasks: a step takes all topics up to one time, but a repartitioned record may be older."""

_STREAMS = SparkForm(write=stream_join, differences=(Difference("late", _LATE),), task_difference=OUT_OF_ORDER)
_SELF = SparkForm(write=stream_join, differences=(Difference("late", _LATE),))
_AS_OF_BATCH = (Difference("table", "a record meets the table as of its batch, not as of its own time"),)
_TABLE = SparkForm(write=stream_table_join, differences=_AS_OF_BATCH, task_difference=OUT_OF_ORDER)
_GLOBAL_TABLE = SparkForm(write=global_table_join, differences=_AS_OF_BATCH)

FORMS: dict[type[Node], SparkForm] = {
    g.StreamJoin: _STREAMS,
    g.OuterStreamJoin: SparkForm(
        write=outer_stream_join,
        differences=(Difference("late", f"{_LATE}; {_UNMATCHED}"),),
        task_difference=OUT_OF_ORDER,
    ),
    g.SelfJoin: _SELF,
    g.OuterSelfJoin: _SELF,
    g.StreamTableJoin: _TABLE,
    g.LeftStreamTableJoin: _TABLE,
    g.GlobalTableJoin: _GLOBAL_TABLE,
    g.LeftGlobalTableJoin: _GLOBAL_TABLE,
}
