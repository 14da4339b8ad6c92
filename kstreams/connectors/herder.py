"""`Herder`: hands the controls of connectors to the workers of this process, and writes the status of their tasks.

It works twice a second in a thread of its own, so that the workers neither read nor write the topic of connectors.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from threading import Event, Thread
from typing import NamedTuple, Protocol

from kstreams.connectors.connectors_topic import (
    ConnectorControl,
    ConnectorRecords,
    TaskRecord,
    connectors_topic,
    create_connectors_topic,
    status_row,
)
from kstreams.connectors.task_status import TaskStatus
from kstreams.errors import ConnectorError, LogError
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.log.settings import QUOTA_DELAYS

logger = logging.getLogger("kstreams.connectors")

_INTERVAL_S = 0.5
_COUNTERS_EVERY_MS = 5_000
_POLL_S = 0.1


class _Written(NamedTuple):
    """The last record about a task, and when this process wrote it."""

    status: TaskStatus
    record: TaskRecord
    uptime_ms: int


class ControlledTasks(Protocol):
    """The tasks of one connector in this process: a `Worker`, or tasks on the executors of Spark."""

    @property
    def is_paused(self) -> bool:
        """True if no task may run."""
        ...

    def obey(self, control: ConnectorControl) -> None:
        """Run the tasks as a control says. Called from the herder's thread."""
        ...

    def statuses(self) -> Mapping[int, TaskStatus]:
        """Return the statuses of the tasks, by number."""
        ...


def refuse_paused(workers: Mapping[str, ControlledTasks], application_id: str) -> None:
    """Raise ConnectorError if a connector is paused, so that a run to the end would leave records behind."""
    for name, worker in workers.items():
        if worker.is_paused:
            raise ConnectorError(
                f"{name} of {application_id} is paused, so a run to the end would leave records behind: resume it "
                f"first with `kstreams connectors resume APP {name}`"
            )


class Herder:
    """See above.

    Parameters
    ----------
    workers : mapping of str to ControlledTasks
        The connectors of this process by the name of the connector in its group.
    log : Log
    group : str
    clock : Clock
    """

    def __init__(self, workers: Mapping[str, ControlledTasks], log: Log, group: str, clock: Clock) -> None:
        self._workers = workers
        self._topic = connectors_topic(group)
        self._clock = clock
        self._worker_id = f"{socket.gethostname()}:{os.getpid()}"
        self._records = ConnectorRecords()
        self._written: dict[tuple[str, int], _Written] = {}
        self._has_failed = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name=f"{group}-connectors", daemon=True)
        source = create_connectors_topic(log, group)
        with ExitStack() as opening:
            self._reader = opening.enter_context(log.consumer({QUOTA_DELAYS: False}))
            self._producer = opening.enter_context(log.producer({QUOTA_DELAYS: False}))
            self._reader.assign([source])
            end = self._reader.end_offsets([source])[source]
            while self._reader.position(source) < end:
                self._read(_POLL_S)
            self._resources = opening.pop_all()
        self._hand_out()

    def start(self) -> None:
        """Start the thread. Without it, `stop` writes the last statuses only."""
        self._thread.start()

    def stop(self) -> None:
        """End, and write the last status of each task. The workers have ended."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._attempt(is_last=True)
        self._resources.close()

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self._attempt(is_last=False)

    def _attempt(self, *, is_last: bool) -> None:
        """Read and write the topic. An error is logged once, and the next attempt follows soon."""
        try:
            if self._read():
                self._hand_out()
            self._write(is_last=is_last)
            self._has_failed = False
        except (LogError, OSError) as error:
            if not self._has_failed:
                logger.warning("the state of the connectors cannot be read or written in %s: %s", self._topic, error)
            self._has_failed = True

    def _read(self, timeout: float = 0.0) -> bool:
        """Read new records of the topic. Return whether there were some."""
        batches = self._reader.poll(timeout)
        for batch in batches:
            for row in batch.rows():
                self._records.apply(row)
        return bool(batches)

    def _hand_out(self) -> None:
        for name, worker in self._workers.items():
            if name in self._records.controls:
                worker.obey(self._records.controls[name])

    def _write(self, *, is_last: bool) -> None:
        due = list(self._due(is_last=is_last))
        for name, number, status, record in due:
            self._producer.send(self._topic, *status_row(name, number, record), partition=0)
            self._written[name, number] = _Written(status, record, self._clock.uptime_ms())
        if due:
            self._producer.flush()

    def _due(self, *, is_last: bool) -> Iterator[tuple[str, int, TaskStatus, TaskRecord]]:
        """Yield the records of tasks that have changed. Those with new counters only are due some seconds later."""
        for name, worker in self._workers.items():
            for number, status in worker.statuses().items():
                record = self._record(name, number, status)
                last = self._written.get((name, number))
                if last is None or last.status is not status or self._is_due(last, record, is_last=is_last):
                    yield name, number, status, record

    def _is_due(self, last: _Written, record: TaskRecord, *, is_last: bool) -> bool:
        if (last.record.state, last.record.error, last.record.member) != (record.state, record.error, record.member):
            return True
        has_waited = is_last or self._clock.uptime_ms() - last.uptime_ms >= _COUNTERS_EVERY_MS
        return has_waited and last.record != record

    def _record(self, name: str, number: int, status: TaskStatus) -> TaskRecord:
        commit_time_ms = status.commit_time_ms
        if commit_time_ms is None and (name, number) in self._records.tasks:
            commit_time_ms = self._records.tasks[name, number].commit_time_ms
        return TaskRecord(
            state=status.state,
            worker=self._worker_id,
            member=status.member,
            rows=status.rows,
            retries=status.retries,
            commit_time_ms=commit_time_ms,
            error=status.error,
        )
