"""The topology: sources, processors, sinks and stores, and their division into sub-topologies.

Nodes are immutable. They may be added, but not removed; derived properties are computed when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.kernel.offset_reset import OffsetReset, offset_reset_of
from kstreams.kernel.source_line import declared_at, operator_at
from kstreams.kernel.timestamps import TimestampExtractor, extractor_of
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.processor.api.processor import Processor, ProcessorSupplier, check_supplier, stores_of
from kstreams.processor.topology.connectors import Connector, DeclaredSink, DeclaredSource
from kstreams.processor.topology.describe import describe
from kstreams.processor.topology.feeds import Feed
from kstreams.processor.topology.nodes import (
    InternalTopic,
    ProcessorNode,
    SinkNode,
    SourceNode,
    SubTopology,
    TopologyNode,
    changelog_topic,
    matches,
    parents_of,
)
from kstreams.processor.topology.operator import ProcessOperator, ProcessorKind
from kstreams.processor.topology.serde_binding import SerdeBinding
from kstreams.processor.topology.sub_topologies import split_into_sub_topologies
from kstreams.schemas import SchemaRegistry
from kstreams.serdes import serde_of
from kstreams.state.api import StoreBuilder


def built(topology: object, config: Mapping[str, Any], runner: str) -> Topology:
    """Return a Topology: from a function, from a builder under a configuration, or itself. `runner` names the caller.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    built = topology() if callable(topology) else topology
    built = built.build(config) if hasattr(built, "build") else built
    if not isinstance(built, Topology):
        raise TypeError(
            f"{runner} runs a StreamsBuilder, a Topology, or a function that returns one, not a {type(built).__name__}"
        )
    return built


@contextmanager
def bound_while(topology: Topology, config: Config) -> Iterator[Topology]:
    """Yield the topology as the native engine runs it: with the names of connector topics, and with bound serdes.

    The serdes may ask the schema registry of the configuration, which is closed at the end.
    """
    with closing(ApplicationRegistry(config)) as registry:
        yield topology.with_connector_topics(config.application_id).bound(config, registry)


