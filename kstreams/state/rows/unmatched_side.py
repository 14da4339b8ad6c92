"""`UnmatchedSide`: the rows of one side of an outer join that have no partner, in memory or only on disk."""

from __future__ import annotations

import struct
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.state.api import Changes, UnmatchedRow
from kstreams.state.codecs import KeyCodec, PlainValueCodec
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.live_store import SAMPLED_ROWS
from kstreams.state.rows.persisted_queue import PersistedQueue, PersistedRow

SortedRow: TypeAlias = tuple[Any, ...]


class SortedRows:
    """Rows in ascending order, which are mostly added at the end, read at the start, and removed anywhere.

    A removed row is skipped; many removed rows are deleted together.

    Parameters
    ----------
    exists : callable
        Returns whether a row exists, by the knowledge of the owner of the rows.

    Examples
    --------
    >>> existing = {(1,), (3,)}
    >>> rows = SortedRows(existing.__contains__)
    >>> for row in ((3,), (1,), (2,)):
    ...     rows.add(row)
    >>> rows.first(), rows.after((1,)), rows.last()
    ((1,), (3,), (3,))
    """

    __slots__ = ("_exists", "_rows", "_skipped", "_start")

    def __init__(self, exists: Callable[[SortedRow], bool]) -> None:
        self._exists = exists
        self._rows: list[SortedRow] = []
        self._start = self._skipped = 0

    def add(self, row: SortedRow) -> None:
        """Insert a row."""
        if self._skipped > 64 and self._skipped * 2 > len(self._rows):
            self.delete_removed()
        insort(self._rows, row, lo=self._start)

    def delete_removed(self) -> None:
        """Delete the rows that do not exist any more."""
        self._rows = list(filter(self._exists, self._rows[self._start :]))
        self._start = self._skipped = 0

    def first(self) -> SortedRow | None:
        """Return the first row; None if there is none."""
        rows = self._rows
        while self._start < len(rows) and not self._exists(rows[self._start]):
            self._start += 1
            self._skipped += 1
        return rows[self._start] if self._start < len(rows) else None

    def after(self, row: SortedRow) -> SortedRow | None:
        """Return the first row after all rows that begin with `row`; None if there is none."""
        place = bisect_right(self._rows, row, lo=self._start, key=lambda other: other[: len(row)])
        rows = (self._rows[later] for later in range(place, len(self._rows)))
        return next(filter(self._exists, rows), None)

    def last(self) -> SortedRow | None:
        """Return the last row; None if there is none."""
        while len(self._rows) > self._start and not self._exists(self._rows[-1]):
            self._rows.pop()
        return self._rows[-1] if len(self._rows) > self._start else None


Row: TypeAlias = tuple[int, Any]
"""The timestamp, and the live form of the key."""

PLACE = struct.Struct(">q?")
_LENGTH = struct.Struct(">I")
_SIDE = 8  # the byte of a place with the side


