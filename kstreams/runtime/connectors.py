"""The connectors of a topology in an application: their groups, the topics that they fill or read, and guarantees."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

from kstreams.connectors.connector import ConnectorTopic, SinkConnector, SourceConnector
from kstreams.connectors.connectors_topic import connectors_topic
from kstreams.log.api import Admin
from kstreams.log.topic_types import TopicTypes, create_typed
from kstreams.processor.topology.connectors import Connector, DeclaredSink, DeclaredSource
from kstreams.processor.topology.feeds import PARTITIONS
from kstreams.processor.topology.nodes import SinkNode, SourceNode
from kstreams.processor.topology.topology import Topology
from kstreams.serdes import serde_of, type_name

logger = logging.getLogger(__name__)

UNLIMITED_RETENTION = {"retention.ms": "-1"}
"""The setting of topics between connectors and tasks: records may be older than any retention."""


class ApplicationConnectors(NamedTuple):
    """The connectors of an application.

    Parameters
    ----------
    topology : Topology
        With the names that topics of connectors have: see `Topology.with_connector_topics`.
    application_id : str
    prefix : str
        The prefix of the names of written topics. With a prefix, internal topics of sources, positions and controls
        have it too, so that an application has its own on each engine.
    """

    topology: Topology
    application_id: str
    prefix: str = ""

    @property
    def group(self) -> str:
        """The group of the connectors whose topics are internal."""
        return f"{self.prefix}{self.application_id}"

    def sources(self) -> list[SourceConnector]:
        """Return the sources with their topics.

        The positions of a source that fills a topic of the user belong to the application on all engines, since they
        share this topic.
        """
        return [
            SourceConnector(
                self.group if declared.is_internal else self.application_id,
                declared.name,
                _topic(self._reader(declared), declared, declared.topic),
                declared.source,
            )
            for declared in self.topology.connector_sources
        ]

    def sinks(self) -> list[SinkConnector]:
        """Return the sinks with their topics."""
        connectors = []
        for declared in self.topology.connector_sinks:
            nodes = (node for node in self.topology.nodes.values() if isinstance(node, SinkNode))
            node = next(node for node in nodes if node.topic == declared.topic)
            topic = _topic(node, declared, self.prefix + declared.topic)
            connectors.append(
                SinkConnector(self.group, declared.name, topic, declared.sink, declared.park, declared.retry)
            )
        return connectors

    def all(self) -> list[SourceConnector | SinkConnector]:
        """Return the sources and the sinks."""
        return [*self.sources(), *self.sinks()]

    def streamed_topics(self) -> frozenset[str]:
        """Return the internal topics of sources that streams read. Records are deleted when they are processed."""
        return frozenset(
            declared.topic
            for declared in self.topology.connector_sources
            if declared.is_internal and not declared.is_table
        )

    def create_source_topics(self, admin: Admin) -> None:
        """Create the topics that sources fill, as far as they do not exist."""
        existing = admin.topics()
        topology = self.topology
        for declared in topology.connector_sources:
            if declared.topic not in existing:
                mates = {topic for group in topology.copartition_groups if declared.topic in group for topic in group}
                counts = [existing[topic].partitions for topic in mates if topic in existing]
                partitions = declared.source.partitions or max(counts, default=PARTITIONS)
                policy = {"cleanup.policy": "compact" if declared.is_table else "delete"}
                reader = self._reader(declared)
                types = TopicTypes(type_name(reader.key), type_name(reader.value))
                if create_typed(admin, declared.topic, partitions, UNLIMITED_RETENTION | policy, types):
                    logger.info("created topic %s with %d partitions for %s", declared.topic, partitions, declared)

    def internal_topics(self) -> Iterator[str]:
        """Yield the real names of the internal topics of connectors."""
        for source in self.sources():
            yield source.positions_topic
        yield from (declared.topic for declared in self.topology.connector_sources if declared.is_internal)
        yield from (self.prefix + declared.topic for declared in self.topology.connector_sinks)
        yield from (sink.waiting_topic for sink in self.sinks() if sink.retry is not None)
        for group in {connector.group for connector in self.all()}:
            yield connectors_topic(group)

    def groups(self) -> Iterator[str]:
        """Yield the consumer groups of connectors."""
        yield from (connector.id for connector in self.sources())
        for sink in self.sinks():
            yield sink.id
            if sink.retry is not None and sink.sink.at_least_once:
                yield sink.waiting_group

    def _reader(self, declared: DeclaredSource) -> SourceNode:
        nodes = (node for node in self.topology.nodes.values() if isinstance(node, SourceNode))
        return next(node for node in nodes if declared.topic in node.topics)


def _topic(node: SourceNode | SinkNode, declared: Connector, name: str) -> ConnectorTopic:
    key = node.key or serde_of(bytes)
    value = node.value or serde_of(bytes)
    return ConnectorTopic(name, key, value, is_internal=declared.is_internal)


class Guarantee(NamedTuple):
    """The guarantee of one connector.

    Parameters
    ----------
    operator : str
    why : str
    declared_at : str
    """

    operator: str
    why: str
    declared_at: str


def guarantees(topology: Topology) -> Iterator[Guarantee]:
    """Yield the guarantee of each connector that a worker runs."""
    for source in topology.connector_sources:
        yield Guarantee(source.name, _SOURCE, source.declared_at)
    for sink in topology.connector_sinks:
        why = _AT_LEAST_ONCE if sink.sink.at_least_once else _EXACTLY_ONCE
        yield Guarantee(sink.name, f"{why}{_of_refused_rows(sink)}", sink.declared_at)


def _of_refused_rows(sink: DeclaredSink) -> str:
    """Return what happens to rows that the target refuses, if the user has said it."""
    waits = "" if sink.retry is None else f"; a refused row waits for up to {sink.retry.attempts} attempts"
    return f"{waits}; refused rows are parked in {sink.park}" if sink.park else waits


_SOURCE = "exactly once: records and positions are written in one transaction"
_EXACTLY_ONCE = "exactly once: the target keeps the offset with the rows"
_AT_LEAST_ONCE = "at least once: a crash repeats rows, since the target keeps no offset with them"
