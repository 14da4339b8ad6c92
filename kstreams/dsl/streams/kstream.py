"""`KStream`: a stream of independent records."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TextIO, TypedDict, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from kstreams.connectors.api import Sink
from kstreams.dsl.aggregation.grouped import KGroupedStream
from kstreams.dsl.analysis.types import naming, result_type_of
from kstreams.dsl.graph import (
    Branch,
    CallOptions,
    Declared,
    Deduplicate,
    Delay,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Grouped,
    Map,
    MapBatch,
    MapHeaders,
    MapValues,
    Merge,
    NamedCallOptions,
    NamedRetryOptions,
    Node,
    Peek,
    Print,
    Process,
    ProcessValues,
    Repartition,
    RetryOptions,
    Schedule,
    SelectKey,
    Split,
    Throttle,
    To,
    ToTable,
    Typing,
    WithHeaders,
    calls_of,
    node_function,
    retries_of,
)
from kstreams.dsl.graph.signatures import check_call
from kstreams.dsl.handle import Handle, repartitioned
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import check_topic
from kstreams.dsl.operator import operators
from kstreams.dsl.streams.branched import BranchedKStream
from kstreams.dsl.streams.joining import Joined, join_global_table, join_streams, join_table, refuse_options
from kstreams.dsl.sugar.deduplication import Deduplication, key_of
from kstreams.dsl.sugar.explode import explode_of
from kstreams.dsl.sugar.known_types import known, types_of
from kstreams.dsl.sugar.schedules import duration_of, next_time
from kstreams.dsl.tables.global_ktable import GlobalKTable
from kstreams.errors import TopologyError
from kstreams.expressions import Expr, as_function
from kstreams.expressions.headers import HeaderValue, header_bytes
from kstreams.kernel.durations import Duration, DurationText, to_ms
from kstreams.kernel.murmur2 import murmur2
from kstreams.kernel.retry import Retry
from kstreams.kernel.source_line import declared_at
from kstreams.processor.api.contexts import RecordContext
from kstreams.processor.api.processor import FixedKeyProcessor, Processor, check_supplier, store_names
from kstreams.processor.operators.headers import WithoutHeaders
from kstreams.processor.operators.map_batch.frames import Format, Frames, check_format
from kstreams.processor.topology.connectors import DeclaredSink
from kstreams.record import Headers, RecordWithMetadata
from kstreams.serdes import Serde, serde_of
from kstreams.windows import JoinWindows

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
KO = TypeVar("KO")
VO = TypeVar("VO")
VR = TypeVar("VR")


class JoinOptions(TypedDict, total=False):
    """The options of every join; see `join`."""

    windows: JoinWindows | None
    retain: Duration | UnsetType | None
    key: Typing
    value: Typing
    other_value: Typing
    name: str | None
    store_name: str | None


class LookupOptions(JoinOptions, total=False):
    """The options of a join with a stream or a table."""

    grace: Duration | None


class KStream(Handle, Generic[K, V]):
    """A stream of records. Each operator returns a new stream; nothing runs before the application starts.

    Kafka Streams: `KStream`. Most operators take an expression (`ks.value + 1`) in place of a function. Functions may
    be `async def`: see `map_values`.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> lines = builder.stream("lines", key=str, value=str)
    >>> words = lines.flat_map_values(str.split, value=str).filter(lambda key, word: len(word) > 3)
    >>> words.group_by(lambda key, word: word, key=str).count("counts").to_stream().to("word-counts")
    """

    __slots__ = ()

    @overload
    def filter(
        self,
        predicate: Callable[[K, V], Any] | Expr,
        *,
        with_record: Literal[False] = False,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V]: ...

    @overload
    def filter(
        self,
        predicate: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V]: ...

    def filter(
        self,
        predicate: Callable[..., Any] | Expr,
        *,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[K, V]:
        """Forward the records for which `predicate(key, value)` is true. Kafka Streams: `filter`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.filter(lambda key, word: len(word) > 3).to("long-words")
        >>> words.filter(ks.value != "the").to("telling-words")
        """
        node = Filter(predicate=node_function(predicate, with_record=with_record), calls=calls_of(predicate, **calls))
        return self._graph.stream(self._add_node(node, "KSTREAM-FILTER-", name))

    @overload
    def filter_not(
        self,
        predicate: Callable[[K, V], Any] | Expr,
        *,
        with_record: Literal[False] = False,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V]: ...

    @overload
    def filter_not(
        self,
        predicate: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V]: ...

    def filter_not(
        self,
        predicate: Callable[..., Any] | Expr,
        *,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[K, V]:
        """Forward the records for which `predicate(key, value)` is false. Kafka Streams: `filterNot`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.filter_not(lambda key, word: word in {"a", "the"}).to("telling-words")
        """
        node = Filter(
            predicate=node_function(predicate, with_record=with_record), negate=True, calls=calls_of(predicate, **calls)
        )
        return self._graph.stream(self._add_node(node, "KSTREAM-FILTER-", name))

    @overload
    def peek(
        self, function: Callable[[K, V], Any], *, with_record: Literal[False] = False, **calls: Unpack[NamedCallOptions]
    ) -> KStream[K, V]: ...

    @overload
    def peek(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V]: ...

    def peek(
        self,
        function: Callable[..., Any],
        *,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[K, V]:
        """Call `function(key, value)` for each record, and forward the record. Kafka Streams: `peek`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> seen = words.peek(lambda key, word: print(key, word))
        """
        node = Peek(function=node_function(function, with_record=with_record), calls=calls_of(function, **calls))
        return self._graph.stream(self._add_node(node, "KSTREAM-PEEK-", name))

    @overload
    def foreach(
        self, function: Callable[[K, V], Any], *, with_record: Literal[False] = False, **calls: Unpack[NamedCallOptions]
    ) -> None: ...

    @overload
    def foreach(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        **calls: Unpack[NamedCallOptions],
    ) -> None: ...

    def foreach(
        self,
        function: Callable[..., Any],
        *,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> None:
        """Call `function(key, value)` for each record. Kafka Streams: `foreach`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.foreach(lambda key, word: print(key, word))
        """
        node = Foreach(function=node_function(function, with_record=with_record), calls=calls_of(function, **calls))
        self._add_node(node, "KSTREAM-FOREACH-", name)

    @overload
    def map(
        self,
        function: Callable[[K, V], Any] | tuple[Expr, Expr],
        *,
        key: Declared[K2],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def map(
        self,
        function: Callable[[K, V], Awaitable[tuple[K2, V2]]],
        *,
        key: Typing = None,
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def map(
        self,
        function: Callable[[K, V], tuple[K2, V2]] | tuple[Expr[K2], Expr[V2]],
        *,
        key: Typing = None,
        value: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def map(
        self,
        function: Callable[[K, V], tuple[K2, Any]] | tuple[Expr[K2], Expr],
        *,
        key: None = None,
        value: Declared[V2],
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def map(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        key: Declared[K2],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def map(
        self,
        function: Callable[[RecordWithMetadata[K, V]], tuple[K2, V2]],
        *,
        with_record: Literal[True],
        key: Typing = None,
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    def map(
        self,
        function: Callable[..., Any] | tuple[Expr, Expr],
        *,
        key: Typing = None,
        value: Typing = None,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[Any, Any]:
        """Set a new key and value for each record: `function(key, value) -> (key, value)`. Kafka Streams: `map`.

        A later grouping or join repartitions. If only values change, `map_values` avoids this.

        Parameters
        ----------
        function : callable or pair of expressions
            Returns the new key and value; or one expression for each.
        key, value : type or Serde, optional
            Types of the new key and value, if the function has no return annotation.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=dict[str, int])
        >>> amounts = orders.map((ks.col("shop"), ks.col("amount") * 100))
        """
        node = Map(
            function=node_function(function, with_record=with_record),
            key=key,
            value=value,
            calls=calls_of(function, **calls),
        )
        return self._graph.stream(self._add_node(node, "KSTREAM-MAP-", name))

    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Any],
        *,
        key: Declared[K2],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Awaitable[Iterable[tuple[K2, V2]]] | AsyncIterable[tuple[K2, V2]]],
        *,
        key: Typing = None,
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Iterable[tuple[K2, V2]]],
        *,
        key: Typing = None,
        value: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Iterable[tuple[K2, Any]]],
        *,
        key: None = None,
        value: Declared[V2],
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        key: Declared[K2],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Iterable[tuple[K2, V2]]],
        *,
        with_record: Literal[True],
        key: Typing = None,
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V2]: ...

    def flat_map(
        self,
        function: Callable[..., Any],
        *,
        key: Typing = None,
        value: Typing = None,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[Any, Any]:
        """Replace each record by any number of records: `function(key, value)` returns pairs. Kafka Streams: `flatMap`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> letters = words.flat_map(lambda key, word: [(letter, word) for letter in word], key=str, value=str)
        """
        node = FlatMap(
            function=node_function(function, with_record=with_record),
            key=key,
            value=value,
            calls=calls_of(function, **calls),
        )
        return self._graph.stream(self._add_node(node, "KSTREAM-FLATMAP-", name))

    @overload
    def select_key(
        self,
        function: Callable[[K, V], Any] | Expr,
        *,
        key: Declared[K2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V]: ...

    @overload
    def select_key(
        self,
        function: Callable[[K, V], Awaitable[K2]],
        *,
        key: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V]: ...

    @overload
    def select_key(
        self,
        function: Callable[[K, V], K2] | Expr[K2],
        *,
        key: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K2, V]: ...

    @overload
    def select_key(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        key: Declared[K2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V]: ...

    @overload
    def select_key(
        self,
        function: Callable[[RecordWithMetadata[K, V]], K2],
        *,
        with_record: Literal[True],
        key: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K2, V]: ...

    def select_key(
        self,
        function: Callable[..., Any] | Expr,
        *,
        key: Typing = None,
        with_record: bool = False,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[Any, V]:
        """Set a new key for each record: `function(key, value)`. Kafka Streams: `selectKey`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> by_first_letter = words.select_key(lambda key, word: word[0], key=str)
        >>> by_word = words.select_key(ks.value)
        """
        node = SelectKey(
            function=node_function(function, with_record=with_record), key=key, calls=calls_of(function, **calls)
        )
        return self._graph.stream(self._add_node(node, "KSTREAM-KEY-SELECT-", name))

    @overload
    def map_values(
        self,
        function: Callable[[V], Any] | Expr,
        *,
        with_key: Literal[False] = False,
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[V], Awaitable[V2]],
        *,
        with_key: Literal[False] = False,
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[V], V2] | Expr[V2],
        *,
        with_key: Literal[False] = False,
        value: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[K, V], Any],
        *,
        with_key: Literal[True],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[K, V], Awaitable[V2]],
        *,
        with_key: Literal[True],
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[K, V], V2],
        *,
        with_key: Literal[True],
        value: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[RecordWithMetadata[K, V]], V2],
        *,
        with_record: Literal[True],
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    def map_values(
        self,
        function: Callable[..., Any] | Expr,
        *,
        with_key: bool = False,
        with_record: bool = False,
        value: Typing = None,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[K, Any]:
        """Set a new value for each record: `function(value)`. Kafka Streams: `mapValues`.

        Parameters
        ----------
        function : callable or expression
            `value -> new value`; with `with_key=True`, `(key, value) -> new value`.
        with_record : bool
            True if the function takes the whole record, with headers, timestamp, topic, partition and offset: a
            `RecordWithMetadata`.
        value : type or Serde, optional
            Type of the new value, if the function has no return annotation.
        name : str, optional
            Names the operator.
        concurrency : int, optional
            Maximum number of calls of an async function that a task makes at once; `async.concurrency` by default.
        timeout : timedelta or int (ms), optional
            Time after which a call of an async function fails; `async.timeout.ms` by default.
        ordered : bool or "by_key", optional
            Order in which the results of an async function are forwarded: that of all records (True, the default),
            that of the records of each key ("by_key"), or that in which calls end (False).
        retry : Retry, optional
            How a call that fails is repeated. The record waits in a store, and later records of its key wait behind it.
        park : str, optional
            Topic for records whose last call has failed, with as many partitions as the input; without it, the
            processing exception handler decides. `kstreams parked` shows such records.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> words = StreamsBuilder().stream("words", key=str, value=str)
        >>> lengths = words.map_values(len, value=int)

        A function of the whole record:

        >>> shouted = words.map_values(lambda word: f"{word.value} of {word.topic}", with_record=True, value=str)

        While a call waits, other calls continue:

        >>> async def language(word: str) -> str:
        ...     return "en"  # the answer of a service
        >>> languages = words.map_values(language, concurrency=50, timeout=2_000)

        A call that fails is repeated:

        >>> import kstreams as ks
        >>> retry = ks.Retry(backoff="1s", max_delay="5m", attempts=8, on=(TimeoutError,))
        >>> languages = words.map_values(language, retry=retry, park="words-parked")
        """
        node = MapValues(
            function=node_function(function, with_record=with_record, with_key=with_key),
            with_key=with_key,
            value=value,
            calls=calls_of(function, **calls),
        )
        return self._graph.stream(self._add_node(node, "KSTREAM-MAPVALUES-", name))

    @overload
    def flat_map_values(
        self,
        function: Callable[[V], Any] | Expr,
        *,
        with_key: Literal[False] = False,
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[V], Awaitable[Iterable[V2]] | AsyncIterable[V2]],
        *,
        with_key: Literal[False] = False,
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[V], Iterable[V2]] | Expr[Iterable[V2]],
        *,
        with_key: Literal[False] = False,
        value: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[K, V], Any],
        *,
        with_key: Literal[True],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[K, V], Awaitable[Iterable[V2]] | AsyncIterable[V2]],
        *,
        with_key: Literal[True],
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[K, V], Iterable[V2]],
        *,
        with_key: Literal[True],
        value: None = None,
        **options: Unpack[NamedRetryOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        value: Declared[V2],
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    @overload
    def flat_map_values(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Iterable[V2]],
        *,
        with_record: Literal[True],
        value: None = None,
        **calls: Unpack[NamedCallOptions],
    ) -> KStream[K, V2]: ...

    def flat_map_values(
        self,
        function: Callable[..., Any] | Expr,
        *,
        with_key: bool = False,
        with_record: bool = False,
        value: Typing = None,
        name: str | None = None,
        **calls: Unpack[CallOptions],
    ) -> KStream[K, Any]:
        """Replace each value by any number of values: `function(value)` returns them. Kafka Streams: `flatMapValues`.

        Examples
        --------
        >>> import kstreams as ks
        >>> lines = ks.StreamsBuilder().stream("lines", key=str, value=str)
        >>> words = lines.flat_map_values(str.split, value=str)
        >>> parts = lines.flat_map_values(ks.value.str.split(","))
        """
        node = FlatMapValues(
            function=node_function(function, with_record=with_record, with_key=with_key),
            with_key=with_key,
            value=value,
            calls=calls_of(function, **calls),
        )
        return self._graph.stream(self._add_node(node, "KSTREAM-FLATMAPVALUES-", name))

    def explode(self, field: str, *, name: str | None = None) -> KStream[K, Any]:
        """Forward a record for each item of the list in a field, with the item in place of the list.

        A record whose list is null or empty is not forwarded. For the items alone, pass an expression of the list to
        `flat_map_values`. In Kafka Streams, one writes a `flatMapValues`.

        Raises
        ------
        TopologyError
            If there is no such field, or it has no list.

        Examples
        --------
        >>> import kstreams as ks
        >>> lines = ks.StreamsBuilder().stream("lines", key=str, value=dict)
        >>> words = lines.explode("words").group_by(ks.col("words"), key=str)
        """
        kind = types_of(self._graph, self._node).value.python
        with naming(f"explode() at {declared_at()}"):
            function, result = explode_of(field, kind)
        return self.flat_map_values(function, value=result, name=name)

    def map_batch(
        self,
        function: Callable[[Any], Any],
        *,
        value: Declared[V2],
        format: Format = "arrow",
        max_rows: int = 1_000,
        with_key: bool = False,
        with_timestamp: bool = False,
        name: str | None = None,
    ) -> KStream[K, V2]:
        """Set a new value for each record by a function of batches of records, such as a model.

        In Kafka Streams, one writes a processor that buffers records. Results and their order are those of `map_values`
        with a function of one row. A batch holds the records that are available; it does not wait for more. If the
        function fails, it is called again for each record of the batch. A value that fits no column, such as an int
        beyond 64 bits, fails alone; a value of another type than its neighbours is in a batch of its own.

        Parameters
        ----------
        function : callable
            Takes a table or frame and returns as many rows: a column, a list, or a table whose columns are the fields
            of `value`; `pd.NA` and `NaT` are null. A value with named fields has one column per field, any other value
            the column "value"; a record without a value has nulls.
        value : type or Serde
            Type of the new values.
        format : {"arrow", "polars", "pandas"}
            Type of a batch: `pyarrow.Table`, `polars.DataFrame` or `pandas.DataFrame`.
        max_rows : int
            Maximum number of records of a batch.
        with_key, with_timestamp : bool
            True if there are columns "key" and "timestamp" (int64, ms) too.
        name : str, optional
            Names the operator.

        Raises
        ------
        TopologyError
            If the library of the format is not installed, or `max_rows` is not positive.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> trips = StreamsBuilder().stream("trips", key=str, value=dict[str, float])
        >>> fares = trips.map_batch(lambda table: pc.add(pc.multiply(table["km"], 1.5), 3.0), value=float)
        """
        check_format(format)
        if max_rows < 1:
            raise TopologyError(f"map_batch() at {declared_at()} takes max_rows of 1 or more, not {max_rows}")
        frames = Frames(format, with_key=with_key, with_timestamp=with_timestamp)
        node = MapBatch(function=function, frames=frames, max_rows=max_rows, value=value)
        return self._graph.stream(self._add_node(node, "KSTREAM-MAPBATCH-", name))

    @overload
    def map_headers(
        self, function: Callable[[Headers], Any], *, with_record: Literal[False] = False, name: str | None = None
    ) -> KStream[K, V]: ...

    @overload
    def map_headers(
        self,
        function: Callable[[RecordWithMetadata[K, V]], Any],
        *,
        with_record: Literal[True],
        name: str | None = None,
    ) -> KStream[K, V]: ...

    def map_headers(
        self, function: Callable[..., Any], *, with_record: bool = False, name: str | None = None
    ) -> KStream[K, V]:
        """Set new headers for each record: `function(headers)`.

        In Kafka Streams, one writes a processor that calls `context.forward(record.withHeaders(...))`. Operators after
        this one see the new headers, other readers of the stream the old ones.

        Parameters
        ----------
        function : callable
            Takes the headers, a tuple of pairs of name and bytes, and returns pairs or a mapping. Text and numbers are
            written as UTF-8 text.
        with_record : bool
            True if the function takes the whole record: a `RecordWithMetadata`.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=str)
        >>> traced = orders.map_headers(lambda headers: [*headers, ("seen-by", "billing")])
        >>> placed = orders.map_headers(lambda order: {"from": f"{order.topic}@{order.offset}"}, with_record=True)
        """
        node = MapHeaders(function=node_function(function, with_record=with_record))
        return self._graph.stream(self._add_node(node, "KSTREAM-MAPHEADERS-", name))

    def with_headers(
        self,
        headers: Mapping[str, Expr | HeaderValue] | None = None,
        *,
        name: str | None = None,
        **named: Expr | HeaderValue,
    ) -> KStream[K, V]:
        """Add headers to each record, in place of headers of the same names.

        Parameters
        ----------
        headers : mapping, optional
            Headers whose names are no keywords, such as `{"trace-id": ks.col("trace")}`.
        name : str, optional
            Names the operator. A header called "name" is given in the mapping.
        **named : expression or value
            Value of each header: text, bytes, an int, a float, a bool, None, or an expression for one of these. Text
            and numbers are written as UTF-8 text; None is a header without a value, as in Kafka.

        Raises
        ------
        TopologyError
            If there is no header, or a value of another type.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=dict[str, int])
        >>> marked = orders.with_headers({"trace-id": ks.header("request-id")}, amount=ks.col("amount"), team="billing")
        """
        place = f"with_headers() at {declared_at()}"
        if not isinstance(headers, Mapping | None):
            raise TopologyError(f"{place} takes a mapping, not {headers!r}: write with_headers({{{headers!r}: ...}})")
        values = {**(headers or {}), **named}
        if isinstance(name, Expr):
            raise TopologyError(f'{place}: name= names the operator; a header called name is {{"name": {name!r}}}')
        if not values:
            raise TopologyError(f'{place} needs a header: as team="billing", or as {{"trace-id": ks.col("trace")}}')
        for header, value in values.items():
            _check_header(place, header, value)
        node = WithHeaders(headers=tuple(values.items()))
        return self._graph.stream(self._add_node(node, "KSTREAM-WITHHEADERS-", name))

    def drop_headers(self, *names: str, name: str | None = None) -> KStream[K, V]:
        """Remove the headers of some names from each record.

        Raises
        ------
        TopologyError
            If there is no name, or a name that is no text.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=str)
        >>> bare = orders.drop_headers("trace-id", "internal")
        """
        place = f"drop_headers() at {declared_at()}"
        if not names:
            raise TopologyError(
                f'{place} needs the names of headers, as drop_headers("trace-id"); to drop all, write '
                "map_headers(lambda headers: [])"
            )
        for header in names:
            if not isinstance(header, str):
                raise TopologyError(f"{place} takes the names of headers, not {header!r}")
        node = MapHeaders(function=WithoutHeaders(frozenset(names)))
        return self._graph.stream(self._add_node(node, "KSTREAM-DROPHEADERS-", name))

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
            `(key, value) -> text` after the label.
        file : path or text file, optional
            File to which lines are appended; standard output by default.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> words = StreamsBuilder().stream("words", key=str, value=str)
        >>> words.print(label="words", mapper=lambda key, word: word.upper(), file="words.txt")
        """
        self._add_node(Print(label=label or self._node.name, mapper=mapper, file=file), "KSTREAM-PRINTER-", name)

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Merge the records of two streams, without an order between the streams. Kafka Streams: `merge`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> web, app = (builder.stream(topic, key=str, value=str) for topic in ("web", "app"))
        >>> clicks = web.merge(app)
        """
        self._meets(other, "merge", KStream)
        return KStream(self._graph, self._add_node(Merge(), "KSTREAM-MERGE-", name, other))

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Send each record to one of several branches. Kafka Streams: `split(Named)`.

        Parameters
        ----------
        name : str, optional
            Prefix of the names of the branches.

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
        """Write the records to an internal topic and read them again. Kafka Streams: `repartition(Repartitioned)`.

        Parameters
        ----------
        key, value : type or Serde, optional
            Types of the key and value, if they are not known.
        partitions : int, optional
            Number of partitions of the topic; by default that of the input.
        partitioner : callable, optional
            `(topic, key, value, num_partitions) -> partition`; murmur2 of the key by default.
        name : str, optional
            Names the topic: `<application.id>-<name>-repartition`.

        Raises
        ------
        TopologyError
            If `partitions` is less than 1.

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
        topic: str | Callable[[K, V, RecordContext], str] | Expr[str] | Sink,
        *,
        key: Typing = None,
        value: Typing = None,
        partitioner: Callable[..., Any] | None = None,
        retry: Retry | None = None,
        park: str | None = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic or a sink. Kafka Streams: `to(topic, Produced)`.

        Parameters
        ----------
        topic : str, callable, expression or Sink
            Name of the topic, or `(key, value, RecordContext) -> name`; the topics must exist. Or one of `ks.sinks`,
            which takes the records from an internal topic.
        key, value : type or Serde, optional
            Types of the key and value, if they are not known.
        partitioner : callable, optional
            `(topic, key, value, num_partitions) -> partition`; murmur2 of the key by default.
        retry : Retry, optional
            For a sink: when rows that the target refuses are written again. Later rows of their key wait behind them.
        park : str, optional
            For a sink: the topic for rows that the target refuses. It must exist, with as many partitions as the input.
            `kstreams parked` lists these rows, and sends them back to the sink. By default they are dead letters.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.to("all-words")
        >>> words.to(lambda key, word, record: f"words-of-{record.topic}")
        """
        if park is not None:
            check_topic(park, "park=")
            if not isinstance(topic, Sink):
                raise TopologyError(f"park={park!r} at {declared_at()} needs a sink: a topic refuses no rows")
        if retry is not None and not isinstance(topic, Sink):
            raise TopologyError(f"retry= at {declared_at()} needs a sink: a topic refuses no rows")
        if isinstance(topic, Sink):
            topic = self._topic_of(topic, name, park, retry)
        if isinstance(topic, str):
            check_topic(topic, "to()")
        node = To(topic=topic, key=key, value=value, partitioner=partitioner, park=park)
        self._add_node(node, "KSTREAM-SINK-", name)

    def _topic_of(self, sink: Sink, name: str | None, park: str | None, retry: Retry | None) -> str:
        """Declare a sink, and return the topic that it reads."""
        connector = self._graph.names.given_or_next(None if name is None else f"{name}-sink", "KSTREAM-SINK-TOPIC-")
        self._graph.sinks.append(DeclaredSink(connector, declared_at(), connector, sink, park or "", retry))
        return connector

    def to_table(
        self,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Read the stream as the changes of a table: a null value deletes the row. Kafka Streams: `toTable`.

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
        """Group by the current key; repartition only if keys were changed. Kafka Streams: `groupByKey(Grouped)`.

        Parameters
        ----------
        key, value : type or Serde, optional
            Types of the key and value, if they are not known.
        name : str, optional
            Names the repartition topic.

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
        """Group by a new key, `selector(key, value)`, and repartition. Kafka Streams: `groupBy(selector, Grouped)`.

        Parameters as for `group_by_key`; `name` also names the operator. With `with_record=True`, the selector takes
        the whole record.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> counts = words.group_by(lambda key, word: word, key=str).count()
        >>> the_same = words.group_by(ks.value).count()
        """
        function = node_function(selector, with_record=with_record)
        selected = self._add_node(
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
        """Pass each record to a processor of your own. Kafka Streams: `process`.

        Parameters
        ----------
        supplier : callable
            Returns a new processor at each call: a class or a function.
        stores : iterable of str
            Names of the state stores that it uses, added by `StreamsBuilder.add_state_store`; stores of the supplier
            need not be named.
        key, value : type or Serde, optional
            Types of the forwarded records.

        Raises
        ------
        TopologyError
            If the supplier does not return a new processor at each call.

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
        return KStream(self._graph, self._add_node(node, "KSTREAM-PROCESSOR-", name))

    def process_values(
        self,
        supplier: Callable[[], FixedKeyProcessor[K, V, V2]],
        *,
        stores: Iterable[str] = (),
        value: Typing = None,
        name: str | None = None,
        **retries: Unpack[RetryOptions],
    ) -> KStream[K, V2]:
        """Pass each record to a processor of your own that cannot change keys. Kafka Streams: `processValues`.

        Parameters as for `process`; no repartition is needed after it. `retry` and `park` are those of `map_values`:
        what `process` forwards goes on once it has returned, but what it has written to its stores stays if it fails.

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
        node = ProcessValues(
            supplier=supplier,
            stores=store_names(stores, place),
            value=value,
            retries=retries_of(retries.get("retry"), retries.get("park")),
        )
        return KStream(self._graph, self._add_node(node, "KSTREAM-PROCESSVALUES-", name))

    def apply(self, operator: Node, *, name: str | None = None) -> KStream[Any, Any]:
        """Apply an operator of your own; see `kstreams.dsl.operator.register`.

        Parameters
        ----------
        operator : Node
            Node of the operator. Its type rule returns the types of the new stream.
        name : str, optional
            Names the operator; `KSTREAM-<TYPE OF NODE>-<number>` by default.

        Raises
        ------
        UnsupportedError
            If the type of the node is not registered.
        TypeError
            If `operator` is no node.

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
        return KStream(self._graph, self._add_node(operator, f"KSTREAM-{type(operator).__name__.upper()}-", name))

    def _branch(self, split: Split, name: str) -> list[KStream[K, V]]:
        node = self._graph.add(split, name, (self._node.name,))
        return [KStream(self._graph, self._graph.add(Branch(), branch, (node.name,))) for branch in split.branches]

    @overload
    def join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[V, VO], VR] | Expr[VR],
        *,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[V, VO], VR] | Expr[VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, KO, V, VO], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_mapped_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    def join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joiner: Callable[..., Any] | Expr,
        *,
        windows: JoinWindows | None = None,
        retain: Duration | UnsetType | None = UNSET,
        key_selector: Callable[[K, V], Any] | Expr | None = None,
        with_key: bool = False,
        with_mapped_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
        grace: Duration | None = None,
    ) -> KStream[K, Any]:
        """Join each record with the records of another stream in a window, or with the row of a table.

        Kafka Streams: `join`. Sides whose keys were changed are repartitioned first, except for a global table.

        Parameters
        ----------
        other : KStream, KTable or GlobalKTable
            Two records of streams are joined once if they are within `windows`, or if the earlier one is retained when
            the later one is processed; a table is looked up as it is when a record of this stream is processed.
        joiner : callable or expression
            `joiner(left, right)`; with `with_key=True`, `joiner(key, left, right)`. In an expression, `ks.left.value`
            and `ks.right.value` are the values, `ks.left.col("price")` is a field of the left value.
        windows : JoinWindows
            For a stream: which records are joined.
        retain : timedelta, int (ms) or None
            For a stream, in place of `windows`: how far a record of either stream may be behind stream time to be
            joined with the records of the other one, whatever their times; None retains all records for ever. Later
            records are dropped. SQL: a join of two streams without a condition on time.
        key_selector : callable or expression
            For a global table: `(key, value) -> key of the table`.
        with_mapped_key : bool
            For a global table: True if the joiner takes `(key, mapped_key, left, right)`; `mapped_key` is the result of
            `key_selector`. Kafka Streams: `ValueJoinerWithStreamAndMappedKey`.
        value : type or Serde, optional
            Type of the result, if the joiner has no return annotation; also of the values of this stream, if nothing
            else declares it.
        key, other_value : type or Serde, optional
            Types of the keys and of the other side's values, if they are not known; not for a global table.
        name : str, optional
            Names the operator and the repartition topics.
        store_name : str, optional
            For a stream: names the stores.
        grace : timedelta or int (ms), optional
            For a versioned table: how long, in stream time, records wait for late versions of the table. They are then
            joined in order of time. At most the history retention of the table.

        Raises
        ------
        TopologyError
            If `windows`, `retain` or `key_selector` is missing or does not belong to this kind of join, or if the table
            has not enough history for `grace`.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> orders = builder.stream("orders", key=str, value=str)
        >>> payments = builder.stream("payments", key=str, value=str)
        >>> paid = orders.join(payments, lambda order, payment: f"{order}: {payment}", windows=JoinWindows.of(60_000))
        >>> whenever = orders.join(payments, lambda order, payment: f"{order}: {payment}", retain=None)
        """
        joined = Joined(
            joiner=joiner,
            windows=windows,
            retain=retain,
            key_selector=key_selector,
            with_key=with_key,
            with_mapped_key=with_mapped_key,
            key=key,
            value=value,
            other_value=other_value,
            name=name,
            store_name=store_name,
            grace=grace,
        )
        return self._join(other, joined, left_outer=False)

    @overload
    def left_join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[V, VO | None], VR] | Expr[VR],
        *,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def left_join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def left_join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[V, VO | None], VR] | Expr[VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def left_join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def left_join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, KO, V, VO | None], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_mapped_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...

    def left_join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joiner: Callable[..., Any] | Expr,
        *,
        windows: JoinWindows | None = None,
        retain: Duration | UnsetType | None = UNSET,
        key_selector: Callable[[K, V], Any] | Expr | None = None,
        with_key: bool = False,
        with_mapped_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
        grace: Duration | None = None,
    ) -> KStream[K, Any]:
        """Join like `join`, and also emit records of this stream without a match: `joiner(left, None)`.

        Kafka Streams: `leftJoin`. A join of streams emits such a record when stream time has passed its window and the
        grace of `windows`, or its retention: `retain` cannot be None. Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> orders = builder.stream("orders", key=str, value=str)
        >>> names = builder.table("names", key=str, value=str)
        >>> named = orders.left_join(names, lambda order, name: f"{order} of {name or 'somebody'}")
        """
        joined = Joined(
            joiner=joiner,
            windows=windows,
            retain=retain,
            key_selector=key_selector,
            with_key=with_key,
            with_mapped_key=with_mapped_key,
            key=key,
            value=value,
            other_value=other_value,
            name=name,
            store_name=store_name,
            grace=grace,
        )
        return self._join(other, joined, left_outer=True)

    @overload
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V | None, VO | None], VR] | Expr[VR],
        *,
        with_key: Literal[False] = False,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, VR]: ...

    @overload
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[K, V | None, VO | None], VR],
        *,
        with_key: Literal[True],
        **options: Unpack[JoinOptions],
    ) -> KStream[K, VR]: ...

    def outer_join(
        self,
        other: KStream[K, Any],
        joiner: Callable[..., Any] | Expr,
        *,
        windows: JoinWindows | None = None,
        retain: Duration | UnsetType | None = UNSET,
        with_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
    ) -> KStream[K, Any]:
        """Join streams like `left_join`, and also emit unmatched records of the other one: `joiner(None, right)`.

        Kafka Streams: `outerJoin`. Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
        >>> both = left.outer_join(right, lambda a, b: f"{a} {b}", windows=ks.JoinWindows.of(100, grace=50))
        """
        joined = Joined(
            joiner=joiner,
            windows=windows,
            retain=retain,
            with_key=with_key,
            key=key,
            value=value,
            other_value=other_value,
            name=name,
            store_name=store_name,
        )
        self._meets(other, "outer_join", self._graph.handles.stream)
        return self._graph.stream(join_streams(self, other, joined, left_outer=True, right_outer=True))

    def _join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joined: Joined,
        *,
        left_outer: bool,
    ) -> KStream[K, Any]:
        handles = self._graph.handles
        self._meets(other, "left_join" if left_outer else "join", handles.stream, handles.table, GlobalKTable)
        refuse_options(other, joined)
        node: Node
        if isinstance(other, handles.stream):
            node = join_streams(self, other, joined, left_outer=left_outer, right_outer=False)
        elif isinstance(other, GlobalKTable):
            node = join_global_table(self, other, joined, left_outer=left_outer)
        else:
            assert isinstance(other, handles.table)
            node = join_table(self, other, joined, left_outer=left_outer)
        return self._graph.stream(node)

    def _placed(self, prefix: str, grouped: Grouped) -> Node:
        """Return the node of this stream, or of its repartition if keys were changed; `prefix` names the topic."""
        required = self._graph.repartition_required(self._node)
        return self._repartitioned(prefix, grouped) if required else self._node

    def _repartitioned(self, prefix: str, grouped: Grouped, **settings: object) -> Repartition:
        return repartitioned(self._graph, self._node, prefix, grouped, **settings)

    def deduplicate(
        self,
        within: Duration,
        *,
        by: Callable[[K, V], Any] | Expr | None = None,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Forward the first of the records with the same key, or the same part of a record, within a time.

        In Kafka Streams, one writes a processor with a window store. Event times are compared, in whatever order the
        records are read. A record that is later than stream time by more than `within` may be forwarded again.

        Parameters
        ----------
        within : timedelta or int (ms)
            Records with a greater time difference are no duplicates.
        by : callable or expression, optional
            `(key, value) -> part`: equal parts are duplicates, such as the id of an event; records with None are
            forwarded. Duplicates are detected within a partition: if their keys differ, first `select_key` the part
            and `repartition`.
        key : type or Serde, optional
            Type of the result of `by`, or of the key, if it is not known.
        name : str, optional
            Names the operator, and its store "<name>-store".

        Raises
        ------
        TopologyError
            If the type is not known, or `within` is negative.

        Examples
        --------
        >>> from datetime import timedelta
        >>> import kstreams as ks
        >>> payments = ks.StreamsBuilder().stream("payments", key=str, value=dict[str, str])
        >>> once = payments.deduplicate(timedelta(hours=1), by=ks.col("id"))
        """
        within_ms = to_ms(within)
        if within_ms < 0:
            raise TopologyError(f"deduplicate() at {declared_at()} was given a negative time: {within_ms} ms")
        part, serde = self._part(by, key, "deduplicate()")
        name = self._graph.names.given_or_next(name, "KSTREAM-DEDUPLICATE-")
        supplier = Deduplication(f"{name}-store", within_ms, part, serde)
        value = types_of(self._graph, self._node).value.kind
        node = Deduplicate(supplier=supplier, value=value)
        return self._graph.stream(self._graph.add(node, name, (self._node.name,)))

    def delay(
        self,
        *,
        until: Callable[[K, V], Any] | Expr | None = None,
        for_: DurationText | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Forward each record when the wall clock reaches its time; until then it waits in a store.

        In Kafka Streams, one writes a processor with a store and a punctuator. Records are forwarded in the order of
        their times, as if they had just been read. A record whose time is past is forwarded at once.

        Parameters
        ----------
        until : expression or callable, optional
            `(key, value) -> time`: milliseconds since 1970, a `datetime` with a time zone, or None for at once.
        for_ : timedelta, int (ms) or str, optional
            The time of a record is its timestamp plus this, such as "10m".
        name : str, optional
            Names the operator, and its store "<name>-waiting".

        Raises
        ------
        TopologyError
            Unless exactly one of `until` and `for_` is given.

        Examples
        --------
        >>> import kstreams as ks
        >>> mails = ks.StreamsBuilder().stream("mails", key=str, value=dict[str, int])
        >>> mails.delay(until=ks.col("send_at")).to("mails-to-send")
        >>> mails.delay(for_="10m").to("reminders")
        """
        place = f"delay() at {declared_at()}"
        if (until is None) == (for_ is None):
            raise TopologyError(f'{place} takes either until=, the time of a record, or for_=, such as "10m"')
        node = Delay(until=until, for_ms=0 if for_ is None else duration_of(for_, "for_", place))
        return self._graph.stream(self._add_node(node, "KSTREAM-DELAY-", name))

    def throttle(self, records: int, *, per: DurationText = "1s", name: str | None = None) -> KStream[K, V]:
        """Forward at most so many records per time in each partition; the others wait in a store, in order.

        In Kafka Streams, one writes a processor with a store and a punctuator.

        Parameters
        ----------
        records : int
            The greatest number of records per `per`; they are evenly spread.
        per : timedelta, int (ms) or str
        name : str, optional
            Names the operator, and its store "<name>-waiting".

        Raises
        ------
        TopologyError
            If a number is below 1.

        Examples
        --------
        >>> import kstreams as ks
        >>> mails = ks.StreamsBuilder().stream("mails", key=str, value=str)
        >>> mails.throttle(100, per="1m").to("mails-to-send")
        """
        place = f"throttle() at {declared_at()}"
        if not isinstance(records, int) or records < 1:
            raise TopologyError(f"{place} is given {records!r} records: give 1 or more")
        node = Throttle(records=records, per_ms=duration_of(per, "per", place))
        return self._graph.stream(self._add_node(node, "KSTREAM-THROTTLE-", name))

    def schedule(
        self,
        *,
        every: DurationText | None = None,
        at: str | None = None,
        zone: str = "UTC",
        name: str | None = None,
    ) -> KStream[K, V]:
        """Forward the latest record of each key again and again: every so often, or at the times of a cron expression.

        In Kafka Streams, one writes a processor with a store and a punctuator. The records that are forwarded have the
        time of the schedule as their timestamp. A record without a value ends the schedule of its key. Times that
        passed while the application was stopped are made up by one record per key.

        Parameters
        ----------
        every : timedelta, int (ms) or str, optional
            Such as "15m". The times are multiples of it since 1970.
        at : str, optional
            A cron expression of five fields, or six with seconds in front, such as "0 6 * * MON". It needs cronsim:
            `pip install 'kstreams-dsl[schedule]'`.
        zone : str
            The time zone of `at`.
        name : str, optional
            Names the operator, and its store "<name>-waiting".

        Raises
        ------
        TopologyError
            Unless exactly one of `every` and `at` is given.
        ImportError
            If `at` is given, and cronsim is not installed.

        Examples
        --------
        >>> import kstreams as ks
        >>> reports = ks.StreamsBuilder().stream("report-definitions", key=str, value=str)
        >>> reports.schedule(at="0 6 * * MON-FRI", zone="Europe/Berlin").to("reports-to-make")
        >>> reports.schedule(every="15m").to("reports-to-refresh")
        """
        node = Schedule(next_after=next_time(every, at, zone))
        return self._graph.stream(self._add_node(node, "KSTREAM-SCHEDULE-", name))

    def sample(
        self,
        fraction: float,
        *,
        by: Callable[[K, V], Any] | Expr | None = None,
        seed: int = 0,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Forward the records of a fraction of all keys: the same keys on every engine and in every run.

        In Kafka Streams, one writes a filter.

        Parameters
        ----------
        fraction : float
            Fraction of the keys (not of the records), from 0 to 1.
        by : callable or expression, optional
            `(key, value) -> part` that is sampled instead of the key, such as the id of an order.
        seed : int
            Another seed takes another sample.
        key : type or Serde, optional
            Type of the result of `by`, or of the key, if it is not known.

        Raises
        ------
        TopologyError
            If `fraction` is not between 0 and 1, or the type is not known.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str)
        >>> clicks.sample(0.01).to("one-user-in-a-hundred")
        """
        if not 0 <= fraction <= 1:
            raise TopologyError(f"sample() at {declared_at()} takes a fraction from 0 to 1, not {fraction}")
        part, serde = self._part(by, key, "sample()")
        keep = in_sample(fraction, seed, part, serde)
        return self._graph.stream(self._add_node(Filter(predicate=keep), "KSTREAM-FILTER-", name))

    def _part(
        self, by: Callable[[K, V], Any] | Expr | None, declared: Typing, method: str
    ) -> tuple[Callable[[Any, Any], Any], Serde]:
        """Return the function that returns the key of a record, or what `by` gives, and the serde of its results."""
        types = types_of(self._graph, self._node)
        if by is None:
            return key_of, serde_of(known(types.key.or_declared(declared, self._node), "key", method))
        place = f"{method} at {declared_at()}"
        part = result_type_of(by, types) if declared is None else declared
        if part is None:
            raise TopologyError(
                f"{place} must know the type of what by= gives: write key=<type>, or annotate what the function returns"
            )
        if isinstance(by, Expr):
            return as_function(by, ("key", "value"), key=types.key.python, value=types.value.python), serde_of(part)
        check_call(place, "by", by, "key", "value")
        return by, serde_of(part)

    def to_dataframe(self, spark: object = None, config: Mapping[str, Any] | None = None) -> Any:
        """Return the stream as a DataFrame of Spark for a query of your own.

        Nothing runs before you run the DataFrame: as a batch if its sources are static, else as a stream. Spark keeps
        state and offsets; the differences from Kafka Streams are those of the relational path
        (docs/reference/operators.md). Rows of `from_dataframe` are read from their DataFrames, topics from the start.

        Parameters
        ----------
        spark : SparkSession, optional
            The active one by default.
        config : Config or mapping, optional
            Location of topics (`bootstrap.servers` or `log.dir`), and `spark.kstreams.max.records` per trigger.

        Returns
        -------
        DataFrame
            Columns `key` and `value` (typed if their types are known) and `timestamp`.

        Raises
        ------
        TopologyError
            If PySpark cannot say an operator: names the operator, your line and the reason.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=int)
        >>> frame = orders.filter(ks.value > 100).to_dataframe(spark)  # doctest: +SKIP
        >>> query = frame.writeStream.toTable("large_orders")  # doctest: +SKIP
        """
        import_module(
            "kstreams.spark"
        )  # by name, since the DSL does not import engines; its error names what is missing
        return import_module("kstreams.runtime.spark.dataframes").dataframe_of(self._graph, self._node, spark, config)


def _check_header(place: str, name: object, value: object) -> None:
    if not isinstance(name, str):
        raise TopologyError(f"{place} takes names of headers, not {name!r}")
    if callable(value):
        raise TopologyError(
            f"{place} takes expressions and values, but the header {name!r} is made by a function: give it to "
            "map_headers(), with with_record=True if it needs more than the headers"
        )
    if not isinstance(value, Expr):
        _check_value(place, name, value)


def _check_value(place: str, name: str, value: Any) -> None:
    try:
        header_bytes(value)
    except TypeError as error:
        raise TopologyError(f"{place}, header {name!r}: {error}") from error


def in_sample(fraction: float, seed: int, part: Callable[[Any, Any], Any], serde: Serde) -> Callable[[Any, Any], bool]:
    """Return a predicate that is true for the records of a sample, by `part(key, value)`.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> keep = in_sample(0.25, 0, key_of, serde_of(str))
    >>> sum(keep(str(number), None) for number in range(1_000))
    246
    """
    below = int(fraction * 2**32)
    salt = seed.to_bytes(8, "big", signed=True)
    serialize = serde.serialize

    def keep(key: object, value: object) -> bool:
        sampled = part(key, value)
        return murmur2(salt + (b"" if sampled is None else serialize(sampled))) < below

    return keep
