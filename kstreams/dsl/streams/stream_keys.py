"""Operators of a stream that give records new keys: a later grouping or join repartitions."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

from kstreams.dsl.graph import (
    CallOptions,
    Declared,
    FlatMap,
    Map,
    NamedCallOptions,
    SelectKey,
    Typing,
    calls_of,
    taking,
)
from kstreams.dsl.handle import Handle
from kstreams.expressions import Expr
from kstreams.record import RecordWithMetadata

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class StreamKeys(Handle, Generic[K, V]):
    """The operators of `KStream` that may change keys; for `with_record` and `**calls` see `map_values`."""

    __slots__ = ()

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
            function=taking(function, with_record=with_record), key=key, value=value, calls=calls_of(function, **calls)
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
            function=taking(function, with_record=with_record), key=key, value=value, calls=calls_of(function, **calls)
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
        node = SelectKey(function=taking(function, with_record=with_record), key=key, calls=calls_of(function, **calls))
        return self._graph.stream(self._then(node, "KSTREAM-KEY-SELECT-", name))
