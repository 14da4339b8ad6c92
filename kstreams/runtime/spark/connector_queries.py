"""`SparkConnectors`: the sources and sinks of an application on Spark, in the driver or on the executors.

A source commits records and positions in one transaction, and a sink commits rows and offset in one act of its target.
So steps read and write topics only, and what a connector does depends neither on steps nor on where its tasks run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from pyspark.sql import SparkSession

from kstreams.config import Config
from kstreams.connectors.connector import Connector, SinkConnector, SourceConnector
from kstreams.connectors.connectors_topic import ConnectorControl, control_with_identity, read_connectors
from kstreams.connectors.herder import Herder, refuse_paused
from kstreams.connectors.task_status import TaskStatus
from kstreams.connectors.worker import Worker
from kstreams.connectors.workers import create_positions_topic, sink_worker, source_worker
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.log.topic_types import create_typed
from kstreams.metrics.connector_tasks import connector_metrics
from kstreams.metrics.values import MetricValues
from kstreams.runtime.connectors import UNLIMITED_RETENTION, ApplicationConnectors
from kstreams.runtime.spark.connector_places import connector_places
from kstreams.runtime.spark.connector_tasks import ExecutorQuery, SinkTasks, SourceTasks
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.query_thread import QueryThread
from kstreams.runtime.spark.settings import SparkSettings

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
        self._worker = worker
        self._resources = resources
        self._thread = QueryThread()

    @property
    def name(self) -> str:
        """The id of the connector."""
        return self._worker.name

    @property
    def is_paused(self) -> bool:
        """True if no task may run."""
        return self._worker.is_paused

    def obey(self, control: ConnectorControl) -> None:
        """Run the tasks as a control says, from now on."""
        self._worker.obey(control)

    def statuses(self) -> Mapping[int, TaskStatus]:
        """Return the statuses of the tasks, by number."""
        return self._worker.statuses()

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Start the thread. A bounded query ends where the source or the topic ends now."""
        run = self._worker.run_to_end if bounded else self._worker.run
        self._thread.start(partial(run, self._thread.stopped))

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the query has ended. Raises the error that ended it."""
        return self._thread.ended(seconds)

    def stop(self) -> None:
        """Let the connector commit what it has taken, and end the thread."""
        self._thread.stopped.set()
        self._thread.join()
        self._resources.close()


class SparkConnectors:
    """The connectors of one application on Spark: in threads of the driver, or as tasks on the executors.

    Parameters
    ----------
    connectors : ApplicationConnectors
    config : Config
    session : SparkSession
    log : Log
    clock : Clock
    """

    def __init__(
        self, connectors: ApplicationConnectors, config: Config, session: SparkSession, log: Log, clock: Clock
    ) -> None:
        settings = SparkSettings.of(config)
        letters = config["errors.dead.letter.queue.topic.name"]
        self._connectors = connectors
        self._letters = "" if letters is None else settings.prefix + letters
        self._places = connector_places(connectors.topology, settings.connectors)
        self._home = HomeAddress.of(config)
        self._session = session
        self._log = log
        self._clock = clock
        self._queries: dict[str, dict[str, ConnectorQuery | ExecutorQuery]] = {}  # by group and name
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

    def sources(self) -> list[ConnectorQuery | ExecutorQuery]:
        """Create the queries of the sources."""
        return [self._noted(connector, self._source(connector)) for connector in self._connectors.sources()]

    def sinks(self) -> list[ConnectorQuery | ExecutorQuery]:
        """Create the queries of the sinks."""
        return [self._noted(connector, self._sink(connector)) for connector in self._connectors.sinks()]

    def begin(self, *, bounded: bool) -> None:
        """Let the queries obey the commands of users from now on, unless the run is bounded.

        Raises
        ------
        ConnectorError
            If the run is bounded, and a connector is paused.
        """
        for group, queries in self._queries.items():
            if bounded:
                refuse_paused(queries, self._connectors.application_id)
            herder = Herder(queries, self._log, group, self._clock)
            self._herders.append(herder)
            if not bounded:
                herder.start()

    def end(self) -> None:
        """Write the last status of all tasks, whose queries are stopped."""
        for herder in self._herders:
            herder.stop()

    def metrics(self, application_id: str) -> MetricValues:
        """Yield the metrics of the tasks of all connectors."""
        queries = [query for of_group in self._queries.values() for query in of_group.values()]
        statuses = {query.name: query.statuses() for query in queries}
        return connector_metrics(statuses, (("client-id", application_id),), self._clock.uptime_ms())

    def _source(self, connector: SourceConnector) -> ConnectorQuery | ExecutorQuery:
        if self._places[connector.name] == "driver":
            return ConnectorQuery(source_worker(connector, self._log, self._clock, self._letters), ExitStack())
        with self._log.admin() as admin:
            create_positions_topic(connector, admin)
        control = read_connectors(self._log, connector.group).control(connector.name)
        tasks = SourceTasks(connector, self._letters)
        return ExecutorQuery(self._session, tasks, control, self._log, self._home, self._clock)

    def _sink(self, connector: SinkConnector) -> ConnectorQuery | ExecutorQuery:
        if self._places[connector.name] == "driver":
            resources = ExitStack()
            worker = sink_worker(connector, self._log, self._clock, resources, self._letters)
            return ConnectorQuery(worker, resources)
        control = control_with_identity(self._log, connector.group, connector.name)
        tasks = SinkTasks(connector, self._letters)
        return ExecutorQuery(self._session, tasks, control, self._log, self._home, self._clock)

    def _noted(self, connector: Connector, query: ConnectorQuery | ExecutorQuery) -> ConnectorQuery | ExecutorQuery:
        self._queries.setdefault(connector.group, {})[connector.name] = query
        return query
