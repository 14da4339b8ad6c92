"""`PersistedQueue`: the rows of a buffer that are only on disk, in the order in which they are removed.

Rows are removed from the front. So memory has only the range of positions that were removed since the last commit: a
window of millions of keys may close at once.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from kstreams.state.column_family import ByteRows, ColumnFamily

_TIME = struct.Struct(">q")
# bounds of all positions, because times are not negative
_FIRST = b""
_END = b"\xff" * 9
_NONE = _FIRST, _FIRST


class PersistedRow(NamedTuple):
    """A row that is only on disk: its position in the order, which begins with its time, its key and its value."""

    place: bytes
    key: bytes
    value: bytes

    @property
    def time_ms(self) -> int:
        """The time at which it is removed."""
        time_ms: int = _TIME.unpack_from(self.place)[0]
        return time_ms


Read: TypeAlias = Callable[[bytes, bytes | None], Iterator[list[PersistedRow]]]
"""Yields the persisted rows with positions in [low, high), in order and in parts."""


class PersistedQueue:
    """The rows that are only on disk.

    Parameters
    ----------
    read : Read
    is_known : callable
        Returns whether memory has the row of a key or its deletion: then the persisted row is ignored.

    Examples
    --------
    >>> rows = [PersistedRow(bytes(7) + bytes([n]), b"key", b"") for n in (3, 5)]
    >>> spilled = PersistedQueue(lambda low, high: iter([[row for row in rows if row.place >= low]]), lambda key: False)
    >>> spilled.add([row.place for row in rows])
    >>> spilled.first().time_ms, spilled.pop().time_ms, spilled.first().time_ms, spilled.count
    (3, 3, 5, 1)
    """

    def __init__(self, read: Read, is_known: Callable[[bytes], bool]) -> None:
        self._read = read
        self._is_known = is_known
        self.clear()

    def clear(self) -> None:
        """Remove all rows."""
        self.count = 0
        """The number of rows."""
        self.front = _FIRST
        """A position that is not after the first row."""
        self._ahead = deque[PersistedRow]()
        self._parts: Iterator[list[PersistedRow]] | None = None
        # the ranges of removed rows: since `take_popped`, and since the last commit
        self._popped = self._unwritten = _NONE

    def add(self, places: list[bytes]) -> None:
        """Add persisted rows that are no longer in memory."""
        self.count += len(places)
        self.front = min([self.front, *places])
        self._ahead.clear()
        self._parts = None

    def holds(self, place: bytes, key: bytes) -> bool:
        """Return whether a persisted row is in the queue."""
        return place >= self._popped[1] and not self._is_known(key)

    def first(self) -> PersistedRow | None:
        """Return the first row; None if there is none."""
        while True:
            while self._ahead:
                if not self._is_known(self._ahead[0].key):
                    self.front = self._ahead[0].place
                    return self._ahead[0]
                self._ahead.popleft()
            if self._parts is None:
                self._parts = self._read(self.front, None)
            part = next(self._parts, None)
            if part is None:
                return None
            self._ahead.extend(part)

    def pop(self) -> PersistedRow:
        """Remove and return the first row, after a call of `first`."""
        row = self._ahead.popleft()
        start, end = self._popped
        self.front = row.place + b"\x00"
        self._popped = row.place if start == end else start, self.front
        self.count -= 1
        return row

    def forget(self, keys: Collection[bytes]) -> None:
        """Drop rows that were read ahead and are deleted on disk now, when memory no longer knows of their deletion."""
        if keys and self._ahead:
            self._ahead = deque(row for row in self._ahead if row.key not in keys)

    def rows(self, low: bytes = _FIRST) -> Iterator[PersistedRow]:
        """Yield the rows from a position on, in order."""
        for part in self._read(max(self.front, low), None) if self.count else ():
            yield from (row for row in part if not self._is_known(row.key))

    def num_popped(self) -> int:
        """Return 1 if removed rows are not deleted on disk yet, else 0."""
        return int(self._popped[0] != self._popped[1] or self._unwritten[0] != self._unwritten[1])

    def take_popped(self) -> Iterator[list[bytes]]:
        """Yield the keys of the rows that were removed since the last call, in parts, without keys that memory has."""
        popped, self._popped = self._popped, (self._popped[1], self._popped[1])
        self._unwritten = popped[0] if self._unwritten[0] == self._unwritten[1] else self._unwritten[0], popped[1]
        for part in self._between(*popped):
            yield [row.key for row in part if not self._is_known(row.key)]

    def written(self) -> Iterator[list[bytes]]:
        """Yield the keys of all rows that `take_popped` has returned, in parts: they are deleted on disk now."""
        for part in self._between(*self._unwritten):
            yield [row.key for row in part]
        self._unwritten = _NONE
        if self._popped[0] == self._popped[1]:
            self._popped = _NONE

    def _between(self, start: bytes, end: bytes) -> Iterator[list[PersistedRow]]:
        return self._read(start, end) if start != end else iter(())


class PersistedOrder:
    """The positions of persisted rows in the order of removal, in a column family of their own.

    The order is written again whenever a store is opened, so that it may be wrong after a crash. An outdated position
    is ignored: it counts only if the persisted row still has its time.

    Parameters
    ----------
    family : ColumnFamily
        The rows of the store by key; each value begins with the row's time (8 bytes, big endian).
    order : ColumnFamily
        The positions: time and key.
    """

    def __init__(self, family: ColumnFamily, order: ColumnFamily) -> None:
        self._family = family
        self._order = order
        self._front = _FIRST

    def add(self, rows: list[tuple[int, bytes]]) -> list[bytes]:
        """Add rows by times and keys; return their positions."""
        places = [_TIME.pack(time_ms) + key for time_ms, key in rows]
        no_values = pa.repeat(pa.scalar(b"", pa.binary()), len(places))
        self._order.write(ByteRows(pa.array(places, pa.binary()), no_values), None, -1)
        return places

    def clear(self) -> None:
        """Remove all positions."""
        self._order.delete_range(_FIRST, _END)

    def drop_until(self, front: bytes) -> None:
        """Remove the positions before a position."""
        if front > self._front:
            self._order.delete_range(_FIRST, front)
        self._front = front

    def read(self, low: bytes, high: bytes | None) -> Iterator[list[PersistedRow]]:
        """See `Read`."""
        for chunk in self._order.chunks(low, high):
            keys = [place[_TIME.size :] for place in chunk.keys]
            values = self._family.get_many(keys) if keys else []
            persisted_rows = zip(chunk.keys, keys, values, strict=True)
            rows = [PersistedRow(place, key, value) for place, key, value in persisted_rows if value is not None]
            yield [row for row in rows if row.value[: _TIME.size] == row.place[: _TIME.size]]
