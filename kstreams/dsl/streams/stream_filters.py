"""Operators of a stream that pass records on as they are, or leave them out: filters, and functions that only look."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from kstreams.dsl.graph import CallOptions, Filter, Foreach, Peek, calls_of
from kstreams.dsl.handle import Handle
from kstreams.expressions import Expr

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")


class StreamFilters(Handle, Generic[K, V]):
    """The operators of `KStream` that change no record; for `**calls` see `map_values`."""

    __slots__ = ()

    def filter(
        self, predicate: Callable[[K, V], Any] | Expr, *, name: str | None = None, **calls: Unpack[CallOptions]
    ) -> KStream[K, V]:
        """The records for which `predicate(key, value)` holds. Kafka Streams: `filter`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.filter(lambda key, word: len(word) > 3).to("long-words")
        >>> words.filter(ks.value != "the").to("telling-words")
        """
        node = Filter(predicate=predicate, calls=calls_of(predicate, **calls))
        return self._graph.stream(self._then(node, "KSTREAM-FILTER-", name))

    def filter_not(
        self, predicate: Callable[[K, V], Any] | Expr, *, name: str | None = None, **calls: Unpack[CallOptions]
    ) -> KStream[K, V]:
        """The records for which `predicate(key, value)` does not hold. Kafka Streams: `filterNot`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.filter_not(lambda key, word: word in {"a", "the"}).to("telling-words")
        """
        node = Filter(predicate=predicate, negate=True, calls=calls_of(predicate, **calls))
        return self._graph.stream(self._then(node, "KSTREAM-FILTER-", name))

    def peek(
        self, function: Callable[[K, V], Any], *, name: str | None = None, **calls: Unpack[CallOptions]
    ) -> KStream[K, V]:
        """The same records, after `function(key, value)` has seen each. Kafka Streams: `peek`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> seen = words.peek(lambda key, word: print(key, word))
        """
        node = Peek(function=function, calls=calls_of(function, **calls))
        return self._graph.stream(self._then(node, "KSTREAM-PEEK-", name))

    def foreach(
        self, function: Callable[[K, V], Any], *, name: str | None = None, **calls: Unpack[CallOptions]
    ) -> None:
        """Call `function(key, value)` for each record. Kafka Streams: `foreach`.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str)
        >>> words.foreach(lambda key, word: print(key, word))
        """
        node = Foreach(function=function, calls=calls_of(function, **calls))
        self._then(node, "KSTREAM-FOREACH-", name)
