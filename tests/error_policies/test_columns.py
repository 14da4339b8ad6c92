"""A region gives what the record path gives, whatever handlers and dead-letter topic there are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.kernel.batch import Row
from tests.columns.both_paths import Seen, reason, run

SKIP = ks.LogAndSkipOnInvalidTimestamp()
LETTERS = {"errors.dead.letter.queue.topic.name": "letters"}
POLICIES = {
    "continue": {f"{kind}.exception.handler": "continue" for kind in ("deserialization", "processing", "production")},
}
POLICIES["letters"] = {**POLICIES["continue"], **LETTERS}
POLICIES["every drop"] = {**POLICIES["letters"], "errors.dead.letter.queue.dropped.records": True}


class Order(TypedDict):
    item: str
    amount: int


def counted(builder: ks.StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=str, timestamp_extractor=SKIP).filter(ks.value != "no").group_by_key()
    grouped.count().to_stream().to("out")


def windowed(builder: ks.StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=str, timestamp_extractor=SKIP).group_by_key()
    counts = grouped.windowed_by(ks.TimeWindows(size=10, advance=5, grace=2)).count()
    counts.to_stream(lambda window, _: window.key, key=str).to("out", value=int)


def repartitioned(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str, timestamp_extractor=SKIP).select_key(ks.value).repartition(
        name="again"
    ).foreach(lambda k, v: None)


def left_by_rows(builder: ks.StreamsBuilder) -> None:
    long = builder.stream("in", key=str, value=str, timestamp_extractor=SKIP).filter(ks.value != "no")
    long.map_values(int, value=int).to("out")


def of_orders(builder: ks.StreamsBuilder) -> None:
    orders = builder.stream("in", key=str, value=Order, timestamp_extractor=SKIP).filter(ks.col("amount") > 1)
    orders.map_values(ks.col("item")).to("out", value=str)


TOPOLOGIES = {f.__name__: f for f in (counted, windowed, repartitioned, left_by_rows, of_orders)}

KEYS = st.sampled_from([b"a", b"b", b"\xff", None])
VALUES = st.sampled_from([b"1", b"2", b"x", b"no", b"\xff", b'{"item":"i","amount":2}', b'{"item":3,"amount":2}', None])
ROWS = st.lists(st.builds(Row, KEYS, VALUES, st.integers(-1, 60), st.just(())), max_size=20)


def build(use: Callable[[ks.StreamsBuilder], None]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    use(builder)
    topology = builder.build()
    return topology


def seen(use: Callable[[ks.StreamsBuilder], None], rows: list[Row], at: int, policy: str, *, columns: bool) -> Seen:
    batches = [rows[start:end] for start, end in pairwise([0, at % (len(rows) + 1), len(rows)]) if end > start]
    topology = first_part(build(use))
    return run(topology, batches, columns=columns, settings=POLICIES[policy])


def first_part(topology: ks.Topology) -> ks.Topology:
    """The sub-topology that reads the input: what lies behind a repartition is none of ours."""

    class First:
        sub_topologies = topology.sub_topologies[:1]

    return First  # type: ignore[return-value]


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_there_is_a_region(name: str) -> None:
    assert reason(first_part(build(TOPOLOGIES[name]))) is None


def untraced(letter: tuple[Any, ...]) -> tuple[Any, ...]:
    """A dead letter without its stack trace, which names the chain that the record came through."""
    *fields, headers = letter
    return (*fields, [header for header in headers if not header["name"].endswith("stacktrace")])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", TOPOLOGIES)
@settings(max_examples=40, deadline=None)
@given(rows=ROWS, at=st.integers(0, 20))
def test_both_paths_give_the_same(name: str, policy: str, rows: list[Row], at: int) -> None:
    use = TOPOLOGIES[name]
    in_columns, by_record = (seen(use, rows, at, policy, columns=columns) for columns in (True, False))
    for found in (in_columns, by_record):
        found.outputs["letters"] = [untraced(letter) for letter in found.outputs.get("letters", [])]
    assert in_columns == by_record
