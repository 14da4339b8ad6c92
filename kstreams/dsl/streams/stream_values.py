"""Operators of a stream that give records new values and leave their keys."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

from kstreams.dsl.graph import (
    CallOptions,
    Declared,
    FlatMapValues,
    MapBatch,
    MapValues,
    NamedCallOptions,
    Typing,
    calls_of,
    taking,
)
from kstreams.dsl.handle import Handle
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at
from kstreams.processor.operators.map_batch.frames import Format, Frames, check_format
from kstreams.record import RecordWithMetadata

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")


class StreamValues(Handle, Generic[K, V]):
    """The operators of `KStream` that change values; for `**calls` see `map_values`."""

    __slots__ = ()

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
            function=taking(function, with_record=with_record, with_key=with_key),
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
            function=taking(function, with_record=with_record, with_key=with_key),
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
