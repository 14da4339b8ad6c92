"""`UnmatchedSide`: the rows of one side of an outer join without a partner, in memory or on disk alone."""

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
from kstreams.state.kinds.live_store import SAMPLE
from kstreams.state.rows.persisted_queue import PersistedQueue, PersistedRow

SortedRow: TypeAlias = tuple[Any, ...]


class SortedRows:
    """Rows that stay in order; one that is gone is only skipped, and cleared away when many are.

    Parameters
    ----------
    is_there : callable
        Whether a row is still there: who owns the rows knows.

    Examples
    --------
    >>> there = {(1,), (3,)}
    >>> rows = SortedRows(there.__contains__)
    >>> for row in ((3,), (1,), (2,)):
    ...     rows.add(row)
    >>> rows.first(), rows.after((1,)), rows.last()
    ((1,), (3,), (3,))
    """

    __slots__ = ("_is_there", "_rows", "_skipped", "_start")

    def __init__(self, is_there: Callable[[SortedRow], bool]) -> None:
        self._is_there = is_there
        self._rows: list[SortedRow] = []
        self._start = self._skipped = 0

    def add(self, row: SortedRow) -> None:
        """Put a row in its place."""
        if self._skipped > 64 and self._skipped * 2 > len(self._rows):
            self.clear_away()
        insort(self._rows, row, lo=self._start)

    def clear_away(self) -> None:
        """Forget the rows that are gone."""
        self._rows = list(filter(self._is_there, self._rows[self._start :]))
        self._start = self._skipped = 0

    def first(self) -> SortedRow | None:
        """The lowest row."""
        rows = self._rows
        while self._start < len(rows) and not self._is_there(rows[self._start]):
            self._start += 1
            self._skipped += 1
        return rows[self._start] if self._start < len(rows) else None

    def after(self, row: SortedRow) -> SortedRow | None:
        """The lowest row above a given one, or above all that begin like it."""
        place = bisect_right(self._rows, row, lo=self._start, key=lambda other: other[: len(row)])
        rows = (self._rows[later] for later in range(place, len(self._rows)))
        return next(filter(self._is_there, rows), None)

    def last(self) -> SortedRow | None:
        """The highest row."""
        while len(self._rows) > self._start and not self._is_there(self._rows[-1]):
            self._rows.pop()
        return self._rows[-1] if len(self._rows) > self._start else None


Row: TypeAlias = tuple[int, Any]
"""Timestamp, and the key as it lives in memory."""

PLACE = struct.Struct(">q?")
_LENGTH = struct.Struct(">I")
_SIDE = 8  # the byte of a place that says of which side it is


