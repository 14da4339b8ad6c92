"""Operators of a stream that change the headers of records, and leave all else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from kstreams.dsl.graph import MapHeaders, WithHeaders, taking
from kstreams.dsl.handle import Handle
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.expressions.headers import HeaderValue, header_bytes
from kstreams.kernel.source_line import declared_at
from kstreams.processor.operators.headers import WithoutHeaders
from kstreams.record import Headers, RecordWithMetadata

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")


class StreamHeaders(Handle, Generic[K, V]):
    """The operators of `KStream` that change headers."""

    __slots__ = ()

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
        node = MapHeaders(function=taking(function, with_record=with_record))
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


def _check(place: str, name: Any, value: Any) -> None:
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
