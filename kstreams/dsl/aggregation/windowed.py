"""`TimeWindowedKStream` and `SessionWindowedKStream`: streams grouped by key and window of event time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from kstreams.dsl.aggregation.methods import CountAndReduce, CountReduceAndAggregate, fold_or_expressions
from kstreams.dsl.graph import Aggregation, Count, Declared, EmitStrategy, Typing, WindowedAggregate
from kstreams.dsl.materialized import Materialized
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at
from kstreams.record import Windowed
from kstreams.windows import SlidingWindows, Windows

if TYPE_CHECKING:
    from kstreams.dsl.aggregation.grouped import KGroupedStream
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class WindowedKStream(CountAndReduce[K, V, Windowed[K]]):
    """A stream grouped by key and window: the methods that all kinds of windows have."""

    __slots__ = ("_emit", "_grouped", "_windows")

    def __init__(
        self,
        grouped: KGroupedStream[K, V],
        windows: Windows,
        emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    ) -> None:
        self._grouped = grouped
        self._windows = windows
        self._emit = emit

    def emit_strategy(self, emit: EmitStrategy) -> Self:
        """Set when results are emitted; without it, at every update. Kafka Streams: `emitStrategy`.

        Raises
        ------
        ValueError
            If results are to be emitted on close, and the windows never close.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> per_hour = clicks.windowed_by(ks.TimeWindows(size=3_600_000)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
        """
        if not isinstance(emit, EmitStrategy):
            raise TopologyError(
                f"emit_strategy() at {declared_at()} takes EmitStrategy.ON_WINDOW_CLOSE or ON_WINDOW_UPDATE, "
                f"not {emit!r}"
            )
        if emit is EmitStrategy.ON_WINDOW_CLOSE and not self._windows.closes:
            raise ValueError("unlimited windows never close: emit them on update")
        return type(self)(self._grouped, self._windows, emit)

    def _aggregate(
        self,
        aggregation: Aggregation,
        *,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Windowed[K], Any]:
        materialization = checked_retention(materialized, self._windows)
        described = (materialized, key, value) != (None, None, None)
        # Kafka Streams takes one more number for the name of a described count, except by sliding windows.
        skip_number = described and isinstance(aggregation, Count) and not isinstance(self._windows, SlidingWindows)
        store = self._grouped._store_name(aggregation, materialization, skip_number=skip_number)
        node = WindowedAggregate(
            aggregation=aggregation,
            windows=self._windows,
            emit=self._emit,
            store=store,
            grouped=self._grouped._grouped,
            key=key,
            value=value,
            materialized=materialization,
        )
        return self._grouped._add_aggregate(node, name)


def checked_retention(materialized: str | Materialized | None, windows: Windows) -> Materialized:
    """Return the settings of a window store; raise a TopologyError if its retention is too short."""
    materialization = Materialized.of(materialized, windows=True, history=True)
    if materialization.history_retention_ms is not None:
        raise TopologyError(f"windows at {declared_at()} keep no history: say retention=, not history_retention=")
    least_ms = windows.least_retention_ms
    if materialization.retention_ms is not None and materialization.retention_ms < least_ms:
        raise TopologyError(
            f"a retention of {materialization.retention_ms} ms at {declared_at()} is too short for {windows}: "
            f"late records need windows to be kept for {least_ms} ms at least"
        )
    return materialization


class TimeWindowedKStream(WindowedKStream[K, V], CountReduceAndAggregate[K, V, Windowed[K]]):
    """A stream grouped by key and window; `windowed_by` returns it for windows that never merge.

    Kafka Streams: `TimeWindowedKStream`.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> from kstreams.windows import TimeWindows
    >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str).group_by_key()
    >>> hourly = clicks.windowed_by(TimeWindows(size=timedelta(hours=1))).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
    >>> hourly.count("clicks-by-hour").to_stream().to("final-counts")
    """

    __slots__ = ()

    def rate(
        self,
        per: Duration,
        *,
        key: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], float]:
        """Count records per unit of time: the count of each key and window, divided by the size of the window.

        Parameters
        ----------
        per : timedelta or int (ms)
            The unit of time.

        Raises
        ------
        TopologyError
            If the windows do not have one size, or the unit is not positive.

        Examples
        --------
        >>> from datetime import timedelta
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> from kstreams.windows import TimeWindows
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str).group_by_key()
        >>> per_second = clicks.windowed_by(TimeWindows(size=timedelta(minutes=1))).rate(per=timedelta(seconds=1))
        """
        windows = self._windows
        size_ms = windows.fixed_size_ms
        if size_ms is None:
            raise TopologyError(f"rate() at {declared_at()} is over windows of one size, not {windows!r}")
        if to_ms(per) < 1:
            raise TopologyError(f"rate() at {declared_at()} needs a unit of at least 1 ms, not {to_ms(per)} ms")
        share = to_ms(per) / size_ms
        counts = self.count(key=key, name=name)
        return counts.map_values(lambda count: count * share, value=float, materialized=materialized)


class SessionWindowedKStream(WindowedKStream[K, V]):
    """A stream grouped by key and session; `windowed_by(SessionWindows(...))` returns it.

    A record between two sessions merges them: both are deleted, then the merged session is emitted.
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
        initializer: Callable[[], object],
        aggregator: Callable[[K, V, Any], object],
        *,
        merger: Callable[[K, Any, Any], object],
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
        initializer: Callable[[], object] | None = None,
        aggregator: Callable[[K, V, Any], object] | None = None,
        *,
        merger: Callable[[K, Any, Any], object] | None = None,
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
            Returns the aggregate before the first record of a session.
        aggregator : callable
            `(key, value, aggregate) -> aggregate`; None deletes.
        merger : callable
            `(key, aggregate, aggregate) -> aggregate` for two sessions that become one. It is also called with the
            initial aggregate as the first one, and must then return the second one.
        value : type or Serde, optional
            Type of the aggregate, if the aggregator and the initializer have no return annotation.
        **fields : expression
            Instead of functions: the fields of the result. Expressions that depend on the order of records raise an
            error.

        Raises
        ------
        TopologyError
            If there are both functions and expressions, or no merger.

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
        return self._aggregate(aggregation, key=key, value=value, materialized=materialized, name=name)
