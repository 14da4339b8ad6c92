"""Record buffers against a list, over every layer below."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.serdes import IntSerde, StringSerde, serde_of
from kstreams.state import StoreBuilder, open_task_state, store_kinds
from tests.state.store_machine import StoreMachine, cases_of

KEYS = st.sampled_from(["", "a", "ab", "b", "ÿ"])
TIMES = st.integers(0, 20)
HEADERS = st.sampled_from([(), (("h", b"1"),), (("h", None), ("", b""))])


class RecordBufferMachine(StoreMachine):
    """The model: (key, value, timestamp, headers) in order of arrival."""

    def new_model(self) -> list[Any]:
        return []

    def contents(self, store: Any) -> Any:
        return store.num_records(), len(store.dump())

    def expected(self) -> Any:
        return len(self.model), len(self.model)

    def is_as_expected(self, restored: Any) -> None:
        assert list(restored.pop_until(1_000)) == self.leaving(1_000)

    def leaving(self, time: int) -> list[Any]:
        rows = [row for row in self.model if row[2] <= time]
        return sorted(rows, key=lambda row: (row[2], row[0].encode()))

    @rule(key=KEYS, number=st.integers(0, 3), time=TIMES, headers=HEADERS)
    def put(self, key: str, number: int, time: int, headers: Any) -> None:
        value: Any = [number] if self.builder.name == "lists" else number
        self.store.put(key, value, time, headers)
        self.model.append((key, value, time, headers))

    @rule(time=TIMES)
    def pop_until(self, time: int) -> None:
        leaving = self.leaving(time)
        assert list(self.store.pop_until(time)) == leaving
        self.model[:] = [row for row in self.model if row[2] > time]


KIND = store_kinds.RECORD_BUFFER
globals().update(
    cases_of(
        RecordBufferMachine,
        {
            "": StoreBuilder("plain", KIND, StringSerde(), IntSerde()),
            "Lists": StoreBuilder("lists", KIND, StringSerde(), serde_of(list[int])),
        },
    )
)


def test_what_comes_and_goes_between_two_commits_is_not_logged() -> None:
    state = open_task_state([StoreBuilder("waiting", KIND, StringSerde(), IntSerde())])
    buffer = state.stores["waiting"]
    buffer.put("k", 1, 5, ())
    assert [record.value for record in buffer.pop_until(5)] == [1]
    assert state.changes() == {}
