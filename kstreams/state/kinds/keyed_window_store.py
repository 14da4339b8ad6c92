"""Window stores with rows grouped by key: what those of stream-stream joins and of sliding windows have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kstreams.record import Window, Windowed
from kstreams.state.kinds.rows_by_key_store import RowsByKeyStore
from kstreams.state.rows.rows_by_key import RowPosition
from kstreams.state.rows.scan_order import scan_order


class KeyedWindowStore(RowsByKeyStore):
    """Values by key and start (see `WindowStore`); time is the start. Writes, and reads of one start, come on top."""

    second = "I"

    def get(self, key: Any, start_ms: int) -> Any:
        """The value put first at a start, or None."""
        raise NotImplementedError

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Put a value at a start."""
        raise NotImplementedError

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """(start, value) of a key with from <= start <= to, ascending, in order of arrival at one start."""
        return iter(self._found(key, from_ms, to_ms))

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """`fetch` in the opposite order."""
        return iter(self._found(key, from_ms, to_ms)[::-1])

    def _found(self, key: object, from_ms: int, to_ms: int) -> list[tuple[int, Any]]:
        group = self._groups.peek(self._key(key))
        public = self._values.public
        limit_ms = self.observed_ms - self._retention_ms
        places = group.span(from_ms if from_ms > limit_ms else limit_ms + 1, to_ms)
        if public is None:
            return [(place[0], group[place]) for place in places]
        return [(place[0], public(group[place])) for place in places]

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """All keys, from <= start <= to, in the order of the store (see `scan_order`); operators do not ask it."""
        return self.fetch_range(None, None, from_ms, to_ms)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """`fetch_all` in the opposite order."""
        return self.backward_fetch_range(None, None, from_ms, to_ms)

    def fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        first_ms = max(from_ms, self._limit_ms() + 1)
        is_wanted = self._lies_between(low, high)
        return self._sorted([row for row in self._kept() if first_ms <= row[1][0] <= to_ms and is_wanted(row[0])])

    def backward_fetch_range(
        self, low: object, high: object, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """`fetch_range` in the opposite order."""
        return iter(list(self.fetch_range(low, high, from_ms, to_ms))[::-1])

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Everything that is kept, in the order of `fetch_all`; a caching store shows what has expired too."""
        hidden_ms = self._hidden_ms()
        return self._sorted([row for row in self._kept() if row[1][0] > hidden_ms])

    def backward_all(self) -> Iterator[tuple[Windowed, Any]]:
        """`all` in the opposite order."""
        return iter(list(self.all())[::-1])

    def _hidden_ms(self) -> int:
        """`all` hides windows that start here or before."""
        return self._limit_ms()

    def _sorted(self, rows: list[tuple[Any, RowPosition, Any]]) -> Iterator[tuple[Windowed, Any]]:
        to_bytes = self._keys.to_bytes
        in_order = scan_order(self.builder)
        for key, (start_ms, _), value in sorted(rows, key=lambda row: in_order(to_bytes(row[0]), *row[1])):
            yield self._shown(key, start_ms, value)

    def _shown(self, key: object, start_ms: int, value: object) -> tuple[Windowed, Any]:
        window = Window(start_ms, start_ms + (self.builder.window_size_ms or 0))
        return Windowed(self._public_key(key), window), self._public(value)

    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]:
        """The value put first at each key and start."""
        return list(map(self.get, keys, starts_ms))

    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None:
        """Put many, in order."""
        for key, start_ms, value in zip(keys, starts_ms, values, strict=True):
            self.put(key, value, start_ms)
