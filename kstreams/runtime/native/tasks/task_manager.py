"""`TaskManager`: the tasks of a process, from their assignment to their revocation. Kafka Streams: `TaskManager`.

An assignment comes from the group of the application, or is a fixed list.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Protocol

from kstreams.errors import CommitFailedError
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.tasks.restored_task import RestoredTask
from kstreams.runtime.native.tasks.standby_task import StandbyTask
from kstreams.runtime.native.tasks.state_updater import StateUpdater
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment


def place(
    tasks: Collection[TaskId],
    threads: Sequence[int],
    placed: Mapping[TaskId, int] | None = None,
    together: Collection[int] = frozenset(),
) -> dict[TaskId, int]:
    """Choose threads for tasks: equal numbers, the tasks of a sub-topology on as many threads as possible.

    Parameters
    ----------
    tasks : collection of TaskId
    threads : sequence of int
        The indices of the threads; at least one.
    placed : mapping of TaskId to int, optional
        Tasks that have a thread already.
    together : collection of int
        Sub-topologies whose tasks must share a thread.

    Examples
    --------
    >>> tasks = [TaskId(s, p) for s in (0, 1) for p in range(3)]
    >>> {str(task): thread for task, thread in place(tasks, [1, 2]).items()}
    {'0_0': 1, '0_1': 2, '0_2': 1, '1_0': 2, '1_1': 1, '1_2': 2}
    >>> {str(task): thread for task, thread in place(tasks, [1, 2], together={0}).items()}
    {'0_0': 1, '0_1': 1, '0_2': 1, '1_0': 2, '1_1': 2, '1_2': 2}
    >>> {str(task): thread for task, thread in place([TaskId(0, 3)], [1, 2], dict.fromkeys(tasks, 1)).items()}
    {'0_3': 2}
    """
    loads = Counter((placed or {}).values())
    counts = dict[TaskId, int]()
    for sub in sorted(together):
        thread = min(threads, key=loads.__getitem__)
        of_sub = sorted(task for task in tasks if task.sub_topology == sub)
        counts |= dict.fromkeys(of_sub, thread)
        loads[thread] += len(of_sub)
    alone = sorted(task for task in tasks if task.sub_topology not in together)
    for turn, task in enumerate(alone, len(placed or {})):
        counts[task] = _least_loaded(threads, loads, turn)
        loads[counts[task]] += 1
    return counts


def _least_loaded(threads: Sequence[int], loads: Counter[int], turn: int) -> int:
    """Return the thread with the fewest tasks. Of several ones, return the first from position `turn` on."""
    count = len(threads)
    return min((threads[(turn + i) % count] for i in range(count)), key=loads.__getitem__)


class TaskStage(Enum):
    """The stage of a task that is assigned to this process."""

    RESTORING = auto()
    HANDED_OVER = auto()
    """A thread has the task, and has not opened it."""
    RUNNING = auto()
    RELEASING = auto()
    """The thread was told to commit and close the task."""


class TaskThread(Protocol):
    """A thread that runs tasks."""

    @property
    def index(self) -> int: ...
    def give(self, task: RestoredTask) -> None:
        """Run a task from the next round on."""
        ...

    def release(self, task: TaskId) -> None:
        """Commit and close a task at the next round."""
        ...

    def fail(self, error: BaseException) -> None:
        """End with an error."""
        ...


class TaskManager:
    """Divides the tasks of one process among its threads. Called by threads, the updater and the group member.

    Parameters
    ----------
    context : RuntimeContext
    threads : collection of int
        The indices of the threads among which tasks are divided.
    on_change : callable
        Called when tasks have changed their stage.

    Attributes
    ----------
    tasks : dict of TaskId to bool
        All tasks of the topology, and whether they have state.
    alignment : ProcessAlignment
        The slices that the writers of repartition topics follow.
    """

    def __init__(self, context: RuntimeContext, threads: Collection[int], on_change: Callable[[], None]) -> None:
        self._plans = {plan.id: plan for plan in context.topology.layout.tasks}
        is_bounded = context.topology.bounds is not None
        self._on_change = on_change
        self._assignments = context.environment.assignments
        self._together = context.topology.aligned if is_bounded else frozenset[int]()
        waits = is_bounded or context.environment.settings.max_task_idle_ms >= 0
        self.alignment = ProcessAlignment(
            context.topology.layout, context.topology.aligned if waits else (), is_shared=not is_bounded
        )
        self._lock = threading.RLock()
        self._updater = StateUpdater(context, self, self._lock)
        self._threads: dict[int, TaskThread] = {}
        self._thread_indices = set(threads)
        self._thread_of: dict[TaskId, int] = {}
        self._stages: dict[TaskId, TaskStage] = {}
        self._assigned: frozenset[TaskId] | None = None
        self._assigned_standby: frozenset[TaskId] = frozenset()
        self.tasks = {plan.id: bool(plan.sub_topology.stores) for plan in context.topology.layout.tasks}

    def start(self, threads: Sequence[TaskThread]) -> None:
        """Begin to restore tasks for these threads."""
        self._threads = {thread.index: thread for thread in threads}
        self._updater.start()

    def close(self) -> None:
        """Close standby tasks and tasks that no thread has. Called when the threads have ended."""
        self._updater.close()

    def assign(self, active: Collection[TaskId], standby: Collection[TaskId] = ()) -> None:
        """Run the `active` tasks and no others, and keep the stores of `standby` tasks up to date."""
        with self._lock:
            before = self._assigned or frozenset()
            self._assigned = frozenset(active) & self._plans.keys()
            self._assigned_standby = frozenset(standby) & self._plans.keys()
            self._assignments.add(self._assigned - before)
            for task in self._stages.keys() - self._assigned:
                self._revoke(task)
            self._open()
        self._on_change()

    def lose(self) -> None:
        """Revoke all tasks without a commit."""
        with self._lock:
            self._assigned = frozenset()
            self._assigned_standby = frozenset()
            for task in self.restoring():
                self._revoke(task)
            for index in set(self._thread_of.values()):
                self._threads[index].fail(CommitFailedError("This process was out of its group."))
            self._open()
        self._on_change()

    def active(self) -> frozenset[TaskId]:
        """Return the assigned tasks and the tasks that are not released yet."""
        with self._lock:
            return frozenset(self._stages)

    def standby(self) -> frozenset[TaskId]:
        """Return the standby tasks."""
        with self._lock:
            return self._assigned_standby - self._stages.keys()

    def standby_tasks(self) -> list[StandbyTask]:
        """Return the open standby tasks."""
        return self._updater.standbys()

    def restoring(self) -> list[TaskId]:
        """Return the tasks whose stores are being restored."""
        with self._lock:
            return [task for task, stage in self._stages.items() if stage is TaskStage.RESTORING]

    def lags(self) -> Mapping[TaskId, int]:
        """Return the changelog lag of standby tasks in records."""
        return self._updater.lags()

    def share(self, thread: int) -> list[TaskId]:
        """Return the tasks of a thread, including those that are being restored."""
        with self._lock:
            return sorted(task for task, index in self._thread_of.items() if index == thread)

    def plans(self, thread: int) -> list[TaskPlan]:
        """Return the plans of a thread's tasks."""
        return [self._plans[task] for task in self.share(thread)]

    def is_settled(self) -> bool:
        """Return whether there is an assignment, and all of its tasks run."""
        with self._lock:
            running = {task for task, stage in self._stages.items() if stage is TaskStage.RUNNING}
            return self._assigned is not None and running == self._assigned

    def add(self, thread: TaskThread) -> None:
        """Add a thread, which gets its share of the tasks."""
        with self._lock:
            self._threads[thread.index] = thread
            self._thread_indices.add(thread.index)
            most = -(-len(self._stages) // len(self._thread_indices))
            for index in self._thread_indices:
                for task in self.share(index)[most:]:
                    self._revoke(task)
            self._open()
        self._on_change()

    def remove(self, index: int) -> None:
        """Give the tasks of a thread to other threads, each when it is released."""
        with self._lock:
            self._thread_indices.discard(index)
            for task in self.share(index):
                self._revoke(task)
            self._open()
        self._on_change()

    def removed(self, index: int) -> None:
        """Remove a thread without tasks."""
        with self._lock:
            del self._threads[index]

    def replace(self, thread: TaskThread) -> None:
        """Replace a thread that an error has ended. Its assigned tasks are opened again."""
        with self._lock:
            self._threads[thread.index] = thread
            for task in self.share(thread.index):
                if self._stages[task] is not TaskStage.RESTORING:
                    self._forget(task)
            self._open()
        self._on_change()

    def restored(self, task: RestoredTask) -> None:
        """Hand a restored task over to its thread."""
        with self._lock:
            self._stages[task.plan.id] = TaskStage.HANDED_OVER
            self._threads[self._thread_of[task.plan.id]].give(task)

    def not_restored(self, task: TaskId, error: BaseException) -> None:
        """End the thread of a task whose restore has failed."""
        with self._lock:
            self._stages[task] = TaskStage.HANDED_OVER
            self._threads[self._thread_of[task]].fail(error)

    def running(self, task: TaskId) -> None:
        """Note that a thread has opened a task."""
        with self._lock:
            if self._stages[task] is TaskStage.HANDED_OVER:
                self._stages[task] = TaskStage.RUNNING
        self._on_change()

    def released(self, task: TaskId) -> None:
        """Note that a thread has committed and closed a task."""
        with self._lock:
            self._forget(task)
            self._open()
        self._on_change()

    def _open(self) -> None:
        """Restore the assigned tasks that are not open."""
        unopened = (self._assigned or frozenset()) - self._stages.keys()
        new = place(unopened, sorted(self._thread_indices), self._thread_of, self._together)
        self._thread_of |= new
        for task in new:
            self._stages[task] = TaskStage.RESTORING
            self._updater.restore(self._plans[task])
        if self._assigned is not None:
            self._updater.keep([self._plans[task] for task in sorted(self.standby())])

    def _revoke(self, task: TaskId) -> None:
        stage = self._stages[task]
        if stage is TaskStage.RESTORING:
            self._forget(task)
            self._updater.drop(task)
        elif stage is not TaskStage.RELEASING:
            self._stages[task] = TaskStage.RELEASING
            self._threads[self._thread_of[task]].release(task)

    def _forget(self, task: TaskId) -> None:
        del self._stages[task], self._thread_of[task]
