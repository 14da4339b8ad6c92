"""Versioned stores against a list of versions, over every layer below."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.state import NOT_PUT, VALID_TO_UNDEFINED, Stores, VersionedRecord, open_task_state
from tests.state.store_machine import StoreMachine, cases_of

KEYS = st.sampled_from(["", "a", "ab", "b"])
HISTORY = 20
TIMES = st.integers(0, 40) | st.integers(0, 400)


class VersionedMachine(StoreMachine):
    """The model: all versions ever accepted by key, and the greatest timestamp put; nothing is forgotten."""

    key_is_place = False

    def new_model(self) -> dict[str, Any]:
        return {"versions": {}, "observed": -1}

    def answer(self, key: str, as_of: int | None = None) -> VersionedRecord | None:
        versions = sorted(self.model["versions"].get(key, {}).items())
        known = [n for n, (start, _) in enumerate(versions) if as_of is None or start <= as_of]
        if not known:
            return None
        (start, value), later = versions[known[-1]], versions[known[-1] + 1 :]
        if value is None or (later and as_of is not None and as_of < self.model["observed"] - HISTORY):
            return None
        return VersionedRecord(value, start, later[0][0] if later else None)

    def contents(self, store: Any) -> Any:
        times = [None, *range(max(0, self.model["observed"] - HISTORY - 2), self.model["observed"] + 2)]
        return [store.get(key, time) for key in ("", "a", "ab", "b") for time in times]

    def expected(self) -> Any:
        times = [None, *range(max(0, self.model["observed"] - HISTORY - 2), self.model["observed"] + 2)]
        return [self.answer(key, time) for key in ("", "a", "ab", "b") for time in times]

    @rule(key=KEYS, value=st.none() | st.integers(0, 3), time=TIMES)
    def put(self, key: str, value: int | None, time: int) -> None:
        answer = self.store.put(key, value, time)
        if time < self.model["observed"] - HISTORY:
            assert answer == NOT_PUT
            return
        self.model["observed"] = max(self.model["observed"], time)
        versions = self.model["versions"].setdefault(key, {})
        versions[time] = value
        assert answer == min((start for start in versions if start > time), default=VALID_TO_UNDEFINED)

    @rule(key=KEYS, time=TIMES)
    def delete(self, key: str, time: int) -> None:
        accepted = time >= self.model["observed"] - HISTORY
        assert self.store.delete(key, time) == (self.answer(key, time) if accepted else None)
        if accepted:
            self.model["versions"].setdefault(key, {})[time] = None
            self.model["observed"] = max(self.model["observed"], time)

    @rule(key=KEYS, time=st.none() | TIMES)
    def get(self, key: str, time: int | None) -> None:
        assert self.store.get(key, time) == self.answer(key, time)


globals().update(cases_of(VersionedMachine, {"": Stores.versioned("prices", HISTORY, key=str, value=int)}))


def test_a_late_version_goes_between_its_neighbours() -> None:
    store = open_task_state([Stores.versioned("prices", 100, key=str, value=int)]).stores["prices"]
    assert store.put("a", 1, 10) == VALID_TO_UNDEFINED
    assert store.put("a", 3, 30) == VALID_TO_UNDEFINED
    assert store.put("a", 2, 20) == 30
    assert store.get("a", 25) == VersionedRecord(2, 20, 30)
    assert store.get("a") == VersionedRecord(3, 30, None)


def test_the_latest_version_never_expires() -> None:
    store = open_task_state([Stores.versioned("prices", 10, key=str, value=int)]).stores["prices"]
    store.put("a", 1, 5)
    store.put("b", 2, 1_000)
    assert store.get("a", 6) == VersionedRecord(1, 5, None)
    assert store.put("a", 9, 980) == NOT_PUT
