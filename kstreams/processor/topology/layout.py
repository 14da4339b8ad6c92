"""The layout of a topology on real topics: names, partition counts, tasks, and topics to be created. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kstreams.errors import TopologyError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.source_line import operator_at
from kstreams.log.naming import did_you_mean
from kstreams.processor.topology.barriers import leading_to
from kstreams.processor.topology.feeds import feed_partitions
from kstreams.processor.topology.nodes import reader_of
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import InternalTopic, SubTopology, Topology


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """One task to run: a sub-topology for one partition.

    Parameters
    ----------
    sub_topology : SubTopology
    partition : int
    inputs : tuple of TopicPartition
        The input partitions, by real topic names, sorted.
    """

    sub_topology: SubTopology
    partition: int
    inputs: tuple[TopicPartition, ...]

    @property
    def id(self) -> TaskId:
        """The sub-topology and the partition."""
        return TaskId(self.sub_topology.id, self.partition)


def tasks_of(sub_topology: SubTopology, topics: Sequence[str], partition_counts: Mapping[str, int]) -> list[TaskPlan]:
    """Return the tasks of a sub-topology: as many as its widest input has partitions.

    Task i reads partition i of every topic that has one.

    Parameters
    ----------
    sub_topology : SubTopology
    topics : sequence of str
        Real names of the topics it reads.
    partition_counts : mapping
        Number of partitions by real topic name.

    Examples
    --------
    >>> tasks = tasks_of(SubTopology(0, (), ()), ["a", "b"], {"a": 1, "b": 2})
    >>> [[str(source) for source in task.inputs] for task in tasks]
    [['a-0', 'b-0'], ['b-1']]
    """

    def inputs(partition: int) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(t, partition) for t in sorted(set(topics)) if partition < partition_counts[t])

    widest = max((partition_counts[topic] for topic in topics), default=0)
    return [TaskPlan(sub_topology, partition, inputs(partition)) for partition in range(widest)]


@dataclass(frozen=True, slots=True)
class Layout:
    """A topology laid out on topics that exist or will be created.

    Parameters
    ----------
    topic_names : mapping
        Real name by the name in the topology, for internal topics.
    partitions : mapping
        Number of partitions by real name: sources, internal topics and fixed sinks.
    tasks : tuple of TaskPlan
        All tasks but those of global tables.
    globals : tuple of SubTopology
        The sub-topologies that fill global tables.
    upstream : mapping of int to frozenset of int
        By sub-topology, the sub-topologies that write the internal topics it reads.
    inputs : mapping of int to tuple of str
        By sub-topology, real names of the topics it reads.
    own : frozenset of str
        Real names of all internal topics, which no pattern matches.
    feeds : mapping of str to str
        Real name by the name in the topology, for topics that DataFrames fill.
    """

    topic_names: Mapping[str, str]
    partitions: Mapping[str, int]
    tasks: tuple[TaskPlan, ...]
    globals: tuple[SubTopology, ...]
    upstream: Mapping[int, frozenset[int]]
    inputs: Mapping[int, tuple[str, ...]]
    own: frozenset[str] = frozenset()
    feeds: Mapping[str, str] = field(default_factory=dict)

    @property
    def stateful(self) -> frozenset[int]:
        """The sub-topologies that have state, or whose records reach one that has."""
        with_stores = {task.id.sub_topology for task in self.tasks if task.sub_topology.stores}
        return leading_to(with_stores, self.upstream)

    @property
    def through(self) -> frozenset[str]:
        """The user's topics that the topology both writes and reads, without topics that are chosen per record."""
        written = {sink.topic for task in self.tasks for sink in task.sub_topology.sinks if isinstance(sink.topic, str)}
        read = {topic for topics in self.inputs.values() for topic in topics}
        return frozenset((written - self.topic_names.keys()) & read)


