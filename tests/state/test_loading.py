"""A store of many rows that is opened again is loaded part by part: the first read does not wait for all of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kstreams.state import StoreBuilder, Stores, TaskState, open_task_state
from tests.support.examples import few_of

ROWS = 60_000
STEPS = 400
Key = tuple[str, int]


class Kind(NamedTuple):
    """A kind of stores, and how a row of it is written, read and listed."""

    builder: StoreBuilder
    put: Callable[[Any, Key, int | None], None]
    get: Callable[[Any, Key], int | None]
    rows: Callable[[Any], dict[Key, int]]


WINDOW = Kind(
    Stores.window("s", key=str, value=int, retention=10**9, size=10),
    lambda store, key, value: store.put(key[0], value, key[1]),
    lambda store, key: store.get(*key),
    lambda store: {(shown.key, shown.window.start_ms): value for shown, value in store.all()},
)
KINDS = {
    "key-value": Kind(
        Stores.key_value("s", key=str, value=int),
        lambda store, key, value: store.put(f"{key[0]}/{key[1]}", value),
        lambda store, key: store.get(f"{key[0]}/{key[1]}"),
        lambda store: {(key.split("/")[0], int(key.split("/")[1])): value for key, value in store.all()},
    ),
    "few windows": WINDOW,
    "many windows": WINDOW,
}
EVERY_KIND = pytest.mark.parametrize("name", KINDS)


def key_of(name: str, n: int) -> Key:
    return f"k{n}", n if name == "many windows" else n % 4


def commit(state: TaskState) -> None:
    state.persist(state.changes(), {"s": 1})


def written(directory: Path, name: str) -> None:
    state = open_task_state([KINDS[name].builder], directory)
    for n in range(ROWS):
        KINDS[name].put(state.stores["s"], key_of(name, n), n)
    commit(state)
    state.close()


@pytest.mark.parametrize("name", ["key-value", "few windows"])
def test_the_first_read_loads_a_part_and_further_reads_the_rest(tmp_path: Path, name: str) -> None:
    written(tmp_path, name)
    state = open_task_state([KINDS[name].builder], tmp_path)
    store, get = state.stores["s"], KINDS[name].get
    assert get(store, key_of(name, 7)) == 7
    first = state.num_bytes_live()
    for n in range(ROWS):
        assert get(store, key_of(name, n)) == n
    assert 2 * first < state.num_bytes_live()
    state.close()


@EVERY_KIND
@pytest.mark.parametrize("seed", few_of(range(3), 1))
def test_what_is_written_while_a_store_is_loaded_is_found(tmp_path: Path, name: str, seed: int) -> None:
    written(tmp_path, name)
    kind, chance = KINDS[name], random.Random(seed)
    expected = {key_of(name, n): n for n in range(ROWS)}
    state = open_task_state([kind.builder], tmp_path)
    store = state.stores["s"]
    for step in range(STEPS):
        for _ in range(chance.randrange(40)):
            key = key_of(name, chance.randrange(ROWS + 1_000))
            if chance.random() < 0.5:
                assert kind.get(store, key) == expected.get(key)
            value = chance.choice([None, -step])
            kind.put(store, key, value)
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        if chance.random() < 0.1:
            commit(state)
        if step % 100 == 50:
            assert kind.rows(store) == expected
    commit(state)
    assert {key: kind.get(store, key) for key in expected} == expected
    state.close()
    state = open_task_state([kind.builder], tmp_path)
    assert kind.rows(state.stores["s"]) == expected
    state.close()


@EVERY_KIND
def test_many_reads_at_once_find_what_is_not_loaded_yet(tmp_path: Path, name: str) -> None:
    written(tmp_path, name)
    state = open_task_state([KINDS[name].builder], tmp_path)
    store = state.stores["s"]
    for start in range(0, ROWS, 5_000):
        keys = [key_of(name, n) for n in range(start, start + 5_000)]
        columns = ([f"{key}/{at}" for key, at in keys],) if name == "key-value" else map(list, zip(*keys, strict=True))
        assert store.get_many(*columns) == list(range(start, start + 5_000))
    state.close()
