"""A sink from outside of the package that retries: its rule asks for a store of waiting records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import kstreams as ks
from kstreams.dsl.analysis.types import unchanged
from kstreams.dsl.graph import Node
from kstreams.dsl.graph.calls import Retries
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor, register
from kstreams.processor.operators.stateless import ForeachOperator
from kstreams.processor.operators.waiting.retry import RetryOperator
from kstreams.testing import TopologyTestDriver


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Deliver(Node):
    """Delivers each record to a place outside, which may be away."""

    deliver: Annotated[Callable[[Any, Any], None], called_with("key", "value")]
    retries: Retries


def add_deliver(node: Deliver, build: Lowering) -> str:
    return build.retried(node, node.retries, partial(RetryOperator, ForeachOperator(node.deliver)))


register(OperatorDescriptor(node=Deliver, types=unchanged, topology=add_deliver))


def test_a_sink_of_ones_own_lets_records_wait_and_parks_them() -> None:
    delivered: list[tuple[str, str]] = []
    away = {"a"}

    def deliver(key: str, value: str) -> None:
        if key in away:
            raise ConnectionError(f"no way to {key}")
        delivered.append((key, value))

    builder = ks.StreamsBuilder()
    retries = Retries(ks.Retry(backoff="1s", attempts=2, on=ConnectionError), park="parked")
    builder.stream("in", key=str, value=str).apply(Deliver(deliver=deliver, retries=retries), name="deliver")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, value in [("a", "1"), ("a", "2"), ("b", "3")]:
            topic.pipe_input(key, value)
        assert delivered == [("b", "3")]
        driver.advance_wall_clock_time(timedelta(seconds=1))
        away.clear()
        driver.advance_wall_clock_time(timedelta(seconds=1))
        assert delivered == [("b", "3"), ("a", "2")]
        parked = driver.create_output_topic("parked", key=str, value=str).read_records()
        assert [(record.key, record.value) for record in parked] == [("a", "1")]


def test_foreach_retries_too() -> None:
    seen: list[str] = []

    def see(key: str, value: str) -> None:
        seen.append(value)
        if len(seen) == 1:
            raise TimeoutError

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).foreach(see, retry=ks.Retry(backoff="1s"))
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x")
        driver.advance_wall_clock_time(timedelta(seconds=1))
    assert seen == ["x", "x"]
