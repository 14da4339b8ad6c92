"""`count`, `reduce` and `aggregate` of streams that are grouped by key, or by key and window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from kstreams.dsl.graph import Aggregation, Count, Declared, Expressions, Fold, Reduce, Typing
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
G = TypeVar("G")
"""The key of a group, and so of the table: the key of the records, or `Windowed` of it."""


class CountAndReduce(SuggestsNames, Generic[K, V, G]):
    """The aggregations that all kinds of groups have."""

    __slots__ = ()

    def count(
        self, materialized: str | Materialized | None = None, *, key: Typing = None, name: str | None = None
    ) -> KTable[G, int]:
        """Count the records of each key, or of each key and window. Kafka Streams: `count`.

        Records with a null key are not counted. Records with a null value are counted in windows only, except in
        sliding windows.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> counts = clicks.count("clicks-per-user")
        >>> recent = clicks.windowed_by(ks.SlidingWindows(difference=60_000, grace=5_000)).count("last-minute")
        """
        return self._aggregate(Count(), key=key, value=None, materialized=materialized, name=name)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[G, V]:
        """Combine the values of each key, or of each key and window, into one. Kafka Streams: `reduce`.

        Parameters
        ----------
        reducer : callable
            `(aggregate, value) -> aggregate`; the first value of a group is its first aggregate.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> highest = clicks.reduce(max, materialized="highest")
        >>> per_minute = clicks.windowed_by(ks.TimeWindows(size=60_000, advance=10_000)).reduce(max)
        """
        return self._aggregate(Reduce(reducer), key=key, value=value, materialized=materialized, name=name)

    def _aggregate(
        self,
        aggregation: Aggregation,
        *,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[G, Any]:
        """Add the node of an aggregation."""
        raise NotImplementedError


class CountReduceAndAggregate(CountAndReduce[K, V, G]):
    """The aggregations of groups that never merge, as sessions do."""

    __slots__ = ()

    @overload
    def aggregate(
        self,
        initializer: Callable[[], object],
        aggregator: Callable[[K, V, Any], object],
        *,
        key: Typing = None,
        value: Declared[A],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[G, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[G, A]: ...
    @overload
    def aggregate(
        self,
        *,
        key: Typing = None,
        value: Declared[A],
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[G, A]: ...
    @overload
    def aggregate(
        self,
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[G, Any]: ...
    def aggregate(  # type: ignore[misc]  # no field is called initializer
        self,
        initializer: Callable[[], object] | None = None,
        aggregator: Callable[[K, V, Any], object] | None = None,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[G, Any]:
        """Aggregate each key, or each key and window, by functions or by expressions. Kafka Streams: `aggregate`.

        Parameters
        ----------
        initializer : callable
            Returns the aggregate before the first record of a group.
        aggregator : callable
            `(key, value, aggregate) -> aggregate`; None deletes. It may change the aggregate in place.
        value : type or Serde, optional
            Type of the aggregate, if the aggregator and the initializer have no return annotation.
        **fields : expression
            Instead of functions: the fields of the result, such as `flights=ks.len()`; `value=` may set its type.

        Raises
        ------
        TopologyError
            If there are both functions and expressions, or neither.

        Examples
        --------
        >>> import kstreams as ks
        >>> words = ks.StreamsBuilder().stream("words", key=str, value=str).group_by_key()
        >>> letters = words.aggregate(int, lambda key, word, letters: letters + len(word))
        >>> per_minute = words.windowed_by(ks.TimeWindows(size=60_000)).aggregate(words=ks.len(), last=ks.value.max())
        """
        aggregation = fold_or_expressions(initializer, aggregator, fields)
        return self._aggregate(aggregation, key=key, value=value, materialized=materialized, name=name)


def fold_or_expressions(
    initializer: Callable[[], object] | None,
    aggregator: Callable[[Any, Any, Any], object] | None,
    fields: dict[str, Expr],
    merger: Callable[[Any, Any, Any], object] | None = None,
) -> Fold | Expressions:
    """Return the aggregation that the arguments of `aggregate` describe: functions, or named expressions."""
    for name, field in fields.items():
        if not isinstance(field, Expr):
            raise TopologyError(
                f"aggregate() at {declared_at()} takes expressions as fields, such as {name}=ks.len(), not {field!r}"
            )
    if fields and initializer is None and aggregator is None and merger is None:
        return Expressions(fields)
    if not fields and initializer is not None and aggregator is not None:
        return Fold(initializer, aggregator, merger)
    raise TopologyError(
        f"aggregate() at {declared_at()} takes either an initializer and an aggregator, or named expressions "
        "such as count=ks.len()"
    )
