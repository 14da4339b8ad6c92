"""Lists in records: `explode`, and `flat_map_values` of an expression."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver


class Item(msgspec.Struct):
    name: str


class Order(msgspec.Struct):
    number: int
    items: list[Item] | None = None


ORDERS = [Order(1, [Item("a"), Item("b")]), Order(2, []), Order(3), Order(4, [Item("c")])]


def values_after(declare: Any, values: list[Any], kind: Any = Order, result: Any = Any) -> list[Any]:
    builder = ks.StreamsBuilder()
    declare(builder.stream("in", key=str, value=kind)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=kind)
        for value in values:
            topic.pipe_input("k", value)
        return [record.value for record in driver.create_output_topic("out", key=str, value=result).read_records()]


def test_explode_forwards_a_record_for_each_item_with_the_other_fields() -> None:
    exploded = values_after(lambda orders: orders.explode("items"), ORDERS)
    assert exploded == [{"number": number, "items": {"name": name}} for number, name in ((1, "a"), (1, "b"), (4, "c"))]


def test_the_type_of_the_items_is_known_to_what_follows() -> None:
    names = ks.col("items").struct.field("name").str.upper()
    assert values_after(lambda orders: orders.explode("items").map_values(names), ORDERS, result=str) == ["A", "B", "C"]


def test_values_of_an_unknown_type_are_dicts() -> None:
    orders = msgspec.to_builtins(ORDERS)
    assert len(values_after(lambda stream: stream.explode("items"), orders, dict)) == 3


def test_an_expression_of_a_list_gives_its_items() -> None:
    words = values_after(lambda lines: lines.flat_map_values(ks.value.str.split(" ")), ["to be", "or"], str, str)
    assert words == ["to", "be", "or"]
    items = values_after(lambda orders: orders.flat_map_values(ks.col("items")), ORDERS)
    assert items == [{"name": "a"}, {"name": "b"}, {"name": "c"}]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda orders: orders.explode("item"), r"explode\(\) at .*test_explode\.py.*no field 'item'; did you mean"),
        (lambda orders: orders.explode("number"), "needs a list, not int"),
        (lambda orders: orders.flat_map_values(ks.col("number")), "needs a list, not int"),
    ],
)
def test_what_is_no_list_is_refused(declare: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        values_after(declare, ORDERS)
