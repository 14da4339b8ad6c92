"""`top_n` of a table: all rows of a group are rows of a store in the order of their scores, and the best are read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError
from kstreams.state import Stores, open_task_state
from kstreams.testing import TopologyTestDriver
from tests.native.world import World
from tests.support.examples import examples


def best_three(score: Any) -> ks.Topology:
    """The three rows with the highest scores, of the groups of keys with the same first letter."""
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=int).group_by(lambda key, value: (key[0], value), key=str, value=int)
    rows.top_n(3, by=score, materialized="best").to_stream().to("out")
    return builder.build()


def tens(value: int) -> int:
    """A score that several values share."""
    return value // 10


Update = tuple[str, int | None]
updates = st.lists(st.tuples(st.sampled_from(["a1", "a2", "a3", "a4", "b1"]), st.none() | st.integers(0, 40)))


def modelled(changes: list[Update]) -> dict[str, list[int]]:
    """The best rows of each group: rows leave and arrive one after the other."""
    rows: dict[str, int] = {}
    groups: dict[str, list[int]] = {}
    for key, value in changes:
        group = groups.setdefault(key[0], []) if value is not None or key in rows else []
        if key in rows:
            group.remove(rows.pop(key))
        if value is not None:
            rows[key] = value
            group.append(value)
    return {key: sorted(group, key=tens, reverse=True)[:3] for key, group in groups.items()}


@given(changes=updates, cached=st.booleans())
@settings(max_examples=examples(90), deadline=None)
def test_the_best_rows_are_those_of_a_sorted_list(changes: list[Update], cached: bool) -> None:
    size = {} if cached else {"statestore.cache.max.bytes": 0}
    with TopologyTestDriver(best_three(tens), size) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for key, value in changes:
            topic.pipe_input(key, value)
        out = driver.create_output_topic("out", key=str, value=list[int]).read_records()
    assert {record.key: record.value for record in out} == modelled(changes)


def test_rows_come_back_from_their_changelog(tmp_path: Path) -> None:
    changes: list[Update] = [(f"a{number % 30}", number * 7 % 50) for number in range(90)]
    world = World(tmp_path)
    world.create("in")
    world.create("out")
    for part in range(3):
        now = changes[part * 30 : part * 30 + 30]
        world.write("in", [(key, value, 0) for key, value in now])
        world.run(best_three(tens))
        shutil.rmtree(world.folder / "state")
        assert world.table("out", value=list[int]) == modelled(changes[: part * 30 + 30])


def test_a_score_without_an_order_in_bytes_is_named() -> None:
    with TopologyTestDriver(best_three(lambda value: {"points": value})) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        with pytest.raises(ProcessingError, match=r"top_n\(\) ranks by .*, a dict: return a number"):
            topic.pipe_input("a", 1)


keys = st.lists(st.integers(0, 3_000), unique=True, max_size=60)


@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_the_first_rows_of_a_range_are_those_of_a_scan(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("rows") if data.draw(st.booleans()) else None
    state = open_task_state([Stores.key_value("rows", key=bytes, value=int)], folder)
    store = state.stores["rows"]
    bounds = [
        number.to_bytes(2, "big")
        for number in sorted(data.draw(st.tuples(st.integers(0, 3_000), st.integers(0, 3_000))))
    ]
    for _ in range(3):
        for number in data.draw(keys):
            store.put(number.to_bytes(2, "big"), number)
        for number in data.draw(keys):
            store.put(number.to_bytes(2, "big"), None)
        if data.draw(st.booleans()):
            state.persist(state.changes(), {"rows": 0})
            store.evict(data.draw(st.integers(0, 100)))
        expected = [row for row in store.all() if bounds[0] <= row[0] < bounds[1]]
        assert list(store.first_rows(*bounds)) == expected
        assert list(store.first_rows(*bounds, reverse=True)) == expected[::-1]
        assert list(store.first_rows(b"", None, reverse=True)) == list(store.reverse_all())
    state.close()
