"""`approx_n_unique` and `approx_quantile`: sketches of a constant size, in all kinds of windows."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import kstreams as ks
from kstreams import expressions as ex
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver

FIELDS = {"unique": ks.value.approx_n_unique(), "p90": ks.value.approx_quantile(0.9)}


def last_result(windows: Any, records: list[tuple[int, int]]) -> dict[str, Any]:
    builder = ks.StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=int).group_by_key()
    grouped = grouped if windows is None else grouped.windowed_by(windows)
    fields = ks.struct(unique=ks.col("unique"), p90=ks.col("p90"))
    grouped.aggregate(**FIELDS).to_stream().filter(~ks.value.is_null()).map((ks.key, fields)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for value, time in records:
            topic.pipe_input("k", value, timestamp=time)
        values: list[Any] = [
            record.value for record in driver.create_output_topic("out", key=str, value=Any).read_records()
        ]
    return dict(values[-1])


@pytest.mark.parametrize("windows", [None, ks.TimeWindows(size=10_000), ks.SlidingWindows(difference=10_000)])
def test_sketches_are_close_to_the_exact_results(windows: Any) -> None:
    result = last_result(windows, [(number * 7 % 400, 5_000) for number in range(800)])
    assert result["unique"] == pytest.approx(400, rel=0.05)
    assert result["p90"] == pytest.approx(360, abs=8)


def test_sketches_of_sessions_are_merged() -> None:
    early = [(number, 0) for number in range(100)]
    late = [(number, 150) for number in range(50, 200)]
    result = last_result(ks.SessionWindows(gap=100), [*early, *late, (0, 75)])
    assert result["unique"] == pytest.approx(200, rel=0.05)
    assert result["p90"] == pytest.approx(175, abs=8)


def test_a_sketch_has_a_constant_size() -> None:
    sketches = ex.aggregation(FIELDS, value=int, result=dict)
    state = sketches.initial()
    for number in range(20_000):
        state = sketches.add(state, "k", number, 0)
    assert all(len(sketch) < 6_000 for sketch in state)
    assert sketches.result(state)["unique"] == pytest.approx(20_000, rel=0.05)


def test_equal_values_count_once_and_nan_and_null_do_not_count() -> None:
    count = ex.aggregation({"n": ks.value.approx_n_unique()}, result=dict)
    state = count.initial()
    for value in (1, 1.0, True, -0.0, 0, None, float("nan"), "1", "1"):
        state = count.add(state, "k", value, 0)
    assert count.result(state) == {"n": 3}
    assert count.result(count.initial()) == {"n": 0}


def test_a_table_has_no_sketches() -> None:
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=int).group_by((ks.key, ks.value), key=str, value=int)
    rows.aggregate(n=ks.value.approx_n_unique())
    with pytest.raises(TopologyError, match="a sketch takes no rows back: use n_unique"):
        builder.build()


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(ImportError, match=r"needs datasketches: pip install 'kstreams-dsl\[sketches\]'"):
        ex.aggregation(FIELDS, value=int)
