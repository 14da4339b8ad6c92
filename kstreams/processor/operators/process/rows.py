"""How a processor of the user's own is bound: the one place that knows which context each kind is given."""

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
    entered,
)
from kstreams.processor.topology.operator import Forward, ProcessOperator, ProcessorKind
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
    supplied, make = _GIVEN[operator.kind]
    processor = operator.supplier()
    own = supplied(context, forward)
    context.follow_stream_time()
    _check_methods(context.node, processor)
    _init(processor, own)
    context.at_close(processor.close)
    take = entered(own, processor.process)
    current = context.current

    def process(key: object, value: object, timestamp: int) -> None:
        take(make(key=key, value=value, timestamp=timestamp, headers=current.headers))

    return process


def _check_methods(node: str, processor: object) -> None:
    """Raise a TopologyError for a processor whose methods cannot be called as they will be."""
    for method, argument in (("init", "context"), ("process", "record")):
        function = getattr(processor, method)
        if not can_be_called(function, 1):
            raise TopologyError(
                f"{node} calls {method}({argument}) of {type(processor).__name__}, which takes "
                f"{parameters_of(function)}: let it take self and one argument, the {argument}"
            )


def _init(processor: Any, context: TaskProcessingContext) -> None:
    """Initialize a processor; an error about a name that the context does not have suggests another."""
    try:
        processor.init(context)
    except AttributeError as error:
        if spoken(error) == str(error):
            raise
        raise AttributeError(spoken(error)) from error
