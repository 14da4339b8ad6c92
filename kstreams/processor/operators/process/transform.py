"""Tables whose values a user's processor makes: the value that it forwards for a row is the row's new value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kstreams.kernel.durations import Duration, to_ms
from kstreams.processor.api.processor import FixedKeyProcessor
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.table_view import TableView, ValueGetter
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.process.contexts import TaskFixedKeyProcessorContext, while_active
from kstreams.processor.operators.tables.rows import Mapper, row_writer
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change, FixedKeyRecord, Headers, ValueAndTimestamp


class TransformContext(TaskFixedKeyProcessorContext):
    """The context of a processor of a table. A punctuator cannot forward, because it has no row."""

    __slots__ = ()

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Schedule a punctuator, which cannot forward."""
        return self._context.schedule(to_ms(interval), kind, callback)


@dataclass(frozen=True, slots=True)
class Transformation:
    """Makes the values of a table with processors of `supplier`, one for each task and each view of the table."""

    supplier: Callable[[], FixedKeyProcessor]

    def bind(self, context: OperatorContext, headers: Callable[[], Headers]) -> Mapper:
        """Return `transform(key, value, timestamp)`, which returns the forwarded value or None.

        It must be called for deleted rows too, with the value None.
        """
        transformed = None

        def take_value(key: object, value: object, timestamp: int) -> None:
            nonlocal transformed
            transformed = value

        processor = self.supplier()
        processor_context = TransformContext(context, take_value)
        context.follow_stream_time()
        processor.init(processor_context)
        context.at_close(processor.close)
        process = while_active(processor_context, processor.process)

        def transform(key: object, value: object, timestamp: int) -> Any:
            nonlocal transformed
            transformed = None
            process(FixedKeyRecord(key=key, value=value, timestamp=timestamp, headers=headers()))
            return transformed

        return transform


@dataclass(frozen=True, slots=True)
class TransformOperator(ClosureOperator):
    """Transforms the new value of an update, and the old value if it is needed and no store has it."""

    runs_processor: ClassVar[bool] = True

    transformation: Transformation
    table_rows: MaterializedRows | None = None
    sends_old: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        current = context.current
        sends_old = self.sends_old
        transform = self.transformation.bind(context, lambda: current.headers)
        if self.table_rows is not None:
            write = row_writer(context, forward, self.table_rows)

            def process_stored(key: Any, change: Any, timestamp: int) -> None:
                write(key, transform(key, change[0], timestamp), timestamp)

            return process_stored

        def process(key: Any, change: Any, timestamp: int) -> None:
            new, old, is_latest = change
            new = transform(key, new, timestamp)
            old = transform(key, old, timestamp) if sends_old else None
            forward(key, Change(new, old, is_latest), timestamp)

        return process


@dataclass(frozen=True, slots=True)
class TransformedView(TableView):
    """Looks rows up in the parent of a transformed table without a store, and transforms them, also missing rows."""

    parent: TableView
    transformation: Transformation
    own_stores: tuple[str, ...]

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.parent.stores, *self.own_stores)))

    def bind(self, context: OperatorContext) -> ValueGetter:
        get = self.parent.bind(context)
        transform = self.transformation.bind(context, tuple)

        def look_up(key: object, *as_of_ms: int) -> ValueAndTimestamp[object] | None:
            row = get(key, *as_of_ms)
            value = transform(key, None, 0) if row is None else transform(key, row[0], row[1])
            return None if value is None else ValueAndTimestamp(value, -1 if row is None else row[1])

        return look_up
