"""One aggregate per key, updated by each record of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_binding import ClosureOperator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.emission import Emit, emitter, make_tuple
from kstreams.processor.operators.aggregation.live_aggregation import AggregateHandle
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.operators.tables.rows import MaterializedRows
from kstreams.processor.topology.operator import Forward
from kstreams.record import ValueAndTimestamp


@dataclass(frozen=True, slots=True)
class Aggregator:
    """What an aggregation computes, whichever operator keeps its state.

    Parameters
    ----------
    initial : callable
        The aggregate before the first record.
    step : callable
        `step(key, value, aggregate)`, or with the timestamp as fourth argument if `timed`; None deletes. It may change
        the aggregate in place: stores hand out values of mutable types anew each time.
    timed : bool
        Whether `step` takes the timestamp.
    result : callable, optional
        What others see of the aggregate that is stored.
    gave_nothing : callable
        Called when `step` gives None where there was no aggregate, so that there is nothing to delete.
    """

    initial: Callable[[], Any]
    step: Callable[..., Any]
    timed: bool = False
    result: Callable[[Any], Any] | None = None
    gave_nothing: Callable[[], None] = no_warning

    def bind(self) -> tuple[Callable[[Any, Any, Any], Any], Callable[[Forward], Forward]]:
        """`step(key, value, aggregate)`, and what to do with the closure that calls it."""
        return _with_time(self.step) if self.timed else (self.step, _as_it_is)


def _as_it_is(process: Forward) -> Forward:
    return process


def _with_time(step: Callable[[Any, Any, Any, int], Any]) -> tuple[Callable[..., Any], Callable[[Forward], Forward]]:
    """The step as a function of three arguments, and a wrapper that gives it the time of the record."""
    now = 0

    def step_now(key: object, value: object, aggregate: object) -> Any:
        return step(key, value, aggregate, now)

    def keep_time(process: Forward) -> Forward:
        def process_at(key: object, value: object, timestamp: int) -> None:
            nonlocal now
            now = timestamp
            process(key, value, timestamp)

        return process_at

    return step_now, keep_time


class LiveAggregate(AggregateHandle):
    """The live parts of an unwindowed aggregation."""

    __slots__ = ("emit",)

    def __init__(self, store: Any, emit: Emit) -> None:
        super().__init__(store, lambda window: emit)
        self.emit = emit


@dataclass(frozen=True, slots=True)
class AggregateOperator(ClosureOperator):
    """Aggregates the records of each key; those with a null key or value are dropped."""

    aggregator: Aggregator
    kept: MaterializedRows

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        kept = self.kept
        result = self.aggregator.result
        store = context.state_store(kept.store)
        emit = emitter(
            context, forward, caching=kept.caching, sends_old=kept.sends_old, result=result, store=kept.store
        )
        live = LiveAggregate(store, emit)
        context.share_with_columns(live)
        step, wrap = self.aggregator.bind()
        return wrap(self._closure(context, step, live))

    def _closure(self, context: OperatorContext, step: Callable[[Any, Any, Any], Any], live: LiveAggregate) -> Forward:
        initial = self.aggregator.initial
        current = context.current
        dropped = context.dropped
        get = live.store.get
        put_row = live.store.put
        emit = live.emit
        cached = self.kept.caching and context.caching
        gave_nothing = self.aggregator.gave_nothing

        def process(key: object, value: object, timestamp: int) -> None:
            if key is None or value is None:
                dropped("null key or value")
                return
            row = get(key)
            if row is None:
                # Kafka Streams without the cache sends the initial aggregate as old
                old = None
                latest = timestamp
                new = step(key, value, initial())
            else:
                old, latest = row
                latest = timestamp if timestamp > latest else latest
                new = step(key, value, old)
            if new is None:
                if row is None:
                    gave_nothing()
                put_row(key, None)
                latest = timestamp if cached else latest  # a tombstone from the cache has the time of its record
            else:
                put_row(key, make_tuple(ValueAndTimestamp, (new, latest)))
            emit(key, new, old, latest, current.headers)

        return process


@dataclass(frozen=True, slots=True)
class ResultView(TableView):
    """Looks rows up in the store of an aggregation, and gives what others see of its state."""

    parent: TableView
    result: Callable[[Any], Any]

    @property
    def stores(self) -> tuple[str, ...]:
        return self.parent.stores

    def bind(self, context: OperatorContext) -> ValueGetter:
        get = self.parent.bind(context)
        result = self.result

        def look_up(key: object) -> ValueAndTimestamp[object] | None:
            row = get(key)
            return None if row is None else ValueAndTimestamp(result(row[0]), row[1])

        return look_up
