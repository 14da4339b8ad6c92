"""`Worker`: runs the tasks of one connector that its group assigns to this process, in one thread.

A task that fails because the other system does not answer is closed, and opened again after a while, where the last
commit has left it. Any other error ends the worker. A paused worker keeps its tasks, and holds none of them open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from threading import Event
from time import monotonic, sleep
from typing import cast

from kstreams.connectors.connectors_topic import ConnectorControl
from kstreams.connectors.task import CommitSchedule, ConnectorTask
from kstreams.connectors.task_status import TaskState, TaskStatus
from kstreams.errors import ConnectorError, ConnectorUnavailableError, LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, GroupConsumer, Log, OffsetAndMetadata

logger = logging.getLogger("kstreams.connectors")

RETRIED = (ConnectorUnavailableError, OSError, LogError)
"""The errors after which a task is opened again."""

_IDLE_S = 0.05
_READABLE_S = 30.0
_MAX_ROWS = 50_000
_FIRST_BACKOFF_MS = 200
_MAX_BACKOFF_MS = 30_000
_NEVER_MS = 2**63
_MAX_BOUNDED_FAILURES = 6  # of one task in a bounded run, some ten seconds


class RunningTask:
    """A partition that is assigned to this process: its open task, or the time at which it is opened again.

    Parameters
    ----------
    source : TopicPartition
    now_ms : int
    schedule : CommitSchedule
    """

    def __init__(self, source: TopicPartition, now_ms: int, schedule: CommitSchedule) -> None:
        self.source = source
        self.status = TaskStatus(committed_ms=now_ms)
        self.schedule = schedule
        self.open_at_ms = now_ms
        self.failures = 0
        self.task: ConnectorTask | None = None

    def failed(self, error: Exception, now_ms: int) -> None:
        """Note an error, and when the task is opened again."""
        self.failures += 1
        self.status.retries += 1
        self.ended(TaskState.RESTARTING, error)
        backoff_ms = min(_FIRST_BACKOFF_MS * 2 ** (self.failures - 1), _MAX_BACKOFF_MS)
        self.open_at_ms = now_ms + backoff_ms

    def ended(self, state: TaskState, error: BaseException) -> None:
        """Note the error that has ended the open task."""
        self.status.state = state
        self.status.error = error_text(error)

    def open_at(self, now_ms: int) -> None:
        """Let the task be opened now, whatever has failed before."""
        self.failures = 0
        self.open_at_ms = now_ms
        self.status.state = TaskState.RESTARTING

    def pause(self) -> None:
        """Note that the task is not opened before `open_at`."""
        self.open_at_ms = _NEVER_MS
        self.status.state = TaskState.PAUSED

    def note_waits(self) -> None:
        """Note how many rows of the open task wait, and for how long."""
        if self.task is not None:
            self.status.waiting_rows = self.task.waiting_rows
            self.status.oldest_wait_ms = self.task.oldest_wait_ms

    def committed(self, rows: int, size: int, clock: Clock) -> None:
        """Note a commit."""
        self.failures = 0
        self.status.rows += rows
        self.status.size += size
        self.status.committed_ms = clock.uptime_ms()
        self.status.commit_time_ms = clock.wall_ms()
        self.status.error = ""
        self.schedule.committed()


def error_text(error: BaseException) -> str:
    """Return the message of an error, or its type if it has none."""
    return str(error) or type(error).__name__


OpenTask = Callable[[TopicPartition, GroupConsumer, ConnectorControl], ConnectorTask]


class Worker:
    """The tasks of one connector in this process.

    Parameters
    ----------
    name : str
        The id of the connector, which is that of its consumer group.
    topic : str
        The topic whose partitions are the tasks.
    open_task : callable
        Opens the task of a partition.
    log : Log
    clock : Clock
    control : ConnectorControl
        How the connector is to run at first.
    new_schedule : callable
        Returns the commit schedule of a task.
    filled_topic : str
        The topic that a source fills. Empty for a sink.
    """

    def __init__(
        self,
        name: str,
        topic: str,
        open_task: OpenTask,
        log: Log,
        clock: Clock,
        control: ConnectorControl,
        *,
        new_schedule: Callable[[], CommitSchedule] = CommitSchedule,
        filled_topic: str = "",
    ) -> None:
        self._filled_topic = filled_topic
        self.name = name
        self._topic = topic
        self._open_task = open_task
        self._log = log
        self._clock = clock
        self._new_schedule = new_schedule
        self._running: dict[TopicPartition, RunningTask] = {}
        self._ended: dict[TopicPartition, RunningTask] = {}
        self._latest_control = control  # as the herder sets it, from another thread
        self._control = control

    @property
    def is_paused(self) -> bool:
        """True if no task may run."""
        return self._latest_control.is_paused

    def obey(self, control: ConnectorControl) -> None:
        """Run the tasks as a control says, from the next round on. May be called from any thread."""
        if control != self._latest_control:
            self._latest_control = control

    def statuses(self) -> Mapping[int, TaskStatus]:
        """Return the statuses of the tasks in this process, by partition. After the end, the last ones."""
        return {source.partition: running.status for source, running in (self._ended | self._running).items()}

    def run(self, stop: Event) -> None:
        """Run the tasks that the group assigns until the event is set. The last step is a commit."""
        if self._control.is_paused:
            logger.warning("%s is paused, until `kstreams connectors resume`", self.name)
        with closing(self._consumer()) as consumer, self._closing_tasks():
            consumer.subscribe([self._topic], on_assigned=self._assigned, on_revoked=self._drop)
            has_worked = False
            while not stop.is_set():
                has_worked = self._round(consumer, idle_s=0.0 if has_worked else _IDLE_S)
                if not has_worked:
                    stop.wait(_IDLE_S)
            self._commit_all(consumer)

    def run_to_end(self, stop: Event, partitions: Collection[int] | None = None) -> None:
        """Run tasks until the other system, or the topic, has nothing more. No other process runs these tasks.

        Parameters
        ----------
        stop : Event
            Ends the run when it is set.
        partitions : collection of int, optional
            The tasks. By default all.

        Raises
        ------
        ConnectorError
            If a task has failed several times, or another process runs the connector.
        """
        with self._log.admin() as admin, closing(self._consumer()) as consumer, self._closing_tasks():
            numbers = range(admin.describe_topic(self._topic).partitions) if partitions is None else partitions
            self._refuse_members(admin)
            sources = [TopicPartition(self._topic, number) for number in numbers]
            consumer.assign(sources)
            self._assigned(sources)
            # On Kafka, a transaction is committed before its records can be read.
            ends = admin.end_offsets(sources, committed_only=False)
            is_over = False
            while not is_over and not stop.is_set():
                has_worked = self._round(consumer, idle_s=0.0)
                self._refuse_endless_failures()
                is_over = not has_worked and all(self._is_at_end(consumer, source, ends) for source in sources)
            self._commit_all(consumer)
            if self._filled_topic:
                _await_readable(admin, self._filled_topic)

    def _refuse_members(self, admin: Admin) -> None:
        members = admin.describe_group(self.name).members  # without those whose process was killed
        if members:
            raise ConnectorError(
                f"{len(members)} processes run the connector {self.name}: stop them first "
                f"(`kstreams groups describe {self.name}` names them)"
            )

    def _is_at_end(self, consumer: GroupConsumer, source: TopicPartition, ends: Mapping[TopicPartition, int]) -> bool:
        task = self._running[source].task
        if task is None:
            return False
        return task.start_offset is None or consumer.position(source) >= ends[source]

    def _refuse_endless_failures(self) -> None:
        for source, running in self._running.items():
            if running.failures > _MAX_BOUNDED_FAILURES:
                raise ConnectorUnavailableError(
                    f"{self.name} has failed {running.failures} times in a row on {source}: {running.status.error}"
                )

    def _consumer(self) -> GroupConsumer:
        settings = {"group.id": self.name, "auto.offset.reset": "earliest"}
        return cast(GroupConsumer, self._log.consumer(settings))

    def _round(self, consumer: GroupConsumer, *, idle_s: float) -> bool:
        """Open, read, write and commit once. Return whether there was something to do."""
        if self._latest_control is not self._control:
            self._apply_control(consumer, self._latest_control)
        self._open_due(consumer)
        batches = consumer.poll(idle_s, _MAX_ROWS)
        has_read = False
        for batch in batches:
            has_read |= self._guarded(consumer, batch.source, partial(_take, batch))
            # a target may hold locks for large uncommitted rows, which the next task would wait for
            self._commit_task_if_due(consumer, batch.source)
        for source in list(self._running):
            has_read |= self._guarded(consumer, source, _step)
            self._commit_task_if_due(consumer, source)
        return has_read

    def _apply_control(self, consumer: GroupConsumer, control: ConnectorControl) -> None:
        before = self._control
        self._control = control
        logger.info("%s: %s", self.name, _change(before, control))
        for source, running in list(self._running.items()):
            number = source.partition
            if control.is_paused:
                self._guarded(consumer, source, partial(self._commit_pending, consumer, running))
                self._pause(consumer, running)
            elif before.is_paused or control.task(number).restarts != before.task(number).restarts:
                self._stop_task(consumer, running)
                running.open_at(self._clock.uptime_ms())

    def _pause(self, consumer: GroupConsumer, running: RunningTask) -> None:
        self._stop_task(consumer, running)
        running.status.member = consumer.group_metadata().member
        running.pause()

    def _stop_task(self, consumer: GroupConsumer, running: RunningTask) -> None:
        """Close a task if it is open. What is not committed is discarded."""
        consumer.pause([running.source])
        task = running.task
        running.task = None
        if task is not None:
            _close(task)

    def _commit_task_if_due(self, consumer: GroupConsumer, source: TopicPartition) -> None:
        running = self._running.get(source)
        if running is not None:
            running.note_waits()
            self._guarded(consumer, source, partial(self._commit_if_due, consumer, running))

    def _open_due(self, consumer: GroupConsumer) -> None:
        now_ms = self._clock.uptime_ms()
        for running in list(self._running.values()):
            if running.task is None and now_ms >= running.open_at_ms:
                self._open(consumer, running)

    def _open(self, consumer: GroupConsumer, running: RunningTask) -> None:
        if self._control.is_paused:
            self._pause(consumer, running)
            return
        source = running.source
        running.status.member = consumer.group_metadata().member
        try:
            task = self._open_task(source, consumer, self._control)
        except RETRIED as error:
            self._retry(consumer, running, error)
            return
        except Exception as error:
            running.ended(TaskState.FAILED, error)
            raise
        running.task = task
        running.status.state = TaskState.RUNNING
        if task.start_offset is None:
            consumer.pause([source])
        else:
            consumer.resume([source])
            consumer.seek(source, task.start_offset)

    def _guarded(self, consumer: GroupConsumer, source: TopicPartition, work: Callable[[ConnectorTask], bool]) -> bool:
        """Let an open task work. After an error that may pass, it is closed and opened again later."""
        running = self._running.get(source)
        if running is None or running.task is None:
            return False
        try:
            return work(running.task)
        except RETRIED as error:
            self._retry(consumer, running, error)
            return False
        except Exception as error:
            running.ended(TaskState.FAILED, error)
            raise

    def _retry(self, consumer: GroupConsumer, running: RunningTask, error: Exception) -> None:
        running.failed(error, self._clock.uptime_ms())
        wait_s = (running.open_at_ms - self._clock.uptime_ms()) / 1000
        logger.warning("%s is opened again on %s in %.1f s: %s", self.name, running.source, wait_s, error)
        self._stop_task(consumer, running)

    def _commit_if_due(self, consumer: GroupConsumer, running: RunningTask, task: ConnectorTask) -> bool:
        is_due = running.schedule.is_due(task, self._clock.uptime_ms())
        if is_due:
            self._commit(consumer, running, task)
        return is_due

    def _commit(self, consumer: GroupConsumer, running: RunningTask, task: ConnectorTask) -> None:
        rows = task.uncommitted_rows
        size = task.uncommitted_bytes
        next_offset = task.commit()
        running.committed(rows, size, self._clock)
        if next_offset is not None:
            consumer.commit({running.source: OffsetAndMetadata(next_offset)})

    def _commit_pending(self, consumer: GroupConsumer, running: RunningTask, task: ConnectorTask) -> bool:
        if task.has_uncommitted:
            self._commit(consumer, running, task)
        return task.has_uncommitted

    def _commit_all(self, consumer: GroupConsumer) -> None:
        for running in list(self._running.values()):
            if running.task is not None:
                self._commit_pending(consumer, running, running.task)

    def _assigned(self, sources: list[TopicPartition]) -> None:
        now_ms = self._clock.uptime_ms()
        for source in sources:
            self._running[source] = RunningTask(source, now_ms, self._new_schedule())

    def _drop(self, sources: Collection[TopicPartition]) -> None:
        for source in sources:
            running = self._running.pop(source, None)
            if running is not None and running.task is not None:
                _close(running.task)

    @contextmanager
    def _closing_tasks(self) -> Iterator[None]:
        """Close all tasks at the end. Their last statuses stay, with the error if there is one."""
        try:
            yield
            self._note_end(TaskState.UNASSIGNED, "")
        except Exception as error:
            self._note_end(TaskState.FAILED, error_text(error))
            raise
        finally:
            self._ended = dict(self._running)
            self._drop(list(self._running))

    def _note_end(self, state: TaskState, error: str) -> None:
        statuses = self.statuses().values()
        if all(status.state is not TaskState.FAILED for status in statuses):  # else the error is that of one task
            for status in statuses:
                status.state = state
                status.error = error or status.error


def _change(before: ConnectorControl, control: ConnectorControl) -> str:
    """Return what the user wants now."""
    if before.is_paused != control.is_paused:
        return "its tasks are paused" if control.is_paused else "its tasks are resumed"
    return "tasks are restarted"


def _await_readable(admin: Admin, topic: str) -> None:
    """Wait until what was committed before can be read, or some seconds, since others may have open transactions."""
    sources = [TopicPartition(topic, number) for number in range(admin.describe_topic(topic).partitions)]
    ends = admin.end_offsets(sources, committed_only=False)
    deadline = monotonic() + _READABLE_S
    while any(end < ends[source] for source, end in admin.end_offsets(sources).items()) and monotonic() < deadline:
        sleep(_IDLE_S)


def _take(batch: Batch, task: ConnectorTask) -> bool:
    task.take(batch)
    return True


def _step(task: ConnectorTask) -> bool:
    return task.step()


def _close(task: ConnectorTask) -> None:
    """Close a task. An error is logged only, since what is not committed is discarded anyway."""
    try:
        task.close()
    except Exception as error:
        logger.warning("a task of a connector could not be closed: %s", error)
