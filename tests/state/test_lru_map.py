"""LRU maps against an ordered dict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.state import Stores, open_task_state
from tests.state.store_machine import StoreMachine

KEYS = st.sampled_from("abcdef")
MOST = 3


class LruMachine(StoreMachine):
    """The model: values by key, the one used least recently first. What is restored counts as used in its order."""

    builder = Stores.lru_map("recent", MOST, key=str, value=int)

    def new_model(self) -> dict[str, int]:
        return {}

    def contents(self, store: Any) -> Any:
        return list(store.all())

    def expected(self) -> Any:
        return sorted(self.model.items())

    def use(self, key: str) -> None:
        if key in self.model:
            self.model[key] = self.model.pop(key)

    @rule(key=KEYS, number=st.integers(0, 9))
    def put(self, key: str, number: int) -> None:
        self.store.put(key, number)
        self.model[key] = number
        self.use(key)
        if len(self.model) > MOST:
            del self.model[next(iter(self.model))]

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        assert self.store.get(key) == self.model.get(key)
        self.use(key)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        assert self.store.delete(key) == self.model.pop(key, None)

    @rule(rows=st.lists(st.tuples(KEYS, st.integers(0, 9))))
    def put_many(self, rows: list[tuple[str, int]]) -> None:
        self.store.put_many([key for key, _ in rows], [number for _, number in rows])
        for key, number in rows:
            self.model[key] = number
            self.use(key)
            if len(self.model) > MOST:
                del self.model[next(iter(self.model))]

    def reopen(self) -> None:
        """The order of use is not kept: after a restart it is that of the changelog, whatever that is."""
        super().reopen()
        for key in list(self.model):
            self.get(key)


TestLruMap = LruMachine.TestCase
TestLruMap.settings = settings(max_examples=20, stateful_step_count=40)


class KeptMachine(LruMachine):
    """Where the map is persisted, whoever opens it goes on with the same order of use."""

    durable = keep_all = True

    def reopen(self) -> None:
        StoreMachine.reopen(self)


TestKept = KeptMachine.TestCase
TestKept.settings = settings(max_examples=3, stateful_step_count=40)


def test_what_falls_out_is_deleted_in_the_changelog_too() -> None:
    state = open_task_state([Stores.lru_map("l", 2, key=str, value=int)])
    store = state.stores["l"]
    store.put("a", 1)
    store.put("b", 2)
    assert store.get("a") == 1
    store.put("c", 3)
    assert list(store.all()) == [("a", 1), ("c", 3)]
    changes = state.changes()["l"]
    assert dict(zip(changes.keys.to_pylist(), changes.values.to_pylist(), strict=True))[b"b"] is None


def test_who_looks_at_all_entries_changes_nothing_in_the_order_that_is_kept(tmp_path: Path) -> None:
    builder = Stores.lru_map("l", 3, key=str, value=int)
    state = open_task_state([builder], tmp_path, keep_all=True)
    store = state.stores["l"]
    store.put_many(["a", "b", "c", "a"], [1, 2, 3, 4])
    assert len(list(store.all())) == 3
    state.persist(state.changes(), {"l": 3})
    state.close()
    state = open_task_state([builder], tmp_path, keep_all=True)
    store = state.stores["l"]
    store.put("d", 5)
    assert list(store.all()) == [("a", 4), ("c", 3), ("d", 5)]
    state.close()
