"""`KStream`: a stream of records, each standing for itself."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TextIO, TypedDict, TypeVar, Unpack, overload

from kstreams.dsl.aggregation.grouped import KGroupedStream
from kstreams.dsl.graph import (
    Branch,
    CallOptions,
    Declared,
    Deduplicate,
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
    Node,
    Peek,
    Print,
    Process,
    ProcessValues,
    Repartition,
    SelectKey,
    Split,
    To,
    ToTable,
    Typing,
    WithHeaders,
    calls_of,
    node_function,
)
from kstreams.dsl.graph.signatures import check_call
from kstreams.dsl.handle import Handle, repartitioned
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import check_topic
from kstreams.dsl.operator import operators
from kstreams.dsl.return_annotations import return_type
from kstreams.dsl.streams.branched import BranchedKStream
from kstreams.dsl.streams.joining import Joined, join_global_table, join_streams, join_table, refuse_options
from kstreams.dsl.sugar.deduplication import Deduplication
from kstreams.dsl.sugar.known_types import known, types_of
from kstreams.dsl.tables.global_ktable import GlobalKTable
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.expressions.headers import HeaderValue, header_bytes
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.murmur2 import murmur2
from kstreams.kernel.source_line import declared_at
from kstreams.processor.api.contexts import RecordContext
from kstreams.processor.api.processor import FixedKeyProcessor, Processor, check_supplier, store_names
from kstreams.processor.operators.headers import WithoutHeaders
from kstreams.processor.operators.map_batch.frames import Format, Frames, check_format
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
    """Options of every join; see `join`."""

    windows: JoinWindows | None
    key: Typing
    value: Typing
    other_value: Typing
    name: str | None
    store_name: str | None


class LookupOptions(JoinOptions, total=False):
    """Options of a join that may look into a table."""

    grace: Duration | None


class KStream(Handle, Generic[K, V]):
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
        """The records for which `predicate(key, value)` holds. Kafka Streams: `filter`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.filter(lambda key, word: len(word) > 3).to("long-words")
        >>> words.filter(ks.value != "the").to("telling-words")
        """
        node = Filter(predicate=node_function(predicate, with_record=with_record), calls=calls_of(predicate, **calls))
        return self._graph.stream(self._then(node, "KSTREAM-FILTER-", name))

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
        """The records for which `predicate(key, value)` does not hold. Kafka Streams: `filterNot`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.filter_not(lambda key, word: word in {"a", "the"}).to("telling-words")
        """
        node = Filter(
            predicate=node_function(predicate, with_record=with_record), negate=True, calls=calls_of(predicate, **calls)
        )
        return self._graph.stream(self._then(node, "KSTREAM-FILTER-", name))

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
        """The same records, after `function(key, value)` has seen each. Kafka Streams: `peek`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> seen = words.peek(lambda key, word: print(key, word))
        """
        node = Peek(function=node_function(function, with_record=with_record), calls=calls_of(function, **calls))
        return self._graph.stream(self._then(node, "KSTREAM-PEEK-", name))

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
        self._then(node, "KSTREAM-FOREACH-", name)

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
        name: str | None = None,
    ) -> KStream[K2, V2]: ...

    @overload
    def map(
        self,
        function: Callable[[K, V], tuple[K2, Any]] | tuple[Expr[K2], Expr],
        *,
        key: None = None,
        value: Declared[V2],
        name: str | None = None,
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
        """A new key and value for each record: `function(key, value) -> (key, value)`. Kafka Streams: `map`.

        A later grouping or join repartitions. Where only values change, `map_values` spares that.

        Parameters
        ----------
        function : callable or pair of expressions
            Gives the new key and value, or one expression for each.
        key, value : type or Serde, optional
            Where the function's return annotation does not say.

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
        return self._graph.stream(self._then(node, "KSTREAM-MAP-", name))

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
        name: str | None = None,
    ) -> KStream[K2, V2]: ...

    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Iterable[tuple[K2, Any]]],
        *,
        key: None = None,
        value: Declared[V2],
        name: str | None = None,
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
        """Any number of new records for each: `function(key, value)` gives pairs. Kafka Streams: `flatMap`.

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
        return self._graph.stream(self._then(node, "KSTREAM-FLATMAP-", name))

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
        self, function: Callable[[K, V], K2] | Expr[K2], *, key: None = None, name: str | None = None
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
        """A new key for each record: `function(key, value)`. Kafka Streams: `selectKey`.

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
        return self._graph.stream(self._then(node, "KSTREAM-KEY-SELECT-", name))

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
        name: str | None = None,
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
        self, function: Callable[[K, V], V2], *, with_key: Literal[True], value: None = None, name: str | None = None
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
        """A new value for each record: `function(value)`. Kafka Streams: `mapValues`.

        Parameters
        ----------
        function : callable or expression
            Of the value; with `with_key=True`, of key and value.
        with_record : bool
            Whether the function takes the whole record instead, which has headers, timestamp, topic, partition and
            offset as well: a `RecordWithMetadata`.
        value : type or Serde, optional
            The type of the new value, where the function's return annotation does not say.
        name : str, optional
            Names the operator.
        concurrency : int, optional
            Of an async function: most calls of one task at once; `async.concurrency` by default.
        timeout : timedelta or int (ms), optional
            Of an async function: after how long a call fails; `async.timeout.ms` by default.
        ordered : bool or "by_key", optional
            Of an async function: whether results go on in the order of their records, as those of a plain function do
            (the default); "by_key" keeps the order of the records of each key, False none.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> words = StreamsBuilder().stream("words", key=str, value=str)
        >>> lengths = words.map_values(len, value=int)

        A function of the whole record:

        >>> shouted = words.map_values(lambda word: f"{word.value} of {word.topic}", with_record=True, value=str)

        A call that waits for something else lets others go on meanwhile:

        >>> async def language(word: str) -> str:
        ...     return "en"  # what a service answers
        >>> languages = words.map_values(language, concurrency=50, timeout=2_000)
        """
        node = MapValues(
            function=node_function(function, with_record=with_record, with_key=with_key),
            with_key=with_key,
            value=value,
            calls=calls_of(function, **calls),
        )
        return self._graph.stream(self._then(node, "KSTREAM-MAPVALUES-", name))

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
        name: str | None = None,
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
        name: str | None = None,
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
        """Any number of new values for each record: `function(value)` gives them. Kafka Streams: `flatMapValues`.

        Examples
        --------
        >>> import kstreams as ks
        >>> lines = ks.StreamsBuilder().stream("lines", key=str, value=str)
        >>> words = lines.flat_map_values(str.split, value=str)
        """
        node = FlatMapValues(
            function=node_function(function, with_record=with_record, with_key=with_key),
            with_key=with_key,
            value=value,
            calls=calls_of(function, **calls),
        )
        return self._graph.stream(self._then(node, "KSTREAM-FLATMAPVALUES-", name))

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
        """A new value for each record, from a function over batches of records, such as a model that scores them.

        In Kafka Streams one writes a processor that gathers records. Results, and their order, are those of
        `map_values` with a function that works row by row; a batch holds what is there anyway, nothing waits for it to
        fill. When the function fails, it is called for each record of the batch alone. A value that no column takes,
        such as an int beyond 64 bits, fails alone; one of another type than those beside it is in a batch of its own.

        Parameters
        ----------
        function : callable
            Takes a table or frame, gives as many rows: a column, a list, or a table whose columns are the fields of
            `value`; `pd.NA` and `NaT` are null. A value with named fields comes as a column for each, any other as the
            column "value"; where a record has no value, there are nulls.
        value : type or Serde
            Of the new values.
        format : {"arrow", "polars", "pandas"}
            What the function takes: `pyarrow.Table`, `polars.DataFrame` or `pandas.DataFrame`.
        max_rows : int
            Most records of a batch.
        with_key, with_timestamp : bool
            Whether there are columns "key" and "timestamp" (int64, ms) too.
        name : str, optional
            Names the operator.

        Raises
        ------
        TopologyError
            When the format's library is not installed, or `max_rows` is not positive.

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
        return self._graph.stream(self._then(node, "KSTREAM-MAPBATCH-", name))

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
        """New headers for each record: `function(headers)`.

        In Kafka Streams one writes a processor that calls `context.forward(record.withHeaders(...))`. What follows has
        the new headers; where the stream goes on beside this operator, it has the old ones.

        Parameters
        ----------
        function : callable
            Takes the headers, a tuple of pairs of name and bytes; gives the new ones, as pairs or as a mapping. Values
            that are text or numbers are written as UTF-8 text.
        with_record : bool
            Whether the function takes the whole record instead: a `RecordWithMetadata`.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=str)
        >>> traced = orders.map_headers(lambda headers: [*headers, ("seen-by", "billing")])
        >>> placed = orders.map_headers(lambda order: {"from": f"{order.topic}@{order.offset}"}, with_record=True)
        """
        node = MapHeaders(function=node_function(function, with_record=with_record))
        return self._graph.stream(self._then(node, "KSTREAM-MAPHEADERS-", name))

    def with_headers(
        self,
        headers: Mapping[str, Expr | HeaderValue] | None = None,
        *,
        name: str | None = None,
        **named: Expr | HeaderValue,
    ) -> KStream[K, V]:
        """The same records with more headers, in the place of those of the same names.

        Parameters
        ----------
        headers : mapping, optional
            By names that are no keywords, such as `{"trace-id": ks.col("trace")}`.
        name : str, optional
            Names the operator. A header called "name" is given in the mapping.
        **named : expression or value
            What each header is made of: text, bytes, an int, a float, a bool or None, or an expression that gives one.
            Text and numbers are written as UTF-8 text; null is a header without a value, as Kafka has it.

        Raises
        ------
        TopologyError
            When there is no header, or one is made of something else.

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
            _check(place, header, value)
        node = WithHeaders(headers=tuple(values.items()))
        return self._graph.stream(self._then(node, "KSTREAM-WITHHEADERS-", name))

    def drop_headers(self, *names: str, name: str | None = None) -> KStream[K, V]:
        """The same records without the headers of some names.

        Raises
        ------
        TopologyError
            When there is no name, or one is no text.

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
        return self._graph.stream(self._then(node, "KSTREAM-DROPHEADERS-", name))

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
        function = node_function(selector, with_record=with_record)
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
        """Join with what has a partner, `joiner(left, right)`: a stream in windows, or a table's row of the same key.

        Kafka Streams: `join`. Sides whose key was changed are repartitioned first, but for a global table.

        Parameters
        ----------
        other : KStream, KTable or GlobalKTable
            Of a stream, each pair of records that `windows` lets meet is joined once; a table is looked up as it is
            when a record of this stream comes.
        joiner : callable or expression
            Of both values; with `with_key=True`, of key and both values. In an expression `ks.left.value`
            and `ks.right.value` are the values, `ks.left.col("price")` is a field of one.
        windows : JoinWindows
            For a stream: which records meet.
        key_selector : callable or expression
            For a global table: `(key, value) -> key of the table`.
        with_mapped_key : bool
            For a global table: whether the joiner takes `(key, mapped_key, left, right)`, where `mapped_key` is what
            `key_selector` gave. Kafka Streams: `ValueJoinerWithStreamAndMappedKey`.
        value : type or Serde, optional
            Of the result, where the return annotation of the joiner does not say it; also of this side's values, where
            nothing else does.
        key, other_value : type or Serde, optional
            Of the keys and the other side's values, where they are not known; not for a global table.
        name : str, optional
            Names the operator and the repartition topics.
        store_name : str, optional
            For a stream: names the stores.
        grace : timedelta or int (ms), optional
            For a versioned table: how long, in stream time, records wait for versions of the table that come late.
            They are then joined in order of time. At most the table's history retention.

        Raises
        ------
        TopologyError
            When `windows` or `key_selector` is missing, or given for another kind of join; when `grace` is given for a
            table without enough history.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> orders = builder.stream("orders", key=str, value=str)
        >>> payments = builder.stream("payments", key=str, value=str)
        >>> paid = orders.join(payments, lambda order, payment: f"{order}: {payment}", windows=JoinWindows.of(60_000))
        """
        joined = Joined(
            joiner,
            with_key,
            key,
            value,
            other_value,
            name,
            store_name=store_name,
            grace=grace,
            with_mapped_key=with_mapped_key,
        )
        return self._join(other, joined, windows, key_selector, left_outer=False)

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
        """The same as `join`, and records of this side without a partner too: `joiner(left, None)`.

        Kafka Streams: `leftJoin`. In a join of streams such a record comes out once stream time has passed its window
        and the grace of `windows`. Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> orders = builder.stream("orders", key=str, value=str)
        >>> names = builder.table("names", key=str, value=str)
        >>> named = orders.left_join(names, lambda order, name: f"{order} of {name or 'somebody'}")
        """
        joined = Joined(
            joiner,
            with_key,
            key,
            value,
            other_value,
            name,
            store_name=store_name,
            grace=grace,
            with_mapped_key=with_mapped_key,
        )
        return self._join(other, joined, windows, key_selector, left_outer=True)

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
        with_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
    ) -> KStream[K, Any]:
        """The same as `left_join` of streams, and records of the other side without a partner: `joiner(None, right)`.

        Kafka Streams: `outerJoin`. Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
        >>> both = left.outer_join(right, lambda a, b: f"{a} {b}", windows=ks.JoinWindows.of(100, grace=50))
        """
        joined = Joined(joiner, with_key, key, value, other_value, name, store_name)
        self._meets(other, "outer_join", self._graph.handles.stream)
        return self._graph.stream(join_streams(self, other, windows, joined, left_outer=True, right_outer=True))

    def _join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joined: Joined,
        windows: JoinWindows | None,
        key_selector: Callable[[K, V], Any] | Expr | None,
        *,
        left_outer: bool,
    ) -> KStream[K, Any]:
        handles = self._graph.handles
        self._meets(other, "left_join" if left_outer else "join", handles.stream, handles.table, GlobalKTable)
        refuse_options(other, windows=windows, key_selector=key_selector, joined=joined)
        node: Node
        if isinstance(other, handles.stream):
            node = join_streams(self, other, windows, joined, left_outer=left_outer, right_outer=False)
        elif isinstance(other, GlobalKTable):
            node = join_global_table(self, other, key_selector, joined, left=left_outer)
        else:
            assert isinstance(other, handles.table)
            node = join_table(self, other, joined, left=left_outer)
        return self._graph.stream(node)

    def _placed(self, prefix: str, grouped: Grouped) -> Node:
        """This stream, repartitioned if a key was changed; `prefix` names the topic."""
        required = self._graph.repartition_required(self._node)
        return self._repartitioned(prefix, grouped) if required else self._node

    def _repartitioned(self, prefix: str, grouped: Grouped, **settings: object) -> Repartition:
        return repartitioned(self._graph, self._node, prefix, grouped, **settings)

    def deduplicate(
        self,
        within: Duration,
        *,
        by: Callable[[K, V], Any] | None = None,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """The first of the records that have the same key, or the same part of them, within a time.

        In Kafka Streams one writes a processor with a window store. Event times are compared, whatever the order in
        which records come. A record that comes later than `within` after stream time may be passed on again.

        Parameters
        ----------
        within : timedelta or int (ms)
            Records further apart are no duplicates.
        by : callable, optional
            `(key, value)` -> what must not come twice, such as an event's id; None passes a record on. Duplicates are
            found within a partition: where their keys differ, `select_key` the part and `repartition` first.
        key : type or Serde, optional
            Of what `by` gives, or of the key, where it is not known.
        name : str, optional
            Names the operator, and its store "<name>-store".

        Raises
        ------
        TopologyError
            When the type is not known, or `within` is negative.

        Examples
        --------
        >>> from datetime import timedelta
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> payments = StreamsBuilder().stream("payments", key=str, value=dict[str, str])
        >>> once = payments.deduplicate(timedelta(hours=1), by=lambda key, payment: payment["id"], key=str)
        """
        within_ms = to_ms(within)
        if within_ms < 0:
            raise TopologyError(f"deduplicate() at {declared_at()} was given a negative time: {within_ms} ms")
        serde = self._serde_of_part(by, key, "deduplicate()")
        name = self._graph.names.given_or_next(name, "KSTREAM-DEDUPLICATE-")
        supplier = Deduplication(f"{name}-store", within_ms, by or _the_key, serde)
        value = types_of(self._graph, self._node).value.kind
        node = Deduplicate(supplier=supplier, value=value)
        return self._graph.stream(self._graph.add(node, name, (self._node.name,)))

    def sample(
        self,
        fraction: float,
        *,
        by: Callable[[K, V], Any] | None = None,
        seed: int = 0,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """The records of a share of all keys: always the same keys, on every engine and in every run.

        In Kafka Streams one writes a filter.

        Parameters
        ----------
        fraction : float
            From 0 to 1: the share of keys, not of records.
        by : callable, optional
            `(key, value)` -> what decides instead of the key, such as an order's id.
        seed : int
            Another one takes another sample.
        key : type or Serde, optional
            Of what `by` gives, or of the key, where it is not known.

        Raises
        ------
        TopologyError
            When the fraction is none, or the type is not known.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str)
        >>> clicks.sample(0.01).to("one-user-in-a-hundred")
        """
        if not 0 <= fraction <= 1:
            raise TopologyError(f"sample() at {declared_at()} takes a fraction from 0 to 1, not {fraction}")
        keep = in_sample(fraction, seed, by, self._serde_of_part(by, key, "sample()"))
        return self._graph.stream(self._then(Filter(predicate=keep), "KSTREAM-FILTER-", name))

    def _serde_of_part(self, by: Callable[[K, V], Any] | None, declared: Typing, asker: str) -> Serde:
        if by is not None:
            check_call(f"{asker} at {declared_at()}", "by", by, "key", "value")
        if by is None:
            key = types_of(self._graph, self._node).key
            return serde_of(known(key.or_declared(declared, self._node), "key", asker))
        part = return_type(by) if declared is None else declared
        if part is None:
            raise TopologyError(
                f"{asker} at {declared_at()} must know the type of what by= gives: write key=<type>, "
                "or annotate what the function returns"
            )
        return serde_of(part)

    def to_dataframe(self, spark: object = None, config: Mapping[str, Any] | None = None) -> Any:
        """The stream as a DataFrame of Spark: Spark's own operators over its sources, for a query of your own.

        Nothing runs before you run the DataFrame, as a batch if its sources are static, else as a stream: Spark keeps
        state and offsets, and its differences from Kafka Streams are those of the relational path (docs/spark.md). Rows
        of `from_dataframe` come straight from their DataFrames; topics are read from their beginning.

        Parameters
        ----------
        spark : SparkSession, optional
            The active one by default.
        config : Config or mapping, optional
            Where topics are (`bootstrap.servers` or `log.dir`), and `spark.kstreams.max.records` for each trigger.

        Returns
        -------
        DataFrame
            Columns `key` and `value` (typed where their types are known) and `timestamp`.

        Raises
        ------
        TopologyError
            When an operator has no form in DataFrames: names it and your line.

        Examples
        --------
        >>> import kstreams as ks
        >>> orders = ks.StreamsBuilder().stream("orders", key=str, value=int)
        >>> frame = orders.filter(ks.value > 100).to_dataframe(spark)  # doctest: +SKIP
        >>> query = frame.writeStream.toTable("large_orders")  # doctest: +SKIP
        """
        import_module("kstreams.spark")  # by name, since the DSL knows no engine; says what is missing for this one
        return import_module("kstreams.runtime.spark.dataframes").dataframe_of(self._graph, self._node, spark, config)


def _check(place: str, name: object, value: object) -> None:
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


def in_sample(
    fraction: float, seed: int, part: Callable[[Any, Any], Any] | None, serde: Serde
) -> Callable[[Any, Any], bool]:
    """Whether a record is in the sample: its key is, or what `part(key, value)` takes of it.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> keep = in_sample(0.25, 0, None, serde_of(str))
    >>> sum(keep(str(number), None) for number in range(1_000))
    246
    """
    below = int(fraction * 2**32)
    salt = seed.to_bytes(8, "big", signed=True)
    serialize = serde.serialize

    def keep(key: object, value: object) -> bool:
        sampled = key if part is None else part(key, value)
        return murmur2(salt + (b"" if sampled is None else serialize(sampled))) < below

    return keep


def _the_key(key: object, value: object) -> Any:
    return key
