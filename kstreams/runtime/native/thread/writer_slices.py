"""`WriterSlices`: the tasks of one thread that write repartition topics go slice by slice of event time.

A thread that has all writers of a topic cuts the slices itself, and puts what they write in order (`TimeSlices`).
Writers in several threads follow the slices of their `Alignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.group.messages import EVERYTHING_MS, Pace, Slice
from kstreams.runtime.native.tasks.alignment import Alignment
from kstreams.runtime.native.thread.active_task import NOTHING_MS, ActiveTask

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


Finished = list[tuple[ActiveTask, Pace]]


class WriterSlices:
    """The slices that the writers in one thread are in.

    Parameters
    ----------
    alignment : Alignment

    Attributes
    ----------
    topics : collection of str
        Those whose rows are told at which times they were written: several tasks write them and they are put in order
        by it, or their readers need to know.
    timed : collection of str
        The latter of them.
    """

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        self._slices: dict[int, Slice] = {}
        self._own: dict[int, TimeSlices] = {}
        self._caught_up: set[TaskId] = set()
        self._done: dict[TaskId, int] = {}
        several = {sub for sub, tasks in alignment.writers.items() if len(tasks) > 1}
        self.timed: Collection[str] = alignment.timed
        self.topics: Collection[str] = {topic for topic, sub in alignment.topics.items() if sub in several} | self.timed

    @property
    def is_open(self) -> bool:
        """Whether a task may go on in a slice that the thread has cut: what was written of it cannot be ordered yet."""
        return any(own.is_open for own in self._own.values())

    def merges(self, topic: str) -> bool:
        """Whether the thread has all writers of a topic, and puts in order what they write."""
        return self._alignment.topics.get(topic) in self._own

    def number_of(self, topic: str) -> int | None:
        """The slice with which rows of a topic are tagged for their readers; None where no writer waits for another."""
        writer_slice = self._slices.get(self._alignment.topics.get(topic, -1))
        return None if writer_slice is None or writer_slice.is_open_ended else writer_slice.number

    def begin(self, tasks: Sequence[ActiveTask], is_drained: IsDrained) -> None:
        """Let the tasks process what the latest slices allow."""
        self._slices = {sub: self._alignment.slice_of(sub) for sub in self._alignment.writers}
        for sub in self._slices:
            writers = _of(sub, tasks)
            if self._are_all(sub, writers):
                self._own_slices(sub, writers).advance(is_drained)
            else:
                self._own.pop(sub, None)
                for task in writers if self._alignment.is_shared else ():
                    task.process_until(self._until_ms(task, sub))

    def finished(self, tasks: Sequence[ActiveTask], is_drained: IsDrained) -> Finished:
        """The tasks that have come to the end of their slice, with all others of their sub-topology in this thread."""
        finished: Finished = []
        for sub, now in self._slices.items() if self._alignment.is_shared else ():
            writers = _of(sub, tasks)
            if sub in self._own:
                finished += self._read(writers, now, is_drained)
                continue
            new = [task for task in writers if self._done.get(task.plan.id) != now.number]
            if new and all(self._is_done(task, is_drained) for task in writers):
                finished += [(task, self._pace(task, now, is_drained)) for task in new]
        return finished

    def report(self, finished: Finished) -> None:
        """What these have written is visible now."""
        for task, pace in finished:
            self._done[task.plan.id] = pace.done
            self._alignment.report(task.plan.id, pace)

    def forget(self, task: TaskId) -> None:
        """The thread no longer has a task."""
        self._caught_up.discard(task)
        self._done.pop(task, None)
        self._alignment.forget(task)

    def _are_all(self, sub_topology: int, writers: Sequence[ActiveTask]) -> bool:
        """Whether the thread cuts the slices of a sub-topology: it has all its tasks, and they have history to read."""
        if len(writers) < max(2, len(self._alignment.writers[sub_topology])):
            return False
        if not self._alignment.is_shared:
            return True
        read = all(task.plan.id in self._caught_up for task in writers)
        return self._slices[sub_topology].is_open_ended and not read

    def _own_slices(self, sub_topology: int, writers: Sequence[ActiveTask]) -> TimeSlices:
        own = self._own.get(sub_topology)
        if own is None or not own.is_of(writers):
            own = self._own[sub_topology] = TimeSlices(writers)
        return own

    def _until_ms(self, task: ActiveTask, sub_topology: int) -> int:
        """A task that has history to read waits for a slice, if there are others."""
        now = self._slices[sub_topology]
        is_alone = len(self._alignment.writers[sub_topology]) == 1
        if now.is_open_ended and not is_alone and task.plan.id not in self._caught_up:
            return NOTHING_MS
        return now.until_ms(task.plan.partition)

    def _read(self, writers: Sequence[ActiveTask], now: Slice, is_drained: IsDrained) -> Finished:
        """The writers of the thread's own slices, when they have read their history."""
        if any(task.group.head_ms() is not None or not _knows_more(task, is_drained) for task in writers):
            return []
        return [(task, self._pace(task, now, is_drained)) for task in writers]

    def _is_done(self, task: ActiveTask, is_drained: IsDrained) -> bool:
        """Whether it has nothing to process in its slice, and knows what comes after."""
        return _knows_more(task, is_drained) and not task.has_more()

    def _pace(self, task: ActiveTask, now: Slice, is_drained: IsDrained) -> Pace:
        if task.group.head_ms() is None:
            self._caught_up.add(task.plan.id)
        has_caught_up = task.plan.id in self._caught_up
        if now.is_open_ended and has_caught_up:
            return Pace(now.number, EVERYTHING_MS, task.plan.partition, has_caught_up=True)
        time_ms, partition = min(slice_end(task, source, is_drained, 1) for source in task.plan.inputs)
        return Pace(now.number, time_ms, partition, has_caught_up)


def _of(sub_topology: int, tasks: Sequence[ActiveTask]) -> list[ActiveTask]:
    return [task for task in tasks if task.plan.id.sub_topology == sub_topology]


def _knows_more(task: ActiveTask, is_drained: IsDrained) -> bool:
    """Whether it has the next records of each input, or there are none."""
    return all(task.group.buffered(source) or is_drained(source) for source in task.plan.inputs)
