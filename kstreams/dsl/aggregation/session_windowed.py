"""`SessionWindowedKStream`: a grouped stream, cut into sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from kstreams.dsl.aggregation.aggregation import fold_or_expressions
from kstreams.dsl.aggregation.windowed import WindowedKStream
from kstreams.dsl.graph import Declared, Typing
from kstreams.dsl.materialized import Materialized
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at
from kstreams.record import Windowed

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class SessionWindowedKStream(WindowedKStream[K, V]):
    """What `windowed_by(SessionWindows(...))` gives; aggregates by key and session.

    A record between two sessions merges them: both are deleted, then the new one is emitted.
    Kafka Streams: `SessionWindowedKStream`.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> from kstreams.windows import SessionWindows
    >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str).group_by_key()
    >>> visits = clicks.windowed_by(SessionWindows(gap=timedelta(minutes=30))).count("clicks-by-visit")
    """

    __slots__ = ()

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[K, V, Any], Any],
        *,
        merger: Callable[[K, Any, Any], Any],
        key: Typing = None,
        value: Declared[A],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        *,
        merger: Callable[[K, A, A], A],
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        *,
        key: Typing = None,
        value: Declared[A],
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[Windowed[K], Any]: ...
    def aggregate(  # type: ignore[misc]  # no field is called initializer
        self,
        initializer: Callable[[], Any] | None = None,
        aggregator: Callable[[K, V, Any], Any] | None = None,
        *,
        merger: Callable[[K, Any, Any], Any] | None = None,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[Windowed[K], Any]:
        """Aggregate each key and session by functions, or by named expressions. Kafka Streams: `aggregate`.

        Parameters
        ----------
        initializer : callable
            The aggregate before the first record of a session.
        aggregator : callable
            `(key, value, aggregate) -> aggregate`; None deletes.
        merger : callable
            `(key, aggregate, aggregate) -> aggregate` of two sessions that become one. It is called with the initial
            aggregate first, which must change nothing.
        value : type or Serde, optional
            Type of the aggregate, where the return annotation of the aggregator or initializer does not say.
        **fields : expression
            Instead of functions: the result has these fields; those that depend on the order of records are refused.

        Raises
        ------
        TopologyError
            When functions and expressions are mixed, or the merger is missing.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> from kstreams.windows import SessionWindows
        >>> words = StreamsBuilder().stream("words", key=str, value=str).group_by_key()
        >>> visits = words.windowed_by(SessionWindows(gap=1_000))
        >>> letters = visits.aggregate(int, lambda k, word, n: n + len(word), merger=lambda k, a, b: a + b)
        """
        aggregation = fold_or_expressions(initializer, aggregator, fields, merger)
        if aggregator is not None and merger is None:
            raise TopologyError(
                f"aggregate() at {declared_at()} by sessions needs merger=: (key, aggregate, aggregate) -> aggregate "
                "of two sessions that become one"
            )
        return self._aggregate(aggregation, "AGGREGATE", key, value, materialized, name)
