"""Outer-join stores: rows of a left or outer stream-stream join that have no partner yet.

The key of a row is: timestamp (8 bytes, big endian), side (1 byte: 0 right, 1 left), serialized key. Its value holds
the values of the row in order of arrival, each after its length (4 bytes). So rows are on disk in the order in which
they leave, and rows that do not fit in memory are only on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from kstreams.state.api import Changes, StoreBuilder, UnmatchedRow
from kstreams.state.codecs import KeyCodec, PlainValueCodec
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.unmatched_side import PLACE, UnmatchedSide


class LiveOuterJoinStore(LiveStore):
    """Rows without a partner (see `OuterJoinStore`); `value` is the serde of left rows, `right_value` of right rows."""

    # one slot of a dict, and an entry of the queue, which takes as much memory as two slots
    row_slots = 3
    object_bytes = 600

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        right = builder.value if builder.right_value is None else builder.right_value
        serdes = (False, right), (True, builder.value)
        self._sides = [
            UnmatchedSide(side, self._keys, PlainValueCodec(builder.name, serde), family) for side, serde in serdes
        ]

    def put(self, key: object, value: object, timestamp: int, left_side: bool) -> None:
        """Add a row without a partner."""
        self.ready()
        to_live = self._keys.live
        self._sides[left_side].put(timestamp, key if to_live is None else to_live(key), value)

    def remove(self, key: object, timestamp: int, left_side: bool) -> None:
        """Remove all rows of a key, time and side, because they have a partner."""
        self.ready()
        to_live = self._keys.live
        self._sides[left_side].remove(timestamp, key if to_live is None else to_live(key))

    def first_row(self, left_side: bool) -> UnmatchedRow | None:
        """Return the first row of a side, or None."""
        self.ready()
        return self._sides[left_side].first()

    def row_after(self, row: UnmatchedRow) -> UnmatchedRow | None:
        """Return the row after a row, on either side, or None."""
        self.ready()
        rows = [side.after(row) for side in self._sides]
        return min((next_row for next_row in rows if next_row is not None), default=None)

    def num_values(self, row: UnmatchedRow) -> int:
        """Return the number of values of a row."""
        self.ready()
        return self._sides[row.left_side].num_values(row)

    def last_row(self) -> UnmatchedRow | None:
        """Return the last row, on either side, or None."""
        self.ready()
        rows = [side.last() for side in self._sides]
        return max((last_row for last_row in rows if last_row is not None), default=None)

    def pop_until(self, left_before_ms: int, right_before_ms: int) -> Iterator[tuple[Any, Any, int, bool]]:
        """Remove and yield (key, value, timestamp, left_side) of the rows with timestamp < the limit of their side.

        The order is: timestamp, right rows before left rows, serialized key, arrival. A row is removed when the
        iterator reaches it.
        """
        self.ready()
        limits = right_before_ms, left_before_ms
        while True:
            first_rows = (side.first() for side in self._sides)
            row = min((row for row in first_rows if row and row[0] < limits[row[1]]), default=None)
            if row is None:
                return
            yield from self._sides[row.left_side].pop()

    def take_changes(self, timestamp_ms: int) -> Changes:
        parts = [side.take_changes() for side in self._sides]
        return Changes(*map(pa.concat_arrays, zip(*parts, strict=True)))

    def take_popped(self, timestamp_ms: int) -> Iterator[Changes]:
        for side in self._sides:
            for keys in side.persisted.take_popped():
                times = pa.array([PLACE.unpack_from(key)[0] for key in keys], pa.int64())
                yield Changes(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary()), times)

    def write(self, changes: Changes | None, offset: int | None) -> None:
        for side in self._sides:
            for keys in side.persisted.written():
                rows = ByteRows(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary()))
                self.family.write(rows, None, self._changes_observed_ms)
        super().write(changes, offset)

    def written(self) -> None:
        for side in self._sides:
            side.written()

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._clear()
            self.reload()
        else:
            self._load_rows(zip(changes.keys.to_pylist(), changes.values.to_pylist(), strict=True))

    def _clear(self) -> None:
        for side in self._sides:
            side.clear()

    def _load_rows(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        for row_key, data in rows:
            timestamp, left_side = PLACE.unpack_from(row_key)
            self._sides[left_side].take(timestamp, row_key[PLACE.size :], data)

    def load(self, everything: bool) -> Iterator[int]:
        self._clear()
        for chunk in self.family.chunks(b"", None):
            if everything:
                self._load_rows(chunk.rows())
            else:
                for side in self._sides:
                    side.persisted.add(side.own(chunk.keys))
        return iter(())

    def dump(self) -> Changes:
        self.ready()
        parts = [side.dump() for side in self._sides]
        return Changes(*map(pa.concat_arrays, zip(*parts, strict=True)))

    def num_pending(self) -> int:
        return sum(side.num_pending() for side in self._sides)

    def num_live(self) -> int:
        return sum(len(side.rows) for side in self._sides)

    def sample(self) -> list[tuple[object, ...]]:
        return [row for side in self._sides for row in side.sample()]

    def evict(self, count: int) -> int:
        """Evict persisted rows from memory."""
        evicted = 0
        for side in sorted(self._sides, key=lambda side: -len(side.rows)):
            evicted += side.evict(count - evicted)
        return evicted
