"""`collect()`: the values of a group in order, each a row beside the state, in streams, windows and grouped tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.testing import TopologyTestDriver
from tests.aggregates.test_n_unique import rows_of
from tests.columns.both_paths import run
from tests.native.world import World
from tests.support.examples import examples

NO_CACHE = {"application.id": "app", "statestore.cache.max.bytes": 0}


class Order(msgspec.Struct, frozen=True):
    customer: str
    amount: int


def collected(windows: Any = None, *, on_close: bool = False) -> ks.Topology:
    builder = ks.StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=int).group_by_key()
    if windows is not None:
        grouped = grouped.windowed_by(windows)
    if on_close:
        grouped = grouped.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    table = grouped.aggregate(values=ks.value.collect(), materialized="lists")
    stream = table.to_stream() if windows is None else table.to_stream(lambda windowed, _: windowed.key, key=str)
    stream.to("out")
    return builder.build()


def results(topology: ks.Topology, records: list[tuple[str, int | None, int]], **config: Any) -> list[Any]:
    with TopologyTestDriver(topology, Config.of({"application.id": "app", **config})) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for key, value, time in records:
            topic.pipe_input(key, value, timestamp=time)
        out = driver.create_output_topic("out", key=str, value=Any).read_records()
    return [(record.key, None if record.value is None else record.value["values"]) for record in out]


def test_it_lists_the_values_in_the_order_of_the_records() -> None:
    records = [("a", 3, 0), ("b", 1, 0), ("a", 1, 0), ("a", None, 0), ("a", 3, 0)]
    assert results(collected(), records, **NO_CACHE) == [("a", [3]), ("b", [1]), ("a", [3, 1]), ("a", [3, 1, 3])]


def test_a_commit_writes_new_values_only() -> None:
    first = rows_of(list(range(1_000)))
    ran = run(collected(), [first, rows_of([7]), rows_of([7, 8])], columns=False, commits=[True, True, True])
    assert [len(changes.get("lists-members", ())) for changes in ran.changelogs] == [1_000, 1, 2, 0]


def test_lists_of_structs_are_expressions_too() -> None:
    builder = ks.StreamsBuilder()
    orders = builder.stream("in", key=str, value=Order).group_by(ks.col("customer"), key=str)
    lists = orders.aggregate(orders=ks.value.collect(), number=ks.col("amount").collect().list.len())
    lists.to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=Order)
        topic.pipe_input("1", Order("a", 5))
        topic.pipe_input("2", Order("a", 7))
        *_, last = driver.create_output_topic("out", key=str, value=Any).read_records()
    assert last.value == {"orders": [{"customer": "a", "amount": 5}, {"customer": "a", "amount": 7}], "number": 2}


TUMBLING = ks.TimeWindows(size=10, grace=0)


@pytest.mark.parametrize("on_close", [False, True])
def test_a_window_lists_its_values_also_after_time_has_jumped(on_close: bool) -> None:
    records = [("a", 1, 0), ("a", 2, 9), ("b", 3, 5), ("a", 4, 10), ("a", 5, 10**9), ("a", 6, 2 * 10**9)]
    final = dict.fromkeys([("a", (1, 2)), ("b", (3,)), ("a", (4,)), ("a", (5,))])
    lists = [(key, tuple(values)) for key, values in results(collected(TUMBLING, on_close=on_close), records)]
    assert [pair for pair in lists if pair in final] == list(final)


def test_windows_that_emit_on_close_have_a_row_per_value() -> None:
    assert "lists-members" in collected(TUMBLING, on_close=True).stores
    assert "lists-members" not in collected(TUMBLING).stores


@pytest.mark.parametrize("windows", [ks.SessionWindows(gap=10), ks.SlidingWindows(difference=30, grace=100)])
def test_sessions_and_sliding_windows_list_too(windows: Any) -> None:
    records = [("k", 1, 0), ("k", 2, 20), ("k", 3, 10)]
    assert ("k", [1, 2, 3]) in [(key, sorted(values or ())) for key, values in results(collected(windows), records)]


def table_lists(changes: list[tuple[str, Any]], group_of: Any, **config: Any) -> dict[str, Any]:
    """The last list of each group of a table; rows of lists that are gone are no rows of the store."""
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=int).group_by(
        lambda key, value: (group_of(value), value), key=str, value=int
    )
    lists = rows.aggregate(values=ks.value.collect(), materialized="lists")
    # Regrouped rows need the old list of each update: it leaves its group, which is named after it.
    lists.group_by(lambda key, row: (f"{key}{list(row.values)}", 1), key=str, value=int).count().to_stream().to("out")
    lists.to_stream().to("lists")
    with TopologyTestDriver(builder.build(), Config.of({"application.id": "app", **config})) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for key, value in changes:
            topic.pipe_input(key, value)
        updates = driver.create_output_topic("lists", key=str, value=Any).read_records()
        counts = driver.create_output_topic("out", key=str, value=int).read_records()
        left_rows = [key for key, _ in driver.get_state_store("lists-members").all()]
    latest = {update.key: update.value and update.value["values"] for update in updates}
    present = {key for key, count in {count.key: count.value for count in counts}.items() if count}
    assert present == {f"{key}{values}" for key, values in latest.items() if values}
    assert len(left_rows) == 2 * sum(len(values or ()) for values in latest.values())
    return latest


@pytest.mark.parametrize("cached", [True, False])
@given(changes=st.lists(st.tuples(st.sampled_from("1234"), st.none() | st.integers(0, 3)), max_size=25))
@settings(max_examples=examples(40), deadline=None)
def test_a_list_of_a_table_loses_the_rows_that_leave(cached: bool, changes: list[tuple[str, Any]]) -> None:
    def group_of(value: int) -> str:
        return "even" if value % 2 == 0 else "odd"

    expected: dict[str, list[int]] = {"even": [], "odd": []}
    rows: dict[str, int] = {}
    for key, value in changes:
        old = rows.pop(key, None)
        if old is not None:
            expected[group_of(old)].remove(old)
        if value is not None:
            rows[key] = value
            expected[group_of(value)].append(value)
    latest = table_lists(changes, group_of, **({} if cached else NO_CACHE))
    assert {key: values or [] for key, values in latest.items()} == {key: expected[key] for key in latest}
    assert all(key in latest for key, values in expected.items() if values)


def test_lists_come_back_from_their_changelog(tmp_path: Path) -> None:
    world = World(tmp_path, **{"processing.guarantee": "exactly_once_v2"})
    world.create("in")
    world.create("out")
    for part in range(3):
        world.write("in", [("k", number, number) for number in range(part * 20, part * 20 + 20)])
        world.run(collected())
        shutil.rmtree(world.folder / "state")
        assert world.table("out", value=Any)["k"]["values"] == list(range(part * 20 + 20))


def test_queries_name_the_way_to_a_list() -> None:
    result = collected().stores["lists"].result
    assert result is not None
    with pytest.raises(StateError, match=r"add map_values\(\.\.\., materialized=\) after the aggregation"):
        result((1,))


def test_a_table_joins_lists() -> None:
    builder = ks.StreamsBuilder()
    lists = builder.stream("in", key=str, value=int).group_by_key().aggregate(values=ks.value.collect())
    names = builder.table("names", key=str, value=str)
    names.join(lists, lambda name, row: f"{name}{row.values}", value=str).to_stream().to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        topic.pipe_input("k", 1)
        topic.pipe_input("k", 2)
        driver.create_input_topic("names", key=str, value=str).pipe_input("k", "n")
        assert driver.create_output_topic("out", key=str, value=str).read_records()[-1].value == "n[1, 2]"
