"""`KStream`: a stream of records, each standing for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar, overload

from kstreams.dsl.aggregation.grouped import KGroupedStream
from kstreams.dsl.graph import (
    Branch,
    Declared,
    Grouped,
    Merge,
    Node,
    Print,
    Process,
    ProcessValues,
    SelectKey,
    Split,
    To,
    ToTable,
    Typing,
    calls_of,
    taking,
)
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import check_topic
from kstreams.dsl.operator import operators
from kstreams.dsl.streams.branched import BranchedKStream
from kstreams.dsl.streams.stream_filters import StreamFilters
from kstreams.dsl.streams.stream_frames import StreamFrames
from kstreams.dsl.streams.stream_headers import StreamHeaders
from kstreams.dsl.streams.stream_joins import StreamJoins
from kstreams.dsl.streams.stream_keys import StreamKeys
from kstreams.dsl.streams.stream_sugar import StreamSugar
from kstreams.dsl.streams.stream_values import StreamValues
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at
from kstreams.processor.api.contexts import RecordContext
from kstreams.processor.api.processor import FixedKeyProcessor, Processor, check_supplier, store_names
from kstreams.record import RecordWithMetadata

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class KStream(
    StreamFilters[K, V],
    StreamKeys[K, V],
    StreamValues[K, V],
    StreamHeaders[K, V],
    StreamJoins[K, V],
    StreamSugar[K, V],
    StreamFrames[K, V],
):
    """A stream of records. Every operator gives a new stream; nothing runs before the topology is started.

    Kafka Streams: `KStream`. Wherever a function is taken, an expression may stand (`ks.value + 1`). Functions
    may be `async def`: see `map_values`.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> lines = builder.stream("lines", key=str, value=str)
    >>> words = lines.flat_map_values(str.split, value=str).filter(lambda key, word: len(word) > 3)
    >>> words.group_by(lambda key, word: word, key=str).count("counts").to_stream().to("word-counts")
    """

    __slots__ = ()

    def print(
        self,
        *,
        label: str | None = None,
        mapper: Callable[[K, V], Any] | None = None,
        file: str | Path | TextIO | None = None,
        name: str | None = None,
    ) -> None:
        """Print each record as `[label]: key, value`. Kafka Streams: `print(Printed)`.

        Parameters
        ----------
        label : str, optional
            The name of this stream's operator by default.
        mapper : callable, optional
            `(key, value) -> what to print` behind the label.
        file : path or text file, optional
            Where lines are appended; standard output by default.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> words = StreamsBuilder().stream("words", key=str, value=str)
        >>> words.print(label="words", mapper=lambda key, word: word.upper(), file="words.txt")
        """
        self._then(Print(label=label or self._node.name, mapper=mapper, file=file), "KSTREAM-PRINTER-", name)

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """The records of both streams, in no order between them. Kafka Streams: `merge`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> web, app = (builder.stream(topic, key=str, value=str) for topic in ("web", "app"))
        >>> clicks = web.merge(app)
        """
        self._meets(other, "merge", KStream)
        return KStream(self._graph, self._then(Merge(), "KSTREAM-MERGE-", name, other))

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Send each record to one of several branches. Kafka Streams: `split(Named)`.

        Parameters
        ----------
        name : str, optional
            In front of the branches' names.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> loud_and_calm = words.split(name="is-").branch(lambda key, word: word.isupper(), name="loud")
        >>> branches = loud_and_calm.default_branch(name="calm")
        >>> branches["is-loud"].to("shouts")
        """
        return BranchedKStream(self, self._graph.names.given_or_next(name, "KSTREAM-BRANCH-"))

    def repartition(
        self,
        *,
        key: Typing = None,
        value: Typing = None,
        partitions: int | None = None,
        partitioner: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """The same records after a trip through an internal topic. Kafka Streams: `repartition(Repartitioned)`.

        Parameters
        ----------
        key, value : type or Serde, optional
            Where they are not known.
        partitions : int, optional
            How many the topic must have; as many as what comes in by default.
        partitioner : callable, optional
            `(topic, key, value, num_partitions) -> partition`; murmur2 of the key by default.
        name : str, optional
            Names the topic: `<application.id>-<name>-repartition`.

        Raises
        ------
        TopologyError
            When there is to be no partition.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str)
        >>> by_page = clicks.select_key(lambda user, page: page, key=str).repartition(partitions=8, name="by-page")
        """
        if partitions is not None and partitions < 1:
            raise TopologyError(f"repartition() at {declared_at()} needs at least 1 partition, not {partitions}")
        prefix = self._graph.names.next("KSTREAM-REPARTITION-") if name is None else name
        settings = {"explicit": True, "partitions": partitions, "partitioner": partitioner}
        return KStream(self._graph, self._repartitioned(prefix, Grouped(key=key, value=value), **settings))

    def to(
        self,
        topic: str | Callable[[K, V, RecordContext], str] | Expr[str],
        *,
        key: Typing = None,
        value: Typing = None,
        partitioner: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Write to a topic. Kafka Streams: `to(topic, Produced)`.

        Parameters
        ----------
        topic : str, callable or expression
            Its name, or `(key, value, RecordContext) -> name`; the topics must exist.
        key, value : type or Serde, optional
            Where they are not known.
        partitioner : callable, optional
            `(topic, key, value, num_partitions) -> partition`; murmur2 of the key by default.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.to("all-words")
        >>> words.to(lambda key, word, record: f"words-of-{record.topic}")
        """
        if isinstance(topic, str):
            check_topic(topic, "to()")
        node = To(topic=topic, key=key, value=value, partitioner=partitioner)
        self._then(node, "KSTREAM-SINK-", name)

    def to_table(
        self,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """The stream read as the changes of a table: null deletes. Kafka Streams: `toTable`.

        Examples
        --------
        >>> import kstreams as ks
        >>> cities = ks.StreamsBuilder().stream("moves", key=str, value=str).to_table(materialized="city-of-user")
        """
        names = self._graph.names
        materialization = Materialized.of(materialized, history=True)
        table = names.given_or_next(name, "KSTREAM-TOTABLE-")
        store = materialization.name or names.next("KSTREAM-TOTABLE-STATE-STORE-")
        parent = self._placed(table, Grouped(key=key, value=value))
        node = ToTable(store=store, key=key, value=value, materialized=materialization)
        return self._graph.table(self._graph.add(node, table, (parent.name,)))

    def group_by_key(
        self, *, key: Typing = None, value: Typing = None, name: str | None = None
    ) -> KGroupedStream[K, V]:
        """Group by the key as it is; repartitions only if the key was changed. Kafka Streams: `groupByKey(Grouped)`.

        Parameters
        ----------
        key, value : type or Serde, optional
            Where they are not known.
        name : str, optional
            Names the repartition topic, if there is one.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words_per_key = words.group_by_key().count()
        """
        return KGroupedStream(self._graph, self._node, Grouped(key=key, value=value), name)

    @overload
    def group_by(
        self,
        selector: Callable[[K, V], Any] | Expr,
        *,
        key: Declared[K2],
        value: Typing = None,
        name: str | None = None,
    ) -> KGroupedStream[K2, V]: ...
    @overload
    def group_by(
        self,
        selector: Callable[[K, V], K2] | Expr[K2],
        *,
        key: None = None,
        value: Typing = None,
        name: str | None = None,
    ) -> KGroupedStream[K2, V]: ...
    @overload
    def group_by(
        self,
        selector: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        key: Declared[K2],
        value: Typing = None,
        name: str | None = None,
    ) -> KGroupedStream[K2, V]: ...
    @overload
    def group_by(
        self,
        selector: Callable[[RecordWithMetadata[K, V]], K2],
        *,
        with_record: Literal[True],
        key: None = None,
        value: Typing = None,
        name: str | None = None,
    ) -> KGroupedStream[K2, V]: ...
    def group_by(
        self,
        selector: Callable[..., Any] | Expr,
        *,
        with_record: bool = False,
        key: Typing = None,
        value: Typing = None,
        name: str | None = None,
    ) -> KGroupedStream[Any, V]:
        """Group by a new key, `selector(key, value)`; repartitions. Kafka Streams: `groupBy(selector, Grouped)`.

        Parameters as for `group_by_key`; `name` names the operator as well. With `with_record=True` the selector takes
        the whole record.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> counts = words.group_by(lambda key, word: word, key=str).count()
        >>> the_same = words.group_by(ks.value).count()
        """
        function = taking(selector, with_record=with_record)
        selected = self._then(
            SelectKey(function=function, key=key, calls=calls_of(selector)), "KSTREAM-KEY-SELECT-", name
        )
        return KGroupedStream(self._graph, selected, Grouped(key=key, value=value), name)

    def process(
        self,
        supplier: Callable[[], Processor[K, V, K2, V2]],
        *,
        stores: Iterable[str] = (),
        key: Typing = None,
        value: Typing = None,
        name: str | None = None,
    ) -> KStream[K2, V2]:
        """What a processor of your own forwards. Kafka Streams: `process`.

        Parameters
        ----------
        supplier : callable
            Makes the processor, a new one at each call: its class, or a function.
        stores : iterable of str
            Names of the state stores it uses, added by `StreamsBuilder.add_state_store`; those that the supplier
            brings along need not be named.
        key, value : type or Serde, optional
            Of what it forwards.

        Raises
        ------
        TopologyError
            When the supplier makes no processors, or the same one twice.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> class Twice(Processor):
        ...     def init(self, context):
        ...         self.context = context
        ...
        ...     def process(self, record):
        ...         self.context.forward(record)
        ...         self.context.forward(record)
        >>> words = StreamsBuilder().stream("words", key=str, value=str).process(Twice, key=str, value=str)
        """
        place = f"process() at {declared_at()}"
        check_supplier(supplier, Processor, place)
        node = Process(supplier=supplier, stores=store_names(stores, place), key=key, value=value)
        return KStream(self._graph, self._then(node, "KSTREAM-PROCESSOR-", name))

    def process_values(
        self,
        supplier: Callable[[], FixedKeyProcessor[K, V, V2]],
        *,
        stores: Iterable[str] = (),
        value: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V2]:
        """What a processor of your own forwards, each record under the key it came with.

        Kafka Streams: `processValues`. Parameters as for `process`; behind it nothing needs to be repartitioned.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> class Length(FixedKeyProcessor):
        ...     def init(self, context):
        ...         self.context = context
        ...
        ...     def process(self, record):
        ...         self.context.forward(record.with_value(len(record.value)))
        >>> lengths = StreamsBuilder().stream("words", key=str, value=str).process_values(Length, value=int)
        """
        place = f"process_values() at {declared_at()}"
        check_supplier(supplier, FixedKeyProcessor, place)
        node = ProcessValues(supplier=supplier, stores=store_names(stores, place), value=value)
        return KStream(self._graph, self._then(node, "KSTREAM-PROCESSVALUES-", name))

    def apply(self, operator: Node, *, name: str | None = None) -> KStream[Any, Any]:
        """What an operator of your own makes of the records: see `kstreams.dsl.operator.register`.

        Parameters
        ----------
        operator : Node
            What you say of it. Its type rule gives the types of the new stream.
        name : str, optional
            Names the operator; `KSTREAM-<TYPE OF NODE>-<number>` by default.

        Raises
        ------
        UnsupportedError
            When the type of node is not registered.
        TypeError
            When it is no node.

        Examples
        --------
        >>> import kstreams as ks
        >>> from kstreams.dsl.graph import Peek
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> seen = words.apply(Peek(function=print), name="seen")
        """
        if not isinstance(operator, Node):
            raise TypeError(f"apply() at {declared_at()} takes a node that was registered, not {operator!r}")
        operators.of(operator)
        return KStream(self._graph, self._then(operator, f"KSTREAM-{type(operator).__name__.upper()}-", name))

    def _branch(self, split: Split, name: str) -> list[KStream[K, V]]:
        node = self._graph.add(split, name, (self._node.name,))
        return [KStream(self._graph, self._graph.add(Branch(), branch, (node.name,))) for branch in split.branches]
