"""A user's own processor as a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.process.contexts import (
    FixedKeyProcessorContext,
    GlobalStoreContext,
    ProcessingContext,
    ProcessorContext,
    entered,
)
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology
from kstreams.processor.topology.operator import Forward
from kstreams.record import FixedKeyRecord, Record


def processor_steps(sub_topology: SubTopology) -> Iterator[ProcessorNode]:
    """The steps that run a user's own processor, which may want to be called as stream time goes on."""
    steps = (node for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return (step for step in steps if getattr(step.operator, "runs_processor", False))


@dataclass(frozen=True, slots=True)
class ProcessOperator:
    """Runs a processor that `supplier()` makes, a new one for each task."""

    context: ClassVar[type[ProcessingContext]] = ProcessorContext
    record: ClassVar[type] = Record
    runs_processor: ClassVar[bool] = True

    supplier: Callable[[], Any]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        processor, own = self.supplier(), self.context(context, forward)
        context.task.follows_time = True
        processor.init(own)
        context.at_close(processor.close)
        take, make, task = entered(own, processor.process), self.record, context.task

        def process(key: Any, value: Any, timestamp: int) -> None:
            take(make(key=key, value=value, timestamp=timestamp, headers=task.headers))

        return process


class ProcessValuesOperator(ProcessOperator):
    """Runs a processor that leaves keys as they are."""

    __slots__ = ()

    context = FixedKeyProcessorContext
    record = FixedKeyRecord


class GlobalStoreOperator(ProcessOperator):
    """Runs the processor that fills a global store."""

    __slots__ = ()

    context = GlobalStoreContext
