"""`ActiveTask`: a task with its buffered input and the positions up to which it has processed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import OffsetAndMetadata
from kstreams.metrics.sensors import TaskSensors
from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.partition_group import PartitionGroup
from kstreams.processor.task.task import Task
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.state.changelog_check import encode_changelog_ends
from kstreams.runtime.native.state.task_metadata import ENDED, with_task_metadata
from kstreams.state.api import TaskState
from kstreams.state.task_state import observed_times

_END = "slice_end"
_ROWS = "slice_rows"


class SlicePosition(NamedTuple):
    """How much of a slice is processed: the offset behind it, and the number of rows."""

    end: int
    rows: int


class SliceRegion(NamedTuple):
    """A part of a partition whose rows are processed in an order of their own.

    Parameters
    ----------
    start, end : int
        Its offsets.
    offsets : numpy int64 array, shape (n,)
        Those of the rows, in the order of processing.
    """

    start: int
    end: int
    offsets: np.ndarray[Any, Any]

    @classmethod
    def of(cls, offsets: np.ndarray[Any, Any]) -> SliceRegion:
        """The region of rows with these offsets."""
        return cls(int(offsets.min()), int(offsets.max()) + 1, offsets)


class SlicePositions:
    """The positions of one task.

    Parameters
    ----------
    metadata : mapping of str to int
        What was committed with the offsets of its inputs.

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
        """How far the slice is processed at which an input begins; None where it begins with a whole one."""
        return self._processed.get(source.topic)

    def add(self, source: TopicPartition, region: SliceRegion) -> None:
        """Rows that come next are those of a region."""
        self._regions.setdefault(source.topic, deque()).append(region)

    def after(self, source: TopicPartition, offset: int) -> int:
        """The next offset to commit, when the row at an offset is processed."""
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
        """Nothing is left to process before an offset."""
        regions = self._regions.get(source.topic, deque[SliceRegion]())
        while regions and regions[0].end <= offset:
            regions.popleft()
        if source.topic in self._processed and self._processed[source.topic].end <= offset:
            del self._processed[source.topic]

    def metadata(self) -> dict[str, int]:
        """What to commit with the offsets."""
        memo: dict[str, int] = {}
        for topic, position in self._processed.items():
            memo |= {f"{_END} {topic}": position.end, f"{_ROWS} {topic}": position.rows}
        return memo


_FIRST_RUN = 100  # few, until it is known how slow the operators are: in columns a run cannot be interrupted
_BRIEF_MS = 10  # what a run takes while queries keep coming
# a run that takes longer is halved the next time, a shorter one doubled
_LONG_MS = 250
_SHORT_MS = 60


