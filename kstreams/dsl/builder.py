"""`StreamsBuilder`: where a topology begins, and where it is built."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, Unpack, overload

from kstreams.config import Config
from kstreams.dsl.frame_sources import FrameSources
from kstreams.dsl.graph import (
    Consumed,
    Declared,
    GlobalStore,
    GlobalTableSource,
    StreamSource,
    TableSource,
    Typing,
)
from kstreams.dsl.graph_builder import GraphBuilder, HandleTypes
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import check_topic, validate_name
from kstreams.dsl.operator import operators
from kstreams.dsl.passes import merge_sources, optimize, source_defaults
from kstreams.dsl.rules import topology_of
from kstreams.dsl.streams.kstream import KStream
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.dsl.tables.global_ktable import GlobalKTable
from kstreams.dsl.tables.ktable import KTable
from kstreams.errors import TopologyError
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.offset_reset import OffsetReset, offset_reset_of
from kstreams.kernel.source_line import declared_at
from kstreams.kernel.timestamps import TimestampExtractor, extractor_of
from kstreams.processor.api.processor import Processor, ProcessorSupplier, check_supplier
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode
from kstreams.processor.topology.topology import Topology
from kstreams.state.api import StoreBuilder

_ENDINGS = ("-store", "-repartition", "-topic", "-Buffer")


def check_explicit_names(topology: Topology, generated: Collection[str]) -> None:
    """Check that the user named everything that outlives a run.

    Parameters
    ----------
    topology : Topology
    generated : collection of str
        The names that were made up.

    Raises
    ------
    TopologyError
        Lists every store and repartition topic without a name, its operator and the line to name it at.
    """
    unnamed = [*_unnamed_stores(topology, generated), *_unnamed_topics(topology, generated)]
    if unnamed:
        listed = "\n".join(f"  {line}" for line in unnamed)
        raise TopologyError(
            "ensure.explicit.internal.resource.naming is set, but these have generated names, which change with the "
            f"topology:\n{listed}"
        )


def _unnamed_stores(topology: Topology, generated: Collection[str]) -> Iterator[str]:
    for store in topology.stores:
        if _is_generated(store, generated):
            owner = next(
                node for node in topology.nodes.values() if isinstance(node, ProcessorNode) and store in node.stores
            )
            operator = topology.graph[topology.origin[owner.name]]
            yield f"state store {store} of {operator}: give {operators.of(operator).store_named_by}"


def _unnamed_topics(topology: Topology, generated: Collection[str]) -> Iterator[str]:
    for topic in (topic.name for topic in topology.repartition_topics):
        if _is_generated(topic, generated):
            sinks = (node for node in topology.nodes.values() if isinstance(node, SinkNode) and node.topic == topic)
            operator = topology.graph[topology.origin[next(sinks).name]]
            yield f"repartition topic {topic} of {operator}: give name= to the grouping, join or repartition"


def _is_generated(name: str, generated: Collection[str]) -> bool:
    return name in generated or any(name.removesuffix(ending) in generated for ending in _ENDINGS)


K = TypeVar("K")
V = TypeVar("V")


class SourceOptions(TypedDict, total=False):
    """Options of every source; see `StreamsBuilder.stream`."""

    timestamp_extractor: TimestampExtractor | None
    name: str | None


class StreamOptions(SourceOptions, total=False):
    """Further options of the source of a stream."""

    offset_reset: OffsetReset | None
    idle: Duration | None


class GlobalTableOptions(SourceOptions, total=False):
    """Further options of the source of a global table."""

    materialized: str | Materialized | None


class TableOptions(StreamOptions, GlobalTableOptions, total=False):
    """Options of the source of a table."""


class StreamsBuilder(FrameSources, SuggestsNames):
    """Declares streams and tables of topics, and builds the topology. Kafka Streams: `StreamsBuilder`.

    Parameters
    ----------
    config : mapping, optional
        Settings that shape the topology: `default.key.serde`, `default.value.serde`, `default.timestamp.extractor`
        and `default.dsl.store` ("rocksDB" or "in_memory") stand in where a source or table says nothing;
        `topology.optimization` names what may be rewritten.

    Examples
    --------
    >>> builder = StreamsBuilder()
    >>> builder.stream("words", key=str, value=str).map_values(str.upper, value=str).to("shouts")
    >>> print(builder.build().describe().rstrip())
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [words])
          --> KSTREAM-MAPVALUES-0000000001
        Processor: KSTREAM-MAPVALUES-0000000001 (stores: [])
          --> KSTREAM-SINK-0000000002
          <-- KSTREAM-SOURCE-0000000000
        Sink: KSTREAM-SINK-0000000002 (topic: shouts)
          <-- KSTREAM-MAPVALUES-0000000001
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = Config.of(config)
        self._graph = GraphBuilder(HandleTypes(KStream, KTable))

    @overload
    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: Declared[K],
        value: Declared[V],
        **options: Unpack[StreamOptions],
    ) -> KStream[K, V]: ...
    @overload
    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: Typing = None,
        value: Typing = None,
        **options: Unpack[StreamOptions],
    ) -> KStream[Any, Any]: ...
    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset | None = None,
        idle: Duration | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """The records of one topic, several, or all whose names match a pattern.

        Kafka Streams: `StreamsBuilder.stream(topics, Consumed)`. Streams of the same topics are read once.

        Parameters
        ----------
        topics : str, iterable of str, or re.Pattern
            What to read.
        key, value : type or Serde
            How bytes become objects.
        timestamp_extractor : callable, optional
            `(record, partition_time_ms) -> event time`: ms or an aware datetime; a negative time drops the record.
            Or `LogAndSkipOnInvalidTimestamp`, `UsePartitionTimeOnInvalidTimestamp`, `WallclockTimestampExtractor`.
            By default the record's own time, where a negative one is an error (`FailOnInvalidTimestamp`).
        offset_reset : {"earliest", "latest", "none"} or timedelta, optional
            Where to start without a committed offset: at the first record, behind the last, nowhere (an error), or as
            far back from now as the duration says. Default: `consumer.auto.offset.reset`, else "earliest".
        idle : timedelta or int (ms), optional
            After how long without records its stream time goes on with the wall clock, so that what waits for it comes
            out: windows that emit on close, suppressed updates, rows of outer joins. -1: never. Default:
            `idle.timeout.ms`, by which event time alone decides, as in Kafka Streams.
        name : str, optional
            Names the operator.

        Raises
        ------
        TopologyError
            When no topic is given.

        Examples
        --------
        >>> import re
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> orders = builder.stream(["web", "shop"], key=str, value=dict[str, str])
        >>> logs = builder.stream(re.compile("log-.*"), key=bytes, value=str, offset_reset="latest")
        """
        if not isinstance(topics, str | re.Pattern | Iterable):
            raise TopologyError(f"stream() at {declared_at()} reads a topic, several or a pattern, not {topics!r}")
        pattern = topics if isinstance(topics, re.Pattern) else None
        named = () if isinstance(topics, re.Pattern) else (topics,) if isinstance(topics, str) else topics
        names = tuple(dict.fromkeys(named))
        for topic in names:
            check_topic(topic, "stream()")
        if not names and pattern is None:
            raise TopologyError(f"stream() at {declared_at()} was given no topic to read: name at least one")
        consumed = self._consumed(key, value, timestamp_extractor, offset_reset, idle)
        node = StreamSource(topics=names, pattern=pattern, consumed=consumed)
        return KStream(self._graph, self._graph.add(node, self._graph.names.given_or_next(name, "KSTREAM-SOURCE-")))

    @overload
    def table(
        self, topic: str, *, key: Declared[K], value: Declared[V], **options: Unpack[TableOptions]
    ) -> KTable[K, V]: ...
    @overload
    def table(
        self, topic: str, *, key: Typing = None, value: Typing = None, **options: Unpack[TableOptions]
    ) -> KTable[Any, Any]: ...
    def table(
        self,
        topic: str,
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset | None = None,
        idle: Duration | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """A topic read as the changes of a table: the last value of a key counts, null deletes.

        Kafka Streams: `StreamsBuilder.table(topic, Consumed, Materialized)`. Parameters as for `stream`.

        Parameters
        ----------
        materialized : str or Materialized, optional
            Names the store; without it there is one only if something looks into the table.

        Examples
        --------
        >>> import kstreams as ks
        >>> names = ks.StreamsBuilder().table("names", key=int, value=str, materialized="names")
        """
        check_topic(topic, "table()")
        consumed = self._consumed(key, value, timestamp_extractor, offset_reset, idle)
        materialization = Materialized.of(materialized, history=True)
        store, source, table = self._table_names(topic, materialization, name)
        node = TableSource(topic=topic, source=source, store=store, consumed=consumed, materialized=materialization)
        return KTable(self._graph, self._graph.add(node, table))

    @overload
    def global_table(
        self, topic: str, *, key: Declared[K], value: Declared[V], **options: Unpack[GlobalTableOptions]
    ) -> GlobalKTable[K, V]: ...
    @overload
    def global_table(
        self, topic: str, *, key: Typing = None, value: Typing = None, **options: Unpack[GlobalTableOptions]
    ) -> GlobalKTable[Any, Any]: ...
    def global_table(
        self,
        topic: str,
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> GlobalKTable[Any, Any]:
        """A topic that every instance reads completely before it starts, for lookups by any key.

        Kafka Streams: `StreamsBuilder.globalTable(topic, Consumed, Materialized)`. Parameters as for `table`.

        Raises
        ------
        TopologyError
            When a versioned store is asked for.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> countries = builder.global_table("countries", key=str, value=str)
        >>> visits = builder.stream("visits", key=str, value=str)
        >>> named = visits.join(countries, lambda code, name: name, key_selector=lambda user, code: code)
        """
        check_topic(topic, "global_table()")
        materialization = Materialized.of(materialized, history=True)
        if materialization.history_retention_ms is not None:
            raise TopologyError(f"the global table of {topic!r} at {declared_at()} cannot be versioned: read a table()")
        if materialization.changelog_config:
            raise TopologyError(
                f"the global table of {topic!r} at {declared_at()} has no changelog that logging= could give settings: "
                f"it is filled from {topic!r} itself"
            )
        store, source, table = self._table_names(topic, materialization, name)
        consumed = self._consumed(key, value, timestamp_extractor)
        node = GlobalTableSource(
            topic=topic, source=source, store=store, consumed=consumed, materialized=materialization
        )
        return GlobalKTable(self._graph, self._graph.add(node, table))

    def add_state_store(self, builder: StoreBuilder) -> StreamsBuilder:
        """Add a store for processors to connect to. Kafka Streams: `StreamsBuilder.addStateStore`.

        Raises
        ------
        TopologyError
            When it is none: `Stores` makes them.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder().add_state_store(ks.Stores.key_value("seen", key=str, value=int))
        """
        if not isinstance(builder, StoreBuilder):
            raise TopologyError(f"add_state_store() at {declared_at()} takes what Stores makes, not {builder!r}")
        self._graph.stores.append(builder)
        return self

    def add_global_store(
        self,
        store: StoreBuilder,
        topic: str,
        supplier: ProcessorSupplier,
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: str | None = None,
    ) -> StreamsBuilder:
        """Fill a store in every instance from all partitions of a topic; every processor may read it.

        Kafka Streams: `StreamsBuilder.addGlobalStore`. Every record goes through the processor, those that were there
        before the start too; it can neither forward nor schedule. The store needs no changelog, and gets none.

        Parameters
        ----------
        store : StoreBuilder
        topic : str
        supplier : callable
            Makes the processor that keeps the store: its class, or a function.
        key, value : type or Serde
            Of the topic's records.
        timestamp_extractor : callable, optional
            `(record, partition_time_ms) -> event time`: ms or an aware datetime.
        name : str, optional
            Names the processor.

        Raises
        ------
        TopologyError
            When the supplier makes no processors, or the same one twice.

        Examples
        --------
        >>> from kstreams import Processor, Stores
        >>> class Keep(Processor):
        ...     def init(self, context):
        ...         self.names = context.get_state_store("names")
        ...
        ...     def process(self, record):
        ...         self.names.put(record.key, record.value)
        >>> names = Stores.key_value("names", key=str, value=str)
        >>> builder = StreamsBuilder().add_global_store(names, "names", Keep, key=str, value=str)
        """
        check_supplier(supplier, Processor, f"add_global_store() at {declared_at()}")
        source, processor = self._source_names(name)
        consumed = self._consumed(key, value, timestamp_extractor)
        unlogged = replace(store, logging=False, changelog_config={})
        node = GlobalStore(store=unlogged, topic=topic, source=source, supplier=supplier, consumed=consumed)
        self._graph.add(node, processor)
        return self

    def build(self, config: Mapping[str, Any] | None = None) -> Topology:
        """The topology of all that was declared. Kafka Streams: `build(Properties)`.

        Parameters
        ----------
        config : mapping, optional
            Settings beside those of the builder, such as `topology.optimization`; where both say something, these win.

        Raises
        ------
        TopologyError
            When sources overlap, or a type is unknown where bytes are needed: names the operator and your line.
            When `ensure.explicit.internal.resource.naming` is set and something has a generated name.
        """
        settings = self.config.replace(config)
        graph = merge_sources(source_defaults(self._graph.graph(), settings))
        optimization = settings["topology.optimization"]
        self._graph.check_names(merges=optimization == "all" or "merge.repartition.topics" in optimization.split(","))
        graph = optimize(graph, optimization)
        in_memory = settings["default.dsl.store"] == "in_memory"
        kept_in = "memory" if in_memory else "rocksdb"
        topology = topology_of(graph, self._graph.stores, self._graph.feeds, default_store=kept_in)
        if settings["ensure.explicit.internal.resource.naming"]:
            check_explicit_names(topology, self._graph.names.generated)
        return topology

    def _consumed(
        self,
        key: Typing,
        value: Typing,
        extractor: TimestampExtractor | None,
        offset_reset: OffsetReset | None = None,
        idle: Duration | None = None,
    ) -> Consumed:
        idle_ms = None if idle is None else to_ms(idle)
        if idle_ms is not None and idle_ms < -1:
            raise TopologyError(f"the source at {declared_at()} cannot be idle after {idle_ms} ms; -1 stands for never")
        return Consumed(key, value, extractor_of(extractor), offset_reset_of(offset_reset), idle_ms)

    def _table_names(self, topic: str, materialization: Materialized, name: str | None) -> tuple[str, str, str]:
        store = materialization.name or self._graph.names.next(f"{topic}-STATE-STORE-")
        return store, *self._source_names(name)

    def _source_names(self, name: str | None) -> tuple[str, str]:
        names = self._graph.names
        source = names.given_or_next(None if name is None else f"{validate_name(name)}-source", "KSTREAM-SOURCE-")
        return source, names.given_or_next(name, "KTABLE-SOURCE-")
