"""Views of a task's stores as of its last commit: what they show, and when they end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kstreams.errors import StateError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.record import AggregationWithHeaders, ValueAndTimestamp, ValueTimestampHeaders, Window, Windowed
from kstreams.state import Stores, TaskState, open_task_state
from tests.state.store_machine import headers_for
from tests.support.examples import examples

KEYS = [f"{letter}{number}" for letter in "abc" for number in range(5)]
IN = TopicPartition("in", 0)

Put, Ask = Callable[[Any, str, int, int | None], None], Callable[[Any], Any]


def key_value(store: Any) -> Any:
    scans = [
        store.all(),
        store.reverse_all(),
        store.range("a3", "b2"),
        store.reverse_range(None, "b"),
        store.range("b"),
    ]
    return [store.get(key) for key in KEYS], list(map(list, scans)), list(store.prefix_scan("a"))


def window(store: Any) -> Any:
    by_key = [list(store.fetch(key, 0, 400)) for key in KEYS]
    some = [list(store.fetch_all(50, 300)), list(store.backward_fetch_all(0, 1_000)), list(store.all())]
    return by_key, some, list(store.fetch_range("a", "b3", 20, 500)), [store.get(key, 100) for key in KEYS]


def session(store: Any) -> Any:
    by_key = [list(store.fetch(key)) for key in KEYS], [store.fetch_session(key, 100, 105) for key in KEYS]
    return by_key, list(store.find_sessions("a1", 50, 300)), list(store.fetch_range("a", "c")), list(store.all())


def versioned(store: Any) -> Any:
    return [store.get(key, time) for key in KEYS for time in (None, 0, 50, 100, 250, 600)]


def put_row(store: Any, key: str, time: int, value: int | None) -> None:
    store.put(key, value, time)


def put_pair(store: Any, key: str, time: int, value: int | None) -> None:
    store.put(key, None if value is None else ValueAndTimestamp(value, time))


def put_session(store: Any, key: str, time: int, value: int | None) -> None:
    store.put(Windowed(key, Window(time, time + 5)), value)


def put_headers(store: Any, key: str, time: int, value: int | None) -> None:
    store.put(key, None if value is None else ValueTimestampHeaders(value, time, headers_for(value)))


def put_window_headers(store: Any, key: str, time: int, value: int | None) -> None:
    store.put(key, None if value is None else ValueTimestampHeaders(value, time + 1, headers_for(value)), time)


def put_session_headers(store: Any, key: str, time: int, value: int | None) -> None:
    row = None if value is None else AggregationWithHeaders(value, headers_for(value))
    store.put(Windowed(key, Window(time, time + 5)), row)


TYPES: dict[str, Any] = {"key": str, "value": int}
KINDS: dict[str, tuple[Any, Put, Ask]] = {
    "key-value": (Stores.key_value("s", **TYPES), lambda store, key, _, value: store.put(key, value), key_value),
    "timestamped": (Stores.timestamped_key_value("s", **TYPES), put_pair, key_value),
    "window": (Stores.window("s", retention=500, size=10, **TYPES), put_row, window),
    "caching window": (Stores.window("s", retention=500, size=10, caching=True, **TYPES), put_row, window),
    "session": (Stores.session("s", retention=500, **TYPES), put_session, session),
    "with headers": (Stores.timestamped_key_value_with_headers("s", **TYPES), put_headers, key_value),
    "window with headers": (
        Stores.timestamped_window_with_headers("s", retention=500, size=10, **TYPES),
        put_window_headers,
        window,
    ),
    "session with headers": (
        Stores.session_with_headers("s", retention=500, **TYPES),
        put_session_headers,
        session,
    ),
    "versioned": (Stores.versioned("s", history_retention=500, **TYPES), put_row, versioned),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def commit(state: TaskState, end: int) -> None:
    changes = state.changes()
    state.persist(changes, dict.fromkeys(changes, end), {IN: end})


@EVERY_KIND
@pytest.mark.parametrize("seed", range(examples(12)))
def test_a_view_answers_as_the_store_did_at_the_commit(tmp_path: Path, kind: str, seed: int) -> None:
    builder, put, ask = KINDS[kind]
    draw = random.Random(seed)

    def write(state: TaskState, rows: int) -> None:
        for _ in range(rows):
            time = draw.randrange(40) * 5 * draw.randrange(1, 5)
            put(state.stores["s"], draw.choice(KEYS), time, draw.choice([None, 1, 2, 3, 4]))

    state = open_task_state([builder], tmp_path)
    for end in range(1, 4):
        write(state, draw.randrange(1, 60))
        commit(state, end)
        expected = ask(state.stores["s"])
        with state.committed.reading() as view:
            assert ask(view.store("s")) == expected
            assert view.position == {IN: end}
            write(state, draw.randrange(60))
            with state.committed.reading() as again:
                assert ask(again.store("s")) == expected
            commit(state, end)
            assert ask(view.store("s")) == expected
            assert view.position == {IN: end}
    state.close()


@pytest.mark.parametrize("seed", range(examples(20)))
def test_scans_of_many_parts_miss_no_row_and_give_none_twice(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([63, 64, 65, 320, 1_344, 5_440, 5_441, 13_631, 13_632, 13_633, 20_000])
    keys = [f"{number:05}" for number in sorted(chance.sample(range(99_999), count))]
    low, high = sorted(f"{chance.randrange(100_000):05}" for _ in range(2))
    wanted = [(key, int(key)) for key in keys]
    within = [row for row in wanted if low <= row[0] <= high]
    state = open_task_state([Stores.key_value("s", **TYPES)], tmp_path)
    state.stores["s"].put_many(keys, list(map(int, keys)))
    commit(state, 1)
    with state.committed.reading() as view:
        for key in keys[::2]:
            state.stores["s"].delete(key)
        commit(state, 2)
        store = view.store("s")
        assert list(store.all()) == wanted
        assert list(store.reverse_all()) == wanted[::-1]
        assert list(store.range(low, high)) == within
        assert list(store.reverse_range(low, high)) == within[::-1]
    state.close()


def test_all_stores_of_a_view_are_of_one_commit(tmp_path: Path) -> None:
    state = open_task_state([Stores.key_value(name, **TYPES) for name in ("x", "y")], tmp_path)
    stopping, seen = threading.Event(), set[tuple[int, int]]()

    def read() -> None:
        while not stopping.is_set():
            with state.committed.reading() as view:
                x, y, position = view.store("x").get("k"), view.store("y").get("k"), view.position.get(IN)
                seen.add((x == y, x == position))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(300):
        state.stores["x"].put("k", number)
        state.stores["y"].put("k", number)
        commit(state, number)
    stopping.set()
    for reader in readers:
        reader.join()
    state.close()
    assert seen == {(True, True)}


def test_stores_that_are_closed_while_they_are_read_say_so_and_can_be_opened_again(tmp_path: Path) -> None:
    builder = Stores.key_value("s", **TYPES)
    state = open_task_state([builder], tmp_path)
    state.stores["s"].put_many([f"{i:04}" for i in range(5_000)], list(range(5_000)))
    commit(state, 1)
    view = state.committed.acquire()
    scan = view.store("s").all()
    assert next(scan) == ("0000", 0)
    state.close()
    with pytest.raises(StateError, match="moved or stopped"):
        list(scan)
    with pytest.raises(StateError, match="moved or stopped"):
        view.store("s").get("0001")
    with pytest.raises(StateError, match="moved or stopped"):
        state.committed.acquire()
    state.committed.give_back(view)
    again = open_task_state([builder], tmp_path)
    assert again.stores["s"].get("4999") == 4999
    again.close()


def test_what_a_standby_has_restored_is_seen(tmp_path: Path) -> None:
    builder = Stores.key_value("s", **TYPES)
    first, second = (open_task_state([builder], tmp_path / name) for name in "ab")
    first.stores["s"].put("k", 7)
    changes = first.changes()["s"]
    batch = Batch(IN, np.arange(1), *changes)
    with second.committed.reading() as view:
        assert view.store("s").get("k") is None
    second.restore("s", batch)
    with second.committed.reading() as view:
        assert view.store("s").get("k") == 7
    first.close()
    second.close()


def test_a_view_holds_little_of_what_it_has_read(tmp_path: Path) -> None:
    state = open_task_state([Stores.key_value("s", key=int, value=str)], tmp_path)
    state.stores["s"].put_many(list(range(20_000)), ["x" * 1_000] * 20_000)
    commit(state, 1)
    with state.committed.reading() as view:
        store = view.store("s")
        for key in range(20_000):
            assert store.get(key) is not None
        assert store.num_bytes_live() < 8 << 20
    state.close()
