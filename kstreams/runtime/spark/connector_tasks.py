"""`ExecutorQuery`: the tasks of a connector as tasks of Spark jobs, so that its rows do not pass through the driver.

A task is the same as in the driver: one that Spark runs twice is fenced by the transactional id of a source, or by the
offset that a target holds. It ends when its source or its topic has nothing more, and the next job runs it again.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from kstreams.connectors.connector import SinkConnector, SourceConnector
from kstreams.connectors.connectors_topic import ConnectorControl
from kstreams.connectors.task_status import TaskState, TaskStatus
from kstreams.connectors.worker import Worker
from kstreams.connectors.workers import sink_worker, source_worker
from kstreams.errors import ConnectorUnavailableError, KStreamsError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Admin, Log
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.reports import TaskError, TaskReport, describe, is_interrupt, raise_first
from kstreams.runtime.spark.exchange.rows import ArrowFunction
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.query_thread import QueryThread

logger = logging.getLogger(__name__)

_PAUSE_S = 1.0
_CANCEL_S = 0.5
_REPORT = "report binary"


class SourceTasks(NamedTuple):
    """The tasks of a source, as they are sent to the executors.

    Parameters
    ----------
    connector : SourceConnector
    letters : str
        The dead-letter topic. Empty to end with an error.
    """

    connector: SourceConnector
    letters: str

    def worker(self, log: Log, control: ConnectorControl, resources: ExitStack) -> Worker:
        """Return the worker that runs some of the tasks."""
        return source_worker(self.connector, log, SystemClock(), self.letters, control=control)

    def ends(self, admin: Admin) -> Mapping[TopicPartition, int]:
        """Return an empty mapping: only the source knows what it has."""
        return {}

    def purge(self, admin: Admin) -> None:
        """Do nothing: the records of sources are deleted when they are processed."""


class SinkTasks(NamedTuple):
    """The tasks of a sink, as they are sent to the executors.

    Parameters
    ----------
    connector : SinkConnector
    letters : str
        The dead-letter topic. Empty to end with an error.
    """

    connector: SinkConnector
    letters: str

    def worker(self, log: Log, control: ConnectorControl, resources: ExitStack) -> Worker:
        """Return the worker that runs some of the tasks."""
        return sink_worker(self.connector, log, SystemClock(), resources, self.letters, control=control)

    def ends(self, admin: Admin) -> Mapping[TopicPartition, int]:
        """Return where the topic ends."""
        return admin.end_offsets(self._sources(admin))

    def purge(self, admin: Admin) -> None:
        """Delete the records that the sink has committed."""
        committed = admin.committed(self.connector.id, self._sources(admin))
        if committed:
            admin.delete_records({source: position.offset for source, position in committed.items()})

    def _sources(self, admin: Admin) -> list[TopicPartition]:
        topic = self.connector.topic.name
        return [TopicPartition(topic, number) for number in range(admin.describe_topic(topic).partitions)]


Tasks: TypeAlias = SourceTasks | SinkTasks


class ConnectorReport(msgspec.Struct, frozen=True):
    """The report of one task to the driver.

    Parameters
    ----------
    number : int
    rows, size, retries : int
        As in `TaskStatus`.
    error : TaskError or None
        The error that ended the task.
    """

    number: int
    rows: int = 0
    size: int = 0
    retries: int = 0
    error: TaskError | None = None


class ExecutorQuery:
    """A connector whose tasks run on the executors. It starts and ends as the queries of Spark do.

    Parameters
    ----------
    session : SparkSession
    tasks : SourceTasks or SinkTasks
    control : ConnectorControl
        How the connector is to run at first, with the identity of a sink.
    log : Log
    home : HomeAddress
        The address of the log for the executors.
    clock : Clock
    """

    def __init__(
        self,
        session: SparkSession,
        tasks: Tasks,
        control: ConnectorControl,
        log: Log,
        home: HomeAddress,
        clock: Clock,
    ) -> None:
        self._spark = session
        self._tasks = tasks
        self._packed_tasks = pack(tasks)
        self._control = control
        self._log = log
        self._home = home
        self._clock = clock
        with log.admin() as admin:
            count = admin.describe_topic(tasks.connector.task_topic).partitions
        self._statuses = {number: TaskStatus(committed_ms=clock.uptime_ms()) for number in range(count)}
        self._job_group = f"kstreams-{uuid.uuid4()}"
        self._thread = QueryThread()

    @property
    def name(self) -> str:
        """The id of the connector."""
        return self._tasks.connector.id

    @property
    def is_paused(self) -> bool:
        """True if no task may run."""
        return self._control.is_paused

    def obey(self, control: ConnectorControl) -> None:
        """Run the next job as a control says, and cancel the present one if the control has changed."""
        if control != self._control:
            self._control = control
            self._spark.sparkContext.cancelJobGroup(self._job_group)

    def statuses(self) -> Mapping[int, TaskStatus]:
        """Return the statuses of the tasks, by number."""
        return self._statuses

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Start the thread of the jobs. A bounded query has one job."""
        self._thread.start(partial(self._run, bounded))

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the query has ended. Raises the error that ended it."""
        return self._thread.ended(seconds)

    def stop(self) -> None:
        """End the query, also within a job. What its tasks have not committed is discarded."""
        self._thread.stopped.set()
        while self._thread.is_alive():
            self._spark.sparkContext.cancelJobGroup(self._job_group)
            self._thread.join(_CANCEL_S)

    def _run(self, bounded: bool) -> None:
        self._spark.sparkContext.setJobGroup(self._job_group, f"tasks of {self.name}")
        try:
            with self._log.admin() as admin:
                if bounded:
                    self._job(admin, self._control)
                else:
                    self._repeat(admin)
        except Exception:
            if not self._thread.stopped.is_set():
                raise
        self._set_state(TaskState.UNASSIGNED)

    def _repeat(self, admin: Admin) -> None:
        last_ends: Mapping[TopicPartition, int] = {}
        while not self._thread.stopped.is_set():
            control = self._control
            ends = self._tasks.ends(admin)
            rows = 0
            if control.is_paused:
                self._set_state(TaskState.PAUSED)
                last_ends = {}
            elif not ends or ends != last_ends:
                rows = self._attempt(admin, control)
                last_ends = ends if rows else {}
            if not rows:
                self._thread.stopped.wait(_PAUSE_S)

    def _attempt(self, admin: Admin, control: ConnectorControl) -> int:
        """Run a job. Return 0 if the other system does not answer, or if a new control or the user has cancelled it."""
        try:
            return self._job(admin, control)
        except ConnectorUnavailableError as error:
            logger.warning("%s is run again: %s", self.name, error)
        except Exception as error:
            if control is self._control and not is_interrupt(error):
                raise
        return 0

    def _job(self, admin: Admin, control: ConnectorControl) -> int:
        """Run all tasks to their ends, and return how many rows they have committed."""
        count = len(self._statuses)
        run_tasks = _in_arrow(self._packed_tasks, control, self._home)
        frame = self._spark.range(0, count, 1, count).mapInArrow(run_tasks, _REPORT)
        reports = [decode_json(row["report"], ConnectorReport) for row in frame.collect()]
        for report in reports:
            self._note(report)
        raise_first(TaskReport(error=report.error) for report in reports)
        self._tasks.purge(admin)
        return sum(report.rows for report in reports)

    def _note(self, report: ConnectorReport) -> None:
        status = self._statuses[report.number]
        status.rows += report.rows
        status.size += report.size
        status.retries += report.retries
        status.error = "" if report.error is None else report.error.message
        status.state = TaskState.RUNNING if report.error is None else _state_after(report.error)
        if report.rows:
            status.committed_ms = self._clock.uptime_ms()
            status.commit_time_ms = self._clock.wall_ms()

    def _set_state(self, state: TaskState) -> None:
        for status in self._statuses.values():
            status.state = state


def _state_after(error: TaskError) -> TaskState:
    is_retried = error.kind == ConnectorUnavailableError.__name__
    return TaskState.RESTARTING if is_retried else TaskState.FAILED


def _in_arrow(packed_tasks: bytes, control: ConnectorControl, home: HomeAddress) -> ArrowFunction:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks = unpack(packed_tasks)
        for batch in batches:
            reports = [_run_task(tasks, control, home, number) for number in batch["id"].to_pylist()]
            column = pa.array(map(msgspec.json.encode, reports), pa.binary())
            yield pa.RecordBatch.from_arrays([column], names=["report"])

    return run


def _run_task(tasks: Tasks, control: ConnectorControl, home: HomeAddress, number: int) -> ConnectorReport:
    """Run one task to its end, on an executor."""
    error: TaskError | None = None
    with home.opened() as log, ExitStack() as resources:
        worker = tasks.worker(log, control, resources)
        try:
            worker.run_to_end(threading.Event(), [number])
        except KStreamsError as ended_by:
            error = describe(ended_by)
        status = worker.statuses().get(number, TaskStatus())  # none if the task was not assigned
    return ConnectorReport(number, status.rows, status.size, status.retries, error)
