"""`Program` and `Step`: what the driver sends to Spark's workers, once per application and once per micro-batch."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from kstreams.config import Config, MemoryShares
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.timestamps import extractor_of
from kstreams.processor.task.idle import limit_of
from kstreams.processor.topology.barriers import in_cycles, leading_to, reachable
from kstreams.processor.topology.layout import Layout
from kstreams.processor.topology.topology import SourceNode, SubTopology, Topology
from kstreams.runtime.spark.coupling import Admission, admissions
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.state import StateLimits

logger = logging.getLogger(__name__)

_LOAD_BYTES = 4 * 1024 * 1024


class RowRoutes(NamedTuple):
    """Where the rows go that an application writes.

    Parameters
    ----------
    repartition, internal : frozenset of str
        Repartition topics; and with them the topics of the user's that are written and read within a step.
    delta : bool
        Whether Delta tables take the rows too.
    """

    repartition: frozenset[str]
    internal: frozenset[str]
    delta: bool

    def to_log(self, topic: str) -> bool:
        """Whether the rows of a topic are written to the log: those of repartition topics are not."""
        return topic not in self.repartition

    def to_spark(self, topic: str) -> bool:
        """Whether the rows of a topic go to Spark: other tasks of the step read them, or Delta tables take them."""
        return self.delta or topic in self.internal


@dataclass(frozen=True)
class Program:
    """An application as the workers need it.

    Parameters
    ----------
    config : Config
    sub_topologies : tuple of SubTopology
        All of them, those of global tables too.
    inputs : mapping of int to tuple of str
        Per sub-topology: real names of the topics it reads.
    topic_names : mapping of str to str
        Real names of repartition topics.
    partitions : mapping of str to int
        Number of partitions by real name, of all topics that are read or written.
    tasks : mapping of int to int
        Number of tasks per sub-topology.
    checkpoint : str
        Absolute path or URI of the application's checkpoint.
    checkpoint_id : str
        Names it, wherever it lies.
    internal : frozenset of str
        Real names of topics that are written and read within a step: repartition topics, and whatever the topology
        both writes and reads.
    snapshot_every : int
        Steps after which snapshots are thought of.
    delta : bool
        Whether Delta tables take the results too: tasks then hand them to Spark besides writing them to topics.
    state_dir : str or None
        Folder on each machine for what workers keep there; None for Spark's local ones.
    feeds : mapping of str to str
        Real names of the topics that DataFrames fill. The sources of the sub-topologies have them already.
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

    @property
    def default_partitions(self) -> int:
        """Number of partitions of a topic that is chosen per record and does not exist yet."""
        return max(self.tasks.values(), default=1)

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has, or will have."""
        return self.partitions.get(topic, self.default_partitions)

    @cached_property
    def routes(self) -> RowRoutes:
        """Where the rows of each topic go."""
        return RowRoutes(frozenset(self.topic_names.values()), self.internal, self.delta)

    @property
    def application_id(self) -> str:
        return self.config.application_id

    @property
    def storage(self) -> CheckpointStorage:
        """The storage of the checkpoint."""
        return open_storage(self.checkpoint, SparkSettings.of(self.config).conf)

    @cached_property
    def limits(self) -> StateLimits:
        """Ceilings for the state of each worker process."""
        return StateLimits.of(MemoryShares.of(self.config))

    @cached_property
    def limits_in_step(self) -> StateLimits:
        """The same for stores that are open for one step only: of many rows few are read then."""
        return replace(self.limits, load_max_bytes=_LOAD_BYTES)

    @cached_property
    def upstream(self) -> dict[int, frozenset[int]]:
        """By sub-topology (those of global tables aside): which ones feed it within a step."""
        return {sub.id: self._writers_for(sub.id) for sub in self.sub_topologies if not sub.is_global}

    @cached_property
    def timed(self) -> frozenset[str]:
        """The topics written within a step whose rows stand at the times at which they were written.

        Not those of sub-topologies that feed each other in a circle: these do not advance together in time.
        """
        circles = in_cycles(self.upstream)
        ordered = {self.topic_names.get(topic, topic) for topic in fixed_sinks(self._outside(circles))}
        return self.internal & ordered

    def _outside(self, numbers: Collection[int]) -> list[SubTopology]:
        return [sub for sub in self.sub_topologies if sub.id not in numbers]

    @cached_property
    def stateful(self) -> frozenset[int]:
        """The sub-topologies that keep state, or whose records reach one that does."""
        return leading_to({number for number in self.upstream if self.sub_topology(number).stores}, self.upstream)

    @cached_property
    def idle_sources(self) -> list[str]:
        """The names of the sources that are idle after some time without records."""
        sources = (source for number in self.upstream for source in self.sub_topology(number).sources)
        return sorted(source.name for source in sources if limit_of(source, self.config["idle.timeout.ms"]) >= 0)

    def awake(self, number: int, partition: int, behind: Collection[TopicPartition]) -> set[str]:
        """The topics of a task of which more records may come, when some source partitions are behind.

        Of one that is written within the step more may come as long as anything is behind that feeds it. A global table
        is read to the end of its topics: of these no more may come.
        """
        if number not in self.upstream:
            return set()
        feeding = {topic for writer in reachable(number, self.upstream) for topic in self.inputs[writer]}
        fed = any(source.topic in feeding for source in behind)
        return {
            topic
            for topic in self.inputs[number]
            if (fed if topic in self.internal else TopicPartition(topic, partition) in behind)
        }

    def admissions(self, numbers: Collection[int]) -> list[Admission]:
        """How the topics that some sub-topologies read from the log are cut into steps, when these run together."""
        subs = [sub for sub in self.sub_topologies if sub.id in numbers and not sub.is_global]
        default = extractor_of(self.config["default.timestamp.extractor"])
        return admissions(subs, self.inputs, self.upstream, self.internal, default)

    def read_within(self, number: int) -> list[str]:
        """The topics that a sub-topology reads and that are written within the step."""
        return [topic for topic in self.inputs[number] if topic in self.internal]

    def _writers_for(self, number: int) -> frozenset[int]:
        topics = self.read_within(number)
        names = self.topic_names
        written = {
            sub.id: {names.get(str(sink.topic), sink.topic) for sink in sub.sinks} for sub in self.sub_topologies
        }
        return frozenset(writer for writer, of_writer in written.items() if not of_writer.isdisjoint(topics))

    def sub_topology(self, number: int) -> SubTopology:
        """The sub-topology with this id."""
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
    """The program of an application.

    Parameters
    ----------
    existing : mapping of str to int
        Number of partitions of every topic there is.
    """
    tasks = Counter(task.id.sub_topology for task in layout.tasks)
    read = {topic for topics in layout.inputs.values() for topic in topics}
    repartition = frozenset(layout.topic_names.values())
    prefixed = {t.removeprefix(settings.prefix): n for t, n in existing.items() if t.startswith(settings.prefix)}
    routed = {topic: layout.partitions[topic] for topic in (*read, *repartition)}
    program = Program(
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
    )
    if program.idle_sources:
        logger.warning(
            "%s: idle input closes nothing on Spark before the next record of any source comes: nothing runs there "
            "between steps",
            ", ".join(program.idle_sources),
        )
    return program


def _with_real_topics(sub: SubTopology, feeds: Mapping[str, str]) -> SubTopology:
    """The sub-topology whose sources know the topics that DataFrames fill by their real names."""
    nodes = (
        replace(node, topics=tuple(feeds.get(topic, topic) for topic in node.topics))
        if isinstance(node, SourceNode)
        else node
        for node in sub.nodes
    )
    return replace(sub, nodes=tuple(nodes)) if feeds else sub


def group_of(application_id: str) -> str:
    """The consumer group that holds the positions of an application on Spark."""
    return f"{application_id}-spark"


def windowed_group_of(application_id: str, number: int) -> str:
    """The same of a windowed sub-topology that is a query of its own."""
    return f"{group_of(application_id)}-{number}"


def feed_group_of(application_id: str, topic: str) -> str:
    """The same of a topic that a DataFrame fills, by its name in the topology."""
    return f"{group_of(application_id)}-feed-{topic}"


def source_partitions(program: Program, sub_topologies: Collection[int]) -> list[TopicPartition]:
    """All partitions of the topics that some sub-topologies read from the log."""
    topics = {
        topic
        for sub in program.sub_topologies
        if sub.id in sub_topologies and not sub.is_global
        for topic in program.inputs[sub.id]
        if topic not in program.internal
    }
    return [TopicPartition(topic, p) for topic in sorted(topics) for p in range(program.partitions[topic])]


def fixed_sinks(sub_topologies: Iterable[SubTopology]) -> set[str]:
    """The topics that are written to, by their names in the topology; those chosen per record aside."""
    return {sink.topic for sub in sub_topologies for sink in sub.sinks if isinstance(sink.topic, str)}
