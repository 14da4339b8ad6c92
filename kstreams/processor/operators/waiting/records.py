"""The way of a record into a store of waiting records and back: with its headers and its place in the input."""

from __future__ import annotations

import numpy as np

from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.context.current_record import CurrentRecord, DelayedRecord, RecordCursor
from kstreams.record import Headers
from kstreams.state.kinds.waiting_records import WaitingRecord, WaitingRecordStore


class WaitingRecords:
    """Makes waiting records of the records that one operator takes, and records to forward of waiting ones.

    Parameters
    ----------
    store : WaitingRecordStore
    current : CurrentRecord
        The current record of the task.
    """

    def __init__(self, store: WaitingRecordStore, current: CurrentRecord) -> None:
        self._store = store
        self._current = current

    def of_current(self, key: object, value: object, timestamp: int, *, since_ms: int, due_ms: int) -> WaitingRecord:
        """Return the waiting record of a record that the operator is processing."""
        current = self._current
        return WaitingRecord(
            key=self._store.key_bytes(key),
            value=self._store.value_bytes(value),
            timestamp=timestamp,
            headers=_as_tuples(current.headers),
            topic=current.topic,
            partition=current.partition,
            offset=current.offset,
            since_ms=since_ms,
            due_ms=due_ms,
        )

    def to_forward(self, record: WaitingRecord) -> DelayedRecord:
        """Return a waiting record for `CurrentRecord.forward_held`, so that it counts as just read."""
        key = self._store.key_of(record)
        value = self._store.value_of(record)
        current = self._current
        cursor = self._cursor(record)
        return DelayedRecord(key, value, record.timestamp, record.headers, cursor, current.reached, current.rank)

    def _cursor(self, record: WaitingRecord) -> RecordCursor | None:
        if record.topic is None:
            return None
        row = Row(record.key, record.value, record.timestamp, record.headers)
        batch = Batch.of_rows(TopicPartition(record.topic, record.partition), [row], record.offset)
        return RecordCursor(batch, batch.offsets, np.array([self._current.stream_time], dtype=np.int64), [])


def _as_tuples(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((name, value) for name, value in headers)
