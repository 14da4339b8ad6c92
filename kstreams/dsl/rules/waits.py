"""Rules of delays, throttles and schedules."""

from __future__ import annotations

from kstreams.dsl.analysis.types import unchanged
from kstreams.dsl.graph.waits import Delay, Schedule, Throttle
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.stateless import takes
from kstreams.processor.operators.waiting.delay import DelayOperator, ThrottleOperator
from kstreams.processor.operators.waiting.schedule import ScheduleOperator


def delay(node: Delay, build: Lowering) -> str:
    store = build.waiting_records(node)
    if node.until is None:
        return build.processor(node, DelayOperator(store, for_ms=node.for_ms), stores=(store,))
    arguments = takes(node.until, with_key=True)
    until = build.record_function(node, node.until, arguments.value)
    return build.processor(node, DelayOperator(store, until, takes=arguments), stores=(store,))


def throttle(node: Throttle, build: Lowering) -> str:
    store = build.waiting_records(node)
    return build.processor(node, ThrottleOperator(store, node.records, node.per_ms), stores=(store,))


def schedule(node: Schedule, build: Lowering) -> str:
    store = build.waiting_records(node)
    return build.processor(node, ScheduleOperator(store, node.next_after), stores=(store,))


OPERATORS = (
    OperatorDescriptor(node=Delay, types=unchanged, topology=delay),
    OperatorDescriptor(node=Throttle, types=unchanged, topology=throttle),
    OperatorDescriptor(node=Schedule, types=unchanged, topology=schedule),
)
