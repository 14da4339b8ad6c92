"""Session stores against a dict, over every layer below."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from kstreams.record import AggregationWithHeaders, Window, Windowed
from kstreams.state import Stores
from tests.state.store_machine import StoreMachine, cases_of, headers_for

KEYS = st.sampled_from(["", "a", "ab", "b", "a\x00"])
RETENTION = 50
SEGMENT = 60_000  # over RocksDB, as Kafka Streams: half the retention, and at least a minute
TIMES = st.integers(0, 40) | st.integers(0, 2_000) | st.integers(59_000, 180_000)
SPANS = st.tuples(TIMES, st.integers(0, 20)).map(lambda span: Window(span[0], span[0] + span[1]))


class SessionMachine(StoreMachine):
    """The model: values by (end, start, key), and the greatest end put."""

    def new_model(self) -> dict[str, Any]:
        return {"rows": {}, "observed": -1}

    def alive(self) -> list[tuple[Windowed[str], Any]]:
        return self.ended_after(self.model["observed"] - RETENTION)

    def ended_after(self, limit: int) -> list[tuple[Windowed[str], Any]]:
        rows = sorted((row for row in self.model["rows"].items() if row[0][0] > limit), key=lambda row: row[0])
        return [(Windowed(key, Window(start, end)), value) for (end, start, key), value in rows]

    def place(self, key: str, window: Window) -> Any:
        """Over RocksDB, scans of keys go segment by segment, and within one by key, end and start."""
        times = (time.to_bytes(8, "big") for time in (window.end_ms, window.start_ms))
        return window.end_ms // SEGMENT, key.encode() + b"".join(times)

    def of_key(self, key: str) -> list[tuple[Windowed[str], Any]]:
        return sorted((row for row in self.alive() if row[0].key == key), key=lambda row: self.place(*row[0]))

    def contents(self, store: Any) -> Any:
        return list(store.all())

    def expected(self) -> Any:
        """What has expired is there until its segment is over; only `all` of a caching store shows it."""
        if not self.builder.caching:
            return self.alive()
        return self.ended_after((self.model["observed"] - RETENTION) // SEGMENT * SEGMENT - 1)

    def value(self, number: int) -> Any:
        return AggregationWithHeaders(number, headers_for(number)) if self.builder.name == "headers" else number

    def number(self, value: Any) -> int:
        return value.aggregation if isinstance(value, AggregationWithHeaders) else value

    @rule(key=KEYS, window=SPANS, number=st.none() | st.integers(0, 3))
    def put(self, key: str, window: Window, number: int | None) -> None:
        value = None if number is None else self.value(number)
        self.store.put(Windowed(key, window), value)
        place = window.end_ms, window.start_ms, key
        if self.model["rows"].pop(place, None) is None and value is None and self.builder.caching:
            return
        if value is not None:
            self.model["rows"][place] = value
        self.model["observed"] = max(self.model["observed"], window.end_ms)
        gone = (self.model["observed"] - RETENTION) // SEGMENT * SEGMENT
        self.model["rows"] = {place: value for place, value in self.model["rows"].items() if place[0] >= gone}

    @rule(key=KEYS, low=TIMES, high=TIMES)
    def merge(self, key: str, low: int, high: int) -> None:
        """What a session aggregation does: find, remove, put the union."""
        found = list(self.store.find_sessions(key, low, high))
        assert found == [
            row for row in self.of_key(key) if row[0].window.end_ms >= low and row[0].window.start_ms <= high
        ]
        assert list(self.store.backward_find_sessions(key, low, high)) == found[::-1]
        for session, _ in found:
            self.store.remove(session)
            self.model["rows"].pop((session.window.end_ms, session.window.start_ms, key))
        if found:
            ends = [session.window for session, _ in found]
            union = Window(min(w.start_ms for w in ends), max(w.end_ms for w in ends))
            self.put(key, union, sum(self.number(value) for _, value in found))

    @rule(key=KEYS, window=SPANS)
    def fetch_session(self, key: str, window: Window) -> None:
        alive = dict(self.alive())
        assert self.store.fetch_session(key, *window) == alive.get(Windowed(key, window))
        of_key = self.of_key(key)
        assert list(self.store.fetch(key)) == of_key
        assert list(self.store.backward_fetch(key)) == of_key[::-1]
        assert list(self.store.backward_all()) == self.expected()[::-1]

    @rule(first=st.none() | KEYS, last=st.none() | KEYS, low=TIMES, high=TIMES)
    def ranges_of_keys(self, first: str | None, last: str | None, low: int, high: int) -> None:
        found = [
            row for row in self.alive() if (first or "") <= row[0].key and (last is None or row[0].key <= last)
        ]  # fmt: skip
        found.sort(key=lambda row: self.place(*row[0]))
        assert list(self.store.fetch_range(first, last)) == found
        assert list(self.store.backward_fetch_range(first, last)) == found[::-1]
        found = [row for row in found if row[0].window.end_ms >= low and row[0].window.start_ms <= high]
        assert list(self.store.find_sessions_range(first, last, low, high)) == found
        assert list(self.store.backward_find_sessions_range(first, last, low, high)) == found[::-1]

    @rule(latest=TIMES, after=st.none() | TIMES)
    def ended_by(self, latest: int, after: int | None) -> None:
        found = [row for row in self.alive() if (-1 if after is None else after) < row[0].window.end_ms <= latest]
        assert list(self.store.ended_by(latest, after)) == found


globals().update(
    cases_of(
        SessionMachine,
        {
            "": Stores.session("visits", RETENTION, key=str, value=int),
            "WithHeaders": Stores.session_with_headers("headers", RETENTION, key=str, value=int),
            "Caching": Stores.session("caching", RETENTION, key=str, value=int, caching=True),
        },
    )
)


class InMemoryMachine(SessionMachine):
    """In memory what has expired is gone at once; scans go by end, key and start, the latest start first."""

    builder = Stores.session("memory", RETENTION, key=str, value=int, store="memory")

    def expected(self) -> Any:
        return self.alive()

    def place(self, key: str, window: Window) -> Any:
        return window.end_ms, key.encode(), -window.start_ms


class KeptMachine(InMemoryMachine):
    """The same where it is persisted."""

    durable = keep_all = True


TestInMemory = InMemoryMachine.TestCase
TestInMemory.settings = settings(max_examples=12, stateful_step_count=40)
TestKept = KeptMachine.TestCase
TestKept.settings = settings(max_examples=3, stateful_step_count=40)
