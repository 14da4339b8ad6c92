"""`StreamsBuilder`: declares sources and builds the topology."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, Unpack, overload

from kstreams.config import Config
from kstreams.connectors.api import Source
from kstreams.dsl.frame_sources import FrameSources
from kstreams.dsl.graph import (
    ApplyChanges,
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
from kstreams.dsl.sugar.changed_rows import ChangedRows
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.dsl.tables.global_ktable import GlobalKTable
from kstreams.dsl.tables.ktable import KTable
from kstreams.errors import TopologyError
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.offset_reset import OffsetReset, offset_reset_of
from kstreams.kernel.source_line import declared_at
from kstreams.kernel.timestamps import TimestampExtractor, extractor_of
from kstreams.processor.api.processor import Processor, ProcessorSupplier, check_supplier
from kstreams.processor.topology.connectors import DeclaredSource
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode
from kstreams.processor.topology.topology import Topology
from kstreams.serdes import serde_of
from kstreams.serdes.debezium import Debezium
from kstreams.state.api import StoreBuilder

_ENDINGS = ("-store", "-repartition", "-topic", "-Buffer")


def check_explicit_names(topology: Topology, generated: Collection[str]) -> None:
    """Check that the user named all stores and repartition topics.

    Parameters
    ----------
    topology : Topology
    generated : collection of str
        The generated names.

    Raises
    ------
    TopologyError
        If there are generated names: lists each store and repartition topic with its operator and line.
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
    """The options of every source; see `StreamsBuilder.stream`."""

    timestamp_extractor: TimestampExtractor | None
    name: str | None


class StreamOptions(SourceOptions, total=False):
    """The options of the source of a stream."""

    offset_reset: OffsetReset | None
    idle: Duration | None


class GlobalTableOptions(SourceOptions, total=False):
    """The options of the source of a global table."""

    materialized: str | Materialized | None


class TableOptions(StreamOptions, GlobalTableOptions, total=False):
    """The options of the source of a table."""


