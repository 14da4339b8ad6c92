"""Session stores: one value by key and session, both of whose ends belong to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from kstreams.record import Window, Windowed
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import KeyRange
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.rows_by_key_store import RowsByKeyStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import SLOT_BYTES
from kstreams.state.rows.rows_by_key import RowPosition
from kstreams.state.rows.scan_order import scan_order

SessionRows: TypeAlias = Iterator[tuple[Windowed, Any]]
"""Sessions with their values."""

_new_tuple = tuple.__new__  # creates a named tuple in half the time that a call of its class takes


class LiveSessionStore(RowsByKeyStore):
    """Aggregates by session (see `SessionStore`). The position of a row is the end and the start of its session."""

    second = "q"
    pending_bytes = RowsByKeyStore.pending_bytes + SLOT_BYTES

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._changelog_ms: dict[tuple[Any, RowPosition], int] = {}
        """Changelog timestamps of the rows that changed since the last `take_changes`."""

    def put(self, session: Windowed, value: object, record_ms: int | None = None) -> None:
        """Set the value of a session; None removes it. Nothing happens if a session of this time is deleted already.

        If a caching store does not hold the session, None does not advance the time of the store: the cache of Kafka
        Streams drops such a removal. The changelog record gets the timestamp `record_ms`; by default the session's end.
        """
        key, (start_ms, end_ms) = session
        position = (end_ms, start_ms)
        if value is None and self.builder.caches and position not in self._groups.peek(self._keys.to_live(key)):
            return
        if end_ms > self.observed_ms:
            self.observed_ms = end_ms
        elif not self._observe(end_ms):
            return
        live_key = self._keys.to_live(key)
        self._groups.put(live_key, position, self._values.to_live(value))
        if record_ms is not None:
            self._changelog_ms[live_key, position] = record_ms

    def times_of(self, keys: list[Any], positions: list[RowPosition]) -> list[int]:
        """Return the timestamps of the changelog records of rows."""
        changelog_ms = self._changelog_ms.get
        return [changelog_ms((key, position), position[0]) for key, position in zip(keys, positions, strict=True)]

    def take_changes(self, timestamp_ms: int) -> Changes:
        """Return the changed rows, and drop their changelog timestamps."""
        changes = super().take_changes(timestamp_ms)
        self._changelog_ms = {}
        return changes

    def remove(self, session: Windowed) -> None:
        """Remove a session."""
        self.put(session, None)

    def fetch_session(self, key: object, start_ms: int, end_ms: int) -> Any:
        """Return the value of the session with this start and end, or None."""
        live_key = self._keys.to_live(key)
        if end_ms <= self._expired_ms():
            return None
        return self._values.to_public(self._groups.peek(live_key).get((end_ms, start_ms)))

    def fetch(self, key: object) -> SessionRows:
        """Return all sessions of a key, ordered by end and start."""
        return self.find_sessions(key, 0, self.observed_ms)

    def backward_fetch(self, key: object) -> SessionRows:
        """Return the sessions of `fetch` in descending order."""
        return self.backward_find_sessions(key, 0, self.observed_ms)

    def fetch_range(self, low: object, high: object) -> SessionRows:
        """Return all sessions of the keys from `low` to `high`, in the order of `find_sessions_range`.

        Both bounds are included. None is an open bound.
        """
        return self.find_sessions_range(low, high, 0, self.observed_ms)

    def backward_fetch_range(self, low: object, high: object) -> SessionRows:
        """Return the sessions of `fetch_range` in descending order."""
        return self.backward_find_sessions_range(low, high, 0, self.observed_ms)

    def find_sessions(
        self, key: object, earliest_end_ms: int, latest_start_ms: int, *, with_expired: bool = False
    ) -> SessionRows:
        """Return a key's sessions with end >= earliest_end_ms and start <= latest_start_ms, ordered by end and start.

        In a store in memory, of sessions with one end the latest start comes first. `with_expired` includes sessions
        that have expired but are not deleted yet, as Kafka Streams finds them in its cache.
        """
        return iter(self.list_sessions(key, earliest_end_ms, latest_start_ms, with_expired=with_expired))

    def backward_find_sessions(self, key: object, earliest_end_ms: int, latest_start_ms: int) -> SessionRows:
        """Return the sessions of `find_sessions` in descending order."""
        return iter(self.list_sessions(key, earliest_end_ms, latest_start_ms, with_expired=False)[::-1])

    def find_sessions_range(self, low: object, high: object, earliest_end_ms: int, latest_start_ms: int) -> SessionRows:
        """Return the sessions of `find_sessions` of the keys from `low` to `high`, in the order of `scan_order`."""
        return self._sessions_between(self._keys.span(low, high), earliest_end_ms, latest_start_ms, backward=False)

    def backward_find_sessions_range(
        self, low: object, high: object, earliest_end_ms: int, latest_start_ms: int
    ) -> SessionRows:
        """Return the sessions of `find_sessions_range` in descending order."""
        return self._sessions_between(self._keys.span(low, high), earliest_end_ms, latest_start_ms, backward=True)

    def all(self) -> SessionRows:
        """Return all sessions, ordered by end, start and serialized key. A caching store includes expired sessions."""
        return self._public_rows(self._groups.between(self._hidden_ms() + 1, self.observed_ms))

    def backward_all(self) -> SessionRows:
        """Return the sessions of `all` in descending order."""
        return self._public_rows(self._groups.between(self._hidden_ms() + 1, self.observed_ms)[::-1])

    def ended_by(self, latest_end_ms: int, after_ms: int | None = None) -> SessionRows:
        """Return all sessions with after_ms < end <= latest_end_ms, ordered by end, start and serialized key.

        The first call builds an index by time, which stays in memory.
        """
        hidden_ms = self._deleted_ms() if self.builder.time_ordered else self._expired_ms()
        first_ms = hidden_ms + 1 if after_ms is None else max(hidden_ms, after_ms) + 1
        return self._public_rows(self._groups.between(first_ms, latest_end_ms))

    def list_sessions(
        self, key: object, earliest_end_ms: int, latest_start_ms: int, *, with_expired: bool
    ) -> list[tuple[Windowed, Any]]:
        """Return the sessions of `find_sessions` as a list."""
        if key is None:
            raise self._keys.missing()
        live = self._keys.live
        public = self._values.public
        group = self._groups.peek(key if live is None else live(key))
        positions = group.places
        if not positions or positions[-1][0] < earliest_end_ms:  # the usual case if sessions are short
            return []
        candidates = positions[bisect_left(positions, (self._first_ms(earliest_end_ms, with_expired),)) :]
        if len(candidates) > 1 and self.builder.store == "memory":  # Kafka Streams orders these by descending start
            candidates.sort(key=lambda position: (position[0], -position[1]))
        return [
            (
                _new_tuple(Windowed, (key, _new_tuple(Window, (position[1], position[0])))),
                group[position] if public is None else public(group[position]),
            )
            for position in candidates
            if position[1] <= latest_start_ms
        ]

    def _first_ms(self, earliest_end_ms: int, with_expired: bool) -> int:
        """Return the earliest end that a read returns: `earliest_end_ms`, or later if such sessions have expired."""
        expired_ms = self.observed_ms - self._retention_ms
        if earliest_end_ms > expired_ms:
            return earliest_end_ms
        return max(earliest_end_ms, 1 + (self._deleted_ms() if with_expired else expired_ms))

    def _sessions_between(
        self, keys: KeyRange, earliest_end_ms: int, latest_start_ms: int, *, backward: bool
    ) -> SessionRows:
        is_in_range = self._is_in_range(keys)
        to_bytes = self._keys.to_bytes
        in_order = scan_order(self.builder, latest_start_first=True)
        rows = self._groups.between(max(self._expired_ms() + 1, earliest_end_ms), self.observed_ms)
        selected = [row for row in rows if row[1][1] <= latest_start_ms and is_in_range(row[0])]
        return self._public_rows(
            sorted(selected, key=lambda row: in_order(to_bytes(row[0]), *row[1]), reverse=backward)
        )

    def _public_rows(self, rows: Iterable[tuple[Any, RowPosition]]) -> SessionRows:
        """Yield sessions and their values as callers know them, without deleted sessions."""
        for live_key, (end_ms, start_ms) in rows:
            live_value = self._groups.peek(live_key).get((end_ms, start_ms))
            if live_value is not None:
                session = Windowed(self._keys.to_public(live_key), Window(start_ms, end_ms))
                yield session, self._values.to_public(live_value)

    def has_expired(self, session: Windowed) -> bool:
        """Return whether reads hide a session because it has expired."""
        return bool(session[1][1] <= self.observed_ms - self._retention_ms)
