"""What another thread reads while values are loaded, evicted or forgotten: what lies there, never "nothing"."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.record import Window, Windowed
from kstreams.state import StateLimits, Stores, TaskState, open_task_state
from kstreams.state.rows.entries import Entries
from kstreams.state.rows.rows_by_key import RowsByKey


class Told(str):
    """A key that calls a function whenever a dict looks for it."""

    told: Callable[[], None] | None = None

    def __hash__(self) -> int:
        if Told.told is not None:
            Told.told()
        return super().__hash__()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    Told.told = None


def commit(state: TaskState) -> None:
    changes = state.changes()
    state.persist(changes, dict.fromkeys(changes, 1))


KEY_VALUE = Stores.key_value("s", key=str, value=int)
VERSIONED = Stores.versioned("s", key=str, value=int, history_retention=10**9)
WINDOWS = Stores.window("s", key=str, value=int, retention=10**9, size=10)
SESSIONS = Stores.session("s", key=str, value=int, retention=10**9)

Put, Get = Callable[[Any, str, int], None], Callable[[Any, str], Any]
KINDS: dict[str, tuple[Any, Put, Get]] = {
    "key-value": (KEY_VALUE, lambda s, k, v: s.put(k, v), lambda s, k: s.get(k)),
    "versioned": (VERSIONED, lambda s, k, v: s.put(k, v, 0), lambda s, k: s.get(k).value),
    "window": (WINDOWS, lambda s, k, v: s.put(k, v, 0), lambda s, k: s.get(k, 0)),
    "session": (
        SESSIONS,
        lambda s, k, v: s.put(Windowed(k, Window(0, 5)), v),
        lambda s, k: s.fetch_session(k, 0, 5),
    ),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@EVERY_KIND
def test_a_key_that_is_evicted_is_found_at_every_moment(tmp_path: Path, kind: str) -> None:
    builder, put, get = KINDS[kind]
    state = open_task_state([builder], tmp_path)
    store, keys = state.stores["s"], [Told(f"k{n}") for n in range(8)]
    store.ready()  # now all of it is live
    for n, key in enumerate(keys):
        put(store, key, n)
    commit(state)
    seen: list[list[Any]] = []

    def read() -> None:
        Told.told = None
        seen.append([get(store, f"k{n}") for n in range(8)])
        Told.told = read

    Told.told = read
    evicted = store.evict(8)
    Told.told = None
    assert evicted
    assert seen
    assert {tuple(found) for found in seen} == {tuple(range(8))}
    state.close()


class WatchedEntries(Entries):
    """Reads a key as soon as it is cleared."""

    def clear(self) -> None:
        super().clear()
        WatchedEntries.seen = self["a"]

    seen: Any = None


class WatchedGroups(RowsByKey):
    """Looks for a key as soon as it is cleared."""

    def clear(self) -> None:
        super().clear()
        WatchedGroups.seen = dict(self.peek("a"))

    seen: Any = None


def test_a_key_that_is_forgotten_is_read_from_below(tmp_path: Path) -> None:
    state = open_task_state([KEY_VALUE], tmp_path)
    store = state.stores["s"]
    assert store.get("a") is None
    store.put("a", 1)
    commit(state)
    entries = WatchedEntries(store._keys, store._values, store.family)
    entries.forget()
    assert WatchedEntries.seen == 1
    state.close()


def test_a_group_that_is_forgotten_is_read_from_below(tmp_path: Path) -> None:
    state = open_task_state([SESSIONS], tmp_path)
    store = state.stores["s"]
    store.put(Windowed("a", Window(0, 5)), 1)
    commit(state)
    groups = WatchedGroups(
        store._keys,
        store._values,
        store.family,
        "q",
        alive=store._stored_times,
        on_read=lambda: None,
        lock=threading.RLock(),
        reads=store.reads,
    )
    groups.complete = True
    groups.forget()
    assert WatchedGroups.seen == {(5, 0): 1}
    state.close()


@EVERY_KIND
def test_a_store_that_is_being_loaded_answers_with_what_it_holds(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder, put, get = KINDS[kind]
    state = open_task_state([builder], tmp_path)
    for n in range(500):
        put(state.stores["s"], f"k{n:03}", n)
    commit(state)
    state.close()
    state = open_task_state([builder], tmp_path)
    store, asked, found = state.stores["s"], [f"k{n:03}" for n in (0, 70, 499)], list[Any]()
    readers: list[threading.Thread] = []
    chunks = store.family.chunks

    def watched(*args: Any, **options: Any) -> Iterator[Any]:
        for chunk in chunks(*args, **options):
            if threading.current_thread() not in readers:
                readers.append(threading.Thread(target=lambda: found.append([get(store, key) for key in asked])))
                readers[-1].start()
                readers[-1].join(0.05)  # it may have to wait until all is there
            yield chunk

    monkeypatch.setattr(store.family, "chunks", watched)
    assert get(store, "k250") == 250
    for reader in readers:
        reader.join()
    assert found == [[0, 70, 499]] * len(readers)
    state.close()


@EVERY_KIND
def test_readers_beside_each_other_find_the_same(tmp_path: Path, kind: str) -> None:
    builder, put, get = KINDS[kind]
    state = open_task_state([builder], tmp_path, limits=StateLimits(live_max_bytes=20_000))
    store, wrong = state.stores["s"], list[Any]()
    for n in range(1_000):
        put(store, f"k{n}", n)
    commit(state)

    def read(seed: int) -> None:
        try:
            wrong.extend(n for i in range(3_000) if get(store, f"k{(n := i * seed % 1_000)}") != n)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in (7, 11, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    state.close()