class UnmatchedSide:
    """The rows of one side.

    Parameters
    ----------
    left : bool
        True for the left side.
    keys, values : KeyCodec, PlainValueCodec
    family : ColumnFamily
        The persisted rows of both sides.
    """

    def __init__(self, left: bool, keys: KeyCodec, values: PlainValueCodec, family: ColumnFamily) -> None:
        self._left = left
        self._keys = keys
        self._values = values
        self._family = family
        self.clear()

    def clear(self) -> None:
        """Delete all rows in memory."""
        self.rows: dict[Row, list[Any]] = {}
        """The values of each row in memory."""
        self.persisted = PersistedQueue(self._read, self._is_known)
        self._queue = SortedRows(lambda row: (row[0], row[2]) in self.rows)  # timestamp, serialized key, key
        self._changed: dict[Row, None] = {}
        self._unwritten: dict[Row, None] = {}  # returned as changes, and not persisted yet

    def _read(self, low: bytes, high: bytes | None) -> Iterator[list[PersistedRow]]:
        for chunk in self._family.chunks(low, high):
            yield [PersistedRow(place, place, value) for place, value in chunk.rows() if place[_SIDE] == self._left]

    def own(self, places: list[bytes]) -> list[bytes]:
        """Return the places of this side."""
        return [place for place in places if place[_SIDE] == self._left]

    def _is_known(self, place: bytes) -> bool:
        row = PLACE.unpack_from(place)[0], self._keys.of_bytes(place[PLACE.size :])
        return row in self.rows or row in self._changed or row in self._unwritten

    def _place(self, row: Row) -> bytes:
        return PLACE.pack(row[0], self._left) + self._keys.to_bytes(row[1])

    def _on_disk(self, place: bytes) -> bytes | None:
        """Return the value of a row that is only on disk; None if there is none at this place."""
        if not self.persisted.count or not self.persisted.holds(place, place):
            return None
        return self._family.get(place)

    def put(self, timestamp: int, key: Any, value: Any) -> None:
        """Add a value; `key` is in live form."""
        row = (timestamp, key)
        live = self._values.live
        live_value = value if live is None else live(value)
        if row in self.rows:
            self.rows[row].append(live_value)
        else:
            data = self._on_disk(self._place(row)) if self.persisted.count else None
            self.persisted.count -= data is not None
            self.rows[row] = [live_value] if data is None else [*self._of_bytes(data), live_value]
            self._queue.add((timestamp, self._keys.to_bytes(key), key))
        self._changed[row] = None

    def remove(self, timestamp: int, key: Any) -> None:
        """Remove the row of a time and a key."""
        row = timestamp, key
        if self.rows.pop(row, None) is not None:
            self._changed[row] = None
        elif self.persisted.count and self._on_disk(self._place(row)) is not None:
            self.persisted.count -= 1
            self._changed[row] = None

    def first(self) -> UnmatchedRow | None:
        """Return the first row; None if there is none."""
        in_memory = self._shape(self._queue.first())
        on_disk = self.persisted.first() if self.persisted.count else None
        if on_disk is None:
            return in_memory
        row_on_disk = _row_at(on_disk.place)
        return row_on_disk if in_memory is None else min(in_memory, row_on_disk)

    def after(self, row: UnmatchedRow) -> UnmatchedRow | None:
        """Return the row after a row of either side; None if there is none."""
        if self._left == row.left_side:
            in_memory = self._queue.after((row.timestamp, row.key))
        else:  # of one time, right rows come before left ones
            in_memory = self._queue.after((row.timestamp - 1 if self._left else row.timestamp,))
        rows = [self._shape(in_memory)]
        if self.persisted.count:
            low = PLACE.pack(row.timestamp, row.left_side) + row.key + b"\x00"
            rows += [_row_at(on_disk.place) for on_disk in islice(self.persisted.rows(low), 1)]
        return min((next_row for next_row in rows if next_row is not None), default=None)

    def last(self) -> UnmatchedRow | None:
        """Return the last row; None if there is none."""
        rows = [self._shape(self._queue.last())]
        if self.persisted.count:
            chunks = self._family.chunks(self.persisted.front, None, reverse=True)
            on_disk = (place for chunk in chunks for place in self.own(chunk.keys))
            rows += [_row_at(place) for place in islice((p for p in on_disk if not self._is_known(p)), 1)]
        return max((last_row for last_row in rows if last_row is not None), default=None)

    def num_values(self, row: UnmatchedRow) -> int:
        """Return the number of values of a row."""
        live_values = self.rows.get((row.timestamp, self._keys.of_bytes(row.key)))
        if live_values is not None:
            return len(live_values)
        data = self._on_disk(PLACE.pack(row.timestamp, row.left_side) + row.key)
        return 0 if data is None else len(self._of_bytes(data))

    def pop(self) -> Iterator[tuple[Any, Any, int, bool]]:
        """Remove the first row; return (key, value, timestamp, left_side) for each value."""
        in_memory = self._queue.first()
        on_disk = self.persisted.first() if self.persisted.count else None
        if on_disk is not None and (
            in_memory is None or _row_at(on_disk.place) < UnmatchedRow(in_memory[0], self._left, in_memory[1])
        ):
            self.persisted.pop()
            timestamp = on_disk.time_ms
            key = self._keys.of_bytes(on_disk.key[PLACE.size :])
            live_values = self._of_bytes(on_disk.value)
        elif in_memory is None:
            raise LookupError("this side has no row")
        else:
            timestamp, _, key = in_memory
            live_values = self.rows.pop((timestamp, key))
            self._changed[timestamp, key] = None
        key_of = self._keys.public
        value_of = self._values.public
        public_key = key if key_of is None else key_of(key)
        return (
            (public_key, value if value_of is None else value_of(value), timestamp, self._left) for value in live_values
        )

    def _shape(self, row: tuple[Any, ...] | None) -> UnmatchedRow | None:
        return None if row is None else UnmatchedRow(row[0], self._left, row[1])

    def take_changes(self) -> Changes:
        """Return the changes since the last call as changelog records."""
        changed, self._changed = self._changed, {}
        self._unwritten |= changed
        return self._records(list(changed))

    def dump(self) -> Changes:
        """Return all rows as changelog records."""
        in_memory = self._records(list(self.rows))
        on_disk = list(self.persisted.rows())
        keys = [row.place for row in on_disk]
        values = [row.value for row in on_disk]
        times = pa.array([row.time_ms for row in on_disk], pa.int64())
        persisted_changes = Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), times)
        return Changes(*map(pa.concat_arrays, zip(in_memory, persisted_changes, strict=True)))

    def _records(self, rows: list[Row]) -> Changes:
        keys = pa.array([self._place(row) for row in rows], pa.binary())
        values = pa.array([self._to_bytes(self.rows.get(row)) for row in rows], pa.binary())
        return Changes(keys, values, pa.array([row[0] for row in rows], pa.int64()))

    def _to_bytes(self, live_values: list[Any] | None) -> bytes | None:
        if live_values is None:
            return None
        return b"".join(_LENGTH.pack(len(data)) + data for data in self._values.to_bytes(live_values).to_pylist())

    def _of_bytes(self, data: bytes) -> list[Any]:
        live_values = []
        at = 0
        while at < len(data):
            start = at + _LENGTH.size
            at = start + _LENGTH.unpack_from(data, at)[0]
            live_values.append(self._values.of_bytes(data[start:at]))
        return live_values

    def take(self, timestamp: int, key: bytes, data: bytes | None) -> None:
        """Set a row from a changelog, or from the persisted rows."""
        row = timestamp, self._keys.of_bytes(key)
        if data is None:
            self.rows.pop(row, None)
            return
        self.rows[row] = self._of_bytes(data)
        self._queue.add((timestamp, key, row[1]))

    def written(self) -> None:
        """Note that the changes which `take_changes` returned are persisted."""
        if self.persisted.count:
            self.persisted.forget({self._place(row) for row in self._unwritten if row not in self.rows})
        self._unwritten = {}

    def num_pending(self) -> int:
        """Return the number of changes that are not persisted."""
        return len(self._changed) + len(self._unwritten) + self.persisted.num_popped()

    def sample(self) -> list[tuple[Any, ...]]:
        """Return the objects of some rows in memory."""
        return list(islice(reversed(self.rows.items()), SAMPLED_ROWS))

    def evict(self, count: int) -> int:
        """Evict up to `count` persisted rows, the last rows first; return their number."""
        if count <= 0 or self.persisted.num_popped():
            return 0  # a new row may precede a removed one
        clean = (row for row in reversed(self.rows) if row not in self._changed and row not in self._unwritten)
        evicted = list(islice(clean, count))
        if evicted:
            self.persisted.add([self._place(row) for row in evicted])
        for row in evicted:
            del self.rows[row]
        self._queue.delete_removed()
        return len(evicted)


def _row_at(place: bytes) -> UnmatchedRow:
    timestamp, left_side = PLACE.unpack_from(place)
    return UnmatchedRow(timestamp, left_side, place[PLACE.size :])
