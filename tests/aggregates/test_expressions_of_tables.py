"""Expressions over a grouped table: rows that leave are taken back, exactly."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver
from tests.native.world import World
from tests.support.examples import examples

Update = tuple[str, Any]
VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(-5, 5) | st.integers(-(2**62), 2**62),
    str: st.text(alphabet="ab\0", max_size=2),
    datetime: st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
}


def of_groups(kind: Any, **fields: Any) -> ks.Topology:
    """Aggregates of the rows whose keys have the same first letter."""
    builder = ks.StreamsBuilder()
    rows = builder.table("in", key=str, value=kind).group_by(lambda key, value: (key[0], value), key=str, value=kind)
    rows.aggregate(**fields, materialized="groups").to_stream().to("out")
    return builder.build()


def ordered(kind: Any) -> ks.Topology:
    return of_groups(kind, rows=ks.len(), unique=ks.value.n_unique(), least=ks.value.min(), greatest=ks.value.max())


def modelled(changes: list[Update]) -> dict[str, dict[str, Any] | None]:
    rows = dict(changes)
    groups: dict[str, list[Any]] = {key[0]: [] for key, _ in changes}
    for key, value in rows.items():
        if value is not None:
            groups[key[0]].append(value)
    return {
        key: {"rows": len(values), "unique": len(set(values)), "least": min(values), "greatest": max(values)}
        for key, values in groups.items()
        if values
    }


def last_of(driver: TopologyTestDriver) -> dict[str, Any]:
    records = driver.create_output_topic("out", key=str, value=Any).read_records()
    last = {record.key: record.value for record in records}
    return {key: value for key, value in last.items() if value is not None}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_group_is_what_its_rows_are(kind: type, data: st.DataObject) -> None:
    keys = st.sampled_from(["a1", "a2", "a3", "b1"])
    changes = data.draw(st.lists(st.tuples(keys, st.none() | VALUES[kind]), max_size=25))
    size = {"statestore.cache.max.bytes": data.draw(st.sampled_from([0, 10_000_000]))}
    with TopologyTestDriver(ordered(kind), size) as driver:
        topic = driver.create_input_topic("in", key=str, value=kind)
        for key, value in changes:
            topic.pipe_input(key, value)
        expected = modelled(changes)
        found = last_of(driver)
    if kind is datetime:
        for row in found.values():
            row |= {at: datetime.fromisoformat(row[at]) for at in ("least", "greatest")}
    assert found == expected


def test_sums_and_means_take_rows_back() -> None:
    with TopologyTestDriver(of_groups(int, total=ks.value.sum(), mean=ks.value.mean())) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for key, value in (("a1", 10), ("a2", 20), ("a1", 40), ("a2", None), ("b1", 1), ("b1", None)):
            topic.pipe_input(key, value)
        assert last_of(driver) == {"a": {"total": 40, "mean": 40.0}}
        assert set(driver.get_all_state_stores()) >= {"groups"}


def test_members_come_back_from_their_changelog(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create("in")
    world.create("out")
    changes: list[Update] = [(f"a{number % 9}", number * 7 % 20) for number in range(60)]
    for part in range(3):
        world.write("in", [(key, value, 0) for key, value in changes[part * 20 : part * 20 + 20]])
        world.run(ordered(int))
        shutil.rmtree(world.folder / "state")
        assert world.table("out", value=Any) == modelled(changes[: part * 20 + 20])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"last": ks.value.last()}, "the rows of a group have no order"),
        ({"topics": ks.topic.n_unique()}, "a row of a table has no headers and no position"),
        ({"n": ks.value}, "is not one value of many records"),
        ({}, "takes either an initializer, an adder and a subtractor, or named expressions"),
    ],
)
def test_what_rows_cannot_say_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        of_groups(int, **fields)
