"""Session stores: one value by key and session, both of whose ends belong to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kstreams.record import Window, Windowed
from kstreams.state.grouped_store import GroupedStore


class LiveSessionStore(GroupedStore):
    """Aggregates by session (see `SessionStore`); time is a session's end."""

    second = "q"

    def put(self, session: Windowed[Any], value: Any) -> None:
        """Set the value of a session; None removes it. Nothing happens when the session has expired."""
        start_ms, end_ms = session.window
        if self._observe(end_ms):
            self._put_row(self._key(session.key), (end_ms, start_ms), value)

    def remove(self, session: Windowed[Any]) -> None:
        """Remove a session."""
        self.put(session, None)

    def fetch_session(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """The value of exactly this session, or None."""
        if end_ms <= self._limit_ms():
            return None
        return self._public(self._groups.peek(self._key(key)).get((end_ms, start_ms)))

    def fetch(self, key: Any) -> Iterator[tuple[Windowed[Any], Any]]:
        """All sessions of a key, ordered by (end, start)."""
        return self.find_sessions(key, 0, self.observed_ms)

    def find_sessions(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[Any], Any]]:
        """Sessions of a key with end >= earliest_end_ms and start <= latest_start_ms, ordered by (end, start)."""
        group = self._groups.peek(self._key(key))
        for (end_ms, start_ms), value in self._alive(group, earliest_end_ms, self.observed_ms):
            if start_ms <= latest_start_ms:
                yield Windowed(key, Window(start_ms, end_ms)), self._public(value)

    def ended_by(self, latest_end_ms: int, after_ms: int | None = None) -> Iterator[tuple[Windowed[Any], Any]]:
        """All sessions with after_ms < end <= latest_end_ms, ordered by (end, start, serialized key).

        The first call makes an index by time, which stays in memory from then on.
        """
        first_ms = self._limit_ms() + 1 if after_ms is None else max(self._limit_ms(), after_ms) + 1
        return self._between(first_ms, latest_end_ms)

    def _between(self, first_end_ms: int, last_end_ms: int) -> Iterator[tuple[Windowed[Any], Any]]:
        for key, (end_ms, start_ms) in self._groups.between(first_end_ms, last_end_ms):
            value = self._groups.peek(key).get((end_ms, start_ms))
            if value is not None:
                yield Windowed(self._public_key(key), Window(start_ms, end_ms)), self._public(value)

    def all(self) -> Iterator[tuple[Windowed[Any], Any]]:
        """Everything that is kept, ordered by (end, start, serialized key), even when it has expired."""
        return self._between(*self._times())
