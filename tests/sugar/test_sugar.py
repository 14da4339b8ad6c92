"""Deduplication, sampling, top n, expiry and rates: on the test driver, and the same on the native engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.kernel.clock import ManualClock
from kstreams.testing import TopologyTestDriver
from tests.native.stepped import stepped
from tests.native.world import World

Build = Callable[[ks.StreamsBuilder], None]
Row = tuple[str, Any, int]
UNCACHED = {"statestore.cache.max.bytes": 0}
IN_MEMORY = {"default.dsl.store": "in_memory"}


def on_driver(build: Build, rows: list[Row], value: Any = str) -> list[Row]:
    builder = ks.StreamsBuilder(IN_MEMORY)
    build(builder)
    with TopologyTestDriver(builder.build(), UNCACHED) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key, text, time in rows:
            topic.pipe_input(key, text, time)
        out = driver.create_output_topic("out", key=str, value=value)
        return [(record.key, record.value, record.timestamp) for record in out.read_records()]


def on_native(build: Build, rows: list[Row], folder: Path, value: Any = str) -> list[Row]:
    """In two halves, with a restart between."""
    world, clock = World(folder), ManualClock()
    world.create("in")
    world.create("out")
    for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        world.write("in", half)
        builder = ks.StreamsBuilder()
        build(builder)
        with stepped(world, builder.build(), clock, statestore_cache_max_bytes=0) as application:
            application.work()
    return [tuple(row) for row in world.rows("out", value=value)]


def deduplicated(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).deduplicate(10).to("out")


def by_value(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).deduplicate(10, by=lambda _, value: value or None, key=str).to("out")


def by_expression(builder: ks.StreamsBuilder) -> None:
    first_letter = ks.value.str.head(1)
    builder.stream("in", key=str, value=str).deduplicate(10, by=first_letter).to("out")


def best_two(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).group_by_key().top_n(2, by=len).to_stream().to("out")


def best_two_by_expression(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).group_by_key().top_n(2, by=ks.value.str.len()).to_stream().to("out")


def best_of_table(builder: ks.StreamsBuilder) -> None:
    grouped = builder.table("in", key=str, value=str).group_by(lambda _, value: ("all", value), key=str, value=str)
    grouped.top_n(2, by=len).to_stream().to("out")


def best_of_table_by_expression(builder: ks.StreamsBuilder) -> None:
    grouped = builder.table("in", key=str, value=str).group_by(lambda _, value: ("all", value), key=str, value=str)
    grouped.top_n(2, by=ks.value.str.len()).to_stream().to("out")


def expiring(builder: ks.StreamsBuilder) -> None:
    builder.table("in", key=str, value=str).expire(after=10).to_stream().to("out")


def rates(builder: ks.StreamsBuilder) -> None:
    windowed = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=100, grace=0))
    windowed.rate(per=1_000).to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out")


CASES: dict[str, tuple[Build, list[Row], list[Row], Any]] = {
    "the first of a key within a time": (
        deduplicated,
        [("a", "1", 0), ("a", "2", 10), ("b", "3", 10), ("a", "4", 11), ("a", "5", 5), ("a", "6", 40), ("a", "7", 22)],
        [("a", "1", 0), ("b", "3", 10), ("a", "4", 11), ("a", "6", 40), ("a", "7", 22)],
        str,
    ),
    "the first of a value, but for empty ones": (
        by_value,
        [("a", "x", 0), ("b", "x", 1), ("a", "", 2), ("a", "", 3), ("a", "y", 4)],
        [("a", "x", 0), ("a", "", 2), ("a", "", 3), ("a", "y", 4)],
        str,
    ),
    "the best two of a key, earlier ones first": (
        best_two,
        [("a", "x", 0), ("a", "zzz", 1), ("b", "w", 2), ("a", "yy", 3), ("a", "uu", 4)],
        [("a", ["x"], 0), ("a", ["zzz", "x"], 1), ("b", ["w"], 2), ("a", ["zzz", "yy"], 3), ("a", ["zzz", "yy"], 4)],
        list[str],
    ),
    "the best two of a key, by an expression": (
        best_two_by_expression,
        [("a", "x", 0), ("a", "zzz", 1), ("a", "yy", 2)],
        [("a", ["x"], 0), ("a", ["zzz", "x"], 1), ("a", ["zzz", "yy"], 2)],
        list[str],
    ),
    "the best two rows, by an expression": (
        best_of_table_by_expression,
        [("a", "x", 0), ("b", "yyy", 1), ("c", "zz", 2)],
        [("all", ["x"], 0), ("all", ["yyy", "x"], 1), ("all", ["yyy", "zz"], 2)],
        list[str],
    ),
    "the first of a part, by an expression": (
        by_expression,
        [("a", "xa", 0), ("b", "xb", 1), ("a", "y", 2)],
        [("a", "xa", 0), ("a", "y", 2)],
        str,
    ),
    "the best two rows, of which one leaves": (
        best_of_table,
        [("a", "x", 0), ("b", "yyy", 1), ("c", "zz", 2), ("b", None, 3)],
        [("all", ["x"], 0), ("all", ["yyy", "x"], 1), ("all", ["yyy", "zz"], 2), ("all", ["zz", "x"], 3)],
        list[str],
    ),
    "rows that were not updated for 10 ms": (
        expiring,
        [
            ("a", "1", 0),
            ("b", "2", 5),
            ("a", "3", 8),
            ("c", "4", 15),
            ("d", None, 16),
            ("e", "late", 6),
            ("a", "5", 90),
        ],
        [
            ("a", "1", 0),
            ("b", "2", 5),
            ("a", "3", 8),
            ("b", None, 15),
            ("c", "4", 15),
            ("d", None, 16),
            ("e", None, 6),
            ("a", None, 18),
            ("c", None, 25),
            ("a", "5", 90),
        ],
        str,
    ),
    "records per second": (
        rates,
        [("a", "x", 0), ("a", "x", 50), ("a", "x", 100)],
        [("a@0", 10.0, 0), ("a@0", 20.0, 50), ("a@100", 10.0, 100)],
        float,
    ),
}
each_case = pytest.mark.parametrize(("build", "rows", "expected", "value"), CASES.values(), ids=CASES)


@each_case
def test_on_the_driver(build: Build, rows: list[Row], expected: list[Row], value: Any) -> None:
    assert on_driver(build, rows, value) == expected


@each_case
def test_on_the_native_engine_over_a_restart(
    build: Build, rows: list[Row], expected: list[Row], value: Any, tmp_path: Path
) -> None:
    assert on_native(build, rows, tmp_path, value) == expected


def test_expired_rows_are_gone_from_the_store_and_idle_input_lets_them_expire() -> None:
    builder = ks.StreamsBuilder()
    builder.table("in", key=str, value=str, idle=0).expire(after=10, materialized="live").to_stream().to("out")
    with TopologyTestDriver(builder.build(), start_ms=0) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "1", 5)
        driver.advance_wall_clock_time(9)
        assert driver.get_key_value_store("live").get("a") == "1"
        driver.advance_wall_clock_time(1)
        assert driver.get_key_value_store("live").get("a") is None


keys = st.sampled_from("abc")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(keys, st.integers(0, 60)), max_size=15))
def test_deduplication_passes_on_what_has_no_earlier_record_nearby(rows: list[tuple[str, int]]) -> None:
    kept: list[tuple[str, int]] = []
    latest = 0
    for key, time in rows:
        latest = max(latest, time)
        if time < latest - 10:
            return  # later than promised
        if not any(key == other and abs(time - at) <= 10 for other, at in kept):
            kept.append((key, time))
    found = on_driver(deduplicated, [(key, "", time) for key, time in rows])
    assert [(key, time) for key, _, time in found] == kept


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(keys, st.integers(0, 60)), max_size=15))
def test_a_table_that_expires_holds_what_was_updated_lately(rows: list[tuple[str, int]]) -> None:
    found = on_driver(expiring, [(key, "x", time) for key, time in rows])
    table = {key: value for key, value, _ in found}
    latest = max((time for _, time in rows), default=0)
    updated = dict(rows)
    reached = {key: max(t for _, t in rows[: at + 1]) for at, (key, _) in enumerate(rows)}
    assert {key for key, value in table.items() if value is not None} == {
        key for key, time in updated.items() if time + 10 > max(latest, reached[key])
    }


def test_a_sample_is_the_same_for_all_records_of_a_key_and_about_as_large_as_asked_for() -> None:
    def sampled(builder: ks.StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).sample(0.3, seed=7).to("out")

    rows = [(str(number % 200), str(number), number) for number in range(400)]
    found = on_driver(sampled, rows)
    chosen = {key for key, _, _ in found}
    assert found == [row for row in rows if row[0] in chosen]
    assert 40 <= len(chosen) <= 80
    assert on_driver(sampled, rows) == found


def whole_share(fraction: float, builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).sample(fraction).to("out")


def test_a_sample_by_something_else_and_its_ends() -> None:
    rows = [(str(number), f"order-{number % 50}", number) for number in range(100)]

    def by_order(builder: ks.StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).sample(0.5, by=lambda _, order: order, key=str).to("out")

    def by_expression(builder: ks.StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).sample(0.5, by=ks.value).to("out")

    assert on_driver(by_expression, rows) == on_driver(by_order, rows)
    orders = {value for _, value, _ in on_driver(by_order, rows)}
    assert on_driver(by_order, rows) == [row for row in rows if row[1] in orders]
    nothing, everything = (partial(whole_share, fraction) for fraction in (0, 1))
    assert on_driver(nothing, rows) == []
    assert on_driver(everything, rows) == rows


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda s: s.deduplicate(5), r"deduplicate\(\) at .*test_sugar\.py.* must know the type of its keys"),
        (lambda s: s.deduplicate(5, by=lambda k, v: v), "must know the type of what by= gives: write key=<type>"),
        (lambda s: s.deduplicate(5, by=ks.col("id")), "must know the type of what by= gives: write key=<type>"),
        (lambda s: s.deduplicate(-5), "negative time"),
        (lambda s: s.sample(1.5), "from 0 to 1"),
        (lambda s: s.group_by_key().top_n(0, by=len), "give 1 or more"),
        (lambda s: s.group_by_key().top_n(2, by=len), r"top_n\(\) at .* must know the type of its values"),
        (lambda s: s.to_table().expire(after=0), "at least 1 ms"),
        (lambda s: s.group_by_key().windowed_by(ks.UnlimitedWindows()).rate(per=5), "windows of one size"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_users_line(use: Callable[[Any], Any], said: str) -> None:
    stream = ks.StreamsBuilder().stream("in").map(lambda key, value: (key, value))
    with pytest.raises(TopologyError, match=said):
        use(stream)
