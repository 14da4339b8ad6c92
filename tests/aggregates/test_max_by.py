"""`max_by` and `min_by`: the value of the record or row where another value is greatest or least."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver
from tests.support.examples import examples


class Bid(msgspec.Struct, frozen=True):
    auction: str | None
    price: float | None = None


FIELDS = {"most": ks.col("auction").max_by(ks.col("price")), "least": ks.col("auction").min_by(ks.col("price"))}
bids = st.builds(
    Bid,
    auction=st.none() | st.sampled_from(["a", "b", "ä", "a\0"]),
    price=st.none() | st.sampled_from([0.0, -0.0, 1.5, -1.5, math.inf, math.nan]),
)


def priced(rows: list[Bid]) -> list[Bid]:
    return [row for row in rows if row.price is not None and row.price == row.price]


@pytest.mark.parametrize(
    "windows", [None, ks.TimeWindows(size=1_000), ks.SessionWindows(gap=1_000), ks.SlidingWindows(difference=1_000)]
)
@given(rows=st.lists(bids, min_size=1, max_size=8))
@settings(max_examples=examples(25), deadline=None)
def test_of_a_stream_it_is_the_first_record_with_the_greatest_value(windows: Any, rows: list[Bid]) -> None:
    builder = ks.StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=Bid).group_by_key()
    grouped = grouped if windows is None else grouped.windowed_by(windows)
    best = grouped.aggregate(**FIELDS)
    best.to_stream().map((ks.key, ks.struct(most=ks.col("most"), least=ks.col("least")))).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=Bid)
        for row in rows:
            topic.pipe_input("k", row, timestamp=5)
        results = driver.create_output_topic("out", key=str, value=Any).read_records()
    expected = priced(rows)
    assert results[-1].value == {
        "most": max(expected, key=lambda row: row.price, default=Bid(None)).auction,  # type: ignore[arg-type,return-value]
        "least": min(expected, key=lambda row: row.price, default=Bid(None)).auction,  # type: ignore[arg-type,return-value]
    }


@given(changes=st.lists(st.tuples(st.sampled_from("123"), st.none() | bids), min_size=1, max_size=20))
@settings(max_examples=examples(80), deadline=None)
def test_of_a_table_rows_that_leave_are_taken_back(changes: list[tuple[str, Bid | None]]) -> None:
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=Bid).group_by(lambda key, bid: ("all", bid), key=str, value=Bid)
    rows.aggregate(**FIELDS).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=Bid)
        for key, bid in changes:
            topic.pipe_input(key, bid)
        results = [record.value for record in driver.create_output_topic("out", key=str, value=Any).read_records()]
    current = [bid for bid in dict(changes).values() if bid is not None]
    best = results[-1] if results else None
    assert (best is None) == (not current)
    if best is not None:
        ordered = sorted(priced(current), key=lambda row: (row.price, row.auction is not None, row.auction or ""))
        ends = [ordered[-1].auction, ordered[0].auction] if ordered else [None, None]
        assert [best["most"], best["least"]] == ends


def test_whole_rows_can_be_chosen() -> None:
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=Bid).group_by(lambda key, bid: ("all", bid), key=str, value=Bid)
    rows.aggregate(best=ks.value.max_by(ks.col("price"))).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=Bid)
        for key, bid in (("1", Bid("a", 1.0)), ("2", Bid("b", 2.0)), ("2", None)):
            topic.pipe_input(key, bid)
        values = [record.value for record in driver.create_output_topic("out", key=str, value=Any).read_records()]
    assert [value["best"]["auction"] for value in values] == ["a", "b", "a"]


def test_what_has_no_order_is_refused() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=Bid).group_by_key().aggregate(best=ks.col("auction").max_by(ks.value))
    with pytest.raises(TopologyError, match="needs values that have an order, not Bid"):
        builder.build()
