"""`WaitingRows`: the rows of a sink's partition that wait, in a partition of an internal topic.

Each `WaitingRow` has the offset of its record in the topic of the sink. Of several records for one offset the last one
counts. Records before the offset that the target holds for this topic are over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kstreams.connectors.positions import rows_of
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.kernel.retry import NEVER_CALLED, Attempts
from kstreams.log.api import Log

_STATE = "__connect.waiting"


class WaitingRow(NamedTuple):
    """A row that waits for its next attempt, or behind another row of its key.

    Parameters
    ----------
    offset : int
        The offset of its record in the topic of the sink.
    record : Row
    attempts : Attempts
    due_ms : int
        The time of day of the next attempt. 0 if the row only waits for its turn.
    error : str
        The last error. Empty if there was none.
    """

    offset: int
    record: Row
    attempts: Attempts = NEVER_CALLED
    due_ms: int = 0
    error: str = ""

    @property
    def order(self) -> bytes | int:
        """What the rows have in common that are written in their order: the key. Each row without a key is alone."""
        return self.offset if self.record.key is None else self.record.key


class _State(msgspec.Struct):
    """What the header of a waiting row tells."""

    task: str
    offset: int
    calls: int
    first_ms: int
    last_ms: int
    due_ms: int
    error: str


class WaitingRows:
    """The waiting rows of one task. The transactional id belongs to the task, so that a former owner adds no more.

    Parameters
    ----------
    log : Log
    place : TopicPartition
        The partition of the waiting topic.
    task : str
        The id of the task, which differs after a reset of the application.
    transactional_id : str
    """

    def __init__(self, log: Log, place: TopicPartition, task: str, transactional_id: str) -> None:
        self._log = log
        self._place = place
        self._task = task
        self._producer = log.producer({"transactional.id": transactional_id})

    def read(self, first_offset: int | None) -> dict[int, WaitingRow]:
        """Return the rows of this task, by the offsets of their records.

        Parameters
        ----------
        first_offset : int or None
            Where to begin in the waiting topic. None for its beginning.
        """
        records = rows_of(self._log, self._place, first_offset or 0)
        return {row.offset: row for record in records for row in self._own(record)}

    def end(self) -> int:
        """Return an offset after all rows so far."""
        with self._log.admin() as admin:
            return admin.end_offsets([self._place], committed_only=False)[self._place]

    def add(self, rows: Sequence[WaitingRow]) -> None:
        """Add rows in one transaction."""
        if not rows:
            return
        self._producer.begin_transaction()
        for row in rows:
            calls = row.attempts
            state = _State(self._task, row.offset, calls.calls, calls.first_ms, calls.last_ms, row.due_ms, row.error)
            self._producer.send(
                self._place.topic,
                row.record.key,
                row.record.value,
                timestamp=row.record.timestamp,
                headers=(*row.record.headers, (_STATE, msgspec.json.encode(state))),
                partition=self._place.partition,
            )
        self._producer.commit_transaction()

    def close(self) -> None:
        """Abort an open transaction, and close the producer."""
        self._producer.close()

    def _own(self, record: Row) -> Iterator[WaitingRow]:
        _, content = record.headers[-1]
        state = decode_json(content or b"", _State)
        if state.task == self._task:
            own = record._replace(headers=record.headers[:-1])
            attempts = Attempts(state.calls, state.first_ms, state.last_ms)
            yield WaitingRow(state.offset, own, attempts, state.due_ms, state.error)


def batch_of(source: TopicPartition, rows: Iterable[WaitingRow]) -> Batch:
    """Return the records of rows, as they are in the topic of the sink."""
    records = list(rows)
    batch = Batch.of_rows(source, [row.record for row in records])
    batch.offsets = np.array([row.offset for row in records], np.int64)
    return batch
