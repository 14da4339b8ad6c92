"""Outer-join stores against a list, over every layer below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.serdes import IntSerde, StringSerde, serde_of
from kstreams.state import StateLimits, StoreBuilder, open_task_state, store_kinds
from tests.state.store_machine import StoreMachine, cases_of

KEYS = st.sampled_from(["", "a", "ab", "b"])
TIMES = st.integers(0, 20)


class OuterJoinMachine(StoreMachine):
    """The model: (timestamp, left side, key, value) in order of arrival."""

    def new_model(self) -> list[Any]:
        return []

    def contents(self, store: Any) -> Any:
        """What can be seen without taking it out: the order of what waits, and how many rows a dump has."""
        firsts = store.first_row(True), store.first_row(False)
        walked = [row := min(filter(None, firsts), default=None)]
        while row is not None:
            walked.append(row := store.row_after(row))
        return firsts, walked[:-1] or walked, store.last_row(), len(store.dump())

    def expected(self) -> Any:
        rows = sorted({(time, left, key.encode()) for time, left, key, _ in self.model})
        firsts = tuple(next((row for row in rows if row[1] is side), None) for side in (True, False))
        return firsts, rows or [None], rows[-1] if rows else None, len(rows)

    def is_as_expected(self, restored: Any) -> None:
        assert list(restored.pop_until(1_000, 1_000)) == self.leaving(1_000, 1_000)

    def leaving(self, left_before: int, right_before: int) -> list[Any]:
        rows = [row for row in self.model if row[0] < (left_before if row[1] else right_before)]
        rows.sort(key=lambda row: (row[0], row[1], row[2].encode()))
        return [(key, value, time, left) for time, left, key, value in rows]

    @rule(key=KEYS, number=st.integers(0, 3), time=TIMES, left=st.booleans())
    def put(self, key: str, number: int, time: int, left: bool) -> None:
        value: Any = [number] if left else number
        self.store.put(key, value, time, left)
        self.model.append((time, left, key, value))

    @rule(key=KEYS, time=TIMES, left=st.booleans())
    def remove(self, key: str, time: int, left: bool) -> None:
        self.store.remove(key, time, left)
        self.model[:] = [row for row in self.model if row[:3] != (time, left, key)]

    @rule(left_before=TIMES, right_before=TIMES)
    def pop_until(self, left_before: int, right_before: int) -> None:
        leaving = self.leaving(left_before, right_before)
        assert list(self.store.pop_until(left_before, right_before)) == leaving
        self.model[:] = [row for row in self.model if row[0] >= (left_before if row[1] else right_before)]


BUILDER = StoreBuilder("outer", store_kinds.OUTER_JOIN, StringSerde(), serde_of(list[int]), right_value=IntSerde())
globals().update(cases_of(OuterJoinMachine, {"": BUILDER}))


def test_what_waits_is_popped_first_thing_after_a_restart(tmp_path: Path) -> None:
    """The first thing that a task asks of a reopened store may be what has expired."""
    builder = StoreBuilder("waiting", store_kinds.OUTER_JOIN, serde_of(str), serde_of(str))
    state = open_task_state([builder], tmp_path)
    state.stores["waiting"].put("k", "v", 5, True)
    state.persist(state.changes(), {"waiting": 1})
    state.close()
    again = open_task_state([builder], tmp_path)
    assert list(again.stores["waiting"].pop_until(10, 10)) == [("k", "v", 5, True)]
    again.close()


def test_a_removed_row_that_was_only_on_disk_stays_removed_after_a_commit(tmp_path: Path) -> None:
    builder = StoreBuilder("waiting", store_kinds.OUTER_JOIN, serde_of(str), serde_of(str))
    state = open_task_state([builder], tmp_path, limits=StateLimits(live_max_bytes=300))
    store = state.stores["waiting"]
    for time in range(3):
        store.put("k", f"at {time}", time, True)
    state.persist(state.changes(), {"waiting": 3})
    assert store.first_row(True).timestamp == 0  # the rows are read ahead
    store.remove("k", 0, True)
    store.remove("k", 2, True)
    state.persist(state.changes(), {"waiting": 5})
    assert list(store.pop_until(10, 10)) == [("k", "at 1", 1, True)]
    state.close()
