"""`n_unique()`: exact, with the members of a group as rows, so that a record changes a row however many there are."""

from __future__ import annotations

import math
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.kernel.batch import Row
from kstreams.processor.topology.fingerprint import changes, fingerprint_of
from kstreams.serdes import serde_of
from kstreams.testing import TopologyTestDriver
from tests.columns.both_paths import assert_same, run
from tests.native.world import World
from tests.support.examples import examples

HOUR = 3_600_000


def unique_values(kind: Any, windows: Any = None) -> ks.Topology:
    builder = ks.StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=kind).group_by_key()
    if windows is not None:
        grouped = grouped.windowed_by(windows)
    grouped.aggregate(n=ks.value.n_unique(), materialized="unique")
    return builder.build()


def rows_of(values: list[Any], key: bytes = b"k", time: int = 0) -> list[Row]:
    return [Row(key, None if value is None else serde_of(type(value)).serialize(value), time, ()) for value in values]


VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    float: st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5, -1.5]) | st.floats(),
    str: st.text(alphabet="aä\0\xff", max_size=3),
    bytes: st.binary(max_size=3),
    bool: st.booleans(),
    datetime: st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_it_is_the_size_of_a_set(kind: type, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[kind], max_size=12))
    expected = len({value for value in values if value == value})
    with TopologyTestDriver(unique_values(kind)) as driver:
        topic = driver.create_input_topic("in", key=str, value=kind)
        for value in values:
            topic.pipe_input("k", value)
        row = driver.get_state_store("unique").get("k")
    assert (0 if row is None else row.value[0]) == expected


@pytest.mark.parametrize("kind", [int, float, str, datetime])
@pytest.mark.parametrize("windows", [None, ks.TimeWindows(size=10, advance=5)])
@given(data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_columns_and_records_write_the_same_members(kind: type, windows: Any, data: st.DataObject) -> None:
    record = st.tuples(st.sampled_from([b"a", b"b"]), st.none() | VALUES[kind], st.integers(0, 60))
    records = data.draw(st.lists(record, min_size=1, max_size=20))
    rows = [rows_of([value], key, time)[0] for key, value, time in records]
    middle = data.draw(st.integers(0, len(rows)))
    batches = [part for part in (rows[:middle], rows[middle:]) if part]
    assert_same(lambda: unique_values(kind, windows), batches, [True])


def test_a_commit_writes_new_members_only() -> None:
    first = rows_of(list(range(1_000)))
    second = rows_of([7, 8, 1_000, 9, 1_000])
    ran = run(unique_values(int), [first, second, second], columns=False, commits=[True, True, True])
    logged = [len(changes.get("unique-members", ())) for changes in ran.changelogs]
    assert logged == [1_000, 1, 0, 0]


def test_members_expire_with_their_window() -> None:
    windows = ks.TimeWindows(size=HOUR, grace=0)
    with TopologyTestDriver(unique_values(int, windows)) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for hour in range(200):
            topic.pipe_input("k", hour, timestamp=hour * HOUR)
        members = driver.get_state_store("unique-members")
        starts = [windowed.window.start_ms // HOUR for windowed, _ in members.all()]
    assert starts[-1] == 199
    assert len(starts) == len(windows_after(200, windows))


def windows_after(hours: int, windows: Any) -> list[Any]:
    """The windows that an aggregation without members has after as many hours."""
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).group_by_key().windowed_by(windows).aggregate(
        last=ks.value.last(), materialized="last"
    )
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for hour in range(hours):
            topic.pipe_input("k", hour, timestamp=hour * HOUR)
        return list(driver.get_state_store("last").all())


SESSIONS = ks.SessionWindows(gap=10)
SLIDING = ks.SlidingWindows(difference=10, grace=100)


@pytest.mark.parametrize(("windows", "greatest"), [(SESSIONS, 3), (SLIDING, 2), (ks.UnlimitedWindows(), 3)])
def test_windows_of_all_kinds_count(windows: Any, greatest: int) -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=int).group_by_key().windowed_by(windows)
    counts = grouped.aggregate(n=ks.value.n_unique())
    counts.to_stream(lambda windowed, _: windowed.key, key=str).filter(lambda _, row: row is not None).map_values(
        lambda row: row.n, value=int
    ).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", key=str, value=int)
        for value, time in ((1, 0), (2, 20), (1, 10), (3, 5)):
            topic.pipe_input("k", value, timestamp=time)
        values = [record.value for record in driver.create_output_topic("out", key=str, value=int).read_records()]
    assert max(values) == greatest


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_members_come_back_from_their_changelog(tmp_path: Path, guarantee: str) -> None:
    def topology() -> ks.Topology:
        builder = ks.StreamsBuilder()
        counts = (
            builder.stream("in", key=str, value=int)
            .group_by_key()
            .aggregate(n=ks.value.n_unique(), materialized="unique")
        )
        counts.to_stream().map_values(lambda row: row.n, value=int).to("out", key=str)
        return builder.build()

    world = World(tmp_path, **{"processing.guarantee": guarantee})
    world.create("in")
    world.create("out")
    for part in range(3):
        world.write("in", [("k", number % 50, number) for number in range(part * 20, part * 20 + 40)])
        world.run(topology())
        shutil.rmtree(world.folder / "state")
        assert world.table("out", value=int) == {"k": min(50, part * 20 + 40)}


def checked(before: ks.Topology, after: ks.Topology) -> bool:
    """Whether the state of one topology fits the other."""
    return all(change.keeps for change in changes(fingerprint_of(before), fingerprint_of(after)))


def test_a_check_notices_that_members_have_another_type() -> None:
    assert checked(unique_values(int), unique_values(int))
    assert not checked(unique_values(int), unique_values(str))
