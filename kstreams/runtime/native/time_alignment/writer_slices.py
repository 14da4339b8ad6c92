"""`WriterSlices`: the slices of event time that the tasks of one thread process if they write repartition topics.

A thread that has all writers of a topic chooses the slices itself, and sorts the rows that they write (`TimeSlices`).
Writers in several threads follow the slices of their `ProcessAlignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.task.partition_group import END, Place
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.time_alignment.process_alignment import EVERYTHING_MS, Pace, ProcessAlignment, Slice
from kstreams.runtime.native.time_alignment.task_input import NOTHING, TaskInput

IsDrained = Callable[[TopicPartition], bool]


class TimeSlices:
    """The slices of the tasks of one sub-topology.

    A slice ends at a place and a partition. Tasks up to this partition process the records up to this place, and tasks
    of later partitions the records before it. A task that waits for one of its inputs has come to this end.

    Parameters
    ----------
    inputs : sequence of TaskInput
        The inputs of the tasks.
    """

    def __init__(self, inputs: Sequence[TaskInput]) -> None:
        self._inputs = inputs
        self._process_until(NOTHING, -1)

    @property
    def is_open(self) -> bool:
        """True if a task has records of the present slice to process."""
        return any(task_input.has_records() for task_input in self._inputs)

    def is_of(self, inputs: Sequence[TaskInput]) -> bool:
        """Return whether these are the inputs of the slices."""
        return list(self._inputs) == list(inputs)

    def advance(self, is_drained: IsDrained) -> None:
        """Begin the next slice. It ends where the first partition may continue with records that are not buffered.

        Parameters
        ----------
        is_drained : callable
            Returns whether all records of a partition are buffered.
        """
        if not self.is_open:
            count = len(self._inputs)
            ends = (
                slice_end(task_input, source, is_drained, count)
                for task_input in self._inputs
                for source in task_input.plan.inputs
            )
            place, partition = min(ends)
            self._process_until(place, partition)

    def _process_until(self, place: Place, partition: int) -> None:
        before = Place(place.time_ms, place.rank - 1)
        for task_input in self._inputs:
            task_input.process_until(place if task_input.plan.partition <= partition else before)


def slice_end(
    task_input: TaskInput, source: TopicPartition, is_drained: IsDrained, num_tasks: int
) -> tuple[Place, int]:
    """Return the place and the partition of records of an input that may not be buffered.

    Parameters
    ----------
    task_input : TaskInput
    source : TopicPartition
        One of the inputs.
    is_drained : callable
        Returns whether all records of a partition are buffered.
    num_tasks : int
        The number of tasks of one thread that share a slice. The more tasks, the shorter the slice, because a thread
        does not commit within a slice.
    """
    count = task_input.group.buffered(source)
    records = min(max(1, task_input.run_length // num_tasks), count)
    if records == count and is_drained(source):
        return END, source.partition
    before_ms = task_input.stream_time_ms
    if not count:
        return Place(before_ms, 0), source.partition
    last = task_input.group.last_place(source, records)
    return Place(max(before_ms, last.time_ms), last.rank), source.partition


class WriterSlices:
    """The slices of the writers in one thread.

    Parameters
    ----------
    alignment : ProcessAlignment

    Attributes
    ----------
    topics : collection of str
        The topics whose rows come with stream times: several tasks write them, or they are in `timed`.
    timed : collection of str
        The topics whose readers need the stream times.
    """

    def __init__(self, alignment: ProcessAlignment) -> None:
        self._alignment = alignment
        self._inputs: Sequence[TaskInput] = ()
        self._slices: dict[int, Slice] = {}
        self._own: dict[int, TimeSlices] = {}
        self._caught_up: set[TaskId] = set()
        self._done: dict[TaskId, int] = {}
        several = {sub for sub, tasks in alignment.writers.items() if len(tasks) > 1}
        self.timed: Collection[str] = alignment.timed
        self.order = alignment.order
        self.topics: Collection[str] = {topic for topic, sub in alignment.topics.items() if sub in several} | self.timed

    @property
    def may_commit(self) -> bool:
        """False while tasks are within a slice that the thread has chosen: their output cannot be sorted yet."""
        return not any(own.is_open for own in self._own.values())

    def assign(self, inputs: Sequence[TaskInput]) -> None:
        """Choose or follow the slices of these tasks from now on."""
        self._inputs = inputs

    def merges(self, topic: str) -> bool:
        """Return whether the thread has all writers of a topic, and sorts the rows that they write."""
        return self._alignment.topics.get(topic) in self._own

    def number_of(self, topic: str) -> int | None:
        """Return the slice for the tags of a topic's rows, or None if no writer waits for another."""
        writer_slice = self._slices.get(self._alignment.topics.get(topic, -1))
        return None if writer_slice is None or writer_slice.is_open_ended else writer_slice.number

    def begin_round(self, is_drained: IsDrained) -> None:
        """Let the tasks process the latest slices.

        Parameters
        ----------
        is_drained : callable
            Returns whether all records of a partition are buffered.
        """
        self._slices = {sub: self._alignment.slice_of(sub) for sub in self._alignment.writers}
        for sub in self._slices:
            writers = self._inputs_of(sub)
            if self._chooses_slices(sub, writers):
                self._own_slices(sub, writers).advance(is_drained)
            else:
                self._own.pop(sub, None)
                for task_input in writers if self._alignment.is_shared else ():
                    task_input.process_until(Place(self._until_ms(task_input, sub)))

    def finished(self, is_drained: IsDrained) -> dict[TaskId, Pace]:
        """Return the tasks at the end of their slice, as soon as all tasks of their sub-topology in this thread are.

        The thread reports them when their output is visible.
        """
        finished: dict[TaskId, Pace] = {}
        for sub, current in self._slices.items() if self._alignment.is_shared else ():
            writers = self._inputs_of(sub)
            if sub in self._own:
                finished |= self._caught_up_paces(writers, current, is_drained)
                continue
            new = [task_input for task_input in writers if self._done.get(task_input.plan.id) != current.number]
            if new and all(_is_done(task_input, is_drained) for task_input in writers):
                finished |= self._paces(new, current, is_drained)
        return finished

    def report(self, finished: Mapping[TaskId, Pace]) -> None:
        """Report the paces of tasks whose output is visible, so that the next slice may begin."""
        for task, pace in finished.items():
            self._done[task] = pace.done
            self._alignment.report(task, pace)

    def forget(self, task: TaskId) -> None:
        """Note that the thread no longer has a task."""
        self._caught_up.discard(task)
        self._done.pop(task, None)
        self._alignment.forget(task)

    def _inputs_of(self, sub_topology: int) -> list[TaskInput]:
        return [task_input for task_input in self._inputs if task_input.plan.id.sub_topology == sub_topology]

    def _chooses_slices(self, sub_topology: int, writers: Sequence[TaskInput]) -> bool:
        """Return whether the thread chooses the slices: it has all tasks of a sub-topology, and they read history."""
        if len(writers) < max(2, len(self._alignment.writers[sub_topology])):
            return False
        if not self._alignment.is_shared:
            return True
        have_caught_up = all(task_input.plan.id in self._caught_up for task_input in writers)
        return self._slices[sub_topology].is_open_ended and not have_caught_up

    def _own_slices(self, sub_topology: int, writers: Sequence[TaskInput]) -> TimeSlices:
        own = self._own.get(sub_topology)
        if own is None or not own.is_of(writers):
            own = self._own[sub_topology] = TimeSlices(writers)
        return own

    def _until_ms(self, task_input: TaskInput, sub_topology: int) -> int:
        """Return the end of a task's slice. A task that reads history waits for a slice if there are other tasks."""
        current = self._slices[sub_topology]
        is_alone = len(self._alignment.writers[sub_topology]) == 1
        if current.is_open_ended and not is_alone and task_input.plan.id not in self._caught_up:
            return NOTHING.time_ms
        return current.until_ms(task_input.plan.partition)

    def _caught_up_paces(
        self, writers: Sequence[TaskInput], current: Slice, is_drained: IsDrained
    ) -> dict[TaskId, Pace]:
        """Return the paces of the writers of the thread's own slices, when they have read their history."""
        reads_history = any(
            task_input.group.head() is not None or not task_input.knows_next(is_drained) for task_input in writers
        )
        return {} if reads_history else self._paces(writers, current, is_drained)

    def _paces(self, writers: Sequence[TaskInput], current: Slice, is_drained: IsDrained) -> dict[TaskId, Pace]:
        return {task_input.plan.id: self._pace(task_input, current, is_drained) for task_input in writers}

    def _pace(self, task_input: TaskInput, current: Slice, is_drained: IsDrained) -> Pace:
        if task_input.group.head() is None:
            self._caught_up.add(task_input.plan.id)
        has_caught_up = task_input.plan.id in self._caught_up
        if current.is_open_ended and has_caught_up:
            return Pace(current.number, EVERYTHING_MS, task_input.plan.partition, has_caught_up=True)
        place, partition = min(slice_end(task_input, source, is_drained, 1) for source in task_input.plan.inputs)
        return Pace(current.number, place.time_ms, partition, has_caught_up)


def _is_done(task_input: TaskInput, is_drained: IsDrained) -> bool:
    """Return whether a task has no record of its slice to process, and knows its next records."""
    return task_input.knows_next(is_drained) and not task_input.has_more()
