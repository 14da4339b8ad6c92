"""Window stores of aggregations whose windows hardly share a start, as sliding windows: rows grouped by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kstreams.record import Windowed
from kstreams.state.kinds.keyed_window_store import KeyedWindowStore


class SparseWindowStore(KeyedWindowStore):
    """One value by key and window start (see `WindowStore`).

    A map per start, which `LiveWindowStore` keeps, would hold one entry each here.
    """

    has_plain_frames = False

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. Nothing happens when the window has expired."""
        if key is None:
            raise self._keys.missing()
        if self._observe(start_ms):
            self._groups.put(self._key(key), (start_ms, 0), self._held(value))

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of a key's window, or None. A caching store finds it even if it has just expired."""
        if key is None:
            raise self._keys.missing()
        if start_ms <= self._hidden_ms():
            return None
        return self._public(self._groups.peek(self._key(key)).get((start_ms, 0)))

    def latest_first(self, key: Any, from_ms: int, to_ms: int) -> dict[int, Any]:
        """What `get` gives of all windows that start between two times, by start, the latest first."""
        group = self._groups.peek(self._key(key))
        public = self._values.public
        limit_ms = self.observed_ms - self._retention_ms
        places = group.span(from_ms if from_ms > limit_ms else max(from_ms, self._hidden_ms() + 1), to_ms)
        places.reverse()
        if public is None:
            return {place[0]: group[place] for place in places}
        return {place[0]: public(group[place]) for place in places}

    def started_between(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], Any]]:
        """All keys, from <= start <= to, ordered by (start, serialized key): what closes at one time comes together.

        The first call makes an index by time, which stays in memory from then on.
        """
        for key, place in self._groups.between(max(from_ms, self._limit_ms() + 1), to_ms):
            value = self._groups.peek(key).get(place)
            if value is not None:
                yield self._shown(key, place[0], value)

    def _hidden_ms(self) -> int:
        """A cache of Kafka Streams still finds what has expired."""
        return self._gone_ms(self.observed_ms) if self.builder.caches else self._limit_ms()
