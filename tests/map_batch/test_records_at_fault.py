"""A value that fits no batch, or a result that is no column: the record at fault fails, and the others go on."""

from __future__ import annotations

from typing import Any

import msgspec
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kstreams as ks
from kstreams.errors import ProcessingError
from kstreams.testing import TopologyTestDriver
from tests.map_batch.test_map_batch import Fare, Trip, mapped, run

CONTINUE = {"processing_exception_handler": "continue"}
HUGE = 2**63


def doubled(table: pa.Table) -> Any:
    """Twice each value: Arrow refuses what is no number."""
    return pc.multiply_checked(table["value"], 2)


def numbered(values: list[Any]) -> list[tuple[str, Any, int]]:
    return [("k", value, time) for time, value in enumerate(values)]


@pytest.mark.parametrize("stranger", ["text", True, [1, 2], {"a": 1}, HUGE, "\ud800"], ids=repr)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_value_of_another_type_among_numbers(stranger: Any, place: int) -> None:
    values: list[Any] = [1, 2, 3, 4]
    values.insert(place, stranger)
    builder = ks.StreamsBuilder()
    texts = builder.stream("in", key=str, value=str)
    numbers = texts.map_values(lambda text: values[int(text)], value=Any)
    numbers.map_batch(doubled, value=int).to("out")
    rows = numbered([str(number) for number in range(5)])
    expected = [("k", 2 * value, time) for time, value in enumerate(values) if value is not stranger]
    assert run(builder, rows, str, int, **CONTINUE) == expected
    with pytest.raises(ProcessingError, match=rf"map_batch\(\) at tests/map_batch/\S+ \(KSTREAM-.* in-0@{place}: "):
        run(builder, rows, str, int)


@pytest.mark.parametrize("stranger", ["text", True, 1.5, [1], HUGE, pd.NaT], ids=repr)
def test_a_value_that_is_not_of_the_declared_type(stranger: Any) -> None:
    def number(text: str) -> Any:
        return stranger if text == "stranger" else int(text)

    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=str).map_values(number, value=int)
    numbers.map_batch(doubled, value=int).to("out")
    rows = numbered(["1", "2", "stranger", "4"])
    assert run(builder, rows, str, int, **CONTINUE) == [("k", 2, 0), ("k", 4, 1), ("k", 8, 3)]
    with pytest.raises(
        ProcessingError, match=r"in-0@2: TypeError: its value .* does not fit the column 'value' of int"
    ):
        run(builder, rows, str, int)


class Reading(msgspec.Struct):
    number: int
    place: str = ""


@pytest.mark.parametrize("columns_min_rows", [0, 10**9], ids=["columns", "records"])
def test_a_field_beyond_64_bits(columns_min_rows: int) -> None:
    builder = mapped(lambda table: table["number"], Reading, int)
    rows = numbered([Reading(1), Reading(HUGE), Reading(3)])
    settings = {"columns_min_rows": columns_min_rows}
    assert run(builder, rows, Reading, int, **settings, **CONTINUE) == [("k", 1, 0), ("k", 3, 2)]
    with pytest.raises(
        ProcessingError, match=r"in-0@1: .*9223372036854775808.* does not fit the column 'number' of int"
    ):
        run(builder, rows, Reading, int, **settings)


def test_a_value_that_is_no_object_with_the_fields() -> None:
    def trip(text: str) -> Any:
        return {"km": 1.0} if text == "dict" else Trip(float(text))

    builder = ks.StreamsBuilder()
    trips = builder.stream("in", key=str, value=str).map_values(trip, value=Trip)
    trips.map_batch(lambda table: table["km"], value=float).to("out")
    assert run(builder, numbered(["1", "dict", "3"]), str, **CONTINUE) == [("k", 1.0, 0), ("k", 3.0, 2)]
    with pytest.raises(ProcessingError, match=r"in-0@1: TypeError: its value .* does not fit the column 'km'"):
        run(builder, numbered(["1", "dict", "3"]), str)


def test_a_key_that_does_not_fit() -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=int).select_key(
        lambda key, value: value if value == 2 else key, key=str
    )
    stream.map_batch(lambda table: pc.utf8_length(table["key"]), value=int, with_key=True).map(
        lambda key, value: ("k", value), key=str, value=int
    ).to("out")
    assert run(builder, numbered([1, 2, 3]), int, int, **CONTINUE) == [("k", 1, 0), ("k", 1, 2)]
    with pytest.raises(ProcessingError, match=r"in-0@1: TypeError: its key 2 does not fit the column 'key' of str"):
        run(builder, numbered([1, 2, 3]), int, int)