class Topology:
    """The graph that `StreamsBuilder.build()` returns, or that is built by hand. Kafka Streams: `Topology`.

    Examples
    --------
    >>> topology = Topology().add_source("in", ["words"], key=str, value=str)
    >>> print(topology.add_sink("out", "copy", "in", key=str, value=str).describe())
    Topologies:
       Sub-topology: 0
        Source: in (topics: [words])
          --> out
        Sink: out (topic: copy)
          <-- in
    <BLANKLINE>
    <BLANKLINE>
    """

    def __init__(self) -> None:
        self._nodes: dict[str, TopologyNode] = {}
        self._stores: dict[str, StoreBuilder] = {}
        self._global_stores: set[str] = set()
        self._repartition_topics: dict[str, InternalTopic] = {}
        self._copartitioned: list[tuple[str, ...]] = []
        self._feeds: dict[str, Feed] = {}
        self._sources: list[DeclaredSource] = []
        self._sinks: list[DeclaredSink] = []
        self.graph: Any = None
        """The logical graph of a topology from the DSL."""
        self.origin: dict[str, str] = {}
        """The name of the logical operator of each node."""

    # building

    def add(self, node: TopologyNode, origin: str | None = None) -> str:
        """Add a node whose parents exist already; return its name.

        Raises
        ------
        TopologyError
            If the name or one of its topics is taken, or a parent is missing or a sink.
        """
        if node.name in self._nodes:
            raise TopologyError(f"{node.name!r} is the name of another operator: give one of them another name=")
        _check(self, node)
        self._nodes[node.name] = node
        if origin is not None:
            self.origin[node.name] = origin
        return node.name

    def add_source(
        self,
        name: str,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: object,
        value: object,
        timestamp_extractor: TimestampExtractor | type | None = None,
        offset_reset: OffsetReset | None = None,
    ) -> Topology:
        """Read topics, or all that match a pattern; `key` and `value` are types or serdes.

        `timestamp_extractor` and `offset_reset` are as in `StreamsBuilder.stream`.
        """
        pattern = topics if isinstance(topics, re.Pattern) else None
        names = (topics,) if isinstance(topics, str) else () if isinstance(topics, re.Pattern) else tuple(topics)
        extractor = extractor_of(timestamp_extractor)
        reset = offset_reset_of(offset_reset)
        self.add(SourceNode(name, names, pattern, serde_of(key), serde_of(value), extractor, reset, declared_at()))
        return self

    def add_processor(
        self, name: str, supplier: ProcessorSupplier, *parents: str, stores: Iterable[str] = ()
    ) -> Topology:
        """Add a processor between sources and sinks.

        Parameters
        ----------
        name : str
        supplier : callable
            Creates a new processor at each call: its class, or a function. Stores that it declares are added and
            connected.
        *parents : str
            The sources and processors whose records it receives.
        stores : iterable of str
            Names of further state stores that it uses, which exist already.

        Raises
        ------
        TopologyError
            If the name is taken, a parent or a store is missing, or the supplier does not create new processors.
        """
        check_supplier(supplier, Processor, name)
        return self._add_processor(name, ProcessOperator(supplier), parents, stores)

    def _add_processor(
        self, name: str, process: ProcessOperator, parents: tuple[str, ...], stores: Iterable[str] = ()
    ) -> Topology:
        declared_stores = stores_of(process.supplier)
        for builder in declared_stores:
            self.add_state_store(builder)
        used = tuple(dict.fromkeys((*stores, *(builder.name for builder in declared_stores))))
        self._refuse_global(name, used)
        self.add(ProcessorNode(name, parents, process, used, declared_at=declared_at()))
        return self

    def add_sink(
        self,
        name: str,
        topic: str | Callable[..., str],
        *parents: str,
        key: object,
        value: object,
        partitioner: Callable[..., object] | None = None,
    ) -> Topology:
        """Write to a topic, or to the topic that `topic(key, value, RecordContext)` names."""
        self.add(SinkNode(name, parents, topic, serde_of(key), serde_of(value), partitioner, declared_at()))
        return self

    def add_state_store(self, builder: StoreBuilder, *nodes: str, is_global: bool = False) -> Topology:
        """Add a store, and connect it to processors that exist already."""
        existing = self._stores.get(builder.name)
        if existing is not None and existing != builder:
            raise TopologyError(f"there are two state stores called {builder.name!r}: give one of them another name")
        self._stores[builder.name] = builder
        if is_global:
            self._global_stores.add(builder.name)
        for node in nodes:
            self.connect_processor_and_state_stores(node, builder.name)
        return self

    def connect_processor_and_state_stores(self, name: str, *stores: str) -> Topology:
        """Give a processor access to more stores; sub-topologies that share a store become one.

        Raises
        ------
        TopologyError
            If the processor or a store is missing, or a store is global, which needs no connection.
        """
        step = self._nodes.get(name)
        if not isinstance(step, ProcessorNode):
            raise TopologyError(f"{name!r} is not a processor: only processors have state stores")
        if not stores:
            raise TopologyError(f"{name!r} is to be connected to no store: name at least one")
        self._refuse_global(name, stores)
        connected = replace(step, stores=tuple(dict.fromkeys((*step.stores, *stores))))
        _check_stores(self, connected)
        self._nodes[name] = connected
        return self

    def _refuse_global(self, name: str, stores: Iterable[str]) -> None:
        for store in self._global_stores.intersection(stores):
            raise TopologyError(f"{store!r} is a global store: {name!r} may read it without being connected to it")

    def add_global_store(
        self,
        store: StoreBuilder,
        source: str,
        topic: str,
        processor: str,
        supplier: ProcessorSupplier,
        *,
        key: object,
        value: object,
        timestamp_extractor: TimestampExtractor | type | None = None,
    ) -> Topology:
        """Fill a store in every instance from all partitions of a topic; every processor may read it.

        The processor gets every record of the topic: the existing ones when the application starts, before anything
        else runs, and later ones as they come. It writes the store, and can neither forward nor schedule.

        Parameters
        ----------
        store : StoreBuilder
            The store, which gets no changelog: it is restored from its topic.
        source, processor : str
            Names of the two nodes.
        topic : str
        supplier : callable
            Creates the processor.
        key, value : type or Serde
            The types of the topic's records.
        timestamp_extractor : callable, optional
            `(record, partition_time_ms) -> event time in ms`.

        Raises
        ------
        TopologyError
            If a name or the topic is taken.
        """
        if store.name in self._stores:
            raise TopologyError(f"there are two state stores called {store.name!r}: give one of them another name")
        check_supplier(supplier, Processor, processor)
        self.add_source(source, topic, key=key, value=value, timestamp_extractor=timestamp_extractor)
        self.add_state_store(replace(store, logging=False, changelog_config={}), is_global=True)
        operator = ProcessOperator(supplier, ProcessorKind.GLOBAL_STORE)
        self.add(ProcessorNode(processor, (source,), operator, (store.name,), declared_at=declared_at()))
        return self

    def add_read_only_state_store(
        self,
        store: StoreBuilder,
        source: str,
        topic: str,
        processor: str,
        supplier: ProcessorSupplier,
        *,
        key: object,
        value: object,
        timestamp_extractor: TimestampExtractor | type | None = None,
    ) -> Topology:
        """Fill a store from a topic, partition by partition; the topic is the store's changelog.

        Only this processor writes the store, and it must put each record unchanged: a lost store is restored by
        copying the topic. Other processors read the store if they are connected to it. Parameters as for
        `add_global_store`.
        """
        check_supplier(supplier, Processor, processor)
        self.add_source(
            source, topic, key=key, value=value, timestamp_extractor=timestamp_extractor, offset_reset="earliest"
        )
        unlogged = replace(store, logging=False, changelog_config={}, source_topic=topic)
        return self._add_processor(processor, ProcessOperator(supplier), (source,)).add_state_store(unlogged, processor)

    def add_repartition_topic(self, topic: InternalTopic) -> None:
        """Declare an internal topic between two sub-topologies."""
        self._repartition_topics[topic.name] = topic

    def add_feed(self, feed: Feed) -> None:
        """Let a DataFrame fill an internal topic."""
        self._feeds[feed.topic] = feed

    def add_connectors(self, sources: Iterable[DeclaredSource], sinks: Iterable[DeclaredSink]) -> None:
        """Let sources fill topics, and sinks read them."""
        self._sources.extend(sources)
        self._sinks.extend(sinks)

    def with_connector_topics(self, application_id: str, prefix: str = "") -> Topology:
        """Return the topology whose nodes name the topics of connectors as they are in the home of topics.

        Parameters
        ----------
        application_id : str
        prefix : str
            The prefix that an engine gives to the names of written topics. Internal topics of sources have it in their
            names; those of sinks get it when they are written.
        """
        internal = (source.topic for source in self._sources if source.is_internal)
        names = {topic: f"{prefix}{application_id}-{topic}" for topic in internal}
        names |= {sink.topic: f"{application_id}-{sink.topic}" for sink in self._sinks}
        if not names:
            return self
        named = copy(self)
        named._nodes = {name: _renamed(node, names) for name, node in self._nodes.items()}
        named._stores = {
            name: replace(store, source_topic=names.get(store.source_topic, store.source_topic))
            if store.source_topic is not None
            else store
            for name, store in self._stores.items()
        }
        named._sources = [replace(source, topic=names.get(source.topic, source.topic)) for source in self._sources]
        named._sinks = [replace(sink, topic=names[sink.topic]) for sink in self._sinks]
        named._copartitioned = [tuple(names.get(topic, topic) for topic in group) for group in self._copartitioned]
        return named

    def copartition(self, topics: Iterable[str]) -> None:
        """Require that these topics have the same number of partitions."""
        self._copartitioned.append(tuple(topics))

    def bound(self, config: Config, registry: Callable[[], SchemaRegistry]) -> Topology:
        """Return the topology for one application, with serdes bound to their topics and the schema registry.

        Engines bind a topology once, before they run it.

        Parameters
        ----------
        config : Config
        registry : callable
            `() -> SchemaRegistry`; called when a serde first needs it.
        """
        internal = (*(topic.name for topic in self.internal_topics), *self._feeds)
        binding = SerdeBinding(config, registry, frozenset(internal))
        bound = copy(self)
        bound._nodes = {name: binding.node(node) for name, node in self._nodes.items()}
        bound._stores = {name: binding.store(store) for name, store in self._stores.items()}
        bound._feeds = {topic: binding.feed(feed) for topic, feed in self._feeds.items()}
        parts = zip(_parts(self), _parts(bound), strict=True)
        return self if all(old is new for old, new in parts) else bound

    # contents

    @property
    def nodes(self) -> Mapping[str, TopologyNode]:
        """All nodes by name, parents before children."""
        return MappingProxyType(self._nodes)

    @property
    def stores(self) -> Mapping[str, StoreBuilder]:
        """The state stores by name."""
        return MappingProxyType(self._stores)

    @property
    def global_stores(self) -> frozenset[str]:
        """Names of the stores that every instance fills from the whole topic."""
        return frozenset(self._global_stores)

    @property
    def sub_topologies(self) -> tuple[SubTopology, ...]:
        """The connected parts, in order of their ids."""
        return split_into_sub_topologies(self._nodes, self._stores, self._global_stores)

    @property
    def repartition_topics(self) -> tuple[InternalTopic, ...]:
        """The internal topics between sub-topologies."""
        return tuple(self._repartition_topics.values())

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """The DataFrames that fill topics."""
        return tuple(self._feeds.values())

    @property
    def connectors(self) -> tuple[Connector, ...]:
        """The sources that fill topics, and the sinks that read them."""
        return (*self._sources, *self._sinks)

    @property
    def connector_sources(self) -> tuple[DeclaredSource, ...]:
        """The sources that fill topics."""
        return tuple(self._sources)

    @property
    def connector_sinks(self) -> tuple[DeclaredSink, ...]:
        """The sinks that read topics."""
        return tuple(self._sinks)

    @property
    def changelog_topics(self) -> tuple[InternalTopic, ...]:
        """The changelogs of all stores that have one; global stores are restored from their source topic."""
        logged = (store for store in self._stores.values() if store.logging and store.name not in self._global_stores)
        return tuple(changelog_topic(store) for store in logged)

    @property
    def internal_topics(self) -> tuple[InternalTopic, ...]:
        """Repartition topics, then changelogs; names are without the `<application.id>-`."""
        return self.repartition_topics + self.changelog_topics

    @property
    def copartition_groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups of topics that must have the same number of partitions."""
        return tuple(self._copartitioned)

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The user's topics that are read: neither repartition topics nor topics that DataFrames fill."""
        read = (topic for node in self._nodes.values() if isinstance(node, SourceNode) for topic in node.topics)
        internal = self._repartition_topics.keys() | self._feeds.keys()
        return tuple(topic for topic in dict.fromkeys(read) if topic not in internal)

    def not_internal(self, topics: Iterable[str]) -> Iterator[str]:
        """Yield the user's topics among `topics`; patterns never match internal topics."""
        return (topic for topic in topics if topic not in self._repartition_topics and topic not in self._feeds)

    def fills_global_store(self, source: SourceNode) -> bool:
        """Return whether a source belongs to a global table or store, which may read any topic."""
        steps = [node for node in self.children(source.name) if isinstance(node, ProcessorNode)]
        return any(self._global_stores.intersection(step.stores) for step in steps)

    def children(self, name: str) -> Iterator[TopologyNode]:
        """Yield the nodes that read a node, in order of declaration."""
        return (node for node in self._nodes.values() if name in parents_of(node))

    def describe(self) -> str:
        """Return the topology as text, word for word as Kafka Streams prints it."""
        return describe(self.sub_topologies)


