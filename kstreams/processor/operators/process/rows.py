"""The binding of users' processors, with the context for each kind of processor."""

from __future__ import annotations

from typing import Any

from kstreams.errors import TopologyError
from kstreams.kernel.advice import spoken
from kstreams.kernel.arity import can_be_called, parameters_of
from kstreams.processor.context.operator_context import OperatorContext, bind_operator
from kstreams.processor.operators.process.contexts import (
    GlobalStoreContext,
    TaskFixedKeyProcessorContext,
    TaskProcessingContext,
    TaskProcessorContext,
    while_active,
)
from kstreams.processor.topology.operator import Forward, ProcessOperator, ProcessorKind
from kstreams.record import FixedKeyRecord, Record

_CONTEXT_AND_RECORD: dict[ProcessorKind, tuple[type[TaskProcessingContext], type]] = {
    ProcessorKind.ANY_KEY: (TaskProcessorContext, Record),
    ProcessorKind.FIXED_KEY: (TaskFixedKeyProcessorContext, FixedKeyRecord),
    ProcessorKind.GLOBAL_STORE: (GlobalStoreContext, Record),
}
"""The context of each kind of processor, and the type of record that it takes."""


@bind_operator.register
def _(operator: ProcessOperator, context: OperatorContext, forward: Forward) -> Forward:
    return context.guarded(process_closure(operator, context, forward))


def process_closure(operator: ProcessOperator, context: OperatorContext, forward: Forward) -> Forward:
    """Return the closure that passes records to a new processor."""
    context_type, record_type = _CONTEXT_AND_RECORD[operator.kind]
    processor = operator.supplier()
    processor_context = context_type(context, forward)
    context.follow_stream_time()
    _check_methods(context.node, processor)
    _init(processor, processor_context)
    context.at_close(processor.close)
    process_record = while_active(processor_context, processor.process)
    current = context.current

    def process(key: object, value: object, timestamp: int) -> None:
        process_record(record_type(key=key, value=value, timestamp=timestamp, headers=current.headers))

    return process


def _check_methods(node: str, processor: object) -> None:
    """Raise a TopologyError if `init` or `process` of a processor does not take exactly one argument."""
    for method, argument in (("init", "context"), ("process", "record")):
        function = getattr(processor, method)
        if not can_be_called(function, 1):
            raise TopologyError(
                f"{node} calls {method}({argument}) of {type(processor).__name__}, which takes "
                f"{parameters_of(function)}: let it take self and one argument, the {argument}"
            )


def _init(processor: Any, context: TaskProcessingContext) -> None:
    """Initialize a processor. If it uses a name that the context does not have, the error suggests a similar name."""
    try:
        processor.init(context)
    except AttributeError as error:
        if spoken(error) == str(error):
            raise
        raise AttributeError(spoken(error)) from error
