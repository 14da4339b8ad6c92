"""One aggregate per key, updated by each record of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.aggregator import Aggregator
from kstreams.processor.operators.aggregation.emission import MaterializedRows, Results, emitter
from kstreams.processor.operators.aggregation.live_aggregation import AggregateHandle
from kstreams.processor.topology.operator import Forward
from kstreams.record import ValueAndTimestamp


@dataclass(frozen=True, slots=True)
class AggregateOperator(ClosureOperator):
    """Aggregates the records of each key. Records with a null key or value are dropped."""

    aggregator: Aggregator
    table_rows: MaterializedRows

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        store = context.state_store(self.table_rows.store)
        emit = emitter(context, forward, self.table_rows, result=self.aggregator.result)
        live = AggregateHandle(store, lambda window: emit)
        context.share_with_columns(live)
        updater, wrap = self.aggregator.row_updater(context, self.table_rows)
        live.members = updater.members
        update = updater.bind(store.get, store.put, emit)
        dropped = context.dropped

        def process(key: object, value: object, timestamp: int) -> None:
            if key is None or value is None:
                dropped("null key or value")
                return
            update(key, value, timestamp)

        return wrap(process)


@dataclass(frozen=True, slots=True)
class ResultView(TableView):
    """Looks rows up in the store of an aggregation, and returns the results of their aggregates."""

    parent: TableView
    result: Results
    member_stores: tuple[str, ...] = ()

    @property
    def stores(self) -> tuple[str, ...]:
        return *self.parent.stores, *self.member_stores

    def bind(self, context: OperatorContext) -> ValueGetter:
        get = self.parent.bind(context)
        result = self.result.bind(context)

        def look_up(key: object) -> ValueAndTimestamp[object] | None:
            row = get(key)
            return None if row is None else ValueAndTimestamp(result(key, row[0]), row[1])

        return look_up