def _renamed(node: TopologyNode, names: Mapping[str, str]) -> TopologyNode:
    """Return a node with other names of topics."""
    if isinstance(node, SourceNode):
        return replace(node, topics=tuple(names.get(topic, topic) for topic in node.topics))
    if isinstance(node, SinkNode) and isinstance(node.topic, str):
        return replace(node, topic=names.get(node.topic, node.topic))
    return node


def _parts(topology: Topology) -> Iterator[object]:
    """Yield all parts that may hold serdes."""
    return chain(topology._nodes.values(), topology._stores.values(), topology._feeds.values())


def _check(topology: Topology, node: TopologyNode) -> None:
    if not node.name:
        raise TopologyError("an operator needs a name")
    if not isinstance(node, SourceNode) and not node.parents:
        raise TopologyError(f"{node.name!r} reads nothing: name at least one source or processor as its parent")
    for parent in parents_of(node):
        if parent not in topology.nodes or isinstance(topology.nodes[parent], SinkNode):
            raise TopologyError(f"{node.name!r} cannot read {parent!r}: there is no source or processor of that name")
        if _fills_global_store(topology.nodes[parent]):
            raise TopologyError(
                f"{node.name!r} cannot read {parent!r}, which fills a global store and forwards nothing"
            )
    if isinstance(node, SourceNode):
        _check_topics(topology, node)
    if isinstance(node, ProcessorNode):
        _check_stores(topology, node)


