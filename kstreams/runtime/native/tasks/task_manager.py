"""`TaskManager`: the tasks of a process, from the assignment that gives them to the one that takes them away.

An assignment comes from the group of the application, or is a fixed list. Kafka Streams: `TaskManager`.
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
        The threads that there are; at least one.
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
    """The thread with the fewest tasks; of equal ones the first from `turn` on."""
    count = len(threads)
    return min((threads[(turn + i) % count] for i in range(count)), key=loads.__getitem__)


class TaskStage(Enum):
    """How far a task is that is to run here."""

    RESTORING = auto()
    GIVEN = auto()
    """A thread has it, and does not process it yet."""
    RUNNING = auto()
    RELEASING = auto()
    """Its thread is to commit and close it."""


class TaskThread(Protocol):
    """What runs tasks."""

    @property
    def index(self) -> int: ...
    def give(self, task: RestoredTask) -> None:
        """Let it run a task from its next round on."""
        ...

    def release(self, task: TaskId) -> None:
        """Let it commit and close a task at its next round."""
        ...

    def fail(self, error: BaseException) -> None:
        """Let it end with an error."""
        ...


class TaskManager:
    """The tasks of one process; called by its threads, its updater and its group member.

    Parameters
    ----------
    context : RuntimeContext
    threads : collection of int
        The indices of the threads among which tasks are divided.
    on_change : callable
        Called when all tasks that are assigned run, or no longer do.

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
        self._staying = set(threads)
        self._thread_of: dict[TaskId, int] = {}
        self._stages: dict[TaskId, TaskStage] = {}
        self._wanted: frozenset[TaskId] | None = None
        self._kept: frozenset[TaskId] = frozenset()
        self.tasks = {plan.id: bool(plan.sub_topology.stores) for plan in context.topology.layout.tasks}

    def start(self, threads: Sequence[TaskThread]) -> None:
        """Begin with these threads, which get what is assigned by now and what comes later."""
        self._threads = {thread.index: thread for thread in threads}
        self._updater.start()

    def close(self) -> None:
        """Close what no thread has; to be called when the threads have ended."""
        self._updater.close()

    def assign(self, active: Collection[TaskId], standby: Collection[TaskId] = ()) -> None:
        """Run these tasks and no others, and keep the stores of those up to date."""
        with self._lock:
            before = self._wanted or frozenset()
            self._wanted = frozenset(active) & self._plans.keys()
            self._kept = frozenset(standby) & self._plans.keys()
            self._assignments.add(self._wanted - before)
            for task in self._stages.keys() - self._wanted:
                self._give_up(task)
            self._open()
        self._on_change()

    def lose(self) -> None:
        """Give up all tasks without a commit."""
        with self._lock:
            self._wanted = frozenset()
            self._kept = frozenset()
            for task in self.restoring():
                self._give_up(task)
            for index in set(self._thread_of.values()):
                self._threads[index].fail(CommitFailedError("This process was out of its group."))
            self._open()
        self._on_change()

    def active(self) -> frozenset[TaskId]:
        """The tasks that are not given back."""
        with self._lock:
            return frozenset(self._stages)

    def standby(self) -> frozenset[TaskId]:
        """The tasks whose stores are kept up to date."""
        with self._lock:
            return self._kept - self._stages.keys()

    def standby_tasks(self) -> list[StandbyTask]:
        """The standbys that are open."""
        return self._updater.standbys()

    def restoring(self) -> list[TaskId]:
        """The tasks that wait for their stores."""
        with self._lock:
            return [task for task, stage in self._stages.items() if stage is TaskStage.RESTORING]

    def lags(self) -> Mapping[TaskId, int]:
        """How many changelog records standbys lack."""
        return self._updater.lags()

    def share(self, thread: int) -> list[TaskId]:
        """The tasks of a thread, those among them that it has not got yet."""
        with self._lock:
            return sorted(task for task, index in self._thread_of.items() if index == thread)

    def plans(self, thread: int) -> list[TaskPlan]:
        """The tasks of a thread, as they are laid out on topics."""
        return [self._plans[task] for task in self.share(thread)]

    def is_settled(self) -> bool:
        """Whether an assignment has come, and all that it gives is running."""
        with self._lock:
            running = {task for task, stage in self._stages.items() if stage is TaskStage.RUNNING}
            return self._wanted is not None and running == self._wanted

    def add(self, thread: TaskThread) -> None:
        """A further thread has come: it gets its part of the tasks."""
        with self._lock:
            self._threads[thread.index] = thread
            self._staying.add(thread.index)
            most = -(-len(self._stages) // len(self._staying))
            for index in self._staying:
                for task in self.share(index)[most:]:
                    self._give_up(task)
            self._open()
        self._on_change()

    def remove(self, index: int) -> None:
        """A thread is to have no tasks any more: others get them, one by one as they are given back."""
        with self._lock:
            self._staying.discard(index)
            for task in self.share(index):
                self._give_up(task)
            self._open()
        self._on_change()

    def removed(self, index: int) -> None:
        """A thread that has no tasks any more is gone."""
        with self._lock:
            del self._threads[index]

    def replace(self, thread: TaskThread) -> None:
        """A thread has taken the place of one that died: its tasks are opened again, as far as they are assigned."""
        with self._lock:
            self._threads[thread.index] = thread
            for task in self.share(thread.index):
                if self._stages[task] is not TaskStage.RESTORING:
                    self._forget(task)
            self._open()
        self._on_change()

    def restored(self, task: RestoredTask) -> None:
        """A task can be run."""
        with self._lock:
            self._stages[task.plan.id] = TaskStage.GIVEN
            self._threads[self._thread_of[task.plan.id]].give(task)

    def not_restored(self, task: TaskId, error: BaseException) -> None:
        """A restore has failed: that ends the thread which was to run the task."""
        with self._lock:
            self._stages[task] = TaskStage.GIVEN
            self._threads[self._thread_of[task]].fail(error)

    def running(self, task: TaskId) -> None:
        """A thread has opened a task."""
        with self._lock:
            if self._stages[task] is TaskStage.GIVEN:
                self._stages[task] = TaskStage.RUNNING
        self._on_change()

    def released(self, task: TaskId) -> None:
        """A thread has committed and closed a task."""
        with self._lock:
            self._forget(task)
            self._open()
        self._on_change()

    def _open(self) -> None:
        """Have everything opened that is assigned and not open."""
        unopened = (self._wanted or frozenset()) - self._stages.keys()
        new = place(unopened, sorted(self._staying), self._thread_of, self._together)
        self._thread_of |= new
        for task in new:
            self._stages[task] = TaskStage.RESTORING
            self._updater.restore(self._plans[task])
        if self._wanted is not None:
            self._updater.keep([self._plans[task] for task in sorted(self.standby())])

    def _give_up(self, task: TaskId) -> None:
        stage = self._stages[task]
        if stage is TaskStage.RESTORING:
            self._forget(task)
            self._updater.drop(task)
        elif stage is not TaskStage.RELEASING:
            self._stages[task] = TaskStage.RELEASING
            self._threads[self._thread_of[task]].release(task)

    def _forget(self, task: TaskId) -> None:
        del self._stages[task], self._thread_of[task]
