"""`Program`: the description of an application that the driver sends to Spark's workers once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from kstreams.config import Config, MemoryShares
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.timestamps import extractor_of
from kstreams.processor.task.task_time import limit_of
from kstreams.processor.topology.barriers import in_cycles, leading_to, reachable
from kstreams.processor.topology.layout import Layout
from kstreams.processor.topology.record_order import RecordOrder
from kstreams.processor.topology.topology import SourceNode, SubTopology, Topology
from kstreams.runtime.spark.coupling import Admission, admissions
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.state import StateLimits

_LOAD_BYTES = 4 * 1024 * 1024


class RowRoutes(NamedTuple):
    """The destinations of the rows that an application writes: to the log, to Spark, or to both.

    Parameters
    ----------
    repartition : frozenset of str
        The repartition topics.
    internal : frozenset of str
        The topics that are written and read within a step: repartition topics, and topics of the user.
    delta : bool
        True if the rows are also written to Delta tables.
    connector_sinks : frozenset of str
        The topics that sinks of the topology read. They have no Delta tables.
    """

    repartition: frozenset[str]
    internal: frozenset[str]
    delta: bool
    connector_sinks: frozenset[str] = frozenset()

    def to_log(self, topic: str) -> bool:
        """Return True if the rows of a topic are written to the log, as those of all but repartition topics are."""
        return topic not in self.repartition

    def to_spark(self, topic: str) -> bool:
        """Return True if the rows of a topic go to Spark, for other tasks of the step or for Delta tables."""
        return topic in self.internal or self.to_delta(topic)

    def to_delta(self, topic: str) -> bool:
        """Return True if the rows of a topic are written to its Delta table."""
        return self.delta and topic not in self.connector_sinks


@dataclass(frozen=True)
class Program:
    """The data of an application that workers need.

    Parameters
    ----------
    config : Config
    sub_topologies : tuple of SubTopology
        All sub-topologies, including those of global tables.
    inputs : mapping of int to tuple of str
        By sub-topology: the topics that it reads, by their names in the log.
    topic_names : mapping of str to str
        The names of repartition topics in the log, by their names in the topology.
    partitions : mapping of str to int
        The number of partitions of each topic that is read or written, by its name in the log.
    tasks : mapping of int to int
        The number of tasks of each sub-topology.
    checkpoint : str
        The absolute path or URI of the application's checkpoint.
    checkpoint_id : str
        The id of the checkpoint, which stays the same if the checkpoint is moved.
    internal : frozenset of str
        The topics that are written and read within a step, by their names in the log: repartition topics, and topics
        that the topology both writes and reads.
    snapshot_every : int
        The number of steps after which a task checks whether a snapshot is due.
    delta : bool
        True if tasks hand results to Spark for Delta tables in addition to writing them to topics.
    state_dir : str or None
        The folder on each machine for the stores of workers; None for Spark's local folders.
    feeds : mapping of str to str
        The names in the log of the topics that DataFrames fill. The sources of `sub_topologies` already use these
        names.
    connector_sinks : frozenset of str
        The topics that sinks of the topology read, by their names in the topology.
    """

    config: Config
    sub_topologies: tuple[SubTopology, ...]
    inputs: Mapping[int, tuple[str, ...]]
    topic_names: Mapping[str, str]
    partitions: Mapping[str, int]
    tasks: Mapping[int, int]
    checkpoint: str
    checkpoint_id: str
    internal: frozenset[str]
    snapshot_every: int
    delta: bool
    state_dir: str | None = None
    feeds: Mapping[str, str] = field(default_factory=dict)
    connector_sinks: frozenset[str] = frozenset()

    @property
    def default_partitions(self) -> int:
        """The number of partitions of a dynamic topic that does not exist yet."""
        return max(self.tasks.values(), default=1)

    def partitions_of(self, topic: str) -> int:
        """Return the number of partitions that a topic has, or will have once it is created."""
        return self.partitions.get(topic, self.default_partitions)

    @cached_property
    def routes(self) -> RowRoutes:
        """The destinations of the rows of each topic."""
        return RowRoutes(frozenset(self.topic_names.values()), self.internal, self.delta, self.connector_sinks)

    @property
    def application_id(self) -> str:
        return self.config.application_id

    @property
    def storage(self) -> CheckpointStorage:
        """The storage of the checkpoint."""
        return open_storage(self.checkpoint, SparkSettings.of(self.config).conf)

    @cached_property
    def limits(self) -> StateLimits:
        """The limits of the state in each worker process."""
        return StateLimits.of(MemoryShares.of(self.config))

    @cached_property
    def limits_in_step(self) -> StateLimits:
        """The limits of stores that are open for one step only, in which they read few of their rows."""
        return replace(self.limits, load_max_bytes=_LOAD_BYTES)

    @cached_property
    def upstream(self) -> dict[int, frozenset[int]]:
        """By sub-topology: the sub-topologies whose output it reads within a step. Global tables are left out."""
        return {sub.id: self._writers_for(sub.id) for sub in self.sub_topologies if not sub.is_global}

    @cached_property
    def timed(self) -> frozenset[str]:
        """The internal topics whose rows carry the stream time at which they were written.

        Topics that sub-topologies in a cycle write are left out, since such sub-topologies do not advance together in
        time.
        """
        cyclic = in_cycles(self.upstream)
        acyclic = [sub for sub in self.sub_topologies if sub.id not in cyclic]
        return self.internal & {self.topic_names.get(topic, topic) for topic in fixed_sinks(acyclic)}

    @cached_property
    def order(self) -> RecordOrder:
        """The topics and sub-topologies in which records have ranks."""
        written = {sub.id: [*map(self._real_name, fixed_sinks([sub]))] for sub in self.sub_topologies}
        inputs = {number: self.inputs[number] for number in self.upstream}
        return RecordOrder.of(inputs, written, self.timed)

    def _real_name(self, topic: str) -> str:
        return self.topic_names.get(topic, topic)

    @cached_property
    def stateful(self) -> frozenset[int]:
        """The sub-topologies that have stores, or whose records reach a sub-topology with stores."""
        return leading_to({number for number in self.upstream if self.sub_topology(number).stores}, self.upstream)

    @cached_property
    def idle_sources(self) -> list[str]:
        """The names of the sources with an idle timeout."""
        return self.idle_sources_of(self.upstream)

    def idle_sources_of(self, numbers: Collection[int]) -> list[str]:
        """Return the names of the sources of some sub-topologies with an idle timeout."""
        sources = (source for number in numbers for source in self.sub_topology(number).sources)
        return sorted(source.name for source in sources if limit_of(source, self.config["idle.timeout.ms"]) >= 0)

    def active_topics(self, number: int, partition: int, behind: Collection[TopicPartition]) -> set[str]:
        """Return the topics of a task that may get more records, given the source partitions with a backlog.

        An internal topic may get more records as long as any partition that feeds it has a backlog. The topics of a
        global table are read to their ends, so they get no more.
        """
        if number not in self.upstream:
            return set()
        upstream_topics = {topic for writer in reachable(number, self.upstream) for topic in self.inputs[writer]}
        has_upstream_backlog = any(source.topic in upstream_topics for source in behind)
        return {
            topic
            for topic in self.inputs[number]
            if (has_upstream_backlog if topic in self.internal else TopicPartition(topic, partition) in behind)
        }

    def admissions(self, numbers: Collection[int]) -> list[Admission]:
        """Return how the source topics of sub-topologies that run together are cut into steps."""
        subs = [sub for sub in self.sub_topologies if sub.id in numbers and not sub.is_global]
        default = extractor_of(self.config["default.timestamp.extractor"])
        return admissions(subs, self.inputs, self.upstream, self.internal, default)

    def read_within(self, number: int) -> list[str]:
        """Return the internal topics that a sub-topology reads."""
        return [topic for topic in self.inputs[number] if topic in self.internal]

    def _writers_for(self, number: int) -> frozenset[int]:
        topics = self.read_within(number)
        names = self.topic_names
        written = {
            sub.id: {names.get(str(sink.topic), sink.topic) for sink in sub.sinks} for sub in self.sub_topologies
        }
        return frozenset(writer for writer, of_writer in written.items() if not of_writer.isdisjoint(topics))

    def sub_topology(self, number: int) -> SubTopology:
        """Return the sub-topology with this id."""
        return next(sub for sub in self.sub_topologies if sub.id == number)


def program_of(
    topology: Topology,
    config: Config,
    settings: SparkSettings,
    layout: Layout,
    existing: Mapping[str, int],
    checkpoint: str,
    *,
    checkpoint_id: str = "",
) -> Program:
    """Return the program of an application.

    Parameters
    ----------
    existing : mapping of str to int
        The number of partitions of each existing topic.
    """
    tasks = Counter(task.id.sub_topology for task in layout.tasks)
    read = {topic for topics in layout.inputs.values() for topic in topics}
    repartition = frozenset(layout.topic_names.values())
    prefixed = {t.removeprefix(settings.prefix): n for t, n in existing.items() if t.startswith(settings.prefix)}
    routed = {topic: layout.partitions[topic] for topic in (*read, *repartition)}
    return Program(
        config=config,
        sub_topologies=tuple(_with_real_topics(sub, layout.feeds) for sub in topology.sub_topologies),
        inputs=layout.inputs,
        topic_names=layout.topic_names,
        partitions={**layout.partitions, **prefixed, **routed},
        tasks=tasks,
        checkpoint=checkpoint,
        checkpoint_id=checkpoint_id,
        internal=repartition | layout.through,
        snapshot_every=settings.snapshot_every,
        delta=settings.delta is not None,
        state_dir=settings.state_dir,
        feeds=layout.feeds,
        connector_sinks=frozenset(declared.topic for declared in topology.connector_sinks),
    )


def _with_real_topics(sub: SubTopology, feeds: Mapping[str, str]) -> SubTopology:
    """Return the sub-topology with the names in the log for the topics that DataFrames fill."""
    nodes = (
        replace(node, topics=tuple(feeds.get(topic, topic) for topic in node.topics))
        if isinstance(node, SourceNode)
        else node
        for node in sub.nodes
    )
    return replace(sub, nodes=tuple(nodes)) if feeds else sub


def group_of(application_id: str) -> str:
    """Return the consumer group that holds the positions of an application on Spark."""
    return f"{application_id}-spark"


def query_group_of(application_id: str, query: object) -> str:
    """Return the consumer group of a query: of a sub-topology, or `<sub-topology>-<position>` of a further sink."""
    return f"{group_of(application_id)}-{query}"


def feed_group_of(application_id: str, topic: str) -> str:
    """Return the consumer group of the feed of a topic, by the topic's name in the topology."""
    return f"{group_of(application_id)}-feed-{topic}"


def source_partitions(program: Program, sub_topologies: Collection[int]) -> list[TopicPartition]:
    """Return all partitions of the topics that these sub-topologies read from the log."""
    topics = {
        topic
        for sub in program.sub_topologies
        if sub.id in sub_topologies and not sub.is_global
        for topic in program.inputs[sub.id]
        if topic not in program.internal
    }
    return [TopicPartition(topic, p) for topic in sorted(topics) for p in range(program.partitions[topic])]


def fixed_sinks(sub_topologies: Iterable[SubTopology]) -> set[str]:
    """Return the written topics by their names in the topology, without dynamic topics."""
    return {sink.topic for sub in sub_topologies for sink in sub.sinks if isinstance(sink.topic, str)}
