"""`median` and `quantile` of grouped tables: exact, also after rows have left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.testing import TopologyTestDriver
from tests.aggregates.test_n_unique import rows_of
from tests.columns.both_paths import run
from tests.support.examples import examples

QUANTILES = (0.0, 0.25, 0.5, 0.9, 1.0)
INTERPOLATIONS = ("lower", "higher", "nearest", "midpoint", "linear")
VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(-4, 4) | st.integers(-(2**40), 2**40),
    float: st.sampled_from([0.0, -1.5, 2.5, 1e9, math.nan]),
}


def quantiles_after(changes: list[tuple[str, Any]], kind: type, **fields: ks.Expr) -> dict[str, Any] | None:
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=kind).group_by(lambda key, value: ("all", value), key=str, value=kind)
    rows.aggregate(**fields).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=kind)
        for key, value in changes:
            topic.pipe_input(key, value)
        results = driver.create_output_topic("out", key=str, value=Any).read_records()
    return results[-1].value if results else None


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@given(data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_a_quantile_is_that_of_the_rows_that_are_there(kind: type, interpolation: Any, data: st.DataObject) -> None:
    keys = st.sampled_from("12345678")
    changes = data.draw(st.lists(st.tuples(keys, st.none() | VALUES[kind]), max_size=30))
    fields = {f"q{number}": ks.value.quantile(q, interpolation) for number, q in enumerate(QUANTILES)}
    results = quantiles_after(changes, kind, **fields)
    rows = [value for value in dict(changes).values() if value is not None]
    numbers = [value for value in rows if value == value]
    assert (results is None) == (not rows)
    for number, q in enumerate(QUANTILES if results is not None else ()):
        assert results is not None
        assert results[f"q{number}"] == (expected_quantile(numbers, q, interpolation) if numbers else None)


def expected_quantile(numbers: list[Any], q: float, interpolation: str) -> Any:
    """The definition: between the values below and above a rank of the sorted values."""
    ordered = sorted(numbers)
    place = q * (len(ordered) - 1)
    lower, upper = ordered[math.floor(place)], ordered[math.ceil(place)]
    share = place - math.floor(place)
    return {
        "lower": lower,
        "higher": upper,
        "nearest": lower if share < 0.5 else upper,
        "midpoint": (lower + upper) / 2,
        "linear": pytest.approx(float(np.quantile(ordered, q))),
    }[interpolation]


def test_a_median_lies_between_two_rows() -> None:
    median = ks.value.median()
    assert quantiles_after([("1", 1), ("2", 2), ("3", 10), ("4", 7), ("3", None), ("5", 3)], int, m=median) == {
        "m": 2.5
    }


WINDOWS = (
    None,
    ks.TimeWindows(size=10, advance=5),
    ks.SessionWindows(gap=5),
    ks.SlidingWindows(difference=10, grace=1000),
)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("windows", WINDOWS)
@given(data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_a_quantile_of_a_stream_is_that_of_its_records(kind: type, windows: Any, data: st.DataObject) -> None:
    records = data.draw(st.lists(st.tuples(st.none() | VALUES[kind], st.integers(0, 40)), max_size=20))
    builder = ks.StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=kind).group_by_key()
    if windows is not None:
        grouped = grouped.windowed_by(windows)
    quantiles = {f"q{number}": ks.value.quantile(q, "linear") for number, q in enumerate(QUANTILES)}
    table = grouped.aggregate(values=ks.value.collect(), **quantiles)
    table.to_stream(lambda key, _: str(key), key=str).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=kind)
        for value, time in records:
            topic.pipe_input("k", value, timestamp=time)
        results = [record.value for record in driver.create_output_topic("out", key=str, value=Any).read_records()]
    for result in filter(None, results):
        numbers = [value for value in result["values"] if value != "NaN"]
        for number, q in enumerate(QUANTILES):
            assert result[f"q{number}"] == (expected_quantile(numbers, q, "linear") if numbers else None)


def test_a_quantile_of_a_stream_writes_one_row_a_record() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).group_by_key().aggregate(m=ks.value.median(), materialized="medians")
    batches = [rows_of(list(range(500))), rows_of([7, 1_000])]
    ran = run(builder.build(), batches, columns=False, commits=[True, True])
    assert [len(changes.get("medians-members", ())) for changes in ran.changelogs] == [500, 2, 0]


def test_what_is_no_quantile_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        ks.value.quantile(90)
    with pytest.raises(ValueError, match="takes nearest, lower"):
        ks.value.quantile(0.9, "middle")  # type: ignore[arg-type]
