"""Aggregations by key and joins of a stream with a table: Python processes each key, and Spark keeps the state."""

from __future__ import annotations

from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.operator import SparkForm
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.keyed_state import NO_STATE, KeyedState, KeyRecord, SavedState, by_key
from kstreams.runtime.spark.relational.lowering import RelationalLowering
from kstreams.runtime.spark.relational.readable import unknown_type, unreadable_join
from kstreams.runtime.spark.relational.rules.record_aggregation import RecordAggregation
from kstreams.runtime.spark.relational.rules.tables import ROWS_OF_RECORDS, VIEWS
from kstreams.runtime.spark.relational.rules.tasks_only import OUT_OF_ORDER, UNCOUNTED
from kstreams.runtime.spark.relational.user_function import UserFunction
from kstreams.serdes import Serde

TABLE = 0
STREAM = 1


def stream_aggregate(node: g.StreamAggregate, build: RelationalLowering) -> Frame:
    """Emit the new aggregate of a key for every record."""
    frame = build.parent(node)
    aggregation = RecordAggregation.of(node, build)
    present = frame.where(F.col("key").isNotNull() & F.col("value").isNotNull())
    return Frame(by_key([present], _Aggregate, (aggregation,)), frame.key, aggregation.result)


class _Aggregate(KeyedState):
    """The state of an aggregation: the aggregate of a key, None at first."""

    def __init__(self, aggregation: RecordAggregation, key: bytes, saved: SavedState, latest_ms: int) -> None:
        self._aggregation = aggregation
        self._latest_of_key_ms = saved.timestamp
        self._value = None if saved.state is None else aggregation.deserialized(saved.state)

    def take(self, record: KeyRecord) -> list[KeyRecord]:
        aggregation = self._aggregation
        latest_ms = max(self._latest_of_key_ms, record.timestamp)
        new = aggregation.aggregated(record, aggregation.initial() if self._value is None else self._value)
        self._value = new
        self._latest_of_key_ms = NO_STATE.timestamp if new is None else latest_ms
        return [record._replace(value=aggregation.serialized_result(new), timestamp=latest_ms)]

    def saved_state(self) -> SavedState:
        if self._value is None:
            return NO_STATE
        return SavedState(self._aggregation.serialized(self._value), self._latest_of_key_ms)


class _Lookup(NamedTuple):
    """A join with a table.

    Parameters
    ----------
    joiner : UserFunction
    with_key : bool
        True if the joiner takes the key.
    left_outer : bool
        True if records without a row in the table are emitted.
    result : Serde
        The serde of joined values.
    """

    joiner: UserFunction
    with_key: bool
    left_outer: bool
    result: Serde


def stream_table_join(node: g.StreamTableJoin, build: RelationalLowering) -> Frame:
    """Store the rows of the table by key, and join each record of the stream with the current row of its key."""
    stream = build.parent(node, 0)
    table = build.parent(node, 1)
    result = build.serde(node, "value")
    joiner, with_key = build.joiner(node)
    reads = (stream.key, stream.value, table.value) if with_key else (stream.value, table.value)
    lookup = _Lookup(build.function(node, joiner, reads), with_key, node.left_outer, result)
    is_joined = F.col("value").isNotNull() if node.left_outer else F.col("key").isNotNull() & F.col("value").isNotNull()
    sides = [table, stream.where(is_joined)]
    return Frame(by_key(sides, _Row, (lookup,)), stream.key, result)


class _Row(KeyedState):
    """The state of a join: the row of the table for a key."""

    def __init__(self, lookup: _Lookup, key: bytes | None, saved: SavedState, latest_ms: int) -> None:
        self._lookup = lookup
        self._saved = saved

    def take(self, record: KeyRecord) -> list[KeyRecord]:
        lookup = self._lookup
        row = self._saved.state
        if record.side == TABLE:
            self._saved = SavedState(record.value, record.timestamp)
            return []
        if row is None and not lookup.left_outer:
            return []
        key = (record.key,) if lookup.with_key else ()
        joined = lookup.joiner.of_record((record.origin, record.offset), (*key, record.value, row))
        return [record._replace(value=None if joined is None else lookup.result.serialize(joined))]

    def saved_state(self) -> SavedState:
        return self._saved


def check_aggregate(node: g.StreamAggregate | g.WindowedAggregate, typed: TypedGraph) -> str | None:
    types = typed.types[node.name]
    input_types = typed.of_parent(node)
    return (
        unknown_type(input_types.key.or_declared(node.grouped.key, node), "key")
        or unknown_type(input_types.value.or_declared(node.grouped.value, node), "value")
        or unknown_type(types.value, "result")
    )


def check_stream_table_join(node: g.StreamTableJoin, typed: TypedGraph) -> str | None:
    if node.grace_ms is not None:
        return "it waits for versions of the table"
    if not isinstance(typed.graph[node.parents[1]], (*ROWS_OF_RECORDS, *VIEWS)):
        return "it joins with a table that is computed"
    return unreadable_join(node, typed)


AS_RECORDS = f"every record emits an update, as without the record cache; {UNCOUNTED}"
ROW_FIRST = f"a row of the table is processed before a record of the same time; {UNCOUNTED}"

FORMS: dict[type[g.Node], SparkForm] = {
    g.StreamAggregate: SparkForm(check=check_aggregate, lower=stream_aggregate, difference=AS_RECORDS),
    g.StreamTableJoin: SparkForm(
        check=check_stream_table_join, lower=stream_table_join, difference=ROW_FIRST, task_difference=OUT_OF_ORDER
    ),
    g.LeftStreamTableJoin: SparkForm(
        check=check_stream_table_join, lower=stream_table_join, difference=ROW_FIRST, task_difference=OUT_OF_ORDER
    ),
}
