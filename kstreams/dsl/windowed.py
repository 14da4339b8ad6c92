"""`TimeWindowedKStream`: a grouped stream, cut into windows of event time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kstreams.dsl.aggregation import fold_or_expressions
from kstreams.dsl.emit import EmitStrategy
from kstreams.dsl.graph import Aggregation, Count, Reduce, Typing, WindowedAggregate
from kstreams.dsl.materialized import Materialized
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.record import Windowed
from kstreams.windows import TimeWindows, UnlimitedWindows

if TYPE_CHECKING:
    from kstreams.dsl.grouped import KGroupedStream
    from kstreams.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")


class TimeWindowedKStream(Generic[K, V]):
    """What `windowed_by(TimeWindows(...))` gives; aggregates by key and window. Kafka Streams: `TimeWindowedKStream`.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str).group_by_key()
    >>> hourly = clicks.windowed_by(TimeWindows(size=timedelta(hours=1))).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
    >>> hourly.count("clicks-by-hour").to_stream().to("final-counts")
    """

    __slots__ = ("_emit", "_grouped", "_windows")

    def __init__(
        self,
        grouped: KGroupedStream[K, V],
        windows: TimeWindows | UnlimitedWindows,
        emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    ) -> None:
        self._grouped, self._windows, self._emit = grouped, windows, emit

    def emit_strategy(self, emit: EmitStrategy) -> TimeWindowedKStream[K, V]:
        """When results are emitted; every update by default. Kafka Streams: `emitStrategy`.

        Raises
        ------
        ValueError
            When windows without an end should emit at their close.
        """
        if emit is EmitStrategy.ON_WINDOW_CLOSE and isinstance(self._windows, UnlimitedWindows):
            raise ValueError("unlimited windows never close: emit them on update")
        return TimeWindowedKStream(self._grouped, self._windows, emit)

    def count(
        self, materialized: str | Materialized | None = None, *, key: Typing = None, name: str | None = None
    ) -> KTable[Windowed[K], int]:
        """How many records each key has in each window; null values count too. Kafka Streams: `count`."""
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
        """`reducer(aggregate, value)` over the values of each key and window. Kafka Streams: `reduce`."""
        return self._aggregate(Reduce(reducer), "REDUCE", key, value, materialized, name)

    def aggregate(
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
        """Aggregate each key and window by functions, or by named expressions; as `KGroupedStream.aggregate`."""
        aggregation = fold_or_expressions(self._grouped._node, initializer, aggregator, fields)
        return self._aggregate(aggregation, "AGGREGATE", key, value, materialized, name)

    def _aggregate(
        self,
        aggregation: Aggregation,
        kind: str,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        kept = self._checked(Materialized.of(materialized))
        described = (materialized, key, value) != (None, None, None)
        store = self._grouped._store_name(kind, kept, burns=described and isinstance(aggregation, Count))
        node = WindowedAggregate(
            aggregation=aggregation,
            windows=self._windows,
            emit=self._emit,
            store=store,
            grouped=self._grouped._grouped,
            key=key,
            value=value,
            materialized=kept,
        )
        return self._grouped._add_aggregate(node, kind, store, name)

    def _checked(self, kept: Materialized) -> Materialized:
        needed = self._windows.retention_ms if isinstance(self._windows, TimeWindows) else 0
        if kept.retention_ms is not None and kept.retention_ms < needed:
            raise TopologyError(
                f"a retention of {kept.retention_ms} ms is too short for {self._windows}: "
                f"keep windows for size + grace = {needed} ms at least"
            )
        return kept