def test_the_record_at_fault_has_its_dead_letter_and_the_others_their_order() -> None:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=str).map_values(lambda t: HUGE if t == "x" else int(t), value=Any)
    numbers.map_batch(doubled, value=int, max_rows=4).to("out")
    settings = {"errors.deadletterqueue.topic.name": "dead", "processing.exception.handler": "continue"}
    with TopologyTestDriver(builder.build(), settings) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        driver.pipe_batch([(topic, ks.Record(key="k", value=text, timestamp=0)) for text in ["1", "x", "2", "x", "3"]])
        assert driver.create_output_topic("out", key=str, value=int).read_values() == [2, 4, 6]
        dead = driver.create_output_topic("dead", key=str, value=str).read_records()
    offsets = [dict(letter.headers)["__streams.errors.offset"] for letter in dead]
    assert (len(dead), offsets) == (2, [b"1", b"3"])


def test_the_others_come_as_batches_still() -> None:
    sizes = []

    def counted(table: pa.Table) -> Any:
        sizes.append(len(table))
        return pc.multiply(table["value"], 1)

    builder = ks.StreamsBuilder()
    texts = builder.stream("in", key=str, value=str)
    texts.map_values(lambda t: t if t == "x" else int(t), value=Any).map_batch(counted, value=int).to("out")
    values = [*map(str, range(64)), "x", *map(str, range(64))]
    assert len(run(builder, numbered(values), str, int, **CONTINUE)) == 128
    assert len(sizes) < 20


@pytest.mark.parametrize(
    "result",
    [
        lambda frame: pd.Series([1, None, 3], dtype="Int64"),
        lambda frame: [1, pd.NA, 3],
        lambda frame: [1, pd.NaT, 3],
        lambda frame: np.array([1, pd.NA, 3], dtype=object),
        lambda frame: pd.array([1, None, 3], dtype="Int64"),
        lambda frame: nw.from_native(pd.Series([1, None, 3], dtype="Int64"), series_only=True),
        lambda frame: pl.Series([1, None, 3]),
    ],
    ids=["Int64", "NA", "NaT", "numpy", "extension array", "narwhals", "polars"],
)
def test_na_and_nat_are_null(result: Any) -> None:
    assert run(mapped(result, int, int), numbered([1, 2, 3]), int, int) == [("k", 1, 0), ("k", None, 1), ("k", 3, 2)]


def test_na_and_nat_in_fields_are_null_too() -> None:
    def fares(frame: Any) -> Any:
        return pd.DataFrame({"euro": [1.0, 2.0], "city": pd.array(["Rome", None], dtype="string")})

    def fitted(frame: Any) -> Any:
        return nw.from_native(fares(frame))

    class Visit(msgspec.Struct):
        euro: float
        city: str | None

    for function in (fares, fitted):
        found = run(mapped(function, int, Visit, format="pandas"), numbered([1, 2]), int, dict)
        assert [value for _, value, _ in found] == [{"euro": 1.0, "city": "Rome"}, {"euro": 2.0, "city": None}]


RESULTS = {
    "None": (lambda table: None, "the function returned None: return one value for each record"),
    "number": (lambda table: 5, "the function returned the int 5: return one value for each record"),
    "Arrow scalar": (lambda table: pc.sum(table["km"]), "the function returned a DoubleScalar: return one value"),
    "NumPy scalar": (lambda table: np.float64(1.0), "the function returned the float64"),
    "NumPy array without a dimension": (lambda table: np.array(1.0), "the function returned the ndarray"),
    "text": (lambda table: "a", "the function returned the str 'a'"),
    "dict": (lambda table: {"km": [1.0]}, "the function returned a dict: make a table of it, as pa.table(...)"),
    "set": (lambda table: {1.0}, "the function returned a set, which has no order: return a list"),
    "polars.LazyFrame": (
        lambda table: pl.LazyFrame({"km": [1.0]}),
        "the function returned a LazyFrame: return .collect()",
    ),
    "narwhals.LazyFrame": (
        lambda table: nw.from_native(pl.LazyFrame({"km": [1.0]})),
        "the function returned a LazyFrame: return .collect()",
    ),
    "polars.Expr": (lambda table: pl.col("km"), "the function returned an Expr: return one value"),
    "class": (lambda table: Trip, "the function returned a StructMeta: return one value for each record"),
    "a table for a number": (
        lambda table: table,
        "the function returned a table for values of float: return one column",
    ),
}


@pytest.mark.parametrize(("function", "text"), RESULTS.values(), ids=RESULTS)
def test_a_result_that_is_no_column_is_told_with_what_to_return(function: Any, text: str) -> None:
    with pytest.raises(ProcessingError, match=r"map_batch\(\) at tests/map_batch/\S+:\d+ .* in-0@0: ") as caught:
        run(mapped(function), [("a", Trip(1.0), 10)])
    assert text in str(caught.value)


def test_a_table_with_other_columns_than_the_type_has_fields() -> None:
    with pytest.raises(ProcessingError, match=r"gave the columns 'km', 'city', of which no Fare can be made: "):
        run(mapped(lambda table: table, value=Fare), TRIPS_OF_ONE)


TRIPS_OF_ONE = [("a", Trip(1.0, "Rome"), 10)]
