"""`TimeWindowedKStream`: a grouped stream, cut into windows of event time; and what all windowed streams share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from kstreams.dsl.aggregation.aggregation import fold_or_expressions
from kstreams.dsl.aggregation.emit import EmitStrategy
from kstreams.dsl.graph import Aggregation, Count, Declared, Reduce, Typing, WindowedAggregate
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.dsl.window_kinds import window_kind
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at
from kstreams.record import Windowed
from kstreams.windows import Windows

if TYPE_CHECKING:
    from kstreams.dsl.aggregation.grouped import KGroupedStream
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class WindowedKStream(SuggestsNames, Generic[K, V]):
    """A grouped stream and its windows: what does not depend on the kind of windows."""

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
        """When results are emitted; every update by default. Kafka Streams: `emitStrategy`.

        Raises
        ------
        ValueError
            When windows without an end should emit at their close.

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
        if emit is EmitStrategy.ON_WINDOW_CLOSE and not window_kind(self._windows).closes:
            raise ValueError("unlimited windows never close: emit them on update")
        return type(self)(self._grouped, self._windows, emit)

    def count(
        self, materialized: str | Materialized | None = None, *, key: Typing = None, name: str | None = None
    ) -> KTable[Windowed[K], int]:
        """How many records each key has in each window. Kafka Streams: `count`.

        Records with a null value count too, but not in sliding windows.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> counts = clicks.windowed_by(ks.SlidingWindows(difference=60_000, grace=5_000)).count("last-minute")
        """
        return self._aggregate(Count(), "AGGREGATE", key, None, materialized, name)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], V]:
        """`reducer(aggregate, value)` over the values of each key and window. Kafka Streams: `reduce`.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> highest = clicks.windowed_by(ks.TimeWindows(size=60_000, advance=10_000)).reduce(max)
        """
        return self._aggregate(Reduce(reducer), "REDUCE", key, value, materialized, name)

    def _aggregate(
        self,
        aggregation: Aggregation,
        kind: str,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        materialization = checked_retention(materialized, self._windows)
        described = (materialized, key, value) != (None, None, None)
        # Kafka Streams takes a number too many for unnamed counts, but in the younger sliding windows.
        burns = described and isinstance(aggregation, Count) and window_kind(self._windows).numbers_counts
        store = self._grouped._store_name(kind, materialization, burns=burns)
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
        return self._grouped._add_aggregate(node, kind, store, name)


def checked_retention(materialized: str | Materialized | None, windows: Windows) -> Materialized:
    """How windows are kept; an error when it is not for long enough."""
    materialization = Materialized.of(materialized, windows=True, history=True)
    if materialization.history_retention_ms is not None:
        raise TopologyError(f"windows at {declared_at()} keep no history: say retention=, not history_retention=")
    needed_ms = window_kind(windows).needed_retention_ms(windows)
    if materialization.retention_ms is not None and materialization.retention_ms < needed_ms:
        raise TopologyError(
            f"a retention of {materialization.retention_ms} ms at {declared_at()} is too short for {windows}: "
            f"late records need windows to be kept for {needed_ms} ms at least"
        )
    return materialization


class TimeWindowedKStream(WindowedKStream[K, V]):
    """What `windowed_by` gives for windows of a fixed size; aggregates by key and window.

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
        """How many records of each key come per second, hour or whatever time, in each window: its count over its size.

        Parameters
        ----------
        per : timedelta or int (ms)
            The unit of time.

        Raises
        ------
        TopologyError
            When the windows have no size, or the unit is not positive.

        Examples
        --------
        >>> from datetime import timedelta
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> from kstreams.windows import TimeWindows
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str).group_by_key()
        >>> per_second = clicks.windowed_by(TimeWindows(size=timedelta(minutes=1))).rate(per=timedelta(seconds=1))
        """
        windows = self._windows
        size_ms = window_kind(self._windows).size_ms
        if size_ms is None:
            raise TopologyError(f"rate() at {declared_at()} is over windows of one size, not {windows!r}")
        if to_ms(per) < 1:
            raise TopologyError(f"rate() at {declared_at()} needs a unit of at least 1 ms, not {to_ms(per)} ms")
        share = to_ms(per) / size_ms(windows)
        counts = self.count(key=key, name=name)
        return counts.map_values(lambda count: count * share, value=float, materialized=materialized)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[K, V, Any], Any],
        *,
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
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[Windowed[K], Any]:
        """Aggregate each key and window by functions, or by named expressions; as `KGroupedStream.aggregate`.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> windows = clicks.windowed_by(ks.TimeWindows(size=60_000))
        >>> sums = windows.aggregate(int, lambda user, points, total: total + points, value=int)
        >>> means = windows.aggregate(mean=ks.value.mean(), most=ks.value.max())
        """
        aggregation = fold_or_expressions(initializer, aggregator, fields)
        return self._aggregate(aggregation, "AGGREGATE", key, value, materialized, name)
