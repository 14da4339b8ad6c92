"""Record buffers: records of a stream that wait for a join with a grace period, all of them in memory.

The key of a row is: timestamp (8 bytes, big endian), serialized key, number in the order of arrival (4 bytes). Its
value is the serialized value as a part, and the headers (see `packing`).
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.record import Headers
from kstreams.state.api import BufferedRecord, Changes, StoreBuilder
from kstreams.state.codecs import KeyCodec, PlainValueCodec
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.live_store import SAMPLED_ROWS, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.packing import packed, packed_headers, unpacked, unpacked_headers

RowPosition: TypeAlias = tuple[int, bytes, int]
"""Timestamp, serialized key, number."""

_TIME = struct.Struct(">q")
_NUMBER = struct.Struct(">I")
_LAST_NUMBER = 2**31 - 1


class LiveRecordBuffer(LiveStore):
    """Buffered records, any number per key (see `RecordBuffer`)."""

    # one slot of a dict, one of a set, and the position, which takes as much memory as two slots
    row_slots = 4
    object_bytes = 700

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = PlainValueCodec(builder.name, builder.value)
        self._buffered: dict[RowPosition, tuple[Any, Any, Headers]] = {}
        """The live key, live value and headers of each record."""
        self._queue: list[RowPosition] = []
        self._logged: set[RowPosition] = set()
        """Records that the changelog has. A record that is put and popped between two commits is not logged."""
        self._changed: dict[RowPosition, None] = {}
        self._num_unwritten = 0
        self._next_number = 0

    def put(self, key: object, value: object, timestamp: int, headers: Headers) -> None:
        """Buffer a record."""
        self.ready()
        key_to_live = self._keys.live
        to_live = self._values.live
        live_key = key if key_to_live is None else key_to_live(key)
        position = timestamp, self._keys.to_bytes(live_key), self._next_number
        self._next_number = (self._next_number + 1) & _LAST_NUMBER
        heapq.heappush(self._queue, position)
        self._buffered[position] = live_key, value if to_live is None else to_live(value), headers
        self._changed[position] = None

    def pop_until(self, time_ms: int) -> Iterator[BufferedRecord]:
        """Remove and yield the records with timestamp <= time_ms, in order. Each is removed when it is yielded."""
        self.ready()
        while self._queue and self._queue[0][0] <= time_ms:
            yield self._pop()

    def _pop(self) -> BufferedRecord:
        position = heapq.heappop(self._queue)
        key, value, headers = self._buffered.pop(position)
        if position in self._logged:
            self._logged.discard(position)
            self._changed[position] = None
        else:
            del self._changed[position]
        key_to_public = self._keys.public
        to_public = self._values.public
        return BufferedRecord(
            key if key_to_public is None else key_to_public(key),
            value if to_public is None else to_public(value),
            position[0],
            headers,
        )

    def num_records(self) -> int:
        """Return the number of buffered records."""
        self.ready()
        return len(self._buffered)

    def take_changes(self, timestamp_ms: int) -> Changes:
        positions = list(self._changed)
        self._changed.clear()
        self._num_unwritten += len(positions)
        self._logged.update(position for position in positions if position in self._buffered)
        return self._records(positions)

    def _records(self, positions: list[RowPosition]) -> Changes:
        keys = [_TIME.pack(timestamp) + key + _NUMBER.pack(number) for timestamp, key, number in positions]
        times = pa.array([position[0] for position in positions], pa.int64())
        return Changes(pa.array(keys, pa.binary()), pa.array(map(self._to_bytes, positions), pa.binary()), times)

    def _to_bytes(self, position: RowPosition) -> bytes | None:
        entry = self._buffered.get(position)
        if entry is None:
            return None
        _, value, headers = entry
        return packed(self._values.serde.serialize(value) if self._values.direct else value) + packed_headers(headers)

    def written(self) -> None:
        self._num_unwritten = 0

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._buffered = {}
            self._queue = []
            self._logged = set()
            self._next_number = 0
            self.reload()
        else:
            self._load_rows(changes.keys, changes.values)

    def load(self, everything: bool) -> Iterator[int]:
        for chunk in self.family.chunks(b"", None):
            self._load_rows(*chunk.columns())
        return iter(())

    def _load_rows(self, keys: pa.Array, values: pa.Array) -> None:
        for key, data in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            number = _NUMBER.unpack_from(key, len(key) - _NUMBER.size)[0]
            position = _TIME.unpack_from(key)[0], key[_TIME.size : -_NUMBER.size], number
            if data is None:
                self._buffered.pop(position, None)
                continue
            (value,), headers_start = unpacked(data, 0, 1)
            live_value = self._values.of_bytes(value or b"")
            headers = unpacked_headers(data, headers_start)
            self._buffered[position] = self._keys.of_bytes(position[1]), live_value, headers
            self._next_number = max(self._next_number, number + 1) & _LAST_NUMBER
        self._logged = set(self._buffered)
        self._queue = sorted(self._buffered)

    def dump(self) -> Changes:
        self.ready()
        return self._records(list(self._buffered))

    def num_pending(self) -> int:
        return len(self._changed) + self._num_unwritten

    def num_live(self) -> int:
        return len(self._buffered)

    def sample(self) -> list[tuple[object, ...]]:
        return list(islice(reversed(self._buffered.items()), SAMPLED_ROWS))
