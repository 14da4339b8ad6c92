"""`StreamsBuilder`: where a topology begins, and where it is built."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from kstreams.dsl import rules  # noqa: F401 (fills the rule book)
from kstreams.dsl.analysis.repartitioning import repartition_required
from kstreams.dsl.global_ktable import GlobalKTable
from kstreams.dsl.graph import (
    Consumed,
    GlobalTableSource,
    LogicalGraph,
    Node,
    StreamSource,
    TableSource,
    TimestampExtractor,
    Typing,
    declare,
)
from kstreams.dsl.handle import N
from kstreams.dsl.kstream import KStream
from kstreams.dsl.ktable import KTable
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import Names, validate_name
from kstreams.dsl.passes import PASSES
from kstreams.dsl.source_line import declared_at
from kstreams.errors import TopologyError
from kstreams.processor.topology import Topology
from kstreams.state.api import StoreBuilder

logger = logging.getLogger(__name__)

OffsetReset: TypeAlias = Literal["earliest", "latest", "none"] | None


class GraphBuilder:
    """The graph in the making: nodes in order of declaration, and the counter of names."""

    def __init__(self) -> None:
        self.names = Names()
        self.stores: list[StoreBuilder] = []
        self._nodes: dict[str, Node] = {}

    def add(self, node: N, name: str, parents: tuple[str, ...] = ()) -> N:
        """Give a node its place; the user's line is that of the call that led here."""
        line = declared_at()
        if name in self._nodes:
            taken = self._nodes[name]
            raise TopologyError(f"{name!r} at {line} is already the name of {taken}: give one of them another name=")
        self._nodes[name] = declare(node, name, parents, line)
        return self._nodes[name]  # type: ignore[return-value]  # what was put in comes out

    def find(self, name: str) -> Node | None:
        """The operator of a name, if there is one."""
        return self._nodes.get(name)

    def repartition_required(self, node: Node) -> bool:
        """Whether the output of a node must be repartitioned before it is grouped or joined."""
        return repartition_required(self._nodes, node)

    def graph(self) -> LogicalGraph:
        """What the user said so far."""
        return LogicalGraph(self._nodes.values())


class StreamsBuilder:
    """Declares streams and tables of topics, and builds the topology. Kafka Streams: `StreamsBuilder`.

    Parameters
    ----------
    config : mapping, optional
        Settings that shape the topology: `default.key.serde`, `default.value.serde`, `default.timestamp.extractor`
        and `default.dsl.store` ("rocksDB" or "in_memory") stand in where a source or table says nothing.

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
        self.config = dict(config or {})
        self._graph = GraphBuilder()

    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset = None,
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
            `(record, partition_time_ms) -> event time in ms`; a negative time drops the record.
        offset_reset : {"earliest", "latest", "none"}, optional
            Where to start without a committed offset.
        name : str, optional
            Names the operator.

        Raises
        ------
        TopologyError
            When no topic is given.
        """
        pattern = topics if isinstance(topics, re.Pattern) else None
        names = () if isinstance(topics, re.Pattern) else (topics,) if isinstance(topics, str) else tuple(topics)
        if not names and pattern is None:
            raise TopologyError(f"stream() at {declared_at()} was given no topic to read: name at least one")
        consumed = self._consumed(key, value, timestamp_extractor, offset_reset)
        node = StreamSource(topics=names, pattern=pattern, consumed=consumed)
        return KStream(self._graph, self._graph.add(node, self._graph.names.given_or_next(name, "KSTREAM-SOURCE-")))

    def table(
        self,
        topic: str,
        *,
        key: Typing = None,
        value: Typing = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: OffsetReset = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """A topic read as the changes of a table: the last value of a key counts, null deletes.

        Kafka Streams: `StreamsBuilder.table(topic, Consumed, Materialized)`. Parameters as for `stream`.

        Parameters
        ----------
        materialized : str or Materialized, optional
            Names the store; without it there is one only if something looks into the table.
        """
        consumed = self._consumed(key, value, timestamp_extractor, offset_reset)
        kept = Materialized.of(materialized)
        store, source, table = self._table_names(topic, kept, name)
        node = TableSource(topic=topic, source=source, store=store, consumed=consumed, materialized=kept)
        return KTable(self._graph, self._graph.add(node, table))

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
        """
        kept = Materialized.of(materialized)
        if kept.history_retention_ms is not None:
            raise TopologyError(f"the global table of {topic!r} at {declared_at()} cannot be versioned: read a table()")
        store, source, table = self._table_names(topic, kept, name)
        consumed = self._consumed(key, value, timestamp_extractor)
        node = GlobalTableSource(topic=topic, source=source, store=store, consumed=consumed, materialized=kept)
        return GlobalKTable(self._graph, self._graph.add(node, table))

    def add_state_store(self, builder: StoreBuilder) -> StreamsBuilder:
        """Add a store for processors to connect to. Kafka Streams: `StreamsBuilder.addStateStore`."""
        self._graph.stores.append(builder)
        return self

    def build(self) -> Topology:
        """The topology of all that was declared.

        Raises
        ------
        TopologyError
            When sources overlap, or a type is unknown where bytes are needed: names the operator and your line.
        """
        graph = self._graph.graph()
        if self.config.get("topology.optimization", "none") != "none":
            logger.warning("topology.optimization is not applied yet: the topology is built as it was declared")
        for apply in PASSES:
            graph = apply(graph)
        in_memory = self.config.get("default.dsl.store") == "in_memory"
        return Lowering(graph, self._graph.stores, default_store="memory" if in_memory else "rocksdb").run()

    def _consumed(
        self, key: Typing, value: Typing, extractor: TimestampExtractor | None, offset_reset: OffsetReset = None
    ) -> Consumed:
        default = self.config.get
        return Consumed(
            default("default.key.serde") if key is None else key,
            default("default.value.serde") if value is None else value,
            default("default.timestamp.extractor") if extractor is None else extractor,
            offset_reset,
        )

    def _table_names(self, topic: str, kept: Materialized, name: str | None) -> tuple[str, str, str]:
        names = self._graph.names
        store = kept.name or names.next(f"{topic}-STATE-STORE-")
        source = names.given_or_next(None if name is None else f"{validate_name(name)}-source", "KSTREAM-SOURCE-")
        return store, source, names.given_or_next(name, "KTABLE-SOURCE-")
