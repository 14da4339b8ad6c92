"""`CurrentRecord`: the input record that a task is processing: its place, its headers, and the stream time.

`RecordCursor` is its position in a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import length_hint
from typing import NamedTuple, TypeAlias

from kstreams.kernel.batch import Batch, Integers
from kstreams.processor.api.contexts import RecordContext
from kstreams.processor.api.error_handlers import ErrorHandlerContext, outside_of_records
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers, RecordMetadata


class RecordCursor:
    """A position within records of one batch, which are processed one by one.

    Offset and stream time are looked up only when they are read, so that they cost no time per record.

    Parameters
    ----------
    batch : Batch
        The batch that was read; the cursor moves over some of its records, or all.
    offsets, stream_times : numpy int64 array, shape (n,)
        The offset of each record, and the highest timestamp up to this record.
    timestamps : list of int, length n
        Event time of each record in milliseconds; the loop takes them from the attribute `timestamps`.
    """

    __slots__ = ("batch", "offsets", "stream_times", "timestamps")

    def __init__(
        self,
        batch: Batch,
        offsets: Integers,
        stream_times: Integers,
        timestamps: list[int],
    ) -> None:
        self.batch = batch
        self.offsets = offsets
        self.stream_times = stream_times
        self.timestamps = iter(timestamps)

    @property
    def topic(self) -> str:
        """The topic of its records."""
        return self.batch.source.topic

    @property
    def row(self) -> int:
        """The row of the record that was taken last, from 0."""
        return len(self.offsets) - 1 - length_hint(self.timestamps)

    @property
    def taken(self) -> int:
        """The number of records that were taken."""
        return self.row + 1

    @property
    def offset(self) -> int:
        """The offset of the record that was taken last."""
        return int(self.offsets[self.row])

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) up to the record that was taken last."""
        return int(self.stream_times[self.row])

    def at_record(self) -> RecordCursor:
        """Return a cursor that stays at this record, for an operator that processes it after the loop has moved on."""
        row = self.row
        return RecordCursor(self.batch, self.offsets[row : row + 1], self.stream_times[row : row + 1], [])


Origin: TypeAlias = tuple[RecordCursor | None, int, Headers]
"""The identity of an input record: its cursor, the number of records after it, and the headers of its results.
If a handler may need it, one is created per written row, so it is a plain tuple."""


class DelayedRecord(NamedTuple):
    """A record that an operator holds back, with its headers, its place in the input, its progress and its rank."""

    key: object
    value: object
    timestamp: int
    headers: Headers
    cursor: RecordCursor | None
    reached: int
    rank: int


