"""`Worker`: runs the tasks of one connector that its group assigns to this process, in one thread.

A task that fails because the other system does not answer is closed, and opened again after a while, where the last
commit has left it. Any other error ends the worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from functools import partial
from threading import Event
from typing import cast

from kstreams.connectors.task import CommitSchedule, ConnectorTask
from kstreams.errors import ConnectorError, ConnectorUnavailableError, LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import GroupConsumer, Log, OffsetAndMetadata

logger = logging.getLogger("kstreams.connectors")

RETRIED = (ConnectorUnavailableError, OSError, LogError)
"""The errors after which a task is opened again."""

_IDLE_S = 0.05
_MAX_ROWS = 50_000
_FIRST_BACKOFF_MS = 200
_MAX_BACKOFF_MS = 30_000
_MAX_BOUNDED_FAILURES = 6  # of one task in a bounded run, some ten seconds


class TaskState(Enum):
    """The state of a task, by Kafka Connect's names."""

    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"


@dataclass(slots=True)
class TaskStatus:
    """The counters of a task in this process.

    Parameters
    ----------
    state : TaskState
    rows : int
        The number of committed rows.
    size : int
        The number of bytes of their keys and values in the topic.
    retries : int
        How often it was opened again after an error.
    committed_ms : int
        The uptime of the last commit, or of its start.
    error : str
        The last error. Empty if there was none since the last commit.
    """

    state: TaskState = TaskState.RUNNING
    rows: int = 0
    size: int = 0
    retries: int = 0
    committed_ms: int = 0
    error: str = ""


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
        self.status.state = TaskState.RESTARTING
        self.status.error = str(error) or type(error).__name__
        backoff_ms = min(_FIRST_BACKOFF_MS * 2 ** (self.failures - 1), _MAX_BACKOFF_MS)
        self.open_at_ms = now_ms + backoff_ms

    def committed(self, rows: int, size: int, now_ms: int) -> None:
        """Note a commit."""
        self.failures = 0
        self.status.rows += rows
        self.status.size += size
        self.status.committed_ms = now_ms
        self.status.error = ""
        self.schedule.committed()