class UnmatchedSide:
    """The rows of one side.

    Parameters
    ----------
    left : bool
        Which side it is.
    keys, values : KeyCodec, PlainValueCodec
        How both become bytes.
    family : ColumnFamily
        The persisted bytes of both sides.
    """

    def __init__(self, left: bool, keys: KeyCodec, values: PlainValueCodec, family: ColumnFamily) -> None:
        self._left = left
        self._keys = keys
        self._values = values
        self._family = family
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.rows: dict[Row, list[Any]] = {}
        """Those in memory: the values of each."""
        self.persisted = PersistedQueue(self._read, self._is_known)
        self._queue = SortedRows(lambda row: (row[0], row[2]) in self.rows)  # timestamp, serialized key, key
        self._changed: dict[Row, None] = {}
        self._handed: dict[Row, None] = {}  # handed out as changes, not persisted yet

    def _read(self, low: bytes, high: bytes | None) -> Iterator[list[PersistedRow]]:
        for chunk in self._family.chunks(low, high):
            yield [PersistedRow(place, place, value) for place, value in chunk.rows() if place[_SIDE] == self._left]

    def own(self, places: list[bytes]) -> list[bytes]:
        """Those of this side."""
        return [place for place in places if place[_SIDE] == self._left]

    def _is_known(self, place: bytes) -> bool:
        row = PLACE.unpack_from(place)[0], self._keys.of_bytes(place[PLACE.size :])
        return row in self.rows or row in self._changed or row in self._handed

    def _place(self, row: Row) -> bytes:
        return PLACE.pack(row[0], self._left) + self._keys.to_bytes(row[1])

    def _below(self, place: bytes) -> bytes | None:
        """The row that is held on disk alone at a place."""
        if not self.persisted.count or not self.persisted.holds(place, place):
            return None
        return self._family.get(place)

    def put(self, timestamp: int, key: Any, value: Any) -> None:
        """Add a value; the key as it lives in memory."""
        row = (timestamp, key)
        live = self._values.live
        live_value = value if live is None else live(value)
        if row in self.rows:
            self.rows[row].append(live_value)
        else:
            data = self._below(self._place(row)) if self.persisted.count else None
            self.persisted.count -= data is not None
            self.rows[row] = [live_value] if data is None else [*self._of_bytes(data), live_value]
            self._queue.add((timestamp, self._keys.to_bytes(key), key))
        self._changed[row] = None

    def remove(self, timestamp: int, key: Any) -> None:
        """Forget the row of a time and key."""
        row = timestamp, key
        if self.rows.pop(row, None) is not None:
            self._changed[row] = None
        elif self.persisted.count and self._below(self._place(row)) is not None:
            self.persisted.count -= 1
            self._changed[row] = None

    def first(self) -> UnmatchedRow | None:
        """The first row."""
        here = self._shape(self._queue.first())
        below = self.persisted.first() if self.persisted.count else None
        if below is None:
            return here
        below_row = _row_at(below.place)
        return below_row if here is None else min(here, below_row)

    def after(self, row: UnmatchedRow) -> UnmatchedRow | None:
        """The row after a row of either side."""
        if self._left == row.left_side:
            here = self._queue.after((row.timestamp, row.key))
        else:  # of one time, right rows come before left ones
            here = self._queue.after((row.timestamp - 1 if self._left else row.timestamp,))
        rows = [self._shape(here)]
        if self.persisted.count:
            low = PLACE.pack(row.timestamp, row.left_side) + row.key + b"\x00"
            rows += [_row_at(below.place) for below in islice(self.persisted.rows(low), 1)]
        return min((next_row for next_row in rows if next_row is not None), default=None)

    def last(self) -> UnmatchedRow | None:
        """The last row."""
        rows = [self._shape(self._queue.last())]
        if self.persisted.count:
            chunks = self._family.chunks(self.persisted.front, None, reverse=True)
            below = (place for chunk in chunks for place in self.own(chunk.keys))
            rows += [_row_at(place) for place in islice((p for p in below if not self._is_known(p)), 1)]
        return max((last_row for last_row in rows if last_row is not None), default=None)

    def num_values(self, row: UnmatchedRow) -> int:
        """How many values one row has."""
        live_values = self.rows.get((row.timestamp, self._keys.of_bytes(row.key)))
        if live_values is not None:
            return len(live_values)
        data = self._below(PLACE.pack(row.timestamp, row.left_side) + row.key)
        return 0 if data is None else len(self._of_bytes(data))

    def pop(self) -> Iterator[tuple[Any, Any, int, bool]]:
        """The first row leaves: (key, value, timestamp, left_side) of each value."""
        here = self._queue.first()
        below = self.persisted.first() if self.persisted.count else None
        if below is not None and (here is None or _row_at(below.place) < UnmatchedRow(here[0], self._left, here[1])):
            self.persisted.pop()
            timestamp = below.time_ms
            key = self._keys.of_bytes(below.key[PLACE.size :])
            live_values = self._of_bytes(below.value)
        elif here is None:
            raise LookupError("no row waits on this side")
        else:
            timestamp, _, key = here
            live_values = self.rows.pop((timestamp, key))
            self._changed[timestamp, key] = None
        key_of = self._keys.public
        value_of = self._values.public
        key_shown = key if key_of is None else key_of(key)
        return (
            (key_shown, value if value_of is None else value_of(value), timestamp, self._left) for value in live_values
        )

    def _shape(self, row: tuple[Any, ...] | None) -> UnmatchedRow | None:
        return None if row is None else UnmatchedRow(row[0], self._left, row[1])

    def take_changes(self) -> Changes:
        """What changed since the last call, as changelog records."""
        changed, self._changed = self._changed, {}
        self._handed |= changed
        return self._records(list(changed))

    def dump(self) -> Changes:
        """Every row, as changelog records."""
        here = self._records(list(self.rows))
        below = list(self.persisted.rows())
        keys = [row.place for row in below]
        values = [row.value for row in below]
        times = pa.array([row.time_ms for row in below], pa.int64())
        persisted_changes = Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), times)
        return Changes(*map(pa.concat_arrays, zip(here, persisted_changes, strict=True)))

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
        """Take over a row of a changelog or of the persisted bytes."""
        row = timestamp, self._keys.of_bytes(key)
        if data is None:
            self.rows.pop(row, None)
            return
        self.rows[row] = self._of_bytes(data)
        self._queue.add((timestamp, key, row[1]))

    def written(self) -> None:
        """The changes that were handed out are persisted."""
        self._handed = {}

    def num_pending(self) -> int:
        """How many changes are not persisted."""
        return len(self._changed) + len(self._handed) + self.persisted.num_popped()

    def sample(self) -> list[tuple[Any, ...]]:
        """Some rows in memory: the objects that are held for each."""
        return list(islice(reversed(self.rows.items()), SAMPLE))

    def evict(self, count: int) -> int:
        """Evict up to `count` persisted rows, the last ones first; returns how many."""
        if count <= 0 or self.persisted.num_popped():
            return 0  # what comes now could stand before what has left
        clean = (row for row in reversed(self.rows) if row not in self._changed and row not in self._handed)
        gone = list(islice(clean, count))
        if gone:
            self.persisted.add([self._place(row) for row in gone])
        for row in gone:
            del self.rows[row]
        self._queue.clear_away()
        return len(gone)


def _row_at(place: bytes) -> UnmatchedRow:
    timestamp, left_side = PLACE.unpack_from(place)
    return UnmatchedRow(timestamp, left_side, place[PLACE.size :])
