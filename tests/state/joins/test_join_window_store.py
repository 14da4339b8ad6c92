"""Join-window stores, which keep duplicates, against a list, over every layer below."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.record import Window, Windowed
from kstreams.state import Stores
from tests.state.store_machine import StoreMachine, cases_of

KEYS = st.sampled_from(["", "a", "ab", "b", "a\x00\x00\x00\x00\x00\x00\x00\x00"])
RETENTION = 50
SEGMENT = 60_000  # over RocksDB, as Kafka Streams: half the retention, and at least a minute
STARTS = st.integers(0, 30) | st.integers(0, 2_000) | st.integers(59_000, 180_000)


class JoinWindowMachine(StoreMachine):
    """The model: (start, key, value) in order of arrival, and the greatest start put."""

    def new_model(self) -> dict[str, Any]:
        return {"rows": [], "observed": -1}

    def value(self, number: int) -> Any:
        return [number] if self.builder.name == "lists" else number

    def alive(self, low: int, high: int) -> list[tuple[int, str, Any]]:
        limit = self.model["observed"] - RETENTION
        return [row for row in self.model["rows"] if row[0] > limit and low <= row[0] <= high]

    def kept(self) -> list[tuple[int, str, Any]]:
        """What has expired is there until its segment is over; only `all` shows it."""
        first = (self.model["observed"] - RETENTION) // SEGMENT * SEGMENT
        return [row for row in self.model["rows"] if row[0] >= first]

    def contents(self, store: Any) -> Any:
        return list(store.all())

    def expected(self) -> Any:
        return self.shown(self.alive(0, self.model["observed"]))

    def shown(self, rows: list[tuple[int, str, Any]]) -> Any:
        rows = sorted(rows, key=lambda row: (row[0] // SEGMENT, row[1].encode() + row[0].to_bytes(8, "big")))
        return [(Windowed(key, Window(start, start + 10)), value) for start, key, value in rows]

    @rule(key=KEYS, number=st.none() | st.integers(0, 3), start=STARTS)
    def put(self, key: str, number: int | None, start: int) -> None:
        self.store.put(key, None if number is None else self.value(number), start)
        if number is not None:
            self.model["observed"] = max(self.model["observed"], start)
            self.model["rows"] = [*self.model["rows"], (start, key, self.value(number))]
            self.model["rows"] = self.kept()

    @rule(key=KEYS, low=STARTS, high=STARTS)
    def fetch(self, key: str, low: int, high: int) -> None:
        rows = sorted((row for row in self.alive(low, high) if row[1] == key), key=lambda row: row[0])
        found = [(start, value) for start, _, value in rows]
        assert list(self.store.fetch(key, low, high)) == found
        assert list(self.store.backward_fetch(key, low, high)) == found[::-1]

    @rule(low=STARTS, high=STARTS)
    def fetch_all(self, low: int, high: int) -> None:
        found = self.shown(self.alive(low, high))
        assert list(self.store.fetch_all(low, high)) == found
        assert list(self.store.backward_fetch_all(low, high)) == found[::-1]
        assert list(self.store.backward_all()) == self.expected()[::-1]

    @rule(first=KEYS, last=st.none() | KEYS, low=STARTS, high=STARTS)
    def fetch_range(self, first: str, last: str | None, low: int, high: int) -> None:
        rows = [row for row in self.alive(low, high) if first <= row[1] and (last is None or row[1] <= last)]
        assert list(self.store.fetch_range(first, last, low, high)) == self.shown(rows)
        assert list(self.store.backward_fetch_range(first, last, low, high)) == self.shown(rows)[::-1]


TIMES = {"retention": RETENTION, "size": 10, "retain_duplicates": True}
globals().update(
    cases_of(
        JoinWindowMachine,
        {
            "Plain": Stores.window("plain", key=str, value=int, **TIMES),
            "MutableValues": Stores.window("lists", key=str, value=list[int], **TIMES),
        },
    )
)
