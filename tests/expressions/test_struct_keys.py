"""`ks.struct` for a key makes a key: of the declared class of the key, in every operator that takes a key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.kernel.batch import Row
from kstreams.testing import TopologyTestDriver
from tests.columns.both_paths import assert_same


class Order(msgspec.Struct, frozen=True):
    shop: str
    amount: int


class Place(msgspec.Struct, frozen=True):
    shop: str


@dataclass(frozen=True)
class Pair:
    shop: str
    amount: int


class Total(msgspec.Struct):
    value: int


PLACE = ks.struct(shop=ks.col("shop"))
PAIR = ks.struct(shop=ks.col("shop"), amount=ks.col("amount"))
ORDERS = [("a", Order("x", 3)), ("b", Order("y", 20)), ("c", Order("x", 7))]

Say = Callable[[ks.StreamsBuilder, Any], Any]


def seen(say: Say, orders: list[tuple[str, Any]] = ORDERS) -> list[tuple[Any, Any]]:
    """The live keys and values that come out of what is said of the stream of orders."""
    builder, rows = ks.StreamsBuilder(), []
    say(builder, builder.stream("orders", key=str, value=Order)).foreach(lambda key, value: rows.append((key, value)))
    with TopologyTestDriver(builder.build()) as driver:
        if "places" in driver._input_names():
            driver.create_input_topic("places", key=Place, value=str).pipe_input(Place("x"), "Kuala Lumpur", 0)
        driver.create_input_topic("orders", key=str, value=Order).pipe_key_values(orders, start=0)
    return rows


def counted(_: ks.StreamsBuilder, stream: Any) -> Any:
    return stream.group_by(PLACE, key=Place).count().to_stream()


def windowed(_: ks.StreamsBuilder, stream: Any) -> Any:
    windows = stream.group_by(PLACE, key=Place).windowed_by(ks.TimeWindows(size=1000))
    return windows.count().to_stream(ks.struct(shop=ks.lit("every"), amount=ks.window_start), key=Pair)


def regrouped(_: ks.StreamsBuilder, stream: Any) -> Any:
    return stream.to_table().group_by((PLACE, ks.value), key=Place, value=Order).count().to_stream()


def joined_globally(builder: ks.StreamsBuilder, stream: Any) -> Any:
    places = builder.global_table("places", key=Place, value=str)
    return stream.join(places, ks.right.value, key_selector=PLACE)


def joined_by_foreign_key(builder: ks.StreamsBuilder, stream: Any) -> Any:
    places = builder.table("places", key=Place, value=str)
    return stream.to_table().join(places, ks.right.value, foreign_key=PLACE).to_stream()


def mapped(_: ks.StreamsBuilder, stream: Any) -> Any:
    return stream.map((PLACE, ks.struct(value=ks.col("amount"))), key=Place, value=Total)


OPERATORS: dict[str, tuple[Say, list[tuple[Any, Any]]]] = {
    "select_key": (
        lambda _, stream: stream.select_key(PAIR, key=Pair).map_values(ks.col("amount")),
        [(Pair("x", 3), 3), (Pair("y", 20), 20), (Pair("x", 7), 7)],
    ),
    "select_key().repartition": (
        lambda _, stream: stream.select_key(PLACE, key=Place).repartition().map_values(ks.col("amount")),
        [(Place("x"), 3), (Place("y"), 20), (Place("x"), 7)],
    ),
    "map": (mapped, [(Place("x"), Total(3)), (Place("y"), Total(20)), (Place("x"), Total(7))]),
    "map with the value as it is": (
        lambda _, stream: stream.map((PLACE, ks.value), key=Place),
        [(Place(order.shop), order) for _, order in ORDERS],
    ),
    "group_by": (counted, [(Place("x"), 1), (Place("y"), 1), (Place("x"), 2)]),
    "to_stream of windows": (windowed, [(Pair("every", 0), 1), (Pair("every", 0), 1), (Pair("every", 0), 2)]),
    "to_stream of a table": (
        lambda _, stream: stream.to_table().to_stream(PLACE, key=Place).map_values(ks.col("amount")),
        [(Place("x"), 3), (Place("y"), 20), (Place("x"), 7)],
    ),
    "group_by of a table": (regrouped, [(Place("x"), 1), (Place("y"), 1), (Place("x"), 2)]),
    "key_selector": (joined_globally, [("a", "Kuala Lumpur"), ("c", "Kuala Lumpur")]),
    "foreign_key": (joined_by_foreign_key, [("a", "Kuala Lumpur"), ("c", "Kuala Lumpur")]),
    "a choice of two": (
        lambda _, stream: stream.select_key(
            ks.when(ks.col("amount") > 5).then(PLACE).otherwise(ks.struct(shop=ks.key)), key=Place
        ).map_values(ks.col("amount")),
        [(Place("a"), 3), (Place("y"), 20), (Place("x"), 7)],
    ),
    "of a class that may be null": (
        lambda _, stream: stream.select_key(PLACE, key=Place | None).map_values(ks.col("amount")),
        [(Place("x"), 3), (Place("y"), 20), (Place("x"), 7)],
    ),
}


@pytest.mark.parametrize(("say", "rows"), OPERATORS.values(), ids=OPERATORS)
def test_a_struct_for_a_key_is_of_the_class_of_the_key(say: Say, rows: list[tuple[Any, Any]]) -> None:
    assert seen(say) == rows


def test_without_a_declared_class_a_key_is_of_one_made_of_names_and_types() -> None:
    (key, _), *_ = seen(lambda _, stream: stream.select_key(PLACE).map_values(ks.col("amount")))
    assert msgspec.to_builtins(key) == {"shop": "x"}
    counts = seen(lambda _, stream: stream.group_by(PLACE).count().to_stream())
    assert [(key.shop, count) for key, count in counts] == [("x", 1), ("y", 1), ("x", 2)]


def test_values_of_a_class_that_may_be_null() -> None:
    say = lambda _, stream: stream.map_values(ks.struct(value=ks.col("amount")), value=Total | None)  # noqa: E731
    assert [value for _, value in seen(say)] == [Total(3), Total(20), Total(7)]


COLUMNS: dict[str, Say] = {
    "written": lambda _, stream: stream.select_key(PAIR, key=Pair).to("out"),
    "written with a new value": lambda _, stream: mapped(_, stream).to("out"),
    "without a class": lambda _, stream: stream.map((PLACE, ks.col("amount"))).to("out"),
    "to a function": lambda _, stream: (
        stream.filter(ks.col("amount") > 3)
        .select_key(PLACE, key=Place)
        .map(lambda key, value: (key.shop, type(key).__name__), key=str, value=str)
        .to("out")
    ),
    "batched": lambda _, stream: (
        stream.select_key(PLACE, key=Place)
        .map_batch(lambda frame: frame.column("amount"), value=int, format="arrow")
        .to("out")
    ),
}


@pytest.mark.parametrize("say", COLUMNS.values(), ids=COLUMNS)
def test_columns_make_the_keys_that_records_make(say: Say) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        say(builder, builder.stream("in", key=str, value=Order))
        return builder.build()

    rows = [Row(key.encode(), msgspec.json.encode(order), 5, ()) for key, order in ORDERS]
    assert len(assert_same(build, [rows]).outputs["out"]) in (2, 3)


MISFITS = {
    "a field that the class has not": (
        lambda stream: stream.select_key(ks.struct(shpo=ks.col("shop")), key=Place),
        "makes the field 'shpo', but Place has no such field; it has: shop",
    ),
    "a field that the class needs": (
        lambda stream: stream.select_key(PLACE, key=Pair),
        "leaves out the field 'amount', which Pair needs",
    ),
    "a class without fields": (
        lambda stream: stream.select_key(PLACE, key=str),
        "makes fields, but str has no fields: declare a Struct, a dataclass, a TypedDict or dict",
    ),
    "a value": (
        lambda stream: stream.map_values(PLACE, value=int),
        "makes fields, but int has no fields: declare a Struct, a dataclass, a TypedDict or dict",
    ),
}


@pytest.mark.parametrize(("say", "text"), MISFITS.values(), ids=MISFITS)
def test_fields_that_do_not_fit_the_class_are_refused_when_the_topology_is_built(say: Any, text: str) -> None:
    builder = ks.StreamsBuilder()
    say(builder.stream("orders", key=str, value=Order)).to("out")
    with pytest.raises(TopologyError, match=r"test_struct_keys\.py:\d+") as caught:
        builder.build()
    assert text in str(caught.value)


class Point(NamedTuple):
    shop: str


def test_fields_of_a_selector_that_do_not_fit_the_key_of_its_table_are_refused() -> None:
    builder = ks.StreamsBuilder()
    users = builder.global_table("users", key=str, value=str)
    builder.stream("orders", key=str, value=Order).join(users, ks.right.value, key_selector=PLACE)
    with pytest.raises(TopologyError, match=r"test_struct_keys\.py:\d+.* makes fields, but str has no fields"):
        builder.build()


def test_a_struct_key_beside_the_columns_of_a_batch() -> None:
    builder = ks.StreamsBuilder()
    keyed = builder.stream("in", key=str, value=Order).select_key(PLACE, key=Place)
    keyed.map_batch(lambda frame: frame.column("key"), value=str, with_key=True).to("out")
    with (
        TopologyTestDriver(builder.build(), {"columns.min.rows": 0}) as driver,
        pytest.raises(ProcessingError, match=r"in-0@0: TypeError: its key Place\(shop='x'\) does not fit"),
    ):
        driver.create_input_topic("in", key=str, value=Order).pipe_key_values(ORDERS)


def test_a_named_tuple_as_key() -> None:
    rows = seen(lambda _, stream: stream.select_key(PLACE, key=Point).map_values(ks.col("amount")))
    assert rows == [(Point("x"), 3), (Point("y"), 20), (Point("x"), 7)]
