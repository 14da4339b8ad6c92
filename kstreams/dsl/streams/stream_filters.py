"""Operators of a stream that pass records on as they are, or leave them out: filters, and functions that only look."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

from kstreams.dsl.graph import CallOptions, Filter, Foreach, NamedCallOptions, Peek, calls_of, taking
from kstreams.dsl.handle import Handle
from kstreams.expressions import Expr
from kstreams.record import RecordWithMetadata

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")


class StreamFilters(Handle, Generic[K, V]):
    """The operators of `KStream` that change no record; for `with_record` and `**calls` see `map_values`."""

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
        node = Filter(predicate=taking(predicate, with_record=with_record), calls=calls_of(predicate, **calls))
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
            predicate=taking(predicate, with_record=with_record), negate=True, calls=calls_of(predicate, **calls)
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
        node = Peek(function=taking(function, with_record=with_record), calls=calls_of(function, **calls))
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
        node = Foreach(function=taking(function, with_record=with_record), calls=calls_of(function, **calls))
        self._then(node, "KSTREAM-FOREACH-", name)
