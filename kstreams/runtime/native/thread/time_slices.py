"""`TimeSlices`: in a bounded run, tasks that write the same repartition topic advance together in event time.

Otherwise one task could read a whole year before its neighbour begins, and the tasks behind the repartition topic would
then drop all of the neighbour's records as late. Every task processes its part of a slice before any task begins the
next, and what all have written is then put in order of stream times (see `TimeMerge`). Slices follow each other in that
same order: so the order in a repartition topic depends on the records alone, not on threads, batches or restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.group.messages import EVERYTHING_MS
from kstreams.runtime.native.thread.active_task import ActiveTask

IsDrained = Callable[[TopicPartition], bool]


class TimeSlices:
    """The slices of the tasks of one sub-topology.

    A slice ends at a stream time and a partition: tasks up to this partition process what they reach at that time,
    those behind it what they reach before. A task that waits for one of its inputs has come to this end.

    Parameters
    ----------
    tasks : sequence of ActiveTask
    """

    def __init__(self, tasks: Sequence[ActiveTask]) -> None:
        self._tasks = tasks
        self._until(-1, -1)

    @property
    def is_open(self) -> bool:
        """Whether a task may go on with records of the present slice."""
        return any(task.has_records() for task in self._tasks)

    def is_of(self, tasks: Sequence[ActiveTask]) -> bool:
        """Whether they are those of these tasks."""
        return list(self._tasks) == list(tasks)

    def advance(self, drained: IsDrained) -> None:
        """Begin the next slice: it ends where the first partition may go on with records that are not buffered.

        Parameters
        ----------
        drained : callable
            Whether a partition holds no more than what is buffered of it.
        """
        if not self.is_open:
            count = len(self._tasks)
            ends = [slice_end(task, source, drained, count) for task in self._tasks for source in task.plan.inputs]
            self._until(*min(ends))

    def _until(self, time_ms: int, partition: int) -> None:
        for task in self._tasks:
            task.process_until(time_ms if task.plan.partition <= partition else time_ms - 1)


def slice_end(task: ActiveTask, source: TopicPartition, drained: IsDrained, tasks: int) -> tuple[int, int]:
    """The stream time and the partition at which records of an input stand that may not be buffered.

    Parameters
    ----------
    task : ActiveTask
    source : TopicPartition
        An input of it.
    drained : callable
        Whether a partition holds no more than what is buffered of it.
    tasks : int
        How many tasks of one thread share a slice: the more, the shorter it is, as none commits within it.
    """
    count = task.group.buffered(source)
    records = min(max(1, task.run_length // tasks), count)
    if records == count and drained(source):
        return EVERYTHING_MS, source.partition
    before_ms = task.task.reached
    return max(before_ms, task.group.latest_ms(source, records)) if count else before_ms, source.partition