class CurrentRecord:
    """The position of a task in its input.

    Punctuators and flushes have no record: topic and cursor are None there.

    Parameters
    ----------
    task_id : str
    partition : int
        The partition of the task.
    stream_time : int
        The highest timestamp (ms) that the task has processed, -1 at first.
    reached : int
        The task's progress in the order in which tasks take records, -1 at first. This is the stream time, except
        that a record which another task wrote counts with the progress of that task when it wrote.

    Attributes
    ----------
    cursor : RecordCursor or None
        The position in the batch that is being processed.
    headers : sequence of (str, bytes or None)
        The headers that operators pass on. The loop over the records sets them; `forward_with`, `forward_held` and
        record caches replace them for records that an operator has stored.
    emitted_key : object
        The key of the update that a flush of the record cache forwards, for error messages; None elsewhere.
    reached : int
        The progress of the task, `AT_FLUSH` or `at_end` (see `WrittenTimes`). It sorts the rows that are written now
        among the rows of other tasks. It is updated per record if a written topic `merges`, else per batch.
    rank : int
        The order of the rows that are written now among others of the same progress (`Batch.ranks`). It is updated
        with `reached`, and 0 where records have no ranks.
    """

    __slots__ = (
        "_partition",
        "_reached",
        "_stream_time",
        "_task_id",
        "cursor",
        "emitted_key",
        "headers",
        "rank",
        "reached",
    )

    def __init__(self, task_id: str, partition: int, stream_time: int, reached: int) -> None:
        self._task_id = task_id
        self._partition = partition
        self._stream_time = stream_time
        self.reached = self._reached = reached
        self.rank = 0
        self.cursor: RecordCursor | None = None
        self.headers: Headers = ()
        self.emitted_key: object = None

    # place

    @property
    def topic(self) -> str | None:
        """The topic of the input record; None if there is no record."""
        return None if self.cursor is None else self.cursor.topic

    @property
    def partition(self) -> int:
        """The partition of the task."""
        return self._partition

    @property
    def offset(self) -> int:
        """The offset of the input record; -1 if there is no record."""
        return -1 if self.cursor is None else self.cursor.offset

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) processed so far, including the current record; -1 at first."""
        return self._stream_time if self.cursor is None else self.cursor.stream_time

    def place(self) -> str:
        """Return the place of the input record for errors and log lines."""
        if self.cursor is None:
            return outside_of_records(self.emitted_key)
        return f"{self.topic}-{self._partition}@{self.offset}"

    def metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the input record; None if there is no record."""
        return None if self.cursor is None else RecordMetadata(self.cursor.topic, self._partition, self.offset)

    def context(self, timestamp: int) -> RecordContext:
        """Return the argument of a function that chooses a topic, with the time of the record that is written."""
        return RecordContext(self.topic, self._partition, self.offset, timestamp, self.headers)

    def origin(self) -> Origin:
        """Return the current record as an `Origin`, which identifies it after the loop has moved on."""
        cursor = self.cursor
        return cursor, 0 if cursor is None else length_hint(cursor.timestamps), self.headers

    def error_context(self, node: str, timestamp: int | None = None) -> ErrorHandlerContext:
        """Return the context for a handler when an operator fails on the current record, or drops it."""
        return self.error_context_of(self.origin(), node, timestamp)

    def error_context_of(self, origin: Origin, node: str, timestamp: int | None = None) -> ErrorHandlerContext:
        """Return the error context of a record that was the current record."""
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
        """Process the records of this cursor from now on."""
        self.cursor = cursor

    def with_progress(self, rows: Iterable[object], reached: Integers, ranks: Integers | None) -> Iterator[object]:
        """Yield rows; before each row, set the progress of the task and its rank to those of the row."""
        if ranks is None:
            for row, self.reached in zip(rows, reached.tolist(), strict=False):
                yield row
        else:
            for row, self.reached, self.rank in zip(rows, reached.tolist(), ranks.tolist(), strict=False):
                yield row

    def leave(self) -> None:
        """Process no record any more."""
        # The record may be a delayed one with an earlier time: stream time does not go back.
        self._stream_time = max(self._stream_time, self.stream_time)
        self.reached = self._reached = max(self._reached, self.reached)
        self.cursor = None
        self.headers = ()
        self.emitted_key = None

    def stop_at(self, cursors: Iterable[RecordCursor]) -> None:
        """Set the stream time after an interrupt to that of the records which were taken. No record is current then."""
        stream_times = [cursor.stream_time for cursor in cursors if cursor.taken]
        self._stream_time = max(self._stream_time, *stream_times, -1)
        self.cursor = None

    def suspend(self) -> RecordCursor | None:
        """Leave the current record between two records; return its cursor, with which `move_to` continues."""
        self._stream_time = max(self._stream_time, self.stream_time)
        cursor, self.cursor, self.headers = self.cursor, None, ()
        return cursor

    def advance(self, elapsed_ms: int) -> bool:
        """Advance the stream time while all input is idle; return False if it has not begun."""
        if self._stream_time < 0:
            return False
        self._stream_time += elapsed_ms
        self.reached = max(self.reached, self._stream_time)
        return True

    # records that an operator has stored

    def forward_with(self, headers: Headers, forward: Forward, key: object, value: object, timestamp: int) -> None:
        """Forward a record with these headers, and restore the headers of the current record."""
        before, self.headers = self.headers, headers
        try:
            forward(key, value, timestamp)
        finally:
            self.headers = before

    def hold(self, key: object, value: object, timestamp: int) -> DelayedRecord:
        """Return the current record with its headers and its place, for an operator that forwards it later."""
        cursor = self.cursor
        at = None if cursor is None else cursor.at_record()
        return DelayedRecord(key, value, timestamp, self.headers, at, self.reached, self.rank)

    def forward_held(self, forward: Forward, held: DelayedRecord, value: object) -> None:
        """Forward a held record with a new value, as if it had just been read.

        After a failure, the held record stays the current record, which errors name.
        """
        cursor = self.cursor
        headers = self.headers
        reached = self.reached
        rank = self.rank
        self.cursor = held.cursor
        self.headers = held.headers
        self.reached = held.reached
        self.rank = held.rank
        forward(held.key, value, held.timestamp)
        self.cursor = cursor
        self.headers = headers
        self.reached = reached
        self.rank = rank
