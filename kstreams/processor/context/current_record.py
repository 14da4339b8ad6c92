"""`CurrentRecord`: the input record that a task is processing: its place, its headers, and the stream time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import length_hint
from typing import Any, TypeVar

from kstreams.processor.api.contexts import RecordContext
from kstreams.processor.api.error_handlers import ErrorHandlerContext, outside_of_records
from kstreams.processor.context.record_cursor import DelayedRecord, Origin, RecordCursor
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers, RecordMetadata

R = TypeVar("R", bound=tuple[Any, ...])


class CurrentRecord:
    """The position of a task in its input.

    There is no record in punctuators and at flushes: topic and cursor are None there.

    Parameters
    ----------
    task_id : str
    partition : int
        Of the task.
    stream_time : int
        The highest timestamp (ms) that the task has processed, -1 at first.
    reached : int
        How far it has come in the order in which tasks take records, -1 at first: the stream time, but that records
        which a task wrote stand at the time that this task had reached.

    Attributes
    ----------
    cursor : RecordCursor or None
        The position in the batch that is being processed.
    headers : sequence of (str, bytes or None)
        Those that an operator passes on. The loop over the records sets them; `forward_with`, `forward_held` and record
        caches replace them for records that an operator has kept.
    emitted_key : object
        The key of the update that a flush of the record cache passes on, which errors name; None elsewhere.
    reached : int
        By what rows that are written now stand among those of other tasks: how far the task has come, `AT_FLUSH` or
        `at_end` (see `WrittenTimes`). It is kept for each record where a topic that is written `merges`, else for each
        batch.
    """

    __slots__ = ("_partition", "_reached", "_stream_time", "_task_id", "cursor", "emitted_key", "headers", "reached")

    def __init__(self, task_id: str, partition: int, stream_time: int, reached: int) -> None:
        self._task_id = task_id
        self._partition = partition
        self._stream_time = stream_time
        self.reached = self._reached = reached
        self.cursor: RecordCursor | None = None
        self.headers: Headers = ()
        self.emitted_key: Any = None

    # its place

    @property
    def topic(self) -> str | None:
        """The topic of the input record; None outside of any record."""
        return None if self.cursor is None else self.cursor.topic

    @property
    def partition(self) -> int:
        """The partition of the task."""
        return self._partition

    @property
    def offset(self) -> int:
        """The offset of the input record, -1 outside of any record."""
        return -1 if self.cursor is None else self.cursor.offset

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) processed so far, with the current record; -1 at first."""
        return self._stream_time if self.cursor is None else self.cursor.stream_time

    def place(self) -> str:
        """Where the input record came from, as errors and log lines name it."""
        if self.cursor is None:
            return outside_of_records(self.emitted_key)
        return f"{self.topic}-{self._partition}@{self.offset}"

    def metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the input record; None outside of any record."""
        return None if self.cursor is None else RecordMetadata(self.cursor.topic, self._partition, self.offset)

    def context(self, timestamp: int) -> RecordContext:
        """What a function that chooses a topic is given, with the time of the record that is written."""
        return RecordContext(self.topic, self._partition, self.offset, timestamp, self.headers)

    def origin(self) -> Origin:
        """The current record, to be found again when the loop has gone on."""
        cursor = self.cursor
        return cursor, 0 if cursor is None else length_hint(cursor.timestamps), self.headers

    def error_context(self, node: str, timestamp: int | None = None) -> ErrorHandlerContext:
        """What a handler is given when an operator fails on the current record, or drops it."""
        return self.error_context_of(self.origin(), node, timestamp)

    def error_context_of(self, origin: Origin, node: str, timestamp: int | None = None) -> ErrorHandlerContext:
        """The same of a record that was the current one."""
        cursor, remaining_rows, headers = origin
        if cursor is None:
            error_context = ErrorHandlerContext(
                timestamp=self.stream_time,
                processor_node_id=node,
                task_id=self._task_id,
                emitted_key=self.emitted_key,
            )
        else:
            row = int(cursor.batch.offsets.searchsorted(cursor.offsets[len(cursor.offsets) - 1 - remaining_rows]))
            error_context = ErrorHandlerContext.of_row(cursor.batch, row, node, self._task_id)
        return replace(
            error_context, headers=headers, timestamp=error_context.timestamp if timestamp is None else timestamp
        )

    # the loop over the records

    def move_to(self, cursor: RecordCursor) -> None:
        """The records of this cursor are processed from now on."""
        self.cursor = cursor

    def following(self, rows: Iterable[object], reached: list[int]) -> Iterator[object]:
        """The rows of some records; with each, the task has come as far as is said for it."""
        for row, self.reached in zip(rows, reached, strict=False):
            yield row

    def leave(self) -> None:
        """No record is being processed any more."""
        # One that was held back stands before others: stream time does not go back to it.
        self._stream_time = max(self._stream_time, self.stream_time)
        self.reached = self._reached = max(self._reached, self.reached)
        self.cursor = None
        self.headers = ()
        self.emitted_key = None

    def stop_at(self, cursors: Iterable[RecordCursor]) -> None:
        """The loop was interrupted: stream time is that of the records which were taken, and no record is current."""
        reached = [cursor.stream_time for cursor in cursors if cursor.taken]
        self._stream_time = max(self._stream_time, *reached, -1)
        self.cursor = None

    def suspend(self) -> RecordCursor | None:
        """Between two records: there is none until `move_to` is called with what this returns."""
        self._stream_time = max(self._stream_time, self.stream_time)
        cursor, self.cursor, self.headers = self.cursor, None, ()
        return cursor

    def advance(self, elapsed_ms: int) -> bool:
        """All input is idle: let stream time go on; whether it has begun."""
        if self._stream_time < 0:
            return False
        self._stream_time += elapsed_ms
        self.reached = max(self.reached, self._stream_time)
        return True

    # records that an operator has kept

    def forward_with(self, headers: Headers, forward: Forward, key: object, value: object, timestamp: int) -> None:
        """Forward a record under these headers; those of the current record are back afterwards."""
        before, self.headers = self.headers, headers
        try:
            forward(key, value, timestamp)
        finally:
            self.headers = before

    def hold(self, key: object, value: object, timestamp: int) -> DelayedRecord:
        """The current record with its headers and its place, for an operator that forwards it later."""
        cursor = self.cursor
        at = None if cursor is None else cursor.at_record()
        return DelayedRecord(key, value, timestamp, self.headers, at, self.reached)

    def forward_held(self, forward: Forward, held: DelayedRecord, value: object) -> None:
        """Forward a held record with a new value, as if it had just been read.

        After a failure it stays the current record, which errors name.
        """
        cursor = self.cursor
        headers = self.headers
        reached = self.reached
        self.cursor = held.cursor
        self.headers = held.headers
        self.reached = held.reached
        forward(held.key, value, held.timestamp)
        self.cursor = cursor
        self.headers = headers
        self.reached = reached
