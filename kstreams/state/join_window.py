"""Window stores that retain duplicates: the records of one side of a stream-stream join, by key and time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kstreams.record import Window, Windowed
from kstreams.state.grouped_store import GroupedStore
from kstreams.state.groups import Place
from kstreams.state.scan_order import scan_order


class JoinWindowStore(GroupedStore):
    """All values by key and start, in the order of their puts (see `WindowStore`); time is the start.

    A value is told from its twins by a sequence number, counted within its key and start: what a put does is then
    decided by the content of the store alone, and a replay writes the same bytes.
    """

    second = "I"

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Add a value; None is no value and changes nothing, nor does one that has expired."""
        if value is None or not self._observe(start_ms):
            return
        live = self._key(key)
        self._put_row(live, (start_ms, self._groups[live].after_last(start_ms)), value)

    def get(self, key: Any, start_ms: int) -> Any:
        """The value put first at a start, or None."""
        return next((value for _, value in self.fetch(key, start_ms, start_ms)), None)

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """(start, value) of a key with from <= start <= to, ascending, in order of arrival at one start."""
        group = self._groups.peek(self._key(key))
        rows = self._alive(group, from_ms, to_ms)
        return ((place[0], self._public(value)) for place, value in rows)

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """`fetch` in the opposite order."""
        return iter(list(self.fetch(key, from_ms, to_ms))[::-1])

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], Any]]:
        """All keys, from <= start <= to, in the order of the store (see `scan_order`); joins do not ask it."""
        return self.fetch_range(None, None, from_ms, to_ms)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], Any]]:
        """`fetch_all` in the opposite order."""
        return self.backward_fetch_range(None, None, from_ms, to_ms)

    def fetch_range(self, low: Any, high: Any, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[Any], Any]]:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        first_ms, is_wanted = max(from_ms, self._limit_ms() + 1), self._lies_between(low, high)
        return self._sorted([row for row in self._kept() if first_ms <= row[1][0] <= to_ms and is_wanted(row[0])])

    def backward_fetch_range(
        self, low: Any, high: Any, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[Any], Any]]:
        """`fetch_range` in the opposite order."""
        return iter(list(self.fetch_range(low, high, from_ms, to_ms))[::-1])

    def all(self) -> Iterator[tuple[Windowed[Any], Any]]:
        """Everything that has not expired, in the order of `fetch_all`."""
        return self.fetch_all(0, self.observed_ms)

    def backward_all(self) -> Iterator[tuple[Windowed[Any], Any]]:
        """`all` in the opposite order."""
        return iter(list(self.all())[::-1])

    def _sorted(self, rows: list[tuple[Any, Place, Any]]) -> Iterator[tuple[Windowed[Any], Any]]:
        size_ms, to_bytes, in_order = self.builder.window_size_ms or 0, self._keys.to_bytes, scan_order(self.builder)
        for key, (start_ms, _), value in sorted(rows, key=lambda row: in_order(to_bytes(row[0]), *row[1])):
            yield Windowed(self._public_key(key), Window(start_ms, start_ms + size_ms)), self._public(value)

    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]:
        """The value put first at each key and start."""
        return list(map(self.get, keys, starts_ms))

    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None:
        """Put many, in order."""
        for key, start_ms, value in zip(keys, starts_ms, values, strict=True):
            self.put(key, value, start_ms)
