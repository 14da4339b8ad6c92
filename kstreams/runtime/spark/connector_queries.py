"""`DriverConnectors`: the sources and sinks of an application in threads of the driver, by the workers of connectors.

A source commits records and positions in one transaction, and a sink commits rows and offset in one act of its target.
So steps read and write topics only, and what a connector does depends on neither steps nor executors.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack

from kstreams.config import Config
from kstreams.connectors.connector import Connector
from kstreams.connectors.connectors_topic import read_connectors
from kstreams.connectors.herder import Herder, refuse_paused
from kstreams.connectors.task_status import TaskStatus
from kstreams.connectors.worker import Worker
from kstreams.connectors.workers import sink_worker, source_worker
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.log.topic_types import create_typed
from kstreams.metrics.connector_tasks import connector_metrics
from kstreams.metrics.values import MetricValues
from kstreams.runtime.connectors import UNLIMITED_RETENTION, ApplicationConnectors

logger = logging.getLogger(__name__)


class ConnectorQuery:
    """A connector in a thread of the driver. It starts and ends as the queries of Spark do.

    Parameters
    ----------
    worker : Worker
    resources : ExitStack
        Closed when the query is stopped.
    """

    def __init__(self, worker: Worker, resources: ExitStack) -> None:
        self.worker = worker
        self._resources = resources
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Start the thread. A bounded query ends where the source or the topic ends now."""
        name = f"kstreams-connector-{self.worker.name}"
        self._thread = threading.Thread(target=self._run, args=[bounded], name=name, daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the query has ended. Raises the error that ended it."""
        thread = self._thread
        if thread is None:
            return False
        thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not thread.is_alive()

    def stop(self) -> None:
        """Let the connector commit what it has taken, and end the thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self._resources.close()

    def _run(self, bounded: bool) -> None:
        try:
            if bounded:
                self.worker.run_to_end(self._stopped)
            else:
                self.worker.run(self._stopped)
        except BaseException as error:
            logger.error("the connector %s died: %s", self.worker.name, error)
            self._error = error


class DriverConnectors:
    """The connectors of one application on Spark.

    Parameters
    ----------
    connectors : ApplicationConnectors
    config : Config
    log : Log
    clock : Clock
    """

    def __init__(self, connectors: ApplicationConnectors, config: Config, log: Log, clock: Clock) -> None:
        self._connectors = connectors
        self._letters = config["errors.dead.letter.queue.topic.name"] or ""
        self._log = log
        self._clock = clock
        self._workers: dict[str, dict[str, Worker]] = {}  # by group and name
        self._herders: list[Herder] = []
        with log.admin() as admin:
            connectors.create_source_topics(admin)

    def create_sink_topics(self, partitions: Mapping[str, int]) -> None:
        """Create the topics of sinks. They keep records until their sinks have committed them.

        Parameters
        ----------
        partitions : mapping of str to int
            By the name of the topic in the topology.
        """
        declared_sinks = self._connectors.topology.connector_sinks
        with self._log.admin() as admin:
            existing = admin.topics() if declared_sinks else {}
            for declared in declared_sinks:
                name = self._connectors.prefix + declared.topic
                if name not in existing:
                    create_typed(admin, name, partitions[declared.topic], UNLIMITED_RETENTION)

    def sources(self) -> list[ConnectorQuery]:
        """Create the queries of the sources."""
        queries = []
        for connector in self._connectors.sources():
            control = read_connectors(self._log, connector.group).control(connector.name)
            worker = source_worker(connector, self._log, self._clock, control, self._letters)
            queries.append(self._query(connector, worker, ExitStack()))
        return queries

    def sinks(self) -> list[ConnectorQuery]:
        """Create the queries of the sinks."""
        queries = []
        for connector in self._connectors.sinks():
            resources = ExitStack()
            worker = sink_worker(connector, self._log, self._clock, resources, self._letters)
            queries.append(self._query(connector, worker, resources))
        return queries

    def begin(self, *, bounded: bool) -> None:
        """Let the queries obey the commands of users from now on, unless the run is bounded.

        Raises
        ------
        ConnectorError
            If the run is bounded, and a connector is paused.
        """
        for group, workers in self._workers.items():
            if bounded:
                refuse_paused(workers, self._connectors.application_id)
            herder = Herder(workers, self._log, group, self._clock)
            self._herders.append(herder)
            if not bounded:
                herder.start()

    def end(self) -> None:
        """Write the last status of all tasks, whose queries are stopped."""
        for herder in self._herders:
            herder.stop()

    def metrics(self, application_id: str) -> MetricValues:
        """Yield the metrics of the tasks of all connectors."""
        statuses: dict[str, Mapping[int, TaskStatus]] = {
            worker.name: worker.statuses() for workers in self._workers.values() for worker in workers.values()
        }
        return connector_metrics(statuses, (("client-id", application_id),), self._clock.uptime_ms())

    def _query(self, connector: Connector, worker: Worker, resources: ExitStack) -> ConnectorQuery:
        self._workers.setdefault(connector.group, {})[connector.name] = worker
        return ConnectorQuery(worker, resources)
