"""The parts of the memory: what is over its share is committed early, lies below, or goes out in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config, MemoryShares
from kstreams.kernel.clock import ManualClock
from kstreams.serdes import serde_of
from kstreams.state import StateLimits, StoreBuilder, Stores, open_task_state, store_kinds
from kstreams.state.api import BufferedChange
from kstreams.state.rows.entries import RowWeight
from tests.native.stepped import stepped
from tests.native.world import World

MIB = 1024 * 1024
BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
NOTHING_LIVE = StateLimits(live_max_bytes=1)
MANY = 20_000


def counts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    one_more = builder.stream("in", key=str, value=str).group_by_key()
    one_more.aggregate(lambda: 0, lambda _key, _value, count: count + 1, value=int).to_stream().to("out")
    return builder.build()


@BOTH
def test_uncommitted_changes_over_their_share_are_committed_early(tmp_path: Path, guarantee: str) -> None:
    world = World(tmp_path, **{"processing.guarantee": guarantee, "memory.max.bytes": 24 * MIB})
    world.create("in")
    world.write("in", [(f"key-{number}", "v", number) for number in range(MANY)])
    with stepped(world, counts(), ManualClock(), commit_interval_ms=10**9) as application:
        thread, most = application.thread, 0
        thread.round()
        while thread.is_busy:
            most = max(most, sum(task.bytes_pending for task in thread.tasks))
            thread.round()
        assert thread.committer.commits > 1
        assert most < 3 * MIB  # the share is 2 MiB
        thread.commit()
    assert world.table("out", value=int) == {f"key-{number}": 1 for number in range(MANY)}


def test_large_values_are_taken_in_short_runs(tmp_path: Path) -> None:
    world = World(tmp_path, **{"memory.max.bytes": 24 * MIB})
    world.create("in")
    world.write("in", [(f"{number}", "v" * 20_000, number) for number in range(500)])
    with stepped(world, counts(), ManualClock()) as application:
        application.thread.round()
        [task] = application.thread.tasks
        assert task.input.run_length <= 2 * MIB // 4 // 20_000
        application.work()
    assert len(world.table("out", value=int)) == 500


def test_who_gives_live_values_more_gives_the_whole_more() -> None:
    large = MemoryShares.of(Config.of({"statestore.live.max.bytes": "1 GiB"}))
    assert (large.live, large.uncommitted) == (1024 * MIB, 256 * MIB)
    within = MemoryShares.of(Config.of({"statestore.live.max.bytes": "1 GiB", "memory.max.bytes": 120 * MIB}))
    assert within.live == 40 * MIB


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (lambda n: f"key-{n:08}", lambda n: n + 1_000, 57 + 7 + 32),
        (lambda n: 10**6 + n, lambda n: (n + 1_000, float(n)), 32 + 32 + 24 + 56 + 8),
        (lambda n: f"{n:04}", lambda n: {"a": [n + 1_000, f"{n:04}" * 250]}, 64 + 184 + 80 + 32 + 1_056 + 56),
    ],
    ids=["text and integer", "integer and tuple", "JSON"],
)
def test_rows_are_weighed_to_a_quarter(key: Any, value: Any, expected: int) -> None:
    rows = [(key(n), value(n)) for n in range(16)]
    assert 0.75 * expected < RowWeight(lambda: rows, slots=0).of(16) < 1.25 * expected


def test_a_store_in_memory_counts_and_others_make_room_for_it(tmp_path: Path) -> None:
    builders = [
        Stores.key_value("below", key=str, value=int),
        Stores.key_value("memory", key=str, value=int, store="memory"),
    ]
    state = open_task_state(builders, tmp_path, limits=StateLimits(live_max_bytes=600_000))
    below, memory = state.stores["below"], state.stores["memory"]
    below.put_many([f"{number}" for number in range(2_400)], list(range(2_400)))
    state.persist(state.changes(), {})
    assert below.num_live() == 2_400
    memory.put_many([f"{number}" for number in range(10_000)], list(range(10_000)))
    below.put("one more", 1)
    state.persist(state.changes(), {})  # in the order of the stores: the one in memory says last what it takes
    below.put("one more", 2)
    state.persist(state.changes(), {})
    assert below.num_live() < 2_400
    assert below.get("17") == 17
    assert memory.num_live() == 10_000
    state.close()


def suppressing(directory: Path) -> Any:
    builder = StoreBuilder("waiting", store_kinds.TIME_ORDERED_BUFFER, serde_of(str), serde_of(int))
    return open_task_state([builder], directory, limits=NOTHING_LIVE)


def joining(directory: Path) -> Any:
    builder = StoreBuilder("waiting", store_kinds.OUTER_JOIN, serde_of(str), serde_of(int), right_value=serde_of(int))
    return open_task_state([builder], directory, limits=NOTHING_LIVE)


def test_a_suppressed_window_of_many_keys_leaves_in_order_and_is_logged_in_parts(tmp_path: Path) -> None:
    state = suppressing(tmp_path)
    buffer = state.stores["waiting"]
    for number in reversed(range(MANY)):
        buffer.put(f"{number:05}", BufferedChange(number, None, number, ()), 7)
    state.persist(state.changes(), {"waiting": MANY})
    assert (buffer.num_live(), buffer.num_records(), buffer.first_time()) == (0, MANY, 7)
    assert buffer.get("00042").new == 42
    buffer.put("00042", BufferedChange(-1, None, 8, ()), 9)  # keeps its place
    assert [key for key, _ in buffer.pop_until(7)] == [f"{number:05}" for number in range(MANY)]
    parts = [len(changes) for _, changes in state.popped(8)]
    assert sum(parts) == MANY - 1
    assert max(parts) < MANY / 2
    rest = state.changes(8)
    assert rest["waiting"].keys.to_pylist() == [b"00042"]
    state.persist(rest, {"waiting": 2 * MANY})
    state.close()
    again = suppressing(tmp_path)
    assert again.stores["waiting"].num_records() == 0
    assert again.changelog_offset("waiting") == 2 * MANY
    again.close()


def test_who_asks_for_changes_alone_gets_what_has_left_too(tmp_path: Path) -> None:
    state = suppressing(tmp_path)
    buffer = state.stores["waiting"]
    for number in range(1_000):
        buffer.put(f"{number:05}", BufferedChange(number, None, number, ()), 7)
    state.persist(state.changes(), {})
    assert len(list(buffer.pop_until(7))) == 1_000
    changes = state.changes(8)["waiting"]
    assert (len(changes), changes.values.null_count) == (1_000, 1_000)
    state.close()


def test_what_was_popped_and_not_committed_waits_again_after_a_restart(tmp_path: Path) -> None:
    state = suppressing(tmp_path)
    for number in range(1_000):
        state.stores["waiting"].put(f"{number:05}", BufferedChange(number, None, number, ()), 7)
    state.persist(state.changes(), {})
    assert len(list(state.stores["waiting"].pop_until(7))) == 1_000
    assert len(list(state.popped(8))) > 0
    state.close()
    again = suppressing(tmp_path)
    assert again.stores["waiting"].num_records() == 1_000
    again.close()


def test_outer_rows_of_many_keys_leave_in_order_and_are_logged_in_parts(tmp_path: Path) -> None:
    state = joining(tmp_path)
    rows = state.stores["waiting"]
    for number in range(MANY):
        rows.put(f"{number:05}", number, number // 100, number % 2 == 0)
    state.persist(state.changes(), {"waiting": MANY})
    assert rows.num_live() == 0
    rows.remove("00003", 0, False)  # it found a partner
    rows.put("00000", -1, 0, True)
    expected = [(f"{number:05}", number, number // 100, number % 2 == 0) for number in range(MANY) if number != 3]
    expected.insert(1, ("00000", -1, 0, True))
    in_order = sorted(expected, key=lambda row: (row[2], row[3], row[0]))
    assert list(rows.pop_until(10**9, 10**9)) == in_order
    parts = [len(changes) for _, changes in state.popped()]
    assert sum(parts) == MANY - 2
    assert max(parts) < MANY / 2
    rest = state.changes()
    assert sorted(key[9:] for key in rest["waiting"].keys.to_pylist()) == [b"00000", b"00003"]
    state.persist(rest, {"waiting": 2 * MANY})
    state.close()
    again = joining(tmp_path)
    assert list(again.stores["waiting"].pop_until(10**9, 10**9)) == []
    again.close()
