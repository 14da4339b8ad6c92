"""`prepare_topics` creates the topics of a topology: repartition and changelog topics, and fixed sink topics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping

from kstreams.config import Config
from kstreams.errors import LogError, TopologyError
from kstreams.log.api import Admin, Log, TopicDescription
from kstreams.log.topic_types import TopicTypes, create_typed, store_types
from kstreams.processor.context.failures import check_dead_letter_topic, required_topics
from kstreams.processor.topology.layout import Layout, lay_out, source_topics
from kstreams.processor.topology.topic_types import types_in_changelog, types_written
from kstreams.processor.topology.topology import InternalTopic, SubTopology, Topology
from kstreams.runtime.connectors import UNLIMITED_RETENTION
from kstreams.state.api import StoreBuilder

logger = logging.getLogger(__name__)


class SourceMonitor:
    """Checks at intervals whether the source topics of a topology, or their partitions, have changed.

    Parameters
    ----------
    topology : Topology
    interval_s : float
        The interval of the checks.
    log : Log
    """

    def __init__(self, topology: Topology, interval_s: float, log: Log) -> None:
        self._log = log
        self._interval_s = interval_s
        self._subs = [sub for sub in topology.sub_topologies if not sub.is_global]

    def watch(self, layout: Layout, stopping: threading.Event, on_change: Callable[[], None]) -> None:
        """Call `on_change` when topics or partitions differ from those of the last check, or at first of `layout`."""
        counts = {sub.id: {topic: layout.partitions[topic] for topic in layout.inputs[sub.id]} for sub in self._subs}
        with self._log.admin() as admin:
            while not stopping.wait(self._interval_s):
                try:
                    existing = admin.topics()
                except LogError as error:
                    logger.warning("the topics cannot be read, which is tried again: %s", error)
                    continue
                partitions = {sub.id: _partitions(sub, layout, existing, counts[sub.id]) for sub in self._subs}
                if partitions != counts:
                    counts = partitions
                    on_change()


def _partitions(
    sub: SubTopology, layout: Layout, existing: Mapping[str, TopicDescription], counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the number of partitions of each topic. A deleted topic keeps its number: its reader raises the error."""
    topics = source_topics(sub, layout.topic_names, existing, layout.own)
    return {topic: existing[topic].partitions if topic in existing else counts[topic] for topic in topics}


_MAX_RETENTION_MS = 2**63 - 1
"""The greatest value of `retention.ms`."""


def prepare_topics(topology: Topology, config: Config, admin: Admin) -> Layout:
    """Lay the topology out on the existing topics, create missing topics, and store the types of all topics.

    Raises
    ------
    UnknownTopicError, TopologyError
        As `lay_out`, and if an existing internal topic has the wrong settings, or the dead-letter topic is missing.
    """
    descriptions = admin.topics(required_topics(topology, config))
    internal = set(internal_topics(topology, config.application_id))
    existing = {name: topic.partitions for name, topic in descriptions.items()}
    check_dead_letter_topic(config, existing)
    layout = lay_out(topology, config.application_id, existing)
    types = _types(topology, layout, config.application_id)
    for name, partitions, settings in _required_topics(topology, layout, config):
        if name not in existing and partitions:
            if create_typed(admin, name, partitions, settings, types.get(name)):
                logger.info("created topic %s with %d partitions", name, partitions)
        elif partitions and name in internal:
            _check_internal_topic(descriptions[name], partitions, settings)
    for name in types.keys() & existing.keys():
        store_types(admin, name, types[name])
    return layout


def _check_internal_topic(topic: TopicDescription, partitions: int, settings: Mapping[str, str]) -> None:
    """Raise TopologyError if a changelog does not have one partition per task, or a topic would lose records."""
    if topic.name.endswith("-changelog") and topic.partitions != partitions:
        raise TopologyError(
            f"The changelog topic {topic.name} has {topic.partitions} partitions, but there are {partitions} tasks: "
            "run once with --reset to start anew, or give the application another id."
        )
    current_policy = topic.config["cleanup.policy"]
    policy = settings.get("cleanup.policy", "delete")
    if ("compact" in current_policy) != ("compact" in policy):
        raise TopologyError(
            f"The topic {topic.name} of the application has cleanup.policy={current_policy}, which would lose records: "
            f"set it to {policy}, or run once with --reset to create it again."
        )


def changelog_topic(application_id: str, store: str) -> str:
    """Return the name of a store's changelog topic.

    Examples
    --------
    >>> changelog_topic("flights", "delays")
    'flights-delays-changelog'
    """
    return f"{application_id}-{store}-changelog"


def internal_topics(topology: Topology, application_id: str) -> list[str]:
    """Return the real names of all repartition and changelog topics of the application."""
    return [f"{application_id}-{topic.name}" for topic in topology.internal_topics]


def changelog_settings(topic: InternalTopic, store: StoreBuilder, config: Config) -> dict[str, str]:
    """Return the settings of a changelog topic: those of its store, adapted to the configuration.

    Retention counts back from the newest record, not from the present time. Windows of old records that are replayed
    today are therefore retained as long as windows of new records.
    """
    settings = {**topic.config}
    if store.retention_ms is not None and "retention.ms" in settings and "retention.ms" not in store.changelog_config:
        additional_ms = config["windowstore.changelog.additional.retention.ms"]
        # The sum exceeds the limit for windows without an end, as in Kafka Streams.
        retention_ms = min(store.retention_ms + additional_ms, _MAX_RETENTION_MS)
        settings |= {"retention.ms": str(retention_ms), "retention.clock": "record"}
    return {**settings, **_overrides(config), **store.changelog_config}


def _required_topics(
    topology: Topology, layout: Layout, config: Config
) -> Iterator[tuple[str, int, Mapping[str, str]]]:
    """Yield the name, the number of partitions and the settings of each topic that the application writes."""
    of_connectors = {declared.topic for declared in topology.connector_sinks}
    for topic in topology.repartition_topics:
        name = layout.topic_names[topic.name]
        yield name, layout.partitions[name], {**topic.config, **_overrides(config)}
    changelogs = {topic.name: topic for topic in topology.changelog_topics}
    for sub, store in _logged_stores(topology.sub_topologies):
        tasks = sum(task.id.sub_topology == sub.id for task in layout.tasks)
        settings = changelog_settings(changelogs[f"{store.name}-changelog"], store, config)
        yield changelog_topic(config.application_id, store.name), tasks, settings
    for sub in topology.sub_topologies:
        for sink in sub.sinks:
            if isinstance(sink.topic, str) and sink.topic not in layout.topic_names:
                settings = UNLIMITED_RETENTION if sink.topic in of_connectors else {}
                yield sink.topic, layout.partitions[sink.topic], settings


def _types(topology: Topology, layout: Layout, application_id: str) -> dict[str, TopicTypes]:
    """Return the types of the records of all topics, by real name."""
    subs = topology.sub_topologies
    names = layout.topic_names
    sinks = {names.get(topic, topic): types for topic, types in types_written(subs).items()}
    changelogs = {
        changelog_topic(application_id, store.name): types_in_changelog(store) for _, store in _logged_stores(subs)
    }
    return sinks | changelogs


def _overrides(config: Config) -> dict[str, str]:
    return {key: str(value) for key, value in config.prefixed("topic.").items()}


def _logged_stores(sub_topologies: tuple[SubTopology, ...]) -> list[tuple[SubTopology, StoreBuilder]]:
    return [(sub, store) for sub in sub_topologies if not sub.is_global for store in sub.stores if store.logging]
