"""Window stores of aggregations against a dict, over every layer below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from kstreams.record import ValueAndTimestamp, ValueTimestampHeaders, Window, Windowed
from kstreams.state import Stores, open_task_state
from tests.state.store_machine import StoreMachine, cases_of, headers_for

KEYS = st.sampled_from(["", "a", "ab", "b", "a\x00", "ÿ"])
NUMBERS = st.integers(-3, 3)
RETENTION = 50
SEGMENT = 60_000  # over RocksDB, as Kafka Streams: half the retention, and at least a minute
STARTS = st.integers(0, 30).map(lambda n: n * 5) | st.integers(0, 2_000) | st.integers(59_000, 180_000)


class WindowMachine(StoreMachine):
    """The model: values by (start, key), and the greatest start put."""

    def new_model(self) -> dict[str, Any]:
        return {"rows": {}, "observed": -1}

    def key(self, key: str) -> Any:
        return {"k": key} if self.builder.name == "dicts" else key

    def data(self, key: str) -> bytes:
        return self.builder.key.serialize(self.key(key))  # type: ignore[union-attr]

    def value(self, number: int) -> Any:
        kinds = {
            "timestamped": ValueAndTimestamp(number, 100 + number),
            "headers": ValueTimestampHeaders(number, 100 + number, headers_for(number)),
        }
        return kinds.get(self.builder.name, number)

    def alive(self) -> dict[tuple[int, str], Any]:
        limit = self.model["observed"] - RETENTION
        return {(start, key): value for (start, key), value in self.model["rows"].items() if start > limit}

    def kept(self) -> dict[tuple[int, str], Any]:
        """What has expired is there until its segment is over; only `get` and `all` of a caching store show it."""
        first = (self.model["observed"] - RETENTION) // SEGMENT * SEGMENT
        return {(start, key): value for (start, key), value in self.model["rows"].items() if start >= first}

    def put_in_model(self, key: str, start: int, value: Any) -> None:
        self.model["observed"] = max(self.model["observed"], start)
        self.model["rows"].pop((start, key), None)
        if value is not None:
            self.model["rows"][start, key] = value
        self.model["rows"] = self.kept()

    def contents(self, store: Any) -> Any:
        return list(store.all())

    def seen(self) -> dict[tuple[int, str], Any]:
        return self.kept() if self.builder.caching else self.alive()

    def expected(self) -> Any:
        return self.shown(self.seen())

    def place(self, start: int, key: str) -> Any:
        """Over RocksDB, scans go segment by segment, and within one by key and start."""
        return start // SEGMENT, self.data(key) + start.to_bytes(8, "big")

    def shown(self, rows: dict[tuple[int, str], Any]) -> Any:
        ordered = sorted(rows.items(), key=lambda row: self.place(*row[0]))
        return [(Windowed(self.key(key), Window(start, start + 10)), value) for (start, key), value in ordered]

    @rule(key=KEYS, number=st.none() | NUMBERS, start=STARTS)
    def put(self, key: str, number: int | None, start: int) -> None:
        value = None if number is None else self.value(number)
        self.store.put(self.key(key), value, start)
        self.put_in_model(key, start, value)

    @rule(rows=st.lists(st.tuples(KEYS, STARTS, st.none() | NUMBERS)))
    def put_many(self, rows: list[tuple[str, int, int | None]]) -> None:
        values = [None if number is None else self.value(number) for _, _, number in rows]
        self.store.put_many([self.key(key) for key, _, _ in rows], [start for _, start, _ in rows], values)
        for (key, start, _), value in zip(rows, values, strict=True):
            self.put_in_model(key, start, value)

    @precondition(lambda self: self.store.has_plain_frames)
    @rule(rows=st.lists(st.tuples(KEYS, st.none() | NUMBERS), min_size=1), start=STARTS)
    def write_in_place(self, rows: list[tuple[str, int | None]], start: int) -> None:
        frame = self.store.frame(start)
        for key, number in rows:
            assert start <= self.store.observed_ms - RETENTION or frame[key] == self.seen().get((start, key))
            frame[key] = None if number is None else self.value(number)
            frame.changed[key] = None
            self.put_in_model(key, start, frame[key])

    @rule(key=KEYS, start=STARTS)
    def get(self, key: str, start: int) -> None:
        assert self.store.get(self.key(key), start) == self.seen().get((start, key))

    @rule(rows=st.lists(st.tuples(KEYS, STARTS)))
    def get_many(self, rows: list[tuple[str, int]]) -> None:
        found = self.store.get_many([self.key(key) for key, _ in rows], [start for _, start in rows])
        assert found == [self.seen().get((start, key)) for key, start in rows]

    @rule(key=KEYS, low=STARTS, high=STARTS)
    def fetch(self, key: str, low: int, high: int) -> None:
        found = [
            (start, value) for (start, name), value in sorted(self.alive().items())
            if name == key and low <= start <= high
        ]  # fmt: skip
        assert list(self.store.fetch(self.key(key), low, high)) == found
        assert list(self.store.backward_fetch(self.key(key), low, high)) == found[::-1]

    @rule(low=STARTS, high=STARTS)
    def fetch_all(self, low: int, high: int) -> None:
        found = self.shown({place: value for place, value in self.alive().items() if low <= place[0] <= high})
        assert list(self.store.fetch_all(low, high)) == found
        assert list(self.store.backward_fetch_all(low, high)) == found[::-1]
        assert list(self.store.backward_all()) == self.expected()[::-1]
        ordered = sorted(found, key=lambda row: row[0].window.start_ms)
        by_start = list(self.store.started_between(low, high))
        assert [window.start_ms for (_, window), _ in by_start] == [window.start_ms for (_, window), _ in ordered]
        assert all(row in found for row in by_start)

    @rule(first=st.none() | KEYS, last=st.none() | KEYS, low=STARTS, high=STARTS)
    def fetch_range(self, first: str | None, last: str | None, low: int, high: int) -> None:
        def is_wanted(key: str) -> bool:
            above = first is None or self.data(first) <= self.data(key)
            return above and (last is None or self.data(key) <= self.data(last))

        rows = self.alive().items()
        found = self.shown({place: v for place, v in rows if low <= place[0] <= high and is_wanted(place[1])})
        ends = [None if end is None else self.key(end) for end in (first, last)]
        assert list(self.store.fetch_range(*ends, low, high)) == found
        assert list(self.store.backward_fetch_range(*ends, low, high)) == found[::-1]


class FineWindowMachine(WindowMachine):
    """Nearly every record has a start of its own, as sliding windows do: fetches go by an index of starts by key."""

    @rule(key=KEYS, number=NUMBERS, starts=st.lists(st.integers(0, 60), min_size=40, max_size=60, unique=True))
    def put_densely(self, key: str, number: int, starts: list[int]) -> None:
        for start in starts:
            self.put(key, number, start)


class InMemoryMachine(WindowMachine):
    """In memory what has expired is gone at once, and scans go by start and key."""

    builder = Stores.window("memory", key=str, value=int, store="memory", retention=RETENTION, size=10)

    def kept(self) -> dict[tuple[int, str], Any]:
        return self.alive()

    def place(self, start: int, key: str) -> Any:
        return start, self.data(key)


class KeptMachine(InMemoryMachine):
    """The same where it is persisted."""

    durable = keep_all = True


TestInMemory = InMemoryMachine.TestCase
TestInMemory.settings = settings(max_examples=12, stateful_step_count=40)
TestKept = KeptMachine.TestCase
TestKept.settings = settings(max_examples=3, stateful_step_count=40)
TIMES = {"retention": RETENTION, "size": 10}
globals().update(
    cases_of(
        WindowMachine,
        {
            "Plain": Stores.window("plain", key=str, value=int, **TIMES),
            "Caching": Stores.window("caching", key=str, value=int, caching=True, **TIMES),
            "Timestamped": Stores.timestamped_window("timestamped", key=str, value=int, **TIMES),
            "WithHeaders": Stores.timestamped_window_with_headers("headers", key=str, value=int, **TIMES),
            "Sparse": replace(Stores.window("sparse", key=str, value=int, **TIMES), sparse=True),
            "SparseTimestamped": replace(
                Stores.timestamped_window("timestamped", key=str, value=int, caching=True, **TIMES), sparse=True
            ),
            "SparseUnhashableKeys": replace(
                Stores.window("dicts", key=dict[str, str], value=int, **TIMES), sparse=True
            ),
            "UnhashableKeys": Stores.window("dicts", key=dict[str, str], value=int, **TIMES),
        },
    )
)
globals().update(cases_of(FineWindowMachine, {"Fine": Stores.window("fine", key=str, value=int, **TIMES)}))


def test_a_memory_store_forgets_at_once_what_has_expired() -> None:
    builder = Stores.window("memory", key=str, value=int, store="memory", **TIMES)
    store = open_task_state([builder]).stores["memory"]
    for start in (0, 10, RETENTION):
        store.put("a", start, start)
    assert [value for _, value in store.all()] == [10, RETENTION]
