"""What expressions say, refuse and promise, seen by the user who writes them."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
import pytest

import kstreams as ks
from kstreams import expressions as ex
from kstreams.errors import TopologyError
from kstreams.expressions import Operation, arrow, exactness, python, types


class Order(msgspec.Struct):
    amount: int
    price: float | None = None
    shop: str = ""


@dataclass
class Point:
    x: int


class Item(TypedDict):
    size: int


def value_of(expr: ex.Expr, given: Any, **types: Any) -> Any:
    return ex.as_function(expr, ("value",), **types)(given)


# ---- reading


@pytest.mark.parametrize(
    ("value", "field"),
    [(Order(3), "amount"), (Point(3), "x"), ({"size": 3}, "size")],
    ids=["a Struct", "a dataclass", "a dict"],
)
def test_a_field_is_read_of_any_kind_of_value_whether_its_type_is_known_or_not(value: Any, field: str) -> None:
    known = Item if isinstance(value, dict) else type(value)
    assert value_of(ks.col(field), value) == value_of(ks.col(field), value, value=known) == 3


def test_a_field_with_a_list_of_possible_texts_is_a_text() -> None:
    class Signal(msgspec.Struct):
        color: Literal["red", "green"] | None

    assert ex.result_type(ex.col("color").str.upper(), value=Signal) == str | None
    assert ex.as_function(ex.col("color") == "red", ["value"], value=Signal)(Signal("red"))


def test_a_field_of_a_missing_value_is_null() -> None:
    assert value_of(ks.col("amount") + 1, None, value=Order) is None


def test_the_key_of_a_windowed_key_is_the_key_inside() -> None:
    windowed = ks.Windowed("a", ks.Window(10, 20))
    read = ex.as_function(ks.struct(key=ks.key, start=ks.window_start, end=ks.window_end), ("key",), result=dict)
    assert read(windowed) == {"key": "a", "start": 10, "end": 20}


def test_a_struct_is_built_as_the_declared_type_or_as_one_made_of_names_and_types() -> None:
    made = ks.struct(amount=ks.col("amount") * 2, price=ks.lit(1.5))
    assert value_of(made, Order(2), value=Order, result=Order) == Order(4, 1.5)
    generated = value_of(made, Order(2), value=Order)
    assert repr(generated) == "Fields(amount=4, price=1.5)"
    assert value_of(made, {"amount": 2}) == {"amount": 4, "price": 1.5}


def test_generated_types_are_found_again_by_name_in_another_process() -> None:
    generated = value_of(ks.struct(a=ks.value + 1, b=ks.lit("x")), 1, value=int)
    assert pickle.loads(pickle.dumps(generated)) == generated


# ---- null and numbers


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (ks.value > 1, None),
        ((ks.value > 1) & False, False),
        ((ks.value > 1) | True, True),
        ((ks.value > 1) & True, None),
        ((ks.value > 1) | False, None),
        (~(ks.value > 1), None),
        (ks.value.is_null(), True),
        (ks.value.is_in([1]), None),
        (ks.value.fill_null(7), 7),
    ],
)
def test_null_goes_through_everything_but_kleene_logic_and_what_asks_for_it(expr: ex.Expr, expected: Any) -> None:
    assert value_of(expr, None) is expected or value_of(expr, None) == expected


@pytest.mark.parametrize("by", [ks.lit(5) / ks.value, 5 // ks.value, 5 % ks.value])
def test_division_by_zero_is_null(by: ex.Expr) -> None:
    assert value_of(by, 0) is None


def test_casts_drop_fractions_and_give_null_for_what_does_not_fit() -> None:
    to_int = ks.value.cast(int)
    assert [value_of(to_int, number) for number in (1.9, -1.9, math.nan, 1e300, True)] == [1, -1, None, None, 1]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda text: text.extract("("), r"str\.extract\('\('\): missing \)"),
        (lambda text: text.extract("a"), "the pattern has 0 groups"),
        (lambda text: text.replace_all("a", r"\1", literal=False), "invalid group reference 1"),
        (lambda text: text.contains("[", literal=False), "unterminated character set"),
        (lambda text: text.split(""), "needs a text between the parts"),
        (lambda text: text.to_integer(1), "between 2 and 36"),
        (lambda text: text.pad_start(3, "ab"), "one character"),
        (lambda text: text.slice(1, -1), "must not be negative"),
        (lambda text: text.of.dt.epoch("h"), "takes 'us', 'ms', 's' or 'd'"),
        (lambda text: text.of.dt.to_string("%B"), "not %B"),
    ],
)
def test_arguments_that_have_no_meaning_are_refused_where_they_are_written(made: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(ks.value.str)


class Basket(msgspec.Struct):
    items: list[Order] | None
    tags: tuple[str, ...] = ()


def test_lists_inside_of_values_are_read_at_any_depth() -> None:
    price = ks.col("items").list.get(-1).struct.field("price")
    assert ex.result_type(price, value=Basket) == float | None
    assert value_of(price, Basket([Order(1), Order(2, 0.5)]), value=Basket) == 0.5
    assert value_of(price, Basket([]), value=Basket) is None
    assert value_of(price, Basket(None), value=Basket) is None
    assert value_of(price, {"items": [{"price": 2.0}]}) == 2.0
    assert value_of(ks.col("tags").list.contains("a"), Basket(None, ("b", "a")), value=Basket) is True
    with pytest.raises(TopologyError, match="no field 'prize'"):
        value_of(ks.col("items").list.get(0).struct.field("prize"), Basket([]), value=Basket)
    with pytest.raises(TopologyError, match="needs a list, not str"):
        value_of(ks.col("shop").list.len(), Order(1), value=Order)
    with pytest.raises(TopologyError, match="cannot compare"):
        value_of(ks.col("tags").list.contains(1), Basket(None), value=Basket)


# ---- refusals


def test_an_expression_in_an_if_says_what_to_write_instead() -> None:
    with pytest.raises(TypeError, match=r"write & \| ~ instead of and, or, not"):
        bool(ks.col("amount") > 1 and ks.col("price"))
    with pytest.raises(TypeError, match="is_in"):
        assert "x" in ks.col("shop")


def test_none_is_refused_with_the_method_that_was_meant() -> None:
    with pytest.raises(TypeError, match=r"\.is_null\(\)"):
        assert ks.col("amount") == None  # noqa: E711


def test_an_integer_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(TypeError, match="64 bits"):
        ks.value + 2**63


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (ks.col("amout"), "no field 'amout'; did you mean 'amount'"),
        (ks.col("shop") + 1, "needs numbers or two texts, not str and int"),
        (ks.col("shop") > 1, "cannot compare these, not str and int"),
        (ks.col("amount") & True, "put comparisons in parentheses"),
        (ks.col("amount").str.len(), "needs text, not int"),
        (ks.col("shop").cast(int), "write a function"),
        (ks.col("amount").fill_null("x"), "same type"),
        (ks.window_start, "needs a windowed key"),
        (ks.value.is_in(["a"]), "cannot compare"),
    ],
)
def test_what_does_not_fit_the_types_is_an_error_when_the_topology_is_built(expr: ex.Expr, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        ex.as_function(expr, key=str, value=Order)


def test_the_error_of_a_topology_names_the_operator_and_the_line() -> None:
    stream = ks.StreamsBuilder()
    stream.stream("in", key=str, value=Order).filter(ks.col("amout") > 1).to("out", key=str, value=Order)
    with pytest.raises(TopologyError, match=r"test_expressions\.py:\d+ \(KSTREAM-FILTER-0000000001\).*amount"):
        stream.build()


def test_an_argument_that_a_function_does_not_get_cannot_be_read() -> None:
    with pytest.raises(TopologyError, match="only value can be read"):
        ex.as_function(ks.timestamp, ("value",))


# ---- aggregations


def test_a_mean_is_kept_as_sum_and_count_which_other_aggregations_share() -> None:
    stats = ex.aggregation({"n": ks.len(), "mean": ks.value.mean(), "sum": ks.value.sum()}, value=int)
    state = stats.initial()
    for value in (1, None, 5):
        state = stats.add(state, "k", value, 0)
    assert state == (3, 6, 2)
    assert repr(stats.result(state)) == "Fields(n=3, mean=3.0, sum=6)"


def test_what_has_seen_no_value_is_null_and_counts_are_zero() -> None:
    every = {name: getattr(ks.value, name)() for name in ("count", "sum", "mean", "min", "max", "first", "last")}
    stats = ex.aggregation(every, result=dict)
    state = stats.add(stats.initial(), "k", None, 0)
    assert stats.result(state) == {**dict.fromkeys(every), "count": 0}


def test_integer_sums_are_exact_beyond_doubles() -> None:
    total = ex.aggregation({"sum": ks.value.sum()}, value=int, result=dict)
    assert total.result(total.add(total.add(total.initial(), "k", 2**53, 0), "k", 1, 0)) == {"sum": 2**53 + 1}


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (ks.value, "not one value of many records"),
        (ks.value.sum() + ks.value, "not one value of many records"),
        (ks.value.sum().max(), "aggregates an aggregation"),
        (ks.lit(1) + ks.key, "not one value"),
    ],
)
def test_what_does_not_aggregate_is_refused(expr: ex.Expr, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        ex.aggregation({"x": expr})


def test_an_aggregation_outside_of_an_aggregate_is_refused() -> None:
    with pytest.raises(TopologyError, match="only stand in an aggregate"):
        ex.as_function(ks.value.sum())


# ---- completeness


@pytest.mark.parametrize("book", [python._RULES, types._RULES, exactness._RULES, arrow._RULES])
def test_every_target_has_a_rule_for_every_operation(book: dict[Operation, Any]) -> None:
    assert set(book) == set(Operation)
