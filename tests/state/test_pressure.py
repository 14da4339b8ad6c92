"""Stores that hold more than their memory may: what is live goes in front of what lies below, in every kind of read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.record import Window, Windowed
from kstreams.state import StateLimits, StoreBuilder, Stores, TaskState, open_task_state

NOTHING_LIVE = StateLimits(live_max_bytes=1)
MANY = [f"{n:04}" for n in range(0, 1_000, 2)]  # several parts of a scan


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    states: list[TaskState] = []

    def open_store(builder: StoreBuilder) -> tuple[TaskState, Any]:
        states.append(open_task_state([builder], tmp_path / builder.name, limits=NOTHING_LIVE))
        return states[-1], states[-1].stores[builder.name]

    yield open_store
    for state in states:
        state.close()


def commit(state: TaskState) -> None:
    state.persist(state.changes(), {})


def key_values(opened: Any) -> tuple[TaskState, Any, dict[str, int]]:
    """500 entries below; above: one new, one changed and one deleted of each ten."""
    state, store = opened(Stores.key_value("s", key=str, value=int))
    model = {key: int(key) for key in MANY}
    store.put_many(list(model), list(model.values()))
    commit(state)
    for number in range(0, 1_000, 20):
        for key, value in ((f"{number + 1:04}", -1), (f"{number:04}", -2), (f"{number + 2:04}", None)):
            store.put(key, value)
            model.pop(key, None)
            if value is not None:
                model[key] = value
    return state, store, dict(sorted(model.items()))


@pytest.mark.parametrize("progress", ["uncommitted", "given out", "written"])
def test_scans_merge_what_is_live_with_what_lies_below(opened: Any, progress: str) -> None:
    state, store, model = key_values(opened)
    if progress == "given out":
        state.changes()
    elif progress == "written":
        commit(state)
    rows = list(model.items())
    assert list(store.all()) == rows
    assert list(store.reverse_all()) == rows[::-1]
    middle = [row for row in rows if "0100" <= row[0] <= "0940"]
    assert list(store.range("0100", "0940")) == middle
    assert list(store.reverse_range("0100", "0940")) == middle[::-1]
    assert list(store.prefix_scan("05")) == [row for row in rows if row[0].startswith("05")]


def test_the_end_of_a_range_is_exact_in_both_directions(opened: Any) -> None:
    state, store = opened(Stores.key_value("s", key=str, value=int))
    store.put_many(["a", "a\x00", "b"], [1, 2, 3])
    commit(state)
    assert list(store.range("a", "a")) == [("a", 1)]
    assert list(store.reverse_range("a", "a")) == [("a", 1)]
    assert list(store.reverse_range("a\x00", None)) == [("b", 3), ("a\x00", 2)]


def test_single_and_bulk_reads_see_changes_and_deletions(opened: Any) -> None:
    state, store, model = key_values(opened)
    asked = [f"{n:04}" for n in range(1_002)]
    assert store.get_many(asked) == [model.get(key) for key in asked]
    commit(state)
    assert [store.get(key) for key in asked] == [model.get(key) for key in asked]


def test_memory_stays_within_its_limit_while_everything_is_read(opened: Any) -> None:
    state, store = opened(Stores.key_value("s", key=str, value=int))
    store.put_many([f"{n}" for n in range(20_000)], list(range(20_000)))
    commit(state)
    assert [store.get(f"{n}") for n in range(20_000)] == list(range(20_000))
    assert store.num_live() <= 1_001


def test_uncommitted_entries_are_never_evicted(opened: Any) -> None:
    state, store = opened(Stores.key_value("s", key=str, value=int))
    store.put("below", 1)
    commit(state)
    store.put_many([f"{n}" for n in range(5_000)], list(range(5_000)))
    assert state.num_bytes_pending() > 5_000
    for n in range(5_000, 10_000):
        store.get(f"{n}")
    assert [store.get(f"{n}") for n in range(5_000)] == list(range(5_000))


def test_windows_are_read_from_below(opened: Any) -> None:
    state, store = opened(Stores.window("w", 1_000, 10, key=str, value=int))
    for start in range(0, 500, 5):
        store.put("a", start, start)
        store.put("ab", start, start)
    commit(state)
    store.put("a", -1, 250)
    store.put("a", None, 255)
    assert list(store.fetch("a", 245, 260)) == [(245, 245), (250, -1), (260, 260)]
    assert list(store.backward_fetch("a", 0, 5)) == [(5, 5), (0, 0)]
    places = [(key.key, key.window.start_ms) for key, _ in store.fetch_all(250, 255)]
    assert places == [("a", 250), ("ab", 250), ("ab", 255)]
    assert store.get_many(["a", "a", "ab"], [250, 255, 10]) == [-1, None, 10]


def test_the_rows_of_a_key_are_read_without_those_of_longer_keys(opened: Any) -> None:
    sessions = Stores.session("s", 1_000, key=bytes, value=int)
    joins = Stores.window("w", 1_000, 10, key=bytes, value=int, retain_duplicates=True)
    longer = b"a" + (5).to_bytes(8, "big")  # begins as a row of `a` at 5 does
    for builder in (sessions, joins):
        state, store = opened(builder)
        for number, key in enumerate((b"a", longer, b"", b"a")):
            time = 5 + number
            arguments = (Windowed(key, Window(time, time)), number) if builder is sessions else (key, number, time)
            store.put(*arguments)
        commit(state)
        rows = store.fetch(b"a") if builder is sessions else store.fetch(b"a", 0, 100)
        assert [value for _, value in rows] == [0, 3]
        assert len(list(store.all())) == 4


def test_sessions_by_time_are_found_below(opened: Any) -> None:
    state, store = opened(Stores.session("s", 1_000, key=str, value=int))
    for number in range(200):
        store.put(Windowed(f"{number:03}", Window(number, number)), number)
    commit(state)
    store.remove(Windowed("007", Window(7, 7)))
    assert [value for _, value in store.ended_by(9, after_ms=5)] == [6, 8, 9]
    commit(state)
    store.put(Windowed("x", Window(7, 8)), -1)
    assert [value for _, value in store.ended_by(9, after_ms=5)] == [6, -1, 8, 9]


def test_a_put_into_a_join_window_store_reads_no_other_rows_of_its_key(opened: Any) -> None:
    state, store = opened(Stores.window("pairs", 1_000, 0, key=str, value=int, retain_duplicates=True))
    for time, number in ((5, 1), (5, 2), (9, 3)):
        store.put("k", number, time)
        commit(state)
    for time, number in ((9, 4), (5, 5), (7, 6), (20, 7)):
        store.put("k", number, time)
    assert store.reads.misses == 0
    state.changes()
    store.put("k", 8, 20)
    rows = [(5, 1), (5, 2), (5, 5), (7, 6), (9, 3), (9, 4), (20, 7), (20, 8)]
    assert list(store.fetch("k", 0, 100)) == rows
    assert [(window.window.start_ms, value) for window, value in store.all()] == rows
