"""`RecordLoop`: passes the records of a batch one by one through the operators, and moves the cursor over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from kstreams.kernel.batch import Batch
from kstreams.kernel.timestamps import stream_times
from kstreams.processor.context.current_record import CurrentRecord, RecordCursor
from kstreams.processor.task.inputs import DecodedRows
from kstreams.processor.task.partition_group import Interleaved
from kstreams.processor.task.task_time import TaskTime
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers


class Interrupt:
    """The interrupt of one task. It empties the lists from which the loop takes records, so that the loop ends.

    Examples
    --------
    >>> interrupt, keys = Interrupt(), ["a", "b", "c"]
    >>> interrupt.guard(keys)
    >>> for key in keys:
    ...     print(key)
    ...     interrupt.set()
    a
    """

    __slots__ = ("_guarded", "is_set")

    def __init__(self) -> None:
        self._guarded: tuple[list[object], ...] = ()
        self.is_set = False

    def guard(self, *records: list[object]) -> None:
        """Empty these lists, from which a loop takes records, as soon as the interrupt is set."""
        self._guarded = records
        if self.is_set:  # tested after the assignment, so that a concurrent call from another thread is not missed
            self.set()

    def set(self) -> None:
        """Let no further record be taken, now or later."""
        self.is_set = True
        for records in self._guarded:
            records.clear()


class RecordLoop:
    """The loop of one task over its records.

    Parameters
    ----------
    current : CurrentRecord
    time : TaskTime
        The punctuators of stream time, which are called between two records.
    interrupt : Interrupt
        The interrupt, which ends the loop between two records.
    follows_stream_time : bool
        True if there may be punctuators of stream time.
    notes_reached : bool
        True if the progress of the task is updated per record (`CurrentRecord.reached`).
    """

    def __init__(
        self,
        current: CurrentRecord,
        time: TaskTime,
        interrupt: Interrupt,
        *,
        follows_stream_time: bool,
        notes_reached: bool,
    ) -> None:
        self._current = current
        self._time = time
        self._interrupt = interrupt
        self._follows_stream_time = follows_stream_time
        self._notes_reached = notes_reached

    def run(self, batch: Batch, rows: DecodedRows, forward: Forward) -> int:
        """Process the records of a batch; return the number that were taken before an interrupt."""
        timestamps = batch.timestamps.to_numpy()
        highest = stream_times(timestamps, self._current.stream_time)
        cursor = RecordCursor(batch, batch.offsets, highest, timestamps.tolist())
        self._current.move_to(cursor)
        self._interrupt.guard(rows[0])
        records: Iterator[Any] = zip(*rows, cursor.timestamps, strict=False)
        if self._notes_reached:
            reached = stream_times(batch.places, self._current.reached)
            records = self._current.with_progress(records, reached, batch.ranks)
        if batch.headers is not None or self._follows_stream_time:
            self._run_with_headers(forward, records, batch.header_rows())
        else:
            run_plain(forward, records)
        self._end([cursor], [batch])
        return cursor.taken

    def takes_interleaved(self, parts: Iterable[Batch]) -> bool:
        """Return whether `run_interleaved` can process these batches: it sets no headers and calls no punctuators."""
        return not (self._follows_stream_time or any(part.headers is not None for part in parts))

    def run_interleaved(self, interleaved: Interleaved, rows: list[DecodedRows], forwards: list[Forward]) -> list[int]:
        """Process records of several batches in their order; return the number taken of each before an interrupt."""
        times = interleaved.times(self._current.stream_time)
        cursors = [RecordCursor(part, part.offsets, *at) for part, at in zip(interleaved.parts, times, strict=True)]
        self._interrupt.guard(*(keys for keys, _ in rows))
        records: list[Iterator[Any]] = [
            zip(*decoded, cursor.timestamps, strict=False) for decoded, cursor in zip(rows, cursors, strict=True)
        ]
        if self._notes_reached:
            with_progress = self._current.with_progress
            reached = interleaved.reached(self._current.reached)
            records = [
                with_progress(rows_of_part, times, part.ranks)
                for rows_of_part, times, part in zip(records, reached, interleaved.parts, strict=True)
            ]
        for part, count in interleaved.turns():
            self._current.move_to(cursors[part])
            forward = forwards[part]
            for key, value, timestamp in islice(records[part], count):
                forward(key, value, timestamp)
        self._end(cursors, interleaved.parts)
        return [cursor.taken for cursor in cursors]

    def _run_with_headers(self, forward: Forward, records: Iterable[Any], headers: list[Headers]) -> None:
        current = self._current
        time = self._time
        by_stream_time = self._time.by_stream_time
        for (key, value, timestamp), current.headers in zip(records, headers, strict=False):
            forward(key, value, timestamp)
            if by_stream_time.deadline_ms <= timestamp:  # punctuators due earlier were called before this record
                time.punctuate_by_stream_time()

    def _end(self, cursors: list[RecordCursor], parts: Iterable[Batch]) -> None:
        self._interrupt.guard()
        if self._interrupt.is_set:
            self._current.stop_at(cursors)
        else:
            self._current.reached = max(self._current.reached, *(int(part.places.max()) for part in parts))


def run_with_headers(current: CurrentRecord, forward: Forward, records: Iterable[Any], headers: list[Headers]) -> None:
    """Process records, each with its headers."""
    for (key, value, timestamp), current.headers in zip(records, headers, strict=False):
        forward(key, value, timestamp)


def run_plain(forward: Forward, records: Iterable[Any]) -> None:
    """Process records without headers."""
    for key, value, timestamp in records:
        forward(key, value, timestamp)
