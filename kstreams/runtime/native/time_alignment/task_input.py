"""`TaskInput`: the buffered records of one task, and which of them the task may process next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.partition_group import PartitionGroup
from kstreams.processor.task.task import Task
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.time_alignment.run_length import RunLength
from kstreams.runtime.native.time_alignment.slice_positions import SlicePositions, SliceRegion
from kstreams.runtime.native.time_alignment.slices import EVERYTHING_MS

NOTHING_MS = -1


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
        self._until_ms = EVERYTHING_MS
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

    def process_until(self, time_ms: int) -> None:
        """Allow only records that do not take the task beyond this time, until the next call (see `TimeSlices`)."""
        self._until_ms = time_ms if self.stream_time_ms <= time_ms else NOTHING_MS

    def has_records(self) -> bool:
        """Return whether the task may process a record now, or could if it were not stopped."""
        head_ms = self.group.head_ms()
        is_next = head_ms is not None and head_ms <= self._until_ms and self.group.ready(self._clock.uptime_ms())
        return is_next or self._is_interrupted

    def has_more(self) -> bool:
        """Return whether the task may process a buffered record, now or when other inputs have records."""
        head_ms = self.group.head_ms()
        return self._is_interrupted or (head_ms is not None and head_ms <= self._until_ms)

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
        return self.group.next_runs(self.run_length, self._until_ms) if self.group.ready(now_ms) else None

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
