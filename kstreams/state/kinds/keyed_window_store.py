"""Window stores whose rows are grouped by key. Sliding windows and stream-stream joins use them."""

from __future__ import annotations

from typing import Any

from kstreams.state.codecs import KeyRange
from kstreams.state.kinds.rows_by_key_store import RowsByKeyStore
from kstreams.state.kinds.window_reads import WindowReads, WindowRows
from kstreams.state.rows.scan_order import scan_order


class KeyedWindowStore(WindowReads, RowsByKeyStore):
    """Values by key and window start (see `WindowStore`). Subclasses add writes, and reads of one start."""

    second = "I"

    def get(self, key: object, start_ms: int) -> Any:
        """Return the first value that was put at a start, or None."""
        raise NotImplementedError

    def put(self, key: object, value: object, start_ms: int) -> None:
        """Put a value at a start."""
        raise NotImplementedError

    def _windows_of(self, key: object, from_ms: int, to_ms: int, *, backward: bool) -> list[tuple[int, Any]]:
        group = self._groups.peek(self._keys.to_live(key))
        public = self._values.public
        expired_ms = self.observed_ms - self._retention_ms
        positions = group.span(from_ms if from_ms > expired_ms else expired_ms + 1, to_ms)
        if backward:
            positions.reverse()
        if public is None:
            return [(position[0], group[position]) for position in positions]
        return [(position[0], public(group[position])) for position in positions]

    def _windows_between(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        in_order = scan_order(self.builder)
        to_bytes = self._keys.to_bytes
        is_in_range = self._is_in_range(keys)
        rows = [row for row in self._all_rows() if from_ms <= row[1][0] <= to_ms and is_in_range(row[0])]
        rows.sort(key=lambda row: in_order(to_bytes(row[0]), *row[1]), reverse=backward)
        return (self._public_row(key, start_ms, value) for key, (start_ms, _), value in rows)

    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]:
        """Return the value that `get` returns for each key and start."""
        return list(map(self.get, keys, starts_ms))

    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None:
        """Put many values, in order."""
        for key, start_ms, value in zip(keys, starts_ms, values, strict=True):
            self.put(key, value, start_ms)


class SparseWindowStore(KeyedWindowStore):
    """One value by key and window start (see `WindowStore`).

    `LiveWindowStore` has a map per start. Sliding windows hardly share a start, so each map would hold one entry.
    """

    has_plain_frames = False

    def put(self, key: object, value: object, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. Nothing happens when the window has expired."""
        live_key = self._keys.to_live(key)
        if self._observe(start_ms):
            self._groups.put(live_key, (start_ms, 0), self._values.to_live(value))

    def get(self, key: object, start_ms: int) -> Any:
        """Return the value of a key's window, or None. A caching store returns it even if it has just expired."""
        live_key = self._keys.to_live(key)
        if start_ms <= self._hidden_ms():
            return None
        return self._values.to_public(self._groups.peek(live_key).get((start_ms, 0)))

    def latest_first(self, key: object, from_ms: int, to_ms: int) -> dict[int, Any]:
        """Return the values that `get` returns for the starts from `from_ms` to `to_ms`, the latest start first."""
        group = self._groups.peek(self._keys.to_live(key))
        public = self._values.public
        expired_ms = self.observed_ms - self._retention_ms
        positions = group.span(from_ms if from_ms > expired_ms else max(from_ms, self._hidden_ms() + 1), to_ms)
        positions.reverse()
        if public is None:
            return {position[0]: group[position] for position in positions}
        return {position[0]: public(group[position]) for position in positions}

    def started_between(self, from_ms: int, to_ms: int) -> WindowRows:
        """Yield the windows of all keys with from_ms <= start <= to_ms, ordered by start and serialized key.

        Windows that close together are adjacent. The first call builds an index by time, which stays in memory.
        """
        for key, position in self._groups.between(max(from_ms, self._expired_ms() + 1), to_ms):
            value = self._groups.peek(key).get(position)
            if value is not None:
                yield self._public_row(key, position[0], value)


class JoinWindowStore(KeyedWindowStore):
    """All values by key and start, in the order of their puts (see `WindowStore`).

    A sequence number, counted per key and start, tells the values of one key and start apart. So the bytes that a put
    writes depend only on the content of the store, and a replay writes the same bytes.
    """

    def _hidden_ms(self) -> int:
        """Kafka Streams has no cache before a store that retains duplicates."""
        return self._expired_ms()

    def put(self, key: object, value: object, start_ms: int) -> None:
        """Add a value. Nothing happens if the value is None, or if its start has expired."""
        if value is None or not self._observe(start_ms):
            return
        self._groups.append(self._keys.to_live(key), start_ms, self._values.to_live(value))

    def get(self, key: object, start_ms: int) -> Any:
        """Return the first value that was put at a start, or None."""
        return next((value for _, value in self.fetch(key, start_ms, start_ms)), None)
