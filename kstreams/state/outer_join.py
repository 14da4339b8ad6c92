"""Outer-join stores: rows of a left or outer stream-stream join that found no partner yet. Always in memory as a whole.

A row's key is: timestamp (8 bytes, big endian), side (1 byte: 0 right, 1 left), serialized key; its value holds the
values that wait there, in order of arrival, each with its length (4 bytes) in front.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.state.api import Changes, StoreBuilder, WaitingRow
from kstreams.state.codecs import Keys, PlainValues
from kstreams.state.family import Family
from kstreams.state.live_budget import LiveBudget
from kstreams.state.live_store import LiveStore
from kstreams.state.sorted_rows import SortedRows

Row: TypeAlias = tuple[int, bool, Any]
"""Timestamp, whether it is of the left side, and the key as it lives in memory."""

_PLACE = struct.Struct(">q?")
_LENGTH = struct.Struct(">I")


class LiveOuterJoinStore(LiveStore):
    """Rows without a partner (see `OuterJoinStore`); `value` is the serde of left rows, `right_value` of right ones."""

    def __init__(self, builder: StoreBuilder, family: Family, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys = Keys(builder.name, builder.key)
        right = builder.value if builder.right_value is None else builder.right_value
        self._values = PlainValues(builder.name, right), PlainValues(builder.name, builder.value)
        self._rows: dict[Row, list[Any]] = {}
        self._queues = self._sorted()
        self._changed: dict[Row, None] = {}
        self._num_handed = 0

    def put(self, key: Any, value: Any, timestamp: int, left_side: bool) -> None:
        """Add a row that waits."""
        self.ready()
        live_key, live = self._keys.live, self._values[left_side].live
        row = timestamp, left_side, key if live_key is None else live_key(key)
        held = value if live is None else live(value)
        if row in self._rows:
            self._rows[row].append(held)
        else:
            self._rows[row] = [held]
            self._queues[left_side].add((timestamp, left_side, self._keys.to_bytes(row[2]), row[2]))
        self._changed[row] = None

    def remove(self, key: Any, timestamp: int, left_side: bool) -> None:
        """Forget all rows of this key, time and side: they found a partner."""
        self.ready()
        live_key = self._keys.live
        row = timestamp, left_side, key if live_key is None else live_key(key)
        if self._rows.pop(row, None) is not None:
            self._changed[row] = None

    def first_row(self, left_side: bool) -> WaitingRow | None:
        """What waits first on a side."""
        self.ready()
        return _shape(self._queues[left_side].first())

    def row_after(self, row: WaitingRow) -> WaitingRow | None:
        """What waits next after a row, on either side."""
        self.ready()
        found = [_shape(queue.after(row)) for queue in self._queues]
        return min((next_row for next_row in found if next_row is not None), default=None)

    def num_values(self, row: WaitingRow) -> int:
        """How many values wait in one row."""
        self.ready()
        return len(self._rows.get((row.timestamp, row.left_side, self._keys.of_bytes(row.key)), ()))

    def last_row(self) -> WaitingRow | None:
        """What waits last, on either side."""
        self.ready()
        found = [_shape(queue.last()) for queue in self._queues]
        return max((last_row for last_row in found if last_row is not None), default=None)

    def pop_until(self, left_before_ms: int, right_before_ms: int) -> Iterator[tuple[Any, Any, int, bool]]:
        """Remove and give (key, value, timestamp, left_side) with timestamp < the side's limit.

        Order: timestamp, then right rows before left rows, then serialized key, then arrival.
        """
        self.ready()
        gone: list[tuple[int, bool, bytes, Any, list[Any]]] = []
        for left_side, before_ms in ((False, right_before_ms), (True, left_before_ms)):
            queue = self._queues[left_side]
            while (first := queue.first()) is not None and first[0] < before_ms:
                timestamp, _, data, live = first
                held = self._rows.pop((timestamp, left_side, live))
                self._changed[timestamp, left_side, live] = None
                gone.append((timestamp, left_side, data, live, held))
        gone.sort(key=lambda row: row[:3])
        return iter([shown for row in gone for shown in self._shown(*row)])

    def _sorted(self) -> tuple[SortedRows, SortedRows]:
        """Per side the rows that wait: timestamp, side, serialized key, key."""
        rows = self._rows
        return tuple(SortedRows(lambda row: (row[0], row[1], row[3]) in rows) for _ in range(2))  # type: ignore[return-value]

    def _shown(
        self, timestamp: int, left_side: bool, _: bytes, live: Any, held: list[Any]
    ) -> Iterator[tuple[Any, Any, int, bool]]:
        key_of, value_of = self._keys.public, self._values[left_side].public
        key = live if key_of is None else key_of(live)
        return ((key, value if value_of is None else value_of(value), timestamp, left_side) for value in held)

    def take_changes(self, timestamp_ms: int) -> Changes:
        rows = list(self._changed)
        self._changed.clear()
        self._num_handed += len(rows)
        return self._records(rows)

    def _records(self, rows: list[Row]) -> Changes:
        to_bytes = self._keys.to_bytes
        keys = pa.array([_PLACE.pack(time, left_side) + to_bytes(key) for time, left_side, key in rows], pa.binary())
        values = pa.array([self._to_bytes(row) for row in rows], pa.binary())
        return Changes(keys, values, pa.array([row[0] for row in rows], pa.int64()))

    def _to_bytes(self, row: Row) -> bytes | None:
        held = self._rows.get(row)
        if held is None:
            return None
        return b"".join(_LENGTH.pack(len(data)) + data for data in self._values[row[1]].to_bytes(held).to_pylist())

    def _of_bytes(self, left_side: bool, data: bytes) -> list[Any]:
        held, at = [], 0
        while at < len(data):
            start = at + _LENGTH.size
            at = start + _LENGTH.unpack_from(data, at)[0]
            held.append(self._values[left_side].of_bytes(data[start:at]))
        return held

    def written(self) -> None:
        self._num_handed = 0

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._rows = {}
            self._queues = self._sorted()
            self.reload()
        else:
            self._take(changes.keys, changes.values)

    def load(self, everything: bool) -> None:
        for chunk in self.family.chunks(b"", None):
            self._take(*chunk.columns())

    def _take(self, keys: pa.Array, values: pa.Array) -> None:
        for key, data in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            timestamp, left_side = _PLACE.unpack_from(key)
            row = timestamp, left_side, self._keys.of_bytes(key[_PLACE.size :])
            if data is None:
                self._rows.pop(row, None)
                continue
            self._rows[row] = self._of_bytes(left_side, data)
            self._queues[left_side].add((timestamp, left_side, key[_PLACE.size :], row[2]))

    def dump(self) -> Changes:
        self.ready()
        return self._records(list(self._rows))

    def num_pending(self) -> int:
        return len(self._changed) + self._num_handed

    def num_live(self) -> int:
        return len(self._rows)


def _shape(row: tuple[Any, ...] | None) -> WaitingRow | None:
    return None if row is None else WaitingRow(*row[:3])
