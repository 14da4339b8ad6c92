"""`TimeSlices`: in a bounded run, tasks that write the same repartition topic advance together in event time.

Otherwise one task could read a whole year before its neighbour begins, and the tasks behind the repartition topic would
then drop all of the neighbour's records as late. Every task processes a slice of time before any task begins the next,
and its output is merged by time (see `SinkBuffer`): so the order in a repartition topic depends on the records alone,
not on threads, batches or restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kstreams.batch import TopicPartition
from kstreams.runtime.native.thread.active_task import ActiveTask

NOTHING_MS, EVERYTHING_MS = -1, 2**63 - 1

IsDrained = Callable[[TopicPartition], bool]


class TimeSlices:
    """The slices of the tasks of one sub-topology.

    Parameters
    ----------
    tasks : sequence of ActiveTask
    is_full : callable
        Whether so much of a partition is buffered that it is not read further.
    """

    def __init__(self, tasks: Sequence[ActiveTask], is_full: Callable[[TopicPartition], bool]) -> None:
        self._tasks, self._is_full = tasks, is_full
        self._until(NOTHING_MS)

    @property
    def is_open(self) -> bool:
        """Whether a task still has records of the present slice."""
        return any(task.has_records() for task in self._tasks)

    def advance(self, drained: IsDrained) -> None:
        """Begin the next slice: it ends before the first moment of which not all records may be buffered.

        Parameters
        ----------
        drained : callable
            Whether a partition holds no more than what is buffered of it.
        """
        if not self.is_open:
            self._until(min(self._end(task, source, drained) for task in self._tasks for source in task.plan.inputs))

    def _end(self, task: ActiveTask, source: TopicPartition, drained: IsDrained) -> int:
        group = task.group
        count = group.buffered(source)
        records = min(max(1, task.run_length // len(self._tasks)), count)  # no commit is made before a slice is over
        if records == count and drained(source):
            return EVERYTHING_MS
        if not count:
            return NOTHING_MS
        before_last = group.latest_ms(source, records) - 1
        first = group.latest_ms(source, 1)
        # More records of one moment than may be buffered: they cannot wait for those that are still to come.
        return first if before_last < first and self._is_full(source) else before_last

    def _until(self, time_ms: int) -> None:
        for task in self._tasks:
            task.process_until(time_ms)
