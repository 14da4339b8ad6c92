"""Session stores: one value by key and session, both of whose ends belong to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from kstreams.record import Window, Windowed
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.rows_by_key_store import RowsByKeyStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import SLOT_BYTES
from kstreams.state.rows.rows_by_key import RowPosition
from kstreams.state.rows.scan_order import scan_order

_tuple = tuple.__new__  # makes a named tuple in half the time of calling it


class LiveSessionStore(RowsByKeyStore):
    """Aggregates by session (see `SessionStore`); time is a session's end."""

    second = "q"
    pending_bytes = RowsByKeyStore.pending_bytes + SLOT_BYTES

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._record_ms: dict[tuple[Any, RowPosition], int] = {}  # of rows that changed since they were handed out last

    def put(self, session: Windowed, value: Any, record_ms: int | None = None) -> None:
        """Set the value of a session; None removes it. Nothing happens when the session has expired.

        A None for what is not there lets no time pass: a cache of Kafka Streams does not tell the store behind it. The
        changelog gets the time of the record that made the change, else the session's end.
        """
        key, (start_ms, end_ms) = session
        if value is None and self.builder.caches and (end_ms, start_ms) not in self._groups.peek(self._key(key)):
            return
        if end_ms > self.observed_ms:
            self.observed_ms = end_ms
        elif not self._observe(end_ms):
            return
        live = self._key(key)
        place = (end_ms, start_ms)
        self._groups.put(live, place, self._held(value))
        if record_ms is not None:
            self._record_ms[live, place] = record_ms

    def times_of(self, keys: list[Any], places: list[RowPosition]) -> list[int]:
        """The times of rows in the changelog."""
        record_ms = self._record_ms.get
        return [record_ms((key, place), place[0]) for key, place in zip(keys, places, strict=True)]

    def take_changes(self, timestamp_ms: int) -> Changes:
        """Hand out what has changed."""
        changes = super().take_changes(timestamp_ms)
        self._record_ms = {}
        return changes

    def remove(self, session: Windowed) -> None:
        """Remove a session."""
        self.put(session, None)

    def fetch_session(self, key: object, start_ms: int, end_ms: int) -> Any:
        """The value of exactly this session, or None."""
        if key is None:
            raise self._keys.missing()
        if end_ms <= self._limit_ms():
            return None
        return self._public(self._groups.peek(self._key(key)).get((end_ms, start_ms)))

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a key, ordered by (end, start)."""
        return self.find_sessions(key, 0, self.observed_ms)

    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """`fetch` in descending order."""
        return self.backward_find_sessions(key, 0, self.observed_ms)

    def fetch_range(self, low: object, high: object) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of the keys from `low` to `high`, both included and None for open, as `find_sessions_range`."""
        return self.find_sessions_range(low, high, 0, self.observed_ms)

    def backward_fetch_range(self, low: object, high: object) -> Iterator[tuple[Windowed, Any]]:
        """`fetch_range` in descending order."""
        return self.backward_find_sessions_range(low, high, 0, self.observed_ms)

    def find_sessions(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int, *, with_expired: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        """Sessions of a key with end >= earliest_end_ms and start <= latest_start_ms, ordered by (end, start).

        In memory the latest start of an end comes first. `with_expired`: also those that have expired but are not gone
        yet, as Kafka Streams finds them in its cache.
        """
        return iter(self.touched(key, earliest_end_ms, latest_start_ms, with_expired=with_expired))

    def touched(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int, *, with_expired: bool
    ) -> list[tuple[Windowed, Any]]:
        """`find_sessions` as a list."""
        if key is None:
            raise self._keys.missing()
        live = self._keys.live
        public = self._values.public
        group = self._groups.peek(key if live is None else live(key))
        places = group.places
        if not places or places[-1][0] < earliest_end_ms:  # mostly so where sessions are short
            return []
        near = places[bisect_left(places, (self._first_ms(earliest_end_ms, with_expired),)) :]
        if len(near) > 1 and self.builder.store == "memory":  # there the starts of one end go backwards
            near.sort(key=lambda place: (place[0], -place[1]))
        return [
            (
                _tuple(Windowed, (key, _tuple(Window, (place[1], place[0])))),
                group[place] if public is None else public(group[place]),
            )
            for place in near
            if place[1] <= latest_start_ms
        ]

    def _first_ms(self, earliest_end_ms: int, with_expired: bool) -> int:
        """The first end that is found; also of what has expired but is not gone?"""
        limit_ms = self.observed_ms - self._retention_ms
        if earliest_end_ms > limit_ms:
            return earliest_end_ms
        return max(earliest_end_ms, 1 + (self._gone_ms(self.observed_ms) if with_expired else limit_ms))

    def has_expired(self, session: Windowed) -> bool:
        """Whether nobody finds a session any more because it ended too long ago."""
        return bool(session[1][1] <= self.observed_ms - self._retention_ms)

    def backward_find_sessions(
        self, key: object, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """`find_sessions` in descending order."""
        return iter(list(self.find_sessions(key, earliest_end_ms, latest_start_ms))[::-1])

    def find_sessions_range(
        self, low: Any, high: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions`, of the keys from `low` to `high`, in the order of the store (see `scan_order`)."""
        is_wanted = self._lies_between(low, high)
        to_bytes = self._keys.to_bytes
        in_order = scan_order(self.builder, latest_start_first=True)
        first_ms = max(self._limit_ms() + 1, earliest_end_ms)
        rows = self._groups.between(first_ms, self.observed_ms)
        selected = [row for row in rows if row[1][1] <= latest_start_ms and is_wanted(row[0])]
        return self._found(sorted(selected, key=lambda row: in_order(to_bytes(row[0]), *row[1])))

    def backward_find_sessions_range(
        self, low: object, high: object, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """`find_sessions_range` in descending order."""
        return iter(list(self.find_sessions_range(low, high, earliest_end_ms, latest_start_ms))[::-1])

    def ended_by(self, latest_end_ms: int, after_ms: int | None = None) -> Iterator[tuple[Windowed, Any]]:
        """All sessions with after_ms < end <= latest_end_ms, ordered by (end, start, serialized key).

        The first call makes an index by time, which stays in memory from then on.
        """
        hidden_ms = self._gone_ms(self.observed_ms) if self.builder.time_ordered else self._limit_ms()
        first_ms = hidden_ms + 1 if after_ms is None else max(hidden_ms, after_ms) + 1
        return self._between(first_ms, latest_end_ms)

    def _between(self, first_end_ms: int, last_end_ms: int) -> Iterator[tuple[Windowed, Any]]:
        return self._found(self._groups.between(first_end_ms, last_end_ms))

    def _found(self, rows: list[tuple[Any, RowPosition]]) -> Iterator[tuple[Windowed, Any]]:
        for key, (end_ms, start_ms) in rows:
            value = self._groups.peek(key).get((end_ms, start_ms))
            if value is not None:
                yield Windowed(self._public_key(key), Window(start_ms, end_ms)), self._public(value)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Everything that is kept, ordered by (end, start, serialized key); a caching store shows expired rows too."""
        first_ms, last_ms = self._times()
        return self._between(first_ms if self.builder.caches else self._limit_ms() + 1, last_ms)

    def backward_all(self) -> Iterator[tuple[Windowed, Any]]:
        """`all` in descending order."""
        return iter(list(self.all())[::-1])