@dataclass
class RunLength:
    """Adapts the number of records to how long they take: commits, queries and a stop need not wait for long.

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
    _seen: int = 0
    _took_ms: int = 0
    _grown: int = 0
    _per_ms: float = 0.0

    @property
    def brief(self) -> int:
        """How many records it processes while others wait for an answer between two runs."""
        return min(self.records, max(_FIRST_RUN, int(self._per_ms * _BRIEF_MS)))

    def learn(self, records: int, took_ms: int, grown: int) -> None:
        """Adapt to a run: its records, the milliseconds it took, and how many bytes more wait for a commit after it.

        Short runs are taken together.
        """
        self._per_ms = records / took_ms if took_ms else self._per_ms
        self._seen = self._seen + records
        self._took_ms = self._took_ms + took_ms
        self._grown = self._grown + grown
        if self._took_ms > _LONG_MS or self._grown > self.most_bytes:
            self.records = max(1, min(self.records, self._seen) // 2)
        elif self._seen < self.records:
            return
        elif self._took_ms < _SHORT_MS and self._grown * 2 < self.most_bytes:
            self.records = min(self.most, self.records * 2)
        self._seen = self._took_ms = self._grown = 0


NOTHING_MS = -1


class ActiveTask:
    """One task of a thread. Kafka Streams: `StreamTask`.

    Parameters
    ----------
    plan : TaskPlan
    task : Task
    state : TaskState
    group : PartitionGroup
        Its input, stamped by the task.
    starts : mapping of TopicPartition to int
        The first offset to process, per input.
    positions : SlicePositions
        How far it is in inputs that it processes in another order.
    clock : Clock
    most_records : int
        Longest run (`max.poll.records`).
    most_bytes : int
        How large a run's input may be, and roughly what it may add to uncommitted changes.
    sensors : TaskSensors
    ended : bool
        Whether it has processed the end of its input already, in an earlier run over the same input.
    is_asked : callable
        Whether queries of its stores keep coming: then its runs are short.
    """

    def __init__(
        self,
        plan: TaskPlan,
        task: Task,
        state: TaskState,
        group: PartitionGroup,
        *,
        starts: Mapping[TopicPartition, int],
        positions: SlicePositions,
        clock: Clock,
        most_records: int,
        most_bytes: int,
        sensors: TaskSensors,
        ended: bool = False,
        is_asked: Callable[[], bool] = lambda: False,
    ) -> None:
        self.plan = plan
        self.task = task
        self.state = state
        self.group = group
        self.next_offsets = dict(starts)
        self.positions = positions
        self.sensors = sensors
        self.ended = ended
        self._changelog_ends: dict[str, int] = {}
        self._changelogs: dict[str, TopicPartition] = {}
        self.uncommitted = False
        self.processed = 0  # records of all its inputs
        self._is_interrupted = False  # in the middle of a run: what was read is not what was processed
        self.bytes_pending = 0  # of uncommitted changes, as of the last run
        self._until_ms = 2**63 - 1
        self._clock = clock
        self._length = RunLength(most_records, most_bytes)
        self._is_asked = is_asked

    @property
    def id(self) -> str:
        return str(self.plan.id)

    @property
    def run_length(self) -> int:
        """How many records it processes in one go."""
        length = self._length
        return min(
            length.brief if self._is_asked() else length.records, max(1, length.most_bytes // self.group.row_bytes())
        )

    def process_until(self, time_ms: int) -> None:
        """Process only records that do not take the task beyond this time, until the next call (see `TimeSlices`)."""
        self._until_ms = time_ms if self.task.reached <= time_ms else NOTHING_MS

    def has_records(self) -> bool:
        """Whether the next record is one that it may process now (see `process_until`), or would but for a stop."""
        head_ms = self.group.head_ms()
        is_next = head_ms is not None and head_ms <= self._until_ms and self.group.ready(self._clock.uptime_ms())
        return is_next or self._is_interrupted

    def has_more(self) -> bool:
        """Whether it holds a record that it may process (see `process_until`), now or when other inputs have some."""
        head_ms = self.group.head_ms()
        return self._is_interrupted or (head_ms is not None and head_ms <= self._until_ms)

    def add(self, batch: Batch, region: SliceRegion | None = None) -> None:
        """Buffer records of one of the inputs; in an order of their own, where they are those of a region."""
        if region is not None:
            self.positions.add(batch.source, region)
        self.group.add(batch)

    def count_deleted(self, source: TopicPartition, start: int, end: int) -> None:
        """The records [start, end) of an input were deleted before they were read: they count as dropped."""
        self.task.count_deleted(source, start, end)
        self.uncommitted = True

    def run_once(self) -> int:
        """Process the next run; returns its number of records, 0 when the task has to wait."""
        started_ms = self._clock.uptime_ms()
        if not self.group.ready(started_ms):
            return 0
        is_enforced = self.sensors.debug is not None and bool(self.group.empty_partitions())
        runs = self.group.next_runs(self.run_length, self._until_ms)
        if runs is None:
            return 0
        self.uncommitted = True
        self.ended = False
        processed = self._process(runs, is_enforced)
        self._is_interrupted = processed < runs.num_records
        self.processed += processed
        before, self.bytes_pending = self.bytes_pending, self.task.num_bytes_uncommitted()
        self._length.learn(processed, self._clock.uptime_ms() - started_ms, self.bytes_pending - before)
        return processed

    def _process(self, runs: Interleaved, is_enforced: bool) -> int:
        debug = self.sensors.debug
        started_at = monotonic()
        if debug is not None:
            debug.record_lateness(runs, self.task.stream_time, enforced=is_enforced)
        counts = self.task.process_interleaved(runs)
        now_ms = self._clock.wall_ms()
        for part, count in zip(runs.parts, counts, strict=True):
            if count:
                self.sensors.read.record(part.source.topic, part.timestamps[:count], now_ms)
                self.next_offsets[part.source] = self.positions.after(part.source, int(part.offsets[count - 1]))
        self.sensors.record_run(self.task)
        if debug is not None:
            debug.record_run(self.task, started_at, sum(counts))
        return sum(counts)

    def interrupt(self) -> None:
        """Process no further record; from another thread. What was taken from the input is read again another time."""
        self.task.interrupt()

    def punctuate(self) -> bool:
        """Call wall-clock punctuators that are due; whether there was one."""
        started_at = monotonic()
        fired = self.task.punctuate()
        if fired and self.sensors.debug is not None:
            self.sensors.debug.punctuate.record(started_at)
        self.uncommitted |= fired
        return fired

    def pass_time(self) -> None:
        """Advance stream time where input is idle."""
        if self.task.pass_time(source.topic for source in self.group.awake_partitions()):
            self.uncommitted = True

    def end_input(self) -> None:
        """Process the end of a bounded input."""
        self.uncommitted = self.ended = True
        self.task.end_of_input()

    def skip_gaps(self, position: Callable[[TopicPartition], int]) -> None:
        """Skip offsets at which nothing is to be processed: gaps, dropped rows, aborted transactions.

        Parameters
        ----------
        position : callable
            Up to where a partition has been read.
        """
        for source in () if self._is_interrupted else self.group.empty_partitions():
            passed = position(source)
            self.task.report_skipped(source.topic, passed)
            if passed > self.next_offsets[source]:
                self.next_offsets[source] = passed
                self.positions.skip(source, passed)
                self.uncommitted = True

    def offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit for its inputs; the task metadata goes with the first of them, and with changelogs."""
        changelogs = encode_changelog_ends(self._changelog_ends)
        own = {**self.task.metadata(), ENDED: int(self.ended), **self.positions.metadata()}
        metadata = {**own, **observed_times(self.state), **changelogs}
        first = self.plan.inputs[0]
        offsets = {first: self.next_offsets[first], **self.next_offsets}
        return with_task_metadata(offsets, metadata, self._changelogs, self._changelog_ends)

    def restored(self, changelog_ends: Mapping[str, int], changelogs: Mapping[str, TopicPartition]) -> None:
        """Its logged stores are restored, each up to the end of its changelog."""
        self._changelog_ends = dict(changelog_ends)
        self._changelogs = dict(changelogs)

    def changelogs_written(self, ends: Mapping[str, int]) -> None:
        """Changelogs of its logged stores end here now; other stores have none."""
        self._changelog_ends |= {store: ends[store] for store in ends.keys() & self._changelog_ends.keys()}

    def position(self) -> dict[TopicPartition, int]:
        """Of each input the last offset that is processed."""
        return {source: offset - 1 for source, offset in self.next_offsets.items() if offset}

    def committed(self) -> None:
        """Note that all it did is committed."""
        self.uncommitted = False
        self.bytes_pending = 0
        self.sensors.record_commit(self.task, self.state)

    def close(self) -> None:
        """Close processors and stores; what is not committed is dropped."""
        try:
            self.task.close()
        finally:
            self.state.close()