class StreamsBuilder(FrameSources, SuggestsNames):
    """Declares streams and tables of topics, and builds the topology. Kafka Streams: `StreamsBuilder`.

    Parameters
    ----------
    config : mapping, optional
        Settings of the topology: `default.key.serde`, `default.value.serde`, `default.timestamp.extractor` and
        `default.dsl.store` ("rocksDB" or "in_memory") are defaults for sources and tables; `topology.optimization`
        names the optimizations.

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
        topics: str | Iterable[str] | re.Pattern[str] | Source,
        *,
        key: Typing = None,
        value: Typing = None,
        **options: Unpack[StreamOptions],
    ) -> KStream[Any, Any]: ...
    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str] | Source,
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset | None = None,
        idle: Duration | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Read the records of one or more topics, of all topics whose names match a pattern, or of a source.

        Kafka Streams: `StreamsBuilder.stream(topics, Consumed)`. Streams of the same topics are read once.

        Parameters
        ----------
        topics : str, iterable of str, re.Pattern or Source
            Topics to read, or one of `ks.sources`: its records are written to a topic once, and read from there.
        key, value : type or Serde
            Types of the keys and values. Default for a source: its own.
        timestamp_extractor : callable, optional
            `(record, partition_time_ms) -> event time`: ms or an aware datetime; a negative time drops the record.
            Or `LogAndSkipOnInvalidTimestamp`, `UsePartitionTimeOnInvalidTimestamp`, `WallclockTimestampExtractor`.
            By default the timestamp of the record; a negative one is an error (`FailOnInvalidTimestamp`).
        offset_reset : {"earliest", "latest", "none"} or timedelta, optional
            Where to start without a committed offset: at the first record, after the last one, nowhere (an error), or
            at the records of this duration before now. Default: `consumer.auto.offset.reset`, else "earliest".
        idle : timedelta or int (ms), optional
            Time without records after which stream time advances with the wall clock, so that results that wait for
            it are emitted: of windows that emit on close, of suppress, of outer joins. -1: never. Default:
            `idle.timeout.ms`, which is off: only event time counts, as in Kafka Streams.
        name : str, optional
            Names the operator.

        Raises
        ------
        TopologyError
            If there is no topic.

        Examples
        --------
        >>> import re
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> orders = builder.stream(["web", "shop"], key=str, value=dict[str, str])
        >>> logs = builder.stream(re.compile("log-.*"), key=bytes, value=str, offset_reset="latest")
        """
        if isinstance(topics, Source):
            key = key or topics.key
            value = value or topics.value
            topics = self._topic_of(topics, name, is_table=False)
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
        self, topic: str, *, key: Declared[K], value: Debezium[V], **options: Unpack[TableOptions]
    ) -> KTable[K, V]: ...
    @overload
    def table(
        self, topic: str, *, key: Declared[K], value: Declared[V], **options: Unpack[TableOptions]
    ) -> KTable[K, V]: ...
    @overload
    def table(
        self, topic: str | Source, *, key: Typing = None, value: Typing = None, **options: Unpack[TableOptions]
    ) -> KTable[Any, Any]: ...
    def table(
        self,
        topic: str | Source,
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset | None = None,
        idle: Duration | None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """Read a topic as the changes of a table: the last value of a key counts, null deletes.

        Kafka Streams: `StreamsBuilder.table(topic, Consumed, Materialized)`. Parameters as for `stream`.

        If `value` is a `ks.Debezium`, the topic has changes of a database table, and the table has its rows.

        Parameters
        ----------
        topic : str or Source
        materialized : str or Materialized, optional
            Names the store; without a name, the table has a store only if an operator looks rows up.

        Examples
        --------
        >>> import kstreams as ks
        >>> names = ks.StreamsBuilder().table("names", key=int, value=str, materialized="names")
        """
        if isinstance(topic, Source):
            key = key or topic.key
            value = value or topic.value
            topic = self._topic_of(topic, name, is_table=True)
        check_topic(topic, "table()")
        if isinstance(value, Debezium):
            source = name if name is None else f"{name}-source"
            changes = self.stream(
                topic,
                key=key,
                value=value,
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
                idle=idle,
                name=source,
            )
            return self._table_of_changes(changes, key, value, materialized, name)
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
        """Read a topic into a table of which every instance holds all rows, for lookups by any key.

        Kafka Streams: `StreamsBuilder.globalTable(topic, Consumed, Materialized)`. Parameters as for `table`.

        Raises
        ------
        TopologyError
            If `materialized` sets a history retention, or settings of a changelog.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> countries = builder.global_table("countries", key=str, value=str)
        >>> visits = builder.stream("visits", key=str, value=str)
        >>> named = visits.join(countries, lambda code, name: name, key_selector=lambda user, code: code)
        """
        check_topic(topic, "global_table()")
        if isinstance(value, Debezium):
            raise TopologyError(
                f"the global table of {topic!r} at {declared_at()} cannot have changes of Debezium: write the rows "
                "of a table() to a topic, and read that topic as a global table"
            )
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
            If `builder` is no StoreBuilder; `Stores` returns them.

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
        """Fill a store in every instance from all partitions of a topic; every processor can read it.

        Kafka Streams: `StreamsBuilder.addGlobalStore`. The processor takes every record, also those before the start;
        it can neither forward nor schedule. The store has no changelog.

        Parameters
        ----------
        store : StoreBuilder
        topic : str
        supplier : callable
            Returns the processor that updates the store: a class or a function.
        key, value : type or Serde
            Types of the records of the topic.
        timestamp_extractor : callable, optional
            `(record, partition_time_ms) -> event time`: ms or an aware datetime.
        name : str, optional
            Names the processor.

        Raises
        ------
        TopologyError
            If the supplier does not return a new processor at each call.

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
        """Build the topology of all declared operators. Kafka Streams: `build(Properties)`.

        Parameters
        ----------
        config : mapping, optional
            Settings such as `topology.optimization`; they override those of the builder.

        Raises
        ------
        TopologyError
            If sources overlap, or a type is unknown that is needed for bytes: names the operator and your line. If
            `ensure.explicit.internal.resource.naming` is set and a store or topic has a generated name.
        """
        settings = self.config.replace(config)
        graph = merge_sources(source_defaults(self._graph.graph(), settings))
        optimization = settings["topology.optimization"]
        self._graph.check_names(merges=optimization == "all" or "merge.repartition.topics" in optimization.split(","))
        graph = optimize(graph, optimization)
        in_memory = settings["default.dsl.store"] == "in_memory"
        default_store = "memory" if in_memory else "rocksdb"
        topology = topology_of(graph, self._graph.stores, self._graph.feeds, default_store=default_store)
        topology.add_connectors(self._graph.sources, self._graph.sinks)
        if settings["ensure.explicit.internal.resource.naming"]:
            check_explicit_names(topology, self._graph.names.generated)
        return topology

    def _table_of_changes(
        self,
        changes: KStream[Any, Any],
        key: Typing,
        serde: Debezium[Any],
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        """Return the table of the rows that changes of a database describe."""
        if key is None or serde.row_type is Any:
            raise TopologyError(
                f"the table of changes at {declared_at()} must know the types of its keys and rows: write them, as in "
                'key=ks.ConnectJson(int, field="id"), value=ks.Debezium(Order)'
            )
        operator = self._graph.names.given_or_next(None if name is None else f"{name}-changes", "KSTREAM-CHANGES-")
        supplier = ChangedRows(
            f"{operator}-store",
            key=serde_of(key),
            row=serde_of(serde.row_type),
            delete_retention_ms=serde.delete_retention_ms,
            truncates=serde.truncate == "delete",
            replaces=serde.snapshot == "replace",
            home="memory" if Materialized.of(materialized).store == "memory" else "rocksdb",
        )
        node = ApplyChanges(supplier=supplier, value=serde.row_type)
        rows = self._graph.stream(self._graph.add(node, operator, (changes._node.name,)))
        return rows.to_table(materialized=materialized, name=name)

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

    def _topic_of(self, source: Source, name: str | None, *, is_table: bool) -> str:
        """Declare a source, and return the topic that it fills."""
        connector = self._graph.names.given_or_next(None if name is None else f"{name}-feed", "KSTREAM-FEED-")
        declared = DeclaredSource(connector, declared_at(), source.topic or connector, source, is_table)
        self._graph.sources.append(declared)
        return declared.topic

    def _table_names(self, topic: str, materialization: Materialized, name: str | None) -> tuple[str, str, str]:
        store = materialization.name or self._graph.names.next(f"{topic}-STATE-STORE-")
        return store, *self._source_names(name)

    def _source_names(self, name: str | None) -> tuple[str, str]:
        names = self._graph.names
        source = names.given_or_next(None if name is None else f"{validate_name(name)}-source", "KSTREAM-SOURCE-")
        return source, names.given_or_next(name, "KTABLE-SOURCE-")
