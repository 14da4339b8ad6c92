"""`Connectors`: the sources and sinks of a running application, each in a thread beside the stream threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from kstreams.config import Config
from kstreams.connectors.connector import ConnectorTopic, SinkConnector, SourceConnector
from kstreams.connectors.identities import identities_topic
from kstreams.connectors.worker import TaskStatus, Worker
from kstreams.connectors.workers import sink_worker, source_worker
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, Log
from kstreams.log.topic_types import TopicTypes, create_typed
from kstreams.processor.topology.connectors import Connector, DeclaredSource
from kstreams.processor.topology.feeds import PARTITIONS
from kstreams.processor.topology.nodes import SinkNode, SourceNode
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.topics import UNLIMITED_RETENTION
from kstreams.serdes import serde_of, type_name

logger = logging.getLogger(__name__)


def source_connectors(topology: Topology, application_id: str) -> list[SourceConnector]:
    """Return the sources of a topology with their topics."""
    return [
        SourceConnector(application_id, declared.name, _topic(_reader(topology, declared), declared), declared.source)
        for declared in topology.connector_sources
    ]


def sink_connectors(topology: Topology, application_id: str) -> list[SinkConnector]:
    """Return the sinks of a topology with their topics."""
    connectors = []
    for declared in topology.connector_sinks:
        sinks = (node for node in topology.nodes.values() if isinstance(node, SinkNode))
        topic = _topic(next(node for node in sinks if node.topic == declared.topic), declared)
        connectors.append(SinkConnector(application_id, declared.name, topic, declared.sink))
    return connectors


def _reader(topology: Topology, declared: DeclaredSource) -> SourceNode:
    nodes = (node for node in topology.nodes.values() if isinstance(node, SourceNode) and declared.topic in node.topics)
    return next(nodes)


def _topic(node: SourceNode | SinkNode, declared: Connector) -> ConnectorTopic:
    key = node.key or serde_of(bytes)
    value = node.value or serde_of(bytes)
    return ConnectorTopic(declared.topic, key, value, is_internal=declared.is_internal)


def create_source_topics(topology: Topology, admin: Admin) -> None:
    """Create the topics that sources fill, as far as they do not exist."""
    existing = admin.topics()
    for declared in topology.connector_sources:
        if declared.topic not in existing:
            mates = {topic for group in topology.copartition_groups if declared.topic in group for topic in group}
            counts = [existing[topic].partitions for topic in mates if topic in existing]
            partitions = declared.source.partitions or max(counts, default=PARTITIONS)
            policy = {"cleanup.policy": "compact" if declared.is_table else "delete"}
            reader = _reader(topology, declared)
            types = TopicTypes(type_name(reader.key), type_name(reader.value))
            if create_typed(admin, declared.topic, partitions, UNLIMITED_RETENTION | policy, types):
                logger.info("created topic %s with %d partitions for %s", declared.topic, partitions, declared)


def connector_topics(topology: Topology, application_id: str) -> Iterator[str]:
    """Yield the real names of the internal topics of connectors."""
    for declared in topology.connectors:
        if declared.is_internal:
            yield declared.topic
    for connector in source_connectors(topology, application_id):
        yield connector.positions_topic
    if topology.connector_sinks:
        yield identities_topic(application_id)


def connector_groups(topology: Topology, application_id: str) -> Iterator[str]:
    """Yield the consumer groups of connectors."""
    yield from (connector.id for connector in source_connectors(topology, application_id))
    yield from (connector.id for connector in sink_connectors(topology, application_id))


class Connectors:
    """The connectors of one application in this process.

    Parameters
    ----------
    topology : Topology
        With real names of topics, and bound serdes.
    config : Config
    log : Log
    clock : Clock
    resources : ExitStack
        Closes the clients that all tasks of a sink share.

    Attributes
    ----------
    streamed_topics : frozenset of str
        The internal topics of sources that streams read. Their records are deleted when they are processed.
    """

    def __init__(self, topology: Topology, config: Config, log: Log, clock: Clock, resources: ExitStack) -> None:
        name = config.application_id
        letters = config["errors.dead.letter.queue.topic.name"] or ""
        self._application_id = name
        self.streamed_topics = frozenset(
            declared.topic for declared in topology.connector_sources if declared.is_internal and not declared.is_table
        )
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._sources = [source_worker(connector, log, clock) for connector in source_connectors(topology, name)]
        self._sinks = [
            sink_worker(connector, log, clock, resources, letters) for connector in sink_connectors(topology, name)
        ]

    def statuses(self) -> dict[str, Mapping[int, TaskStatus]]:
        """Return the counters of the tasks in this process, by connector and number of the task."""
        return {worker.name: worker.statuses() for worker in (*self._sources, *self._sinks)}

    def read_sources(self) -> None:
        """Write everything that the sources have now to their topics."""
        for worker in self._sources:
            logger.info("reading %s to its end", worker.name)
            worker.run_to_end(self._stop)

    def write_sinks(self) -> None:
        """Write everything that the topics of the sinks have to the targets."""
        for worker in self._sinks:
            worker.run_to_end(self._stop)

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Run all connectors until `stop`, as members of their groups.

        Parameters
        ----------
        on_failure : callable
            Called with the error that ends a connector.
        """
        for worker in (*self._sources, *self._sinks):
            name = f"{self._application_id}-connector-{worker.name}"
            thread = threading.Thread(target=self._run, args=(worker, on_failure), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Let all connectors commit and end."""
        self._stop.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _run(self, worker: Worker, on_failure: Callable[[BaseException], None]) -> None:
        try:
            worker.run(self._stop)
        except BaseException as error:
            logger.error("the connector %s died: %s", worker.name, error)
            on_failure(error)
