"""Expressions stand wherever a function is taken, with the types that are known there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver


class Order(msgspec.Struct):
    shop: str
    amount: int


class Shop(msgspec.Struct):
    city: str


ORDERS = [("a", Order("x", 3), 5), ("b", Order("y", 20), 12), ("a", Order("x", 7), 31)]
shop, amount = ks.col("shop"), ks.col("amount")


def written(say: Callable[[ks.StreamsBuilder, Any], Any], *topics: str) -> list[Any]:
    """What is written to topics (of text, "out" by default) when orders come, after the shops."""
    builder = ks.StreamsBuilder()
    say(builder, builder.stream("orders", key=str, value=Order))
    with TopologyTestDriver(builder.build()) as driver:
        if "shops" in driver._input_names():
            driver.create_input_topic("shops", key=str, value=Shop).pipe_input("x", Shop("KL"), timestamp=0)
        orders = driver.create_input_topic("orders", key=str, value=Order)
        for key, order, at in ORDERS:
            orders.pipe_input(key, order, timestamp=at)
        outputs = [driver.create_output_topic(topic, key=bytes, value=bytes) for topic in topics or ("out",)]
        rows = [output.read_key_values() for output in outputs]
    plain = [[(key.decode(), None if value is None else value.decode()) for key, value in found] for found in rows]
    return plain if topics else plain[0]


def test_a_key_and_a_value_made_of_two_expressions() -> None:
    found = written(lambda b, s: s.map((shop.str.upper(), amount.cast(str))).to("out"))
    assert found == [("X", "3"), ("Y", "20"), ("X", "7")]


def test_branches_and_the_topic_of_a_record() -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        branches = stream.split(name="by-").branch(amount > 5, name="large").default_branch(name="small")
        branches["by-large"].map_values(shop).to(ks.lit("large-") + ks.value)
        branches["by-small"].map_values(shop).to("small")

    assert written(say, "large-x", "large-y", "small") == [[("a", "x")], [("b", "y")], [("a", "x")]]


def test_start_and_end_of_the_window_of_a_windowed_key() -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        counts = stream.group_by(shop).windowed_by(ks.TimeWindows(size=10)).count().to_stream()
        shown = ks.struct(start=ks.window_start, end=ks.window_end, count=ks.value)
        counts.map((ks.key, shown)).to("out")

    assert [value for _, value in written(say)] == [
        '{"start":0,"end":10,"count":1}',
        '{"start":10,"end":20,"count":1}',
        '{"start":30,"end":40,"count":1}',
    ]


@pytest.mark.parametrize(
    "windows",
    [ks.TimeWindows(size=100), ks.TimeWindows(size=100, advance=100), ks.SessionWindows(gap=50), None],
    ids=["tumbling", "hopping", "session", "all time"],
)
def test_aggregations_of_every_kind(windows: Any) -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        grouped = stream.group_by(ks.lit("all"))
        table = (grouped if windows is None else grouped.windowed_by(windows)).aggregate(
            n=ks.len(),
            shops=shop.n_unique(),
            first=shop.first(),
            last=shop.last(),
            least=amount.min(),
            most=amount.max(),
            sum=amount.sum(),
            mean=amount.mean(),
            until=ks.timestamp.max(),
        )
        table.to_stream(ks.key if windows is not None else None).to("out")

    *_, (_, last) = written(say)
    assert last == ('{"n":3,"shops":2,"first":"x","last":"x","least":3,"most":20,"sum":30,"mean":10.0,"until":31}')


def test_sliding_windows_aggregate_expressions_too() -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        windowed = stream.group_by(ks.lit("all")).windowed_by(ks.SlidingWindows(difference=10))
        windowed.aggregate(sum=amount.sum(), shops=shop.n_unique()).to_stream(ks.key).to("out")

    assert '{"sum":23,"shops":2}' in [value for _, value in written(say)]


def test_projections_of_joins_and_the_key_that_a_global_table_is_looked_up_by() -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        shops = builder.global_table("shops", key=str, value=Shop)
        made = ks.struct(city=ks.right.col("city"), amount=ks.left.col("amount"))
        stream.left_join(shops, made, key_selector=shop).to("out")

    assert [value for _, value in written(say)] == [
        '{"city":"KL","amount":3}',
        '{"city":null,"amount":20}',
        '{"city":"KL","amount":7}',
    ]


def test_foreign_keys_and_filters_of_tables() -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        latest = stream.to_table(materialized="latest").filter(amount > 4)
        shops = builder.table("shops", key=str, value=Shop)
        place = ks.right.col("city") + "!"
        latest.join(shops, place, foreign_key=shop, value=str).to_stream().to("out", value=str)

    assert written(say)[-1] == ("a", "KL!")


def test_a_join_of_streams_knows_the_types_of_both_sides() -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        others = stream.filter(amount > 5).map_values(amount)
        stream.join(others, ks.right.value - amount, windows=ks.JoinWindows.of(10)).map_values(ks.value.cast(str)).to(
            "out"
        )

    assert written(say) == [("b", "0"), ("a", "0")]


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (lambda b, s: s.to("out" + ks.col("nowhere")), "no field 'nowhere'"),
        (lambda b, s: s.map((shop, ks.col("nowhere"))).to("out"), "no field 'nowhere'"),
        (
            lambda b, s: s.join(b.table("shops", key=str, value=Shop), ks.right.col("street")).to("out"),
            "no field 'street'",
        ),
        (lambda b, s: s.map_values(ks.right.col("city")).to("out"), "can be read"),
        (lambda b, s: s.map_values(ks.window_start).to("out"), "needs a windowed key"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_operator_and_line(say: Any, message: str) -> None:
    builder = ks.StreamsBuilder()
    with pytest.raises(TopologyError, match=rf"test_where_functions_are_taken\.py:\d+ \(KSTREAM-.*{message}"):
        (say(builder, builder.stream("orders", key=str, value=Order)), builder.build())
