"""`PersistedQueue`: rows of a buffer that are held on disk alone, in the order in which they leave.

They leave from the front. So nothing is kept in memory of the rows that have left since the last commit, but from which
place to which: a window of millions of keys may close at once.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from kstreams.state.column_family import ByteRows, ColumnFamily

_TIME = struct.Struct(">q")
# times are not negative: no place begins like that
_FIRST = b""
_END = b"\xff" * 9
_NONE = _FIRST, _FIRST


class PersistedRow(NamedTuple):
    """A row that is held on disk alone: where it stands in the order (its time comes first), its key and its value."""

    place: bytes
    key: bytes
    value: bytes

    @property
    def time_ms(self) -> int:
        """The time that decides when it leaves."""
        time_ms: int = _TIME.unpack_from(self.place)[0]
        return time_ms


Read: TypeAlias = Callable[[bytes, bytes | None], Iterator[list[PersistedRow]]]
"""The persisted rows with positions in [low, high), in order and in parts."""


class PersistedQueue:
    """The rows that are held on disk alone.

    Parameters
    ----------
    read : Read
    is_known : callable
        Whether memory knows what has become of the row with a key: then the persisted row does not count.

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
        """Forget all of them."""
        self.count = 0
        """How many rows are held."""
        self.front = _FIRST
        """No row that is held stands before this place."""
        self._ahead = deque[PersistedRow]()
        self._parts: Iterator[list[PersistedRow]] | None = None
        self._popped = self._handed = _NONE  # from where to where rows have left since the last commit; those given out

    def add(self, places: list[bytes]) -> None:
        """Persisted rows are held on disk alone from now on."""
        self.count += len(places)
        self.front = min([self.front, *places])
        self._ahead.clear()
        self._parts = None

    def holds(self, place: bytes, key: bytes) -> bool:
        """Whether a persisted row is one that is held."""
        return place >= self._popped[1] and not self._is_known(key)

    def first(self) -> PersistedRow | None:
        """The row that leaves next."""
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
        """The row that `first` gave leaves."""
        row = self._ahead.popleft()
        start, end = self._popped
        self.front = row.place + b"\x00"
        self._popped = row.place if start == end else start, self.front
        self.count -= 1
        return row

    def rows(self, low: bytes = _FIRST) -> Iterator[PersistedRow]:
        """All rows that are held from a place on, in order."""
        for part in self._read(max(self.front, low), None) if self.count else ():
            yield from (row for row in part if not self._is_known(row.key))

    def num_popped(self) -> int:
        """1 if rows have left that are not deleted on disk yet, else 0."""
        return int(self._popped[0] != self._popped[1] or self._handed[0] != self._handed[1])

    def take_popped(self) -> Iterator[list[bytes]]:
        """The keys of the rows that have left since the last call, in parts; without those that memory knows."""
        popped, self._popped = self._popped, (self._popped[1], self._popped[1])
        self._handed = popped[0] if self._handed[0] == self._handed[1] else self._handed[0], popped[1]
        for part in self._between(*popped):
            yield [row.key for row in part if not self._is_known(row.key)]

    def written(self) -> Iterator[list[bytes]]:
        """The keys of all rows that were given out as having left, in parts: they are to be deleted on disk."""
        for part in self._between(*self._handed):
            yield [row.key for row in part]
        self._handed = _NONE
        if self._popped[0] == self._popped[1]:
            self._popped = _NONE

    def _between(self, start: bytes, end: bytes) -> Iterator[list[PersistedRow]]:
        return self._read(start, end) if start != end else iter(())


class PersistedOrder:
    """The order of persisted rows: their places, in a column family of their own.

    It is made anew whenever a store is opened, so that it need not be true after a crash. A place may be out of date:
    it counts only if the persisted row has that time still.

    Parameters
    ----------
    family : ColumnFamily
        The rows of the store by key; each value begins with the row's time (8 bytes, big endian).
    order : ColumnFamily
        Their places: time and key.
    """

    def __init__(self, family: ColumnFamily, order: ColumnFamily) -> None:
        self._family = family
        self._order = order
        self._front = _FIRST

    def add(self, rows: list[tuple[int, bytes]]) -> list[bytes]:
        """Note the times and keys of rows; answers their places."""
        places = [_TIME.pack(time_ms) + key for time_ms, key in rows]
        no_values = pa.repeat(pa.scalar(b"", pa.binary()), len(places))
        self._order.write(ByteRows(pa.array(places, pa.binary()), no_values), None, -1)
        return places

    def clear(self) -> None:
        """Forget all of them."""
        self._order.delete_range(_FIRST, _END)

    def drop_until(self, front: bytes) -> None:
        """Forget those before a place."""
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