OpenTask = Callable[[TopicPartition, GroupConsumer], ConnectorTask]


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
    new_schedule : callable
        Returns the commit schedule of a task.
    """

    def __init__(
        self,
        name: str,
        topic: str,
        open_task: OpenTask,
        log: Log,
        clock: Clock,
        *,
        new_schedule: Callable[[], CommitSchedule] = CommitSchedule,
    ) -> None:
        self.name = name
        self._topic = topic
        self._open_task = open_task
        self._log = log
        self._clock = clock
        self._new_schedule = new_schedule
        self._running: dict[TopicPartition, RunningTask] = {}

    def statuses(self) -> Mapping[int, TaskStatus]:
        """Return the counters of the tasks in this process, by partition."""
        return {source.partition: running.status for source, running in list(self._running.items())}

    def run(self, stop: Event) -> None:
        """Run the tasks that the group assigns until the event is set. The last step is a commit."""
        with closing(self._consumer()) as consumer:
            try:
                consumer.subscribe([self._topic], on_assigned=self._assigned, on_revoked=self._drop)
                has_worked = False
                while not stop.is_set():
                    has_worked = self._round(consumer, idle_s=0.0 if has_worked else _IDLE_S)
                    if not has_worked:
                        stop.wait(_IDLE_S)
                self._commit_all(consumer)
            finally:
                self._close_all()

    def run_to_end(self, stop: Event) -> None:
        """Run all tasks until the other system, or the topic, has nothing more. No other process runs the connector.

        Raises
        ------
        ConnectorError
            If a task has failed several times.
        """
        with self._log.admin() as admin:
            partitions = admin.describe_topic(self._topic).partitions
        with closing(self._consumer()) as consumer:
            sources = [TopicPartition(self._topic, number) for number in range(partitions)]
            consumer.assign(sources)
            self._assigned(sources)
            ends = consumer.end_offsets(sources)
            try:
                is_over = False
                while not is_over and not stop.is_set():
                    has_worked = self._round(consumer, idle_s=0.0)
                    self._refuse_endless_failures()
                    is_over = not has_worked and all(self._is_at_end(consumer, source, ends) for source in sources)
                self._commit_all(consumer)
            finally:
                self._close_all()

    def _is_at_end(self, consumer: GroupConsumer, source: TopicPartition, ends: Mapping[TopicPartition, int]) -> bool:
        task = self._running[source].task
        if task is None:
            return False
        return task.start_offset is None or consumer.position(source) >= ends[source]

    def _refuse_endless_failures(self) -> None:
        for source, running in self._running.items():
            if running.failures > _MAX_BOUNDED_FAILURES:
                raise ConnectorError(
                    f"{self.name} has failed {running.failures} times in a row on {source}: {running.status.error}"
                )

    def _consumer(self) -> GroupConsumer:
        settings = {"group.id": self.name, "auto.offset.reset": "earliest"}
        return cast(GroupConsumer, self._log.consumer(settings))

    def _round(self, consumer: GroupConsumer, *, idle_s: float) -> bool:
        """Open, read, write and commit once. Return whether there was something to do."""
        self._open_due(consumer)
        batches = consumer.poll(idle_s, _MAX_ROWS)
        has_read = False
        for batch in batches:
            has_read |= self._guarded(consumer, batch.source, partial(_take, batch))
        for source, running in list(self._running.items()):
            has_read |= self._guarded(consumer, source, _step)
            self._guarded(consumer, source, partial(self._commit_if_due, consumer, running))
        return has_read

    def _open_due(self, consumer: GroupConsumer) -> None:
        now_ms = self._clock.uptime_ms()
        for running in list(self._running.values()):
            if running.task is None and now_ms >= running.open_at_ms:
                self._open(consumer, running)

    def _open(self, consumer: GroupConsumer, running: RunningTask) -> None:
        source = running.source
        try:
            task = self._open_task(source, consumer)
        except RETRIED as error:
            self._retry(consumer, running, error)
            return
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

    def _retry(self, consumer: GroupConsumer, running: RunningTask, error: Exception) -> None:
        task = running.task
        running.task = None
        running.failed(error, self._clock.uptime_ms())
        wait_s = (running.open_at_ms - self._clock.uptime_ms()) / 1000
        logger.warning("%s is opened again on %s in %.1f s: %s", self.name, running.source, wait_s, error)
        consumer.pause([running.source])
        if task is not None:
            _close(task)

    def _commit_if_due(self, consumer: GroupConsumer, running: RunningTask, task: ConnectorTask) -> bool:
        is_due = running.schedule.is_due(
            task.uncommitted_rows, has_uncommitted=task.has_uncommitted, now_ms=self._clock.uptime_ms()
        )
        if is_due:
            self._commit(consumer, running, task)
        return is_due

    def _commit(self, consumer: GroupConsumer, running: RunningTask, task: ConnectorTask) -> None:
        rows = task.uncommitted_rows
        size = task.uncommitted_bytes
        next_offset = task.commit()
        running.committed(rows, size, self._clock.uptime_ms())
        if next_offset is not None:
            consumer.commit({running.source: OffsetAndMetadata(next_offset)})

    def _commit_all(self, consumer: GroupConsumer) -> None:
        for running in list(self._running.values()):
            task = running.task
            if task is not None and task.has_uncommitted:
                self._commit(consumer, running, task)

    def _assigned(self, sources: list[TopicPartition]) -> None:
        now_ms = self._clock.uptime_ms()
        for source in sources:
            self._running[source] = RunningTask(source, now_ms, self._new_schedule())

    def _drop(self, sources: Collection[TopicPartition]) -> None:
        for source in sources:
            running = self._running.pop(source, None)
            if running is not None and running.task is not None:
                _close(running.task)

    def _close_all(self) -> None:
        self._drop(list(self._running))


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
