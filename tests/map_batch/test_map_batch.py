"""Functions over batches: what they get, what they may give, and that records go on as from a plain function."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.kernel.clock import ManualClock
from kstreams.testing import TopologyTestDriver
from tests.native.stepped import stepped
from tests.native.world import World


class Trip(msgspec.Struct):
    km: float
    city: str | None = None


@dataclass
class Fare:
    euro: float
    city: str


class Row(TypedDict):
    km: float
    city: str


BATCHED = {"statestore.cache.max.bytes": 0, "columns.min.rows": 10**9}
TRIPS = [("a", Trip(1.0, "Rome"), 10), ("b", Trip(2.0), 12), ("a", Trip(4.0, "Oslo"), 11)]


def run(builder: ks.StreamsBuilder, rows: list[Any], kind: Any = Trip, value: Any = float, **config: Any) -> list[Any]:
    """What comes out of rows that go in together; the record path unless `config` says otherwise."""
    settings = {**BATCHED, **{key.replace("_", "."): setting for key, setting in config.items()}}
    with TopologyTestDriver(builder.build(), settings) as driver:
        topic = driver.create_input_topic("in", key=str, value=kind)
        driver.pipe_batch([(topic, ks.Record(key=k, value=v, timestamp=t)) for k, v, t in rows])
        out = driver.create_output_topic("out", key=str, value=value).read_records()
    return [(record.key, record.value, record.timestamp) for record in out]


def mapped(function: Any, kind: Any = Trip, value: Any = float, **settings: Any) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=kind).map_batch(function, value=value, **settings).to("out")
    return builder


def test_a_value_with_fields_comes_as_a_column_for_each() -> None:
    seen = []

    def fares(table: pa.Table) -> Any:
        seen.append(table)
        return pc.multiply(table["km"], 2)

    assert run(mapped(fares), TRIPS) == [("a", 2.0, 10), ("b", 4.0, 12), ("a", 8.0, 11)]
    assert seen == [pa.table({"km": [1.0, 2.0, 4.0], "city": ["Rome", None, "Oslo"]})]


@pytest.mark.parametrize(
    ("kind", "values", "columns"),
    [
        (str, ["x", None], {"value": ["x", None]}),
        (int, [1, 2], {"value": [1, 2]}),
        (Fare, [Fare(1.0, "x"), Fare(2.0, "y")], {"euro": [1.0, 2.0], "city": ["x", "y"]}),
        (Row, [{"km": 1.0, "city": "x"}, None], {"km": [1.0, None], "city": ["x", None]}),
        (dict[str, int], [{"a": 1}, {"b": 2}], {"a": [1, None], "b": [None, 2]}),
        (dict[str, int], [None, None], {"value": [None, None]}),
    ],
)
def test_what_the_columns_are_follows_from_the_type(kind: Any, values: list[Any], columns: dict[str, Any]) -> None:
    seen = []

    def look(table: pa.Table) -> list[str]:
        seen.append(table.to_pydict())
        return ["x"] * len(table)

    rows = [("k", value, time) for time, value in enumerate(values)]
    assert len(run(mapped(look, kind, str), rows, kind, str)) == len(rows)
    assert seen == [columns]


def test_key_and_time_may_come_along() -> None:
    def described(table: pa.Table) -> Any:
        times = pc.cast(table["timestamp"], pa.string())
        return pc.binary_join_element_wise(table["key"], times, "@")

    builder = mapped(described, value=str, with_key=True, with_timestamp=True)
    assert [value for _, value, _ in run(builder, TRIPS, value=str)] == ["a@10", "b@12", "a@11"]


def as_table(table: pa.Table) -> Any:
    return pa.table({"euro": table["km"], "city": table["city"].fill_null("?")})


def as_pandas(frame: Any) -> Any:
    return frame.rename(columns={"km": "euro"}).fillna({"city": "?"})


def as_list(table: pa.Table) -> Any:
    return [Fare(trip["km"], trip["city"] or "?") for trip in table.to_pylist()]


@pytest.mark.parametrize(
    ("function", "format"),
    [(as_table, "arrow"), (as_pandas, "pandas"), (as_list, "arrow")],
    ids=["table", "frame", "list"],
)
def test_tables_whose_columns_are_fields_make_values_of_the_type(function: Any, format: Any) -> None:
    found = run(mapped(function, value=Fare, format=format), TRIPS, value=Fare)
    assert [value for _, value, _ in found] == [Fare(1.0, "Rome"), Fare(2.0, "?"), Fare(4.0, "Oslo")]


@pytest.mark.parametrize("column", [np.array, list, pa.array, lambda numbers: __import__("pandas").Series(numbers)])
def test_columns_of_any_kind_are_taken(column: Any) -> None:
    builder = mapped(lambda table: column(pc.multiply(table["km"], 3).to_pylist()))
    assert [value for _, value, _ in run(builder, TRIPS)] == [3.0, 6.0, 12.0]


def test_pandas_frames() -> None:
    found = run(mapped(lambda frame: frame["km"] + len(frame), format="pandas"), TRIPS)
    assert [value for _, value, _ in found] == [4.0, 5.0, 7.0]


def test_polars_frames() -> None:
    pytest.importorskip("polars")
    found = run(mapped(lambda frame: frame["km"] + len(frame), format="polars"), TRIPS)
    assert [value for _, value, _ in found] == [4.0, 5.0, 7.0]
    builder = mapped(lambda frame: frame.rename({"km": "euro"}).fill_null("?"), value=Fare, format="polars")
    assert [value for _, value, _ in run(builder, TRIPS, value=Fare)] == [
        Fare(1.0, "Rome"),
        Fare(2.0, "?"),
        Fare(4.0, "Oslo"),
    ]


@pytest.mark.parametrize("columns_min_rows", [0, 10**9], ids=["columns", "records"])
def test_batches_are_no_larger_than_asked_for_and_none_waits(columns_min_rows: int) -> None:
    sizes = []

    def measure(table: pa.Table) -> Any:
        sizes.append(len(table))
        return table["km"]

    rows = [("k", Trip(float(number)), number) for number in range(25)]
    found = run(mapped(measure, max_rows=10), rows, columns_min_rows=columns_min_rows)
    assert found == [("k", float(number), number) for number in range(25)]
    assert sizes == [10, 10, 5]


@pytest.mark.parametrize("columns_min_rows", [0, 10**9], ids=["columns", "records"])
def test_behind_a_region_of_expressions(columns_min_rows: int) -> None:
    builder = ks.StreamsBuilder()
    long = builder.stream("in", key=str, value=Trip).filter(ks.col("km") != 2.0).select_key(ks.col("city"))
    long.map_batch(lambda table: pc.multiply(table["km"], 2), value=float).to("out")
    assert run(builder, TRIPS, columns_min_rows=columns_min_rows) == [("Rome", 2.0, 10), ("Oslo", 8.0, 11)]


@pytest.mark.parametrize("columns_min_rows", [0, 10**9], ids=["columns", "records"])
def test_what_a_record_brings_along_stays_with_it(columns_min_rows: int) -> None:
    seen: list[Any] = []

    class Look(ks.Processor[str, float, str, float]):
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: ks.Record[str, float]) -> None:
            metadata, headers = self.context.record_metadata(), record.headers
            seen.append((record.value, self.context.current_stream_time_ms(), metadata.offset, headers))

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=Trip).map_batch(lambda table: table["km"], value=float).process(Look)
    with TopologyTestDriver(builder.build(), {**BATCHED, "columns.min.rows": columns_min_rows}) as driver:
        topic = driver.create_input_topic("in", key=str, value=Trip)
        headers = [(("n", b"0"),), (), (("n", b"2"),)]
        records = [
            ks.Record(key=key, value=value, timestamp=time, headers=header)
            for (key, value, time), header in zip(TRIPS, headers, strict=True)
        ]
        driver.pipe_batch([(topic, record) for record in records])
    assert seen == [(1.0, 10, 0, headers[0]), (2.0, 12, 1, ()), (4.0, 12, 2, headers[2])]


def halves(table: pa.Table) -> Any:
    return pa.array([10 / number for number in table["km"].to_pylist()])


def test_a_failure_is_that_of_the_record_that_is_to_blame() -> None:
    rows = [("a", Trip(5.0), 1), ("b", Trip(0.0), 2), ("c", Trip(2.0), 3)]
    with pytest.raises(ProcessingError, match=r"KSTREAM-MAPBATCH-0000000001.*in-0@1: ZeroDivisionError"):
        run(mapped(halves), rows)
    found = run(mapped(halves), rows, processing_exception_handler="continue")
    assert found == [("a", 2.0, 1), ("c", 5.0, 3)]


def test_a_function_must_give_one_row_for_each_record() -> None:
    with pytest.raises(ProcessingError, match="gave 0 rows for 1 records"):
        run(mapped(lambda table: []), TRIPS)


class Meal(msgspec.Struct):
    dish: str | None
    grams: int
    price: float
    warm: bool = False


def texts(table: pa.Table) -> list[str]:
    """All that a function can see, row by row."""
    return [f"{sorted(row.items())} {[str(field.type) for field in table.schema]}" for row in table.to_pylist()]


meals = st.builds(
    Meal, st.none() | st.text(max_size=3), st.integers(-5, 5), st.floats(-1, 1).map(lambda x: x + 0.0), st.booleans()
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | meals, st.integers(0, 9)), max_size=12), st.booleans())
def test_columns_and_records_show_the_function_the_same(rows: list[Any], reshaped: bool) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=Meal)
    if reshaped:
        stream = stream.filter(ks.col("grams") > 0).map_values(
            ks.struct(twice=ks.col("grams") * 2, dish=ks.col("dish"))
        )
    stream.map_batch(texts, value=str, with_key=True, with_timestamp=True, max_rows=5).to("out")
    by_records, by_columns = (run(builder, rows, Meal, str, columns_min_rows=least) for least in (10**9, 0))
    assert by_columns == by_records


@pytest.mark.parametrize("columns_min_rows", [0, 10**9], ids=["columns", "records"])
def test_a_handler_is_told_of_the_record_as_it_came(columns_min_rows: int) -> None:
    told: list[Any] = []

    def handler(context: Any, record: Any, error: Exception) -> Any:
        told.append((record.key, record.value, record.timestamp, context.offset))
        return ks.Response.resume()

    rows = [("a", Trip(5.0), 1), ("b", Trip(0.0), 2)]
    config = {"processing_exception_handler": handler, "columns_min_rows": columns_min_rows}
    assert run(mapped(halves), rows, **config) == [("a", 2.0, 1)]
    assert told == [("b", Trip(0.0), 2, 1)]


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(TopologyError, match="is none of"):
        mapped(halves, format="spark")
    with pytest.raises(TopologyError, match="max_rows of 1 or more"):
        mapped(halves, max_rows=0)

    async def later(table: pa.Table) -> Any:
        return table

    with pytest.raises(TopologyError, match="cannot wait for an async function"):
        mapped(later)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_nothing_waits_when_a_commit_is_made(tmp_path: Path, guarantee: str) -> None:
    world = World(tmp_path)
    world.create("in")
    world.create("out")
    world.write("in", [("k", str(number), number) for number in range(7)])
    builder = mapped(lambda table: pc.utf8_length(table["value"]), str, int, max_rows=5)
    with stepped(world, builder.build(), ManualClock(), processing_guarantee=guarantee) as application:
        application.work()
    assert [row.value for row in world.rows("out", value=int)] == [1] * 7
