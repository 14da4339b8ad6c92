"""Time-ordered buffers against a dict, over every layer below."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.record import Window, Windowed
from kstreams.serdes import IntSerde, StringSerde, TimeWindowedSerde
from kstreams.state import StoreBuilder, open_task_state, store_kinds
from kstreams.state.api import BufferedChange
from tests.state.store_machine import StoreMachine, cases_of

KEYS = st.sampled_from(["", "a", "ab", "b", "ÿ"])
TIMES = st.integers(0, 30)
VALUES = st.none() | st.integers(0, 3)
HEADERS = st.sampled_from([(), (("h", b"1"),), (("h", None), ("", b""))])
CHANGES = st.builds(BufferedChange, VALUES, VALUES, TIMES, HEADERS)


class BufferMachine(StoreMachine):
    """The model: (time, change) by key."""

    def new_model(self) -> dict[str, Any]:
        return {}

    def key(self, key: str) -> Any:
        return Windowed(key, Window(5, 15)) if self.builder.name == "windowed" else key

    def in_order(self) -> list[tuple[str, tuple[int, BufferedChange]]]:
        return sorted(self.model.items(), key=lambda row: (row[1][0], row[0].encode()))

    def contents(self, store: Any) -> Any:
        found = {key: store.get(self.key(key)) for key in ("", "a", "ab", "b", "ÿ")}
        return store.num_records(), store.first_time(), found

    def expected(self) -> Any:
        first = min((time for time, _ in self.model.values()), default=None)
        return len(self.model), first, {key: self.model.get(key, (0, None))[1] for key in ("", "a", "ab", "b", "ÿ")}

    @rule(key=KEYS, change=CHANGES, time=TIMES)
    def put(self, key: str, change: BufferedChange, time: int) -> None:
        self.store.put(self.key(key), change, time)
        self.model[key] = self.model.get(key, (time, None))[0], change

    @rule(time=TIMES)
    def pop_until(self, time: int) -> None:
        leaving = [(key, change) for key, (since, change) in self.in_order() if since <= time]
        assert list(self.store.pop_until(time)) == [(self.key(key), change) for key, change in leaving]
        for key, _ in leaving:
            del self.model[key]

    @rule()
    def pop_first(self) -> None:
        first = self.in_order()[:1]
        assert self.store.pop_first() == (None if not first else (self.key(first[0][0]), first[0][1][1]))
        for key, _ in first:
            del self.model[key]

    @rule()
    def num_bytes_follows_every_change(self) -> None:
        counted = self.store.num_bytes()
        fresh = open_task_state([self.builder]).stores[self.builder.name]
        for key, (time, change) in self.model.items():
            fresh.put(self.key(key), change, time)
        assert counted == fresh.num_bytes()


KIND = store_kinds.TIME_ORDERED_BUFFER
globals().update(
    cases_of(
        BufferMachine,
        {
            "": StoreBuilder("plain", KIND, StringSerde(), IntSerde()),
            "Windowed": StoreBuilder("windowed", KIND, TimeWindowedSerde(StringSerde(), 10), IntSerde()),
        },
    )
)
