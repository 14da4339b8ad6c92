"""Where a region ends before a step that takes records one by one, rows go on as if there had been no columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, SerdeError
from kstreams.kernel.batch import Batch, Row
from kstreams.processor.context.operator_context import ClosureOperator
from kstreams.processor.task.columns import region as thinning
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from kstreams.processor.task.columns.region import Region
from kstreams.processor.topology.topology import ProcessorNode
from tests.columns.both_paths import assert_same, assert_same_if_columns, cut, reason, run
from tests.columns.test_same_results import Order, amount, commits, cuts, rows, steps
from tests.support.examples import examples


def doubled(order: Order | None) -> Order | None:
    return None if order is None else {**order, "amount": 2 * (order["amount"] or 0)}


PYTHON_STEPS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda stream: stream.filter(lambda key, order: order is not None and order["paid"] is not False),
    "map_values": lambda stream: stream.map_values(doubled, value=Order),
    "flat_map_values": lambda stream: stream.flat_map_values(lambda order: [order, order], value=Order),
}
ENDS: dict[str, Callable[[Any], Any]] = {
    "sink": lambda stream: stream.to("out", key=str, value=Order),
    "chosen topics": lambda stream: stream.to(
        lambda key, order, context: f"out-{context.offset % 2}", key=str, value=Order
    ),
    "reduce": lambda stream: (
        stream.group_by_key(key=str, value=Order)
        .reduce(lambda old, new: {**old, "shop": f"{old['shop']}{new['shop']}"})
        .to_stream()
        .to("out", key=str, value=Order)
    ),
    "windowed count": lambda stream: (
        stream.filter(lambda key, order: True)
        .group_by_key(key=str, value=Order)
        .windowed_by(ks.TimeWindows(size=10, grace=5))
        .count()
        .to_stream()
        .map(lambda key, count: (str(key), count))
        .to("out", key=str, value=int)
    ),
}


def through(stream: Any, steps: list[tuple[str, Any]]) -> Any:
    """A stream after steps; those without an expression are Python functions."""
    for method, expr in steps:
        if expr is None:
            stream = PYTHON_STEPS[method](stream)
        else:
            stream = getattr(stream, method)(expr, **({"value": Order} if method == "map_values" else {}))
    return stream


python_steps = st.sampled_from(list(PYTHON_STEPS)).map(lambda name: [(name, None)])


@given(
    before=steps,
    python=python_steps,
    after=steps,
    end=st.sampled_from(list(ENDS)),
    rows=rows,
    cuts=cuts,
    commits=commits,
)
@settings(max_examples=examples(250))
def test_a_python_step_anywhere_in_a_chain_changes_nothing(
    before: Any, python: Any, after: Any, end: str, rows: list[Row], cuts: Any, commits: Any
) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        ENDS[end](through(builder.stream("in", key=str, value=Order), [*before, *python, *after]))
        return builder.build()

    assert_same_if_columns(build, cut(rows, cuts), commits)


@given(steps=steps, rows=rows, cuts=cuts, commits=commits, close=st.booleans())
@settings(max_examples=examples(100))
def test_rows_leave_beside_a_way_that_stays_in_columns(
    steps: Any, rows: list[Row], cuts: Any, commits: Any, close: bool
) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        stream = builder.stream("in", key=str, value=Order)
        windows = stream.group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
        if close:
            windows = windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
        sums = windows.aggregate(sum=amount.sum()).to_stream()
        sums.map(lambda key, found: (str(key), str(found))).to("sums", key=str, value=str)
        through(stream, [*steps, ("map_values", None)]).to("out", key=str, value=Order)
        return builder.build()

    assert_same(build, cut(rows, cuts), commits)


@dataclass(frozen=True)
class Watch(ClosureOperator):
    """Writes down all that a step may ask of its context."""

    def bind(self, context: Any, forward: Any) -> Any:
        current = context.current

        def watch(key: Any, value: Any, timestamp: int) -> None:
            forward(key, repr((value, current.topic, current.offset, current.stream_time, current.headers)), timestamp)

        return watch


@given(rows=rows, cuts=cuts, with_headers=st.booleans())
def test_a_step_behind_the_region_sees_its_record_in_the_context(
    rows: list[Row], cuts: Any, with_headers: bool
) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        builder.stream("in", key=str, value=Order).filter(amount > 2, name="large")
        topology = builder.build()
        topology.add(ProcessorNode("watch", ("large",), Watch()))
        return topology.add_sink("out", "out", "watch", key=str, value=str)

    if with_headers:
        rows = [row._replace(headers=(("n", b"%d" % at),) * (at % 3)) for at, row in enumerate(rows)]
    assert_same(build, cut(rows, cuts))


def orders(count: int) -> list[Row]:
    return [Row(b"k", b'{"shop":"x","amount":%d,"price":1.0,"paid":true}' % n, n, ()) for n in range(count)]


def failing() -> ks.Topology:
    builder = ks.StreamsBuilder()
    large = builder.stream("in", key=str, value=Order).filter(amount > 2)
    large.map_values(lambda order: 1 // (order["amount"] - 5), value=int, name="divide").to("out", key=str, value=int)
    return builder.build()


@pytest.mark.parametrize("columns", [True, False])
def test_an_error_behind_the_region_names_operator_and_record(columns: bool) -> None:
    assert reason(failing()) is None
    with pytest.raises(ProcessingError, match="in-0@5") as caught:
        run(failing(), [orders(9)], columns=columns)
    assert caught.value.operator == "divide"


def test_a_value_that_only_leaving_rows_decode_is_named_as_on_the_record_path() -> None:
    bad = replace_row(orders(9), 7, b'{"shop":3,"amount":7,"price":1.0,"paid":true}')
    messages = []
    for columns in (True, False):
        with pytest.raises(SerdeError, match="in-0@7") as caught:
            run(failing(), [bad], columns=columns)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def replace_row(rows: list[Row], at: int, value: bytes) -> list[Row]:
    return [row._replace(value=value) if place == at else row for place, row in enumerate(rows)]


def planned(say: Callable[[Any], Any]) -> ColumnPlan | str:
    builder = ks.StreamsBuilder()
    say(builder.stream("in", key=str, value=Order))
    (part,) = builder.build().sub_topologies
    (found,) = plan_regions(part).values()
    return found


def test_a_python_step_behind_a_filter_by_expression_is_where_the_region_ends() -> None:
    found = planned(lambda s: s.filter(amount > 2).map_values(doubled, value=Order, name="d").to("out", key=str))
    assert isinstance(found, ColumnPlan)
    assert [(target.node.name, target.leaves_since) for target in found.targets] == [
        ("d", "d takes records one by one: it is not made of expressions")
    ]
    assert {repr(leaf) for leaf in found.leaves} == {"ks.col('amount')"}


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda s: s.map_values(doubled).foreach(print), "takes records one by one"),
        (lambda s: s.map_values(ks.struct(amount=amount)).foreach(print), "takes records one by one"),
        (lambda s: (s.filter(amount > 2).foreach(print), s.foreach(print)), "takes records one by one"),
        (
            lambda s: (
                s.filter(amount > 2).merge(s.filter(amount < 1).map_values(doubled)).to("out", key=str, value=Order)
            ),
            "paths meet in KSTREAM-MERGE",
        ),
        (
            lambda s: (
                s.filter(amount > 2).to("out", key=str, value=Order),
                s.filter(amount < 2).to(lambda key, order, context: "out", key=str, value=Order),
            ),
            "paths meet in out",
        ),
        (lambda s: s.filter(amount > 2).process(Idle), "punctuators of stream time"),
    ],
)
def test_there_is_no_region_where_it_would_not_pay_or_could_show(say: Any, why: str) -> None:
    assert why in str(planned(say))


class Idle(ks.Processor[Any, Any, Any, Any]):
    def process(self, record: Any) -> None:
        pass


def large_doubled() -> ks.Topology:
    builder = ks.StreamsBuilder()
    large = builder.stream("in", key=str, value=Order).filter(amount > 2)
    large.map_values(doubled, value=Order).to("out", key=str, value=Order)
    return builder.build()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each batch, whether it went through columns."""
    found: list[bool] = []
    process = Region.process

    def watched(region: Region, batch: Batch) -> bool:
        found.append(process(region, batch))
        return found[-1]

    monkeypatch.setattr(Region, "process", watched)
    return found


def test_a_batch_does_go_through_columns_to_the_step(taken: list[bool]) -> None:
    seen = assert_same(large_doubled, [orders(9)])
    assert len(seen.outputs["out"]) == 6
    assert taken == [True, False]


def test_while_most_records_come_through_they_go_one_by_one(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "LARGEST_SHARE", 1 / 2)
    most, few = orders(12), orders(4)
    run(large_doubled(), [few, most, *[few] * 17], columns=True)
    assert taken == [True, *[False] * 17, True]
