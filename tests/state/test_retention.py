"""When windows and sessions are gone: exactly at (greatest time put - retention), not a millisecond later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kstreams.record import Window, Windowed
from kstreams.state import StateLimits, StoreBuilder, Stores, open_task_state
from kstreams.state.rocksdb import RocksDatabase

WINDOWS = Stores.window("w", retention=100, size=10, key=str, value=int, store="memory")
DUPLICATES = Stores.window("w", retention=100, size=10, key=str, value=int, retain_duplicates=True, store="memory")
SESSIONS = Stores.session("s", retention=100, key=str, value=int, store="memory")


def opened(builder: StoreBuilder) -> Any:
    return open_task_state([builder]).stores[builder.name]


@pytest.mark.parametrize("builder", [WINDOWS, DUPLICATES], ids=["windows", "duplicates"])
def test_a_window_expires_when_its_start_is_a_retention_behind(builder: StoreBuilder) -> None:
    store = opened(builder)
    store.put("a", 1, 50)
    store.put("b", 2, 149)
    assert list(store.fetch("a", 0, 1_000)) == [(50, 1)]
    store.put("b", 3, 150)
    assert list(store.fetch("a", 0, 1_000)) == []
    store.put("a", 4, 50)
    assert [key.key for key, _ in store.all()] == ["b", "b"]
    store.put("a", 5, 51)
    assert list(store.fetch("a", 0, 1_000)) == [(51, 5)]


def test_a_session_expires_when_its_end_is_a_retention_behind() -> None:
    store = opened(SESSIONS)
    store.put(Windowed("a", Window(0, 50)), 1)
    store.put(Windowed("b", Window(149, 149)), 2)
    assert store.fetch_session("a", 0, 50) == 1
    store.put(Windowed("b", Window(149, 150)), 3)
    assert store.fetch_session("a", 0, 50) is None
    assert list(store.find_sessions("a", 0, 1_000)) == []
    assert list(store.ended_by(100)) == []
    store.put(Windowed("a", Window(0, 50)), 4)
    assert list(store.fetch("a")) == []


def test_a_window_put_to_none_is_gone() -> None:
    store = opened(WINDOWS)
    store.put("a", 1, 0)
    store.put("a", None, 0)
    assert store.get("a", 0) is None
    assert list(store.all()) == []


def test_duplicates_keep_their_order_and_take_no_none() -> None:
    store = opened(DUPLICATES)
    for value in (3, 1, 2, None, 1):
        store.put("a", value, 5)
    assert list(store.fetch("a", 5, 5)) == [(5, 3), (5, 1), (5, 2), (5, 1)]


@pytest.mark.parametrize("builder", [WINDOWS, DUPLICATES, SESSIONS], ids=["windows", "duplicates", "sessions"])
def test_what_has_expired_leaves_the_disk_with_its_segment(tmp_path: Path, builder: StoreBuilder) -> None:
    state = open_task_state([replace(builder, store="rocksdb", caching=True)], tmp_path)
    store = state.stores[builder.name]
    for time, kept in ((0, 1), (59_999, 2), (60_099, 3), (60_100, 2)):
        if builder is SESSIONS:
            store.put(Windowed("a", Window(time, time)), 1)
        else:
            store.put("a", 1, time)
        state.persist(state.changes(), {builder.name: time})
        assert len(state.dump(builder.name)) == kept
    assert len(list(store.fetch("a", 0, 100_000) if builder is not SESSIONS else store.fetch("a"))) == 2
    state.close()
    on_disk = RocksDatabase(tmp_path, [builder.name], StateLimits())
    assert sum(len(chunk.keys) for chunk in on_disk.family(builder.name).chunks(b"", None)) == 2
    on_disk.close()