def lay_out(topology: Topology, application_id: str, existing: Mapping[str, int]) -> Layout:
    """Decide names, partition counts and tasks.

    Parameters
    ----------
    topology : Topology
    application_id : str
    existing : mapping
        Number of partitions of every existing topic.

    Raises
    ------
    UnknownTopicError
        If a source topic does not exist; suggests the topic with the nearest name.
    TopologyError
        If joined topics differ in their number of partitions, an existing internal topic does not fit, there is nothing
        to read, or the patterns of two sources match one topic.
    """
    if not topology.sub_topologies:
        raise TopologyError("the topology reads no topic: declare a stream, a table or a global table of one")
    names = {topic.name: f"{application_id}-{topic.name}" for topic in topology.repartition_topics}
    feeds = {feed.topic: f"{application_id}-{feed.topic}" for feed in topology.feeds}
    own = frozenset(f"{application_id}-{topic.name}" for topic in topology.internal_topics).union(feeds.values())
    inputs = {sub.id: source_topics(sub, {**names, **feeds}, existing, own) for sub in topology.sub_topologies}
    for sub in topology.sub_topologies:
        _check_sources(sub, inputs[sub.id], {*names.values(), *feeds.values()}, existing)
    _check_patterns(topology, inputs, {*names.values(), *feeds.values()})
    upstream = {sub.id: writers_of(inputs[sub.id], names, topology.sub_topologies) for sub in topology.sub_topologies}
    partitions = _Counts(topology, names, feeds, inputs, existing).resolve()
    tasks = [
        task
        for sub in topology.sub_topologies
        if not sub.is_global
        for task in tasks_of(sub, inputs[sub.id], partitions)
    ]
    globals_ = tuple(sub for sub in topology.sub_topologies if sub.is_global)
    return Layout(names, partitions, tuple(tasks), globals_, upstream, inputs, own, feeds)


def source_topics(
    sub: SubTopology, names: Mapping[str, str], existing: Iterable[str], own: Collection[str]
) -> tuple[str, ...]:
    """Return real names of the topics that a sub-topology reads; patterns match existing topics that are not `own`."""
    topics = {names.get(topic, topic) for source in sub.sources for topic in source.topics}
    patterns = [source.pattern for source in sub.sources if source.pattern is not None]
    topics.update(t for t in existing for pattern in patterns if pattern.fullmatch(t) and t not in own)
    return tuple(sorted(topics))


def unmatched(topology: Topology, layout: Layout) -> str | None:
    """Describe the first pattern that no topic matches; None if each matches one."""
    for sub in topology.sub_topologies:
        for source in sub.sources:
            if source.pattern is not None and not any(map(source.pattern.fullmatch, layout.inputs[sub.id])):
                place = f" (declared at {source.declared_at})" if source.declared_at else ""
                return (
                    f"No topic matches the pattern {source.pattern.pattern!r}, which {source.name}{place} reads: "
                    "create one with `kstreams topics create`, or correct the pattern."
                )
    return None


def writers_of(topics: Iterable[str], names: Mapping[str, str], subs: Iterable[SubTopology]) -> frozenset[int]:
    """Return the sub-topologies that write an internal topic among `topics`."""
    internal = {name for name, real in names.items() if real in set(topics)}
    return frozenset(sub.id for sub in subs for sink in sub.sinks if sink.topic in internal)


def _check_sources(sub: SubTopology, topics: Iterable[str], internal: set[str], existing: Mapping[str, int]) -> None:
    for topic in topics:
        if topic not in internal and topic not in existing:
            node = next((s for s in sub.sources if topic in s.topics), None)
            reader = operator_at(node.name, node.declared_at) if node else f"sub-topology {sub.id}"
            hint = did_you_mean(topic, existing) or f" Create it first: kstreams topics create {topic}"
            raise UnknownTopicError(f"There is no topic {topic!r}, which {reader} reads.{hint}")


def _check_patterns(topology: Topology, inputs: Mapping[int, Sequence[str]], internal: Collection[str]) -> None:
    """Raise if several sources read a topic. Sources of global tables may read it too."""
    subs = [sub for sub in topology.sub_topologies if not sub.is_global]
    sources = [source for sub in subs for source in sub.sources]
    for topic in {topic for sub in subs for topic in inputs[sub.id]}.difference(internal):
        reader_of(sources, topic)