def _fills_global_store(node: TopologyNode) -> bool:
    return isinstance(node, ProcessorNode) and node.operator.fills_global_store


def _check_topics(topology: Topology, source: SourceNode) -> None:
    if not source.topics and source.pattern is None:
        raise TopologyError(f"{source.name!r} has no topic to read: name at least one")
    reader = operator_at(source.name, source.declared_at)
    for topic in source.topics:
        if source.topics.count(topic) > 1:
            raise TopologyError(f"{reader} names topic {topic!r} twice: name it once")
    for other in topology.nodes.values():
        if isinstance(other, SourceNode):
            _check_overlap(topology, source, other)


def _check_overlap(topology: Topology, source: SourceNode, other: SourceNode) -> None:
    """Raise if two sources read the same topic. Existing topics show later whether two patterns overlap."""
    reader, former = (operator_at(node.name, node.declared_at) for node in (source, other))
    shared = [topic for topic in source.topics if topic in other.topics]
    if shared:
        raise TopologyError(
            f"{reader} reads topic {shared[0]!r}, which {former} reads already: read it once and use that stream or "
            "table twice"
        )
    named_by_other = () if topology.fills_global_store(other) else topology.not_internal(other.topics)
    matched = [topic for topic in named_by_other if matches(source, topic)]
    matched += [topic for topic in topology.not_internal(source.topics) if matches(other, topic)]
    if matched:
        pattern = source.pattern or other.pattern
        raise TopologyError(
            f"topic {matched[0]!r} is read by {reader} and by {former}: one names it, and the pattern "
            f"{'' if pattern is None else pattern.pattern!r} of the other matches it. Let the pattern leave it out, or "
            "read all topics once and use that stream twice"
        )


def _check_stores(topology: Topology, step: ProcessorNode) -> None:
    for store in step.stores:
        if store not in topology.stores:
            named = operator_at(step.name, step.declared_at)
            raise TopologyError(f"{named} needs the state store {store!r}: add it with add_state_store")


__all__ = ["InternalTopic", "ProcessorNode", "SinkNode", "SourceNode", "SubTopology", "Topology", "TopologyNode"]
