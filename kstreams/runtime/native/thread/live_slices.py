"""`LiveSlices`: the tasks of one thread go no further than the slices of their `Alignment`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kstreams.batch import TopicPartition
from kstreams.processor.topology.task_id import TaskId
from kstreams.runtime.native.group.messages import EVERYTHING_MS, Pace, Slice
from kstreams.runtime.native.tasks.alignment import Alignment
from kstreams.runtime.native.thread.active_task import NOTHING_MS, ActiveTask
from kstreams.runtime.native.thread.time_slices import slice_end

IsDrained = Callable[[TopicPartition], bool]


class LiveSlices:
    """The slices that the writers of repartition topics in one thread are in.

    Parameters
    ----------
    alignment : Alignment
    """

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        self._slices: dict[int, Slice] = {}
        self._caught_up: set[TaskId] = set()
        self._done: dict[TaskId, int] = {}
        several = {sub for sub, tasks in alignment.writers.items() if len(tasks) > 1}
        self.topics: Collection[str] = {topic for topic, sub in alignment.topics.items() if sub in several}

    def number_of(self, topic: str) -> int | None:
        """The slice in which a topic is written now; None where no writer waits for another."""
        found = self._slices.get(self._alignment.topics.get(topic, -1))
        return None if found is None or found.is_open_ended else found.number

    def begin(self, tasks: Sequence[ActiveTask]) -> None:
        """Let the tasks process what the latest slices allow."""
        self._slices = {sub: self._alignment.slice_of(sub) for sub in self._alignment.writers}
        for task in self._writers(tasks):
            task.process_until(self._until_ms(task))

    def finished(self, tasks: Sequence[ActiveTask], is_drained: IsDrained) -> list[tuple[ActiveTask, Pace]]:
        """The tasks that have come to the end of their slice, with all others of their sub-topology in this thread."""
        found = []
        for sub, now in self._slices.items():
            writers = [task for task in tasks if task.plan.id.sub_topology == sub]
            new = [task for task in writers if self._done.get(task.plan.id) != now.number]
            if new and all(self._is_done(task, is_drained) for task in writers):
                found += [(task, self._pace(task, now, is_drained)) for task in new]
        return found

    def report(self, finished: Sequence[tuple[ActiveTask, Pace]]) -> None:
        """What these have written is visible now."""
        for task, pace in finished:
            self._done[task.plan.id] = pace.done
            self._alignment.report(task.plan.id, pace)

    def forget(self, task: TaskId) -> None:
        """The thread no longer has a task."""
        self._caught_up.discard(task)
        self._done.pop(task, None)
        self._alignment.forget(task)

    def _writers(self, tasks: Sequence[ActiveTask]) -> list[ActiveTask]:
        return [task for task in tasks if task.plan.id.sub_topology in self._slices]

    def _until_ms(self, task: ActiveTask) -> int:
        """A task that has history to read waits for a slice."""
        now = self._slices[task.plan.id.sub_topology]
        is_alone = len(self._alignment.writers[task.plan.id.sub_topology]) == 1
        if now.is_open_ended and not is_alone and task.plan.id not in self._caught_up:
            return NOTHING_MS
        return now.until_ms(task.plan.partition)

    def _is_done(self, task: ActiveTask, is_drained: IsDrained) -> bool:
        """Whether it has nothing to process in its slice, and knows what comes after."""
        known = all(task.group.buffered(source) or is_drained(source) for source in task.plan.inputs)
        return known and not task.has_more()

    def _pace(self, task: ActiveTask, now: Slice, is_drained: IsDrained) -> Pace:
        if task.group.head_ms() is None:
            self._caught_up.add(task.plan.id)
        has_caught_up = task.plan.id in self._caught_up
        if now.is_open_ended and has_caught_up:
            return Pace(now.number, EVERYTHING_MS, task.plan.partition, has_caught_up=True)
        time_ms, partition = min(slice_end(task, source, is_drained, 1) for source in task.plan.inputs)
        return Pace(now.number, time_ms, partition, has_caught_up)
