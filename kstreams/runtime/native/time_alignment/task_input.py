"""`TaskInput`: the buffered records of one task, and which of them the task may process next.

A task processes the rows of a slice in another order than that of their offsets, so that an offset alone does not say
which of them are processed. `SlicePositions` counts them, and is committed with the offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.processor.task.partition_group import END, Interleaved, PartitionGroup, Place
from kstreams.processor.task.task import Task
from kstreams.processor.topology.layout import TaskPlan

_END = "slice_end"
_ROWS = "slice_rows"


class SlicePosition(NamedTuple):
    """How much of a slice is processed: the offset after the slice, and the number of processed rows."""

    end: int
    rows: int


class SliceRegion(NamedTuple):
    """A part of a partition whose rows are processed in another order than that of their offsets.

    Parameters
    ----------
    start, end : int
        The first offset, and the offset after the last one.
    offsets : numpy int64 array, shape (n,)
        The offsets of the rows in the order of processing.
    """

    start: int
    end: int
    offsets: np.ndarray[Any, Any]

    @classmethod
    def of(cls, offsets: np.ndarray[Any, Any]) -> SliceRegion:
        """Return the region of rows with these offsets."""
        return cls(int(offsets.min()), int(offsets.max()) + 1, offsets)


class SlicePositions:
    """The positions of one task.

    Parameters
    ----------
    metadata : mapping of str to int
        The metadata that was committed with the offsets of the task's inputs.

    Examples
    --------
    >>> source, positions = TopicPartition("t", 0), SlicePositions({})
    >>> positions.add(source, SliceRegion.of(np.array([5, 3, 4])))
    >>> positions.after(source, 3), positions.metadata()
    (3, {'slice_end t': 6, 'slice_rows t': 2})
    >>> positions.after(source, 4), positions.metadata()
    (6, {})
    """

    def __init__(self, metadata: Mapping[str, int]) -> None:
        self._regions: dict[str, deque[SliceRegion]] = {}
        ends = {name.removeprefix(f"{_END} "): end for name, end in metadata.items() if name.startswith(f"{_END} ")}
        self._processed = {topic: SlicePosition(end, metadata[f"{_ROWS} {topic}"]) for topic, end in ends.items()}

    def unfinished(self, source: TopicPartition) -> SlicePosition | None:
        """Return how much of the first slice of an input is processed, or None if no part of it is."""
        return self._processed.get(source.topic)

    def add(self, source: TopicPartition, region: SliceRegion) -> None:
        """Add a region. Its rows are processed after all that were added before."""
        self._regions.setdefault(source.topic, deque()).append(region)

    def after(self, source: TopicPartition, offset: int) -> int:
        """Return the next offset to commit after the row at an offset was processed."""
        regions = self._regions.get(source.topic)
        while regions and regions[0].end <= offset:
            regions.popleft()
            self._processed.pop(source.topic, None)
        if not regions or offset < regions[0].start:
            return offset + 1
        region = regions[0]
        rows = int(np.flatnonzero(region.offsets == offset)[0]) + 1
        if rows < len(region.offsets):
            self._processed[source.topic] = SlicePosition(region.end, rows)
            return region.start
        self.skip(source, region.end)
        return region.end

    def skip(self, source: TopicPartition, offset: int) -> None:
        """Note that all rows before an offset are processed or skipped."""
        regions = self._regions.get(source.topic, deque[SliceRegion]())
        while regions and regions[0].end <= offset:
            regions.popleft()
        if source.topic in self._processed and self._processed[source.topic].end <= offset:
            del self._processed[source.topic]

    def metadata(self) -> dict[str, int]:
        """Return the metadata to commit with the offsets."""
        metadata: dict[str, int] = {}
        for topic, position in self._processed.items():
            metadata |= {f"{_END} {topic}": position.end, f"{_ROWS} {topic}": position.rows}
        return metadata


_FIRST_RUN = 100  # few records until the speed of the operators is known: a run in columns cannot be interrupted
_BRIEF_MS = 10  # the time of a run while queries keep coming
# a run that takes longer is halved, and a shorter one doubled
_LONG_MS = 250
_SHORT_MS = 60


@dataclass
class RunLength:
    """Adapts the number of records to the time that they take, so that commits, queries and a stop wait for short.

    Examples
    --------
    >>> length = RunLength(most=50_000, most_bytes=1_000_000)
    >>> length.learn(40, 3, 0)
    >>> length.learn(60, 7, 0)
    >>> length.records
    200
    >>> length.brief
    100
    """

    most: int
    most_bytes: int
    records: int = _FIRST_RUN
    _records: int = 0
    _took_ms: int = 0
    _grown: int = 0
    _per_ms: float = 0.0

    @property
    def brief(self) -> int:
        """The number of records of a run while queries wait for the pause after it."""
        return min(self.records, max(_FIRST_RUN, int(self._per_ms * _BRIEF_MS)))

    def learn(self, records: int, took_ms: int, grown: int) -> None:
        """Adapt to a run of `records` that took `took_ms` and left `grown` more bytes to commit.

        Short runs are added up until they have as many records as a whole run.
        """
        self._per_ms = records / took_ms if took_ms else self._per_ms
        self._records = self._records + records
        self._took_ms = self._took_ms + took_ms
        self._grown = self._grown + grown
        if self._took_ms > _LONG_MS or self._grown > self.most_bytes:
            self.records = max(1, min(self.records, self._records) // 2)
        elif self._records < self.records:
            return
        elif self._took_ms < _SHORT_MS and self._grown * 2 < self.most_bytes:
            self.records = min(self.most, self.records * 2)
        self._records = self._took_ms = self._grown = 0


NOTHING = Place(-1, -1)
"""A place before all records."""


class TaskInput:
    """The buffered records of one task in the order of time, up to the end of the task's time slice.

    Parameters
    ----------
    plan : TaskPlan
    task : Task
    group : PartitionGroup
        The records, with the timestamps that the task has set.
    positions : SlicePositions
        The positions in inputs that the task processes in another order than that of offsets.
    length : RunLength
    clock : Clock
    is_queried : callable
        Returns whether queries of the task's stores keep coming. Then runs are short.
    """

    def __init__(
        self,
        plan: TaskPlan,
        task: Task,
        group: PartitionGroup,
        *,
        positions: SlicePositions,
        length: RunLength,
        clock: Clock,
        is_queried: Callable[[], bool] = lambda: False,
    ) -> None:
        self.plan = plan
        self.group = group
        self.positions = positions
        self._task = task
        self._length = length
        self._clock = clock
        self._is_queried = is_queried
        self._until = END
        self._is_interrupted = False  # in the middle of a run, whose records are no longer in `group`

    @property
    def run_length(self) -> int:
        """The number of records that the task processes without a pause."""
        length = self._length
        records = length.brief if self._is_queried() else length.records
        return min(records, max(1, length.most_bytes // self.group.row_bytes()))

    @property
    def stream_time_ms(self) -> int:
        """The time that the task has reached (`Task.reached`)."""
        return self._task.reached

    def process_until(self, until: Place) -> None:
        """Allow only records that do not take the task beyond this place, until the next call (see `TimeSlices`)."""
        self._until = until if self.stream_time_ms <= until.time_ms else NOTHING

    def has_records(self) -> bool:
        """Return whether the task may process a record now, or could if it were not stopped."""
        head = self.group.head()
        is_next = head is not None and head <= self._until and self.group.ready(self._clock.uptime_ms())
        return is_next or self._is_interrupted

    def has_more(self) -> bool:
        """Return whether the task may process a buffered record, now or when other inputs have records."""
        head = self.group.head()
        return self._is_interrupted or (head is not None and head <= self._until)

    def knows_next(self, is_drained: Callable[[TopicPartition], bool]) -> bool:
        """Return whether the next record of each input is buffered, or the input has none."""
        return all(self.group.buffered(source) or is_drained(source) for source in self.plan.inputs)

    def add(self, batch: Batch, region: SliceRegion | None = None) -> None:
        """Buffer records of an input. `region` says in which order they are, if it is not that of offsets."""
        if region is not None:
            self.positions.add(batch.source, region)
        self.group.add(batch)

    def next_runs(self, now_ms: int) -> Interleaved | None:
        """Take the records to process next, or None if the task has to wait."""
        return self.group.next_runs(self.run_length, self._until) if self.group.ready(now_ms) else None

    def note_run(self, processed: int, taken: int, took_ms: int, grown: int) -> None:
        """Adapt the run length.

        Parameters
        ----------
        processed, taken : int
            The numbers of records that were processed, and taken. They differ if the run was interrupted.
        took_ms : int
        grown : int
            The growth of the uncommitted changes in bytes.
        """
        self._is_interrupted = processed < taken
        self._length.learn(processed, took_ms, grown)

    def drained_partitions(self) -> Sequence[TopicPartition]:
        """Return the inputs whose records are all processed, as far as they have been read."""
        return () if self._is_interrupted else self.group.empty_partitions()