class _Counts:
    """The numbers of partitions of internal topics: enforced, or that of the widest topic upstream."""

    def __init__(
        self,
        topology: Topology,
        names: Mapping[str, str],
        feeds: Mapping[str, str],
        inputs: Mapping[int, tuple[str, ...]],
        existing: Mapping[str, int],
    ) -> None:
        real = {**names, **feeds}
        self._subs = topology.sub_topologies
        self._inputs = inputs
        self._internal: dict[str, InternalTopic] = {names[topic.name]: topic for topic in topology.repartition_topics}
        self._groups = [frozenset(real.get(t, t) for t in group) for group in topology.copartition_groups]
        self._names = names
        self._existing = existing
        created = {*self._internal, *feeds.values()}
        self.counts = {t: existing[t] for topics in inputs.values() for t in topics if t not in created}
        self.counts |= {real: topic.partitions for real, topic in self._internal.items() if topic.partitions}
        counts = {**self.counts, **{t: existing[t] for t in feeds.values() if t in existing}}
        self.counts |= feed_partitions(topology.feeds, feeds, self._groups, counts)

    def resolve(self) -> dict[str, int]:
        """Return the counts of all topics that the topology names."""
        self._derive(complete=True)
        self._derive(complete=False)  # a cycle of sub-topologies, as in a foreign-key join: by the known counts
        for real in self._internal:
            self.counts.setdefault(real, self._existing.get(real, 0))  # no topic matches the pattern before it yet
        for group in self._groups:
            self._align(group)
        self._fit_existing()
        for sub in self._subs:
            self._count_sinks(sub)
        return self.counts

    def _count_sinks(self, sub: SubTopology) -> None:
        """Give a sink topic that does not exist yet as many partitions as its sub-topology has tasks."""
        widest = max((self.counts[topic] for topic in self._inputs[sub.id]), default=1)
        for sink in sub.sinks:
            if isinstance(sink.topic, str) and sink.topic not in self._names:
                self.counts.setdefault(sink.topic, self._existing.get(sink.topic, widest))

    def _derive(self, *, complete: bool) -> None:
        has_changed = True
        while has_changed:
            has_changed = False
            for real in self._internal:
                upstream = [t for sub in self._writers(real) for t in self._inputs[sub.id]]
                counts = [self.counts[topic] for topic in upstream if topic in self.counts]
                if real not in self.counts and counts and (len(counts) == len(upstream) or not complete):
                    self.counts[real] = max(counts)
                    has_changed = True

    def _writers(self, real: str) -> list[SubTopology]:
        return [sub for sub in self._subs if any(self._names.get(str(sink.topic)) == real for sink in sub.sinks)]

    def _align(self, group: frozenset[str]) -> None:
        """Give the internal topics of a join the number of partitions of the topics they are joined with."""
        free = {t for t in group if t in self._internal and not self._internal[t].partitions}
        fixed = {t: self.counts[t] for t in group - free}
        if len(set(fixed.values())) > 1:
            listed = ", ".join(f"{topic}={count}" for topic, count in sorted(fixed.items()))
            raise TopologyError(
                f"Topics not co-partitioned: [{{{listed}}}]. Topics that are joined need the same number of partitions:"
                f" repartition one of the streams, or create the topics anew with equal numbers."
            )
        count = max(fixed.values()) if fixed else max(self.counts[t] for t in group)
        self.counts.update(dict.fromkeys(free, count))

    def _fit_existing(self) -> None:
        for real in self._internal:
            if self._existing.get(real, self.counts[real]) != self.counts[real]:
                raise TopologyError(
                    f"The internal topic {real} has {self._existing[real]} partitions, but the topology now needs "
                    f"{self.counts[real]}: run once with --reset to start anew, or give the application another id."
                )
