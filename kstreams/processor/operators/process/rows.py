"""How a processor of the user's own is bound: the one place that knows which context each kind is given."""

from __future__ import annotations

from typing import Any

from kstreams.processor.context.operator_binding import bind_operator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.process.contexts import (
    GlobalStoreContext,
    TaskFixedKeyProcessorContext,
    TaskProcessingContext,
    TaskProcessorContext,
    entered,
)
from kstreams.processor.topology.operator import Forward
from kstreams.processor.topology.process_operator import ProcessOperator, ProcessorKind
from kstreams.record import FixedKeyRecord, Record

_GIVEN: dict[ProcessorKind, tuple[type[TaskProcessingContext], type]] = {
    ProcessorKind.ANY_KEY: (TaskProcessorContext, Record),
    ProcessorKind.FIXED_KEY: (TaskFixedKeyProcessorContext, FixedKeyRecord),
    ProcessorKind.GLOBAL_STORE: (GlobalStoreContext, Record),
}
"""By kind of processor: its context, and the type of record that it takes."""


@bind_operator.register
def _(operator: ProcessOperator, context: OperatorContext, forward: Forward) -> Forward:
    return context.guarded(_process(operator, context, forward))


def _process(operator: ProcessOperator, context: OperatorContext, forward: Forward) -> Forward:
    made, make = _GIVEN[operator.kind]
    processor, own = operator.supplier(), made(context, forward)
    context.follow_stream_time()
    processor.init(own)
    context.at_close(processor.close)
    take, current = entered(own, processor.process), context.current

    def process(key: Any, value: Any, timestamp: int) -> None:
        take(make(key=key, value=value, timestamp=timestamp, headers=current.headers))

    return process
