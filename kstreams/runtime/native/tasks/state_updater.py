"""`StateUpdater`: restores the stores of tasks and updates standby tasks, in its own thread.

Stream threads process their tasks at the same time. Kafka Streams: `StateUpdater`.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from time import monotonic
from typing import Any, Protocol

from kstreams.errors import CorruptStateError, LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.processor.context.current_task import in_task
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.state.restore import RestoreProgress, StoreRestorer
from kstreams.runtime.native.tasks.restored_task import RestoredTask, open_state, restored_task
from kstreams.runtime.native.tasks.standby_task import StandbyTask
from kstreams.runtime.native.uncaught_exceptions import clear_frames
from kstreams.state.api import TaskState

logger = logging.getLogger(__name__)

_FOLLOW_S = 0.1
_FOLLOWED_ROWS = 100_000
_LAGS_S = 0.5  # the interval of reading the lags of standby tasks
_PAUSE_S = 1.0  # the backoff after an error of standby tasks


class RestoreListener(Protocol):
    """Receives the results of restores, in the updater's thread."""

    def restored(self, task: RestoredTask) -> None:
        """Take over a restored task."""
        ...

    def not_restored(self, task: TaskId, error: BaseException) -> None: ...


class StateUpdater:
    """Restores the tasks and updates the standby tasks of one process, from `start` to `close`.

    Parameters
    ----------
    context : RuntimeContext
    listener : RestoreListener
    lock : RLock
        Held by the listener while it changes its tasks, so that no task is handed over after it was dropped.
    """

    def __init__(self, context: RuntimeContext, listener: RestoreListener, lock: Any) -> None:
        self._context = context
        self._listener = listener
        self._changed = threading.Condition(lock)
        self._waiting: dict[TaskId, TaskPlan] = {}  # tasks to restore, in this order
        self._restoring: TaskId | None = None
        self._is_dropped = False  # the task that is being restored
        self._assigned_standbys: dict[TaskId, TaskPlan] | None = (
            None  # None until the first call of `keep`: standbys are the stores on disk
        )
        self._standbys: dict[TaskId, StandbyTask] = {}  # changed only by the thread
        self._lags: dict[TaskId, int] = {}
        self._input_ends: dict[TopicPartition, int] = {}  # the committed offsets of inputs that standbys follow
        self._lags_read_s = 0.0
        self.sensors = context.state.sensors
        self._stopped = False
        self._thread = threading.Thread(
            target=self._run, name=f"{context.environment.application_id}-StateUpdater", daemon=True
        )
        self._resources = ExitStack()
        self._consumer = self._resources.enter_context(context.environment.consumer("restore"))
        self._follower = self._resources.enter_context(context.environment.consumer("restore"))
        self._admin = self._resources.enter_context(context.environment.log.admin())
        self._restorer = StoreRestorer(
            context.application, self._consumer, self._admin, self._restored_to, self._is_interrupted
        )

    def start(self) -> None:
        """Start the thread. Until the first call of `keep`, the stores on disk are standbys."""
        if self._context.topology.bounds is None:
            self._open_stores_on_disk()
        self._thread.start()

    def restore(self, plan: TaskPlan) -> None:
        """Restore a task for the listener, from its standby if there is one."""
        with self._changed:
            self._waiting[plan.id] = plan
            self._changed.notify()

    def drop(self, task: TaskId) -> None:
        """Stop the restore of a task, and close its stores."""
        with self._changed:
            self._waiting.pop(task, None)
            self._is_dropped |= task == self._restoring
            self._changed.notify()

    def keep(self, plans: Collection[TaskPlan]) -> None:
        """Keep these standby tasks, and close all others."""
        with self._changed:
            self._assigned_standbys = {plan.id: plan for plan in plans}
            self._changed.notify()

    def lags(self) -> dict[TaskId, int]:
        """Return the changelog lag of standby tasks in records, without those that have just begun."""
        return dict(self._lags)

    def standbys(self) -> list[StandbyTask]:
        """Return the standby tasks. Any thread may read their committed views."""
        return list(self._standbys.values())

    def close(self) -> None:
        """Stop, and close the stores."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()
        with self._resources:
            self._close_standbys(self._standbys)

    def _is_interrupted(self) -> bool:
        return self._stopped or self._is_dropped

    def _run(self) -> None:
        while not self._stopped:
            try:
                self._work()
            except Exception as error:
                clear_frames(error)
                logger.warning("the standbys are opened again: %s", error)
                self._close_standbys(self._standbys)
                with self._changed:
                    self._changed.wait(_PAUSE_S)

    def _work(self) -> None:
        with self._changed:
            plan = self._next()
            standbys = self._assigned_standbys if self._assigned_standbys is not None else dict.fromkeys(self._standbys)
        if plan is not None:
            started_at = monotonic()
            self._restore(plan)
            self.sensors.record_seconds(self.sensors.restoring, started_at)
        elif self._standbys.keys() != standbys.keys():
            self._change_standbys({task: plan for task, plan in standbys.items() if plan is not None})
        elif self._standbys:
            self._follow()
        else:
            self._wait()

    def _next(self) -> TaskPlan | None:
        """Return the next task to restore, or None."""
        task = next(iter(self._waiting), None)
        self._restoring = task
        self._is_dropped = False
        return None if task is None else self._waiting.pop(task)

    def _wait(self) -> None:
        with self._changed:
            is_idle = not (self._stopped or self._waiting or self._assigned_standbys)
            if is_idle:
                self._changed.wait()

    def _restore(self, plan: TaskPlan) -> None:
        state: TaskState | None = None
        try:
            read_to = self._read_to(plan.id)
            state = self._taken(plan)
            with in_task(str(plan.id)):
                task = restored_task(
                    plan,
                    state,
                    self._context,
                    self._restorer,
                    admin=self._admin,
                    consumer=self._consumer,
                    read_to=read_to,
                )
        except BaseException as error:
            self._fail(plan, state, error)
            return
        with self._changed:
            if not self._is_interrupted():
                self._listener.restored(task)
                return
        state.close()

    def _fail(self, plan: TaskPlan, state: TaskState | None, error: BaseException) -> None:
        clear_frames(error)
        if state is not None:
            state.close()
        with self._changed:
            if not self._is_interrupted():
                self._listener.not_restored(plan.id, error)

    def _read_to(self, task: TaskId) -> dict[TopicPartition, int]:
        """Return the offsets up to which the sources of a standby task have been read."""
        standby = self._standbys.get(task)
        return {} if standby is None else {source: self._follower.position(source) for source in standby.sources}

    def _taken(self, plan: TaskPlan) -> TaskState:
        """Return the stores of a task: those of its standby task, or those on disk."""
        standby = self._standbys.pop(plan.id, None)
        self._lags.pop(plan.id, None)
        if standby is None:
            return open_state(plan, self._context)
        self._assign()
        return standby.state

    def _open_stores_on_disk(self) -> None:
        """Open the stores of an earlier run as standbys, so that their tasks are assigned to this process."""
        plans = [
            plan for plan in self._context.topology.layout.tasks if (self._context.state.folder / str(plan.id)).is_dir()
        ]
        try:
            self._change_standbys({plan.id: plan for plan in plans if plan.sub_topology.stores})
            if self._standbys:
                self._read_lags()
        except Exception as error:  # the restore of such a task meets the error too, and rebuilds the store
            clear_frames(error)
            logger.warning("the stores of an earlier run are not reused as standbys: %s", error)
            self._close_standbys(self._standbys)

    def _change_standbys(self, standbys: Mapping[TaskId, TaskPlan]) -> None:
        self._close_standbys([task for task in self._standbys if task not in standbys])
        for task, plan in standbys.items():
            if task not in self._standbys:
                state = open_state(plan, self._context)
                self._standbys[task] = StandbyTask(
                    plan, state, self._context.environment.application_id, self._restorer.accepted
                )
        self._assign()

    def _assign(self) -> None:
        """Assign the sources of the standby tasks to the consumer."""
        followed = [source for standby in self._standbys.values() for source in standby.sources]
        assigned = self._follower.assignment()
        self._follower.assign(followed)
        begins = self._admin.beginning_offsets([source for source in followed if source not in assigned])
        for standby in self._standbys.values():
            for source, offset in standby.positions(begins).items():
                if source not in assigned:
                    self._follower.seek(source, offset)
        self._read_committed_offsets()

    def _follow(self) -> None:
        """Apply new records to the standby tasks."""
        standby_of = {source: standby for standby in self._standbys.values() for source in standby.sources}
        batches = self._follower.poll(_FOLLOW_S, _FOLLOWED_ROWS)
        started_at = monotonic()
        records = Counter[str]()
        for batch in batches:
            standby = standby_of[batch.source]
            rows = self._processed(batch)
            records[str(standby.plan.id)] += len(rows)
            try:
                standby.apply(rows)
            except CorruptStateError as damage:
                self._context.state.rebuilds.delete_damaged(
                    damage, self._context.topology.layout.tasks, self._context.topology.global_tables
                )
                raise
        if batches:
            self.sensors.record_seconds(self.sensors.updating, started_at)
            self.sensors.record_updated(records)
        if monotonic() - self._lags_read_s > _LAGS_S:
            self._read_committed_offsets()
            self._read_lags()

    def _restored_to(self, progress: RestoreProgress) -> None:
        self.sensors.record_restored(progress.task, progress.store, progress.restored)
        self._context.state.on_restore(progress)

    def _processed(self, batch: Batch) -> Batch:
        """Return the rows of an input up to the committed offset, or all rows of a changelog."""
        end = self._input_ends.get(batch.source)
        if end is None or batch.offsets[-1] < end:
            return batch
        self._follower.seek(batch.source, end)
        return batch.slice(0, int(batch.offsets.searchsorted(end)))

    def _read_committed_offsets(self) -> None:
        """Read the committed offsets of inputs, up to which standby tasks follow them."""
        inputs = [source for standby in self._standbys.values() for source in standby.inputs]
        committed = self._admin.committed(self._context.environment.application_id, inputs) if inputs else {}
        self._input_ends = {source: committed[source].offset if source in committed else 0 for source in inputs}
        processed = {source for source, end in self._input_ends.items() if self._follower.position(source) >= end}
        self._follower.pause(processed)
        self._follower.resume([source for source in inputs if source not in processed])

    def _read_lags(self) -> None:
        followed = sorted(self._follower.assignment())
        ends = {**self._follower.end_offsets(followed), **self._input_ends}
        behind = {source: max(0, ends[source] - self._follower.position(source)) for source in followed}
        self._lags = {
            task: sum(behind[source] for source in standby.sources) for task, standby in self._standbys.items()
        }
        self._lags_read_s = monotonic()

    def _close_standbys(self, tasks: Collection[TaskId]) -> None:
        for task in list(tasks):
            self._lags.pop(task, None)
            try:
                self._standbys.pop(task).state.close()
            except (LogError, OSError) as error:
                logger.warning("closing the standby %s failed: %s", task, error)
        with suppress(LogError):  # the next assignment meets the error too
            self._follower.assign([s for standby in self._standbys.values() for s in standby.sources])
