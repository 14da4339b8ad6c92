"""Record buffers: records of a stream that are held back for a join, any number per key. Always in memory as a whole.

A row's key is: timestamp (8 bytes, big endian), serialized key, number in the order of arrival (4 bytes); its value is
the serialized value as a part, and the headers (see `packing`).
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
from kstreams.state.kinds.live_store import SAMPLE, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.packing import packed, packed_headers, unpacked, unpacked_headers

RowPosition: TypeAlias = tuple[int, bytes, int]
"""Timestamp, serialized key, number."""

_TIME = struct.Struct(">q")
_NUMBER = struct.Struct(">I")
_LAST_NUMBER = 2**31 - 1


class LiveRecordBuffer(LiveStore):
    """Records that are held back (see `RecordBuffer`)."""

    # slots of a dict and a set, and the place, which takes as much as two
    row_slots = 4
    object_bytes = 700

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = PlainValueCodec(builder.name, builder.value)
        self._waiting: dict[RowPosition, tuple[Any, Any, Headers]] = {}  # the key and the value as they live in memory
        self._queue: list[RowPosition] = []
        self._logged: set[RowPosition] = set()  # a record that comes and goes between two commits leaves no trace
        self._changed: dict[RowPosition, None] = {}
        self._num_handed = self._next_number = 0

    def put(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Hold a record back."""
        self.ready()
        live_key = self._keys.live
        live = self._values.live
        identity = key if live_key is None else live_key(key)
        place = timestamp, self._keys.to_bytes(identity), self._next_number
        self._next_number = (self._next_number + 1) & _LAST_NUMBER
        heapq.heappush(self._queue, place)
        self._waiting[place] = identity, value if live is None else live(value), headers
        self._changed[place] = None

    def pop_until(self, time_ms: int) -> Iterator[BufferedRecord]:
        """Remove and give, in order, what has timestamp <= time_ms; nothing leaves that is not taken."""
        self.ready()
        while self._queue and self._queue[0][0] <= time_ms:
            yield self._pop()

    def _pop(self) -> BufferedRecord:
        place = heapq.heappop(self._queue)
        key, value, headers = self._waiting.pop(place)
        if place in self._logged:
            self._logged.discard(place)
            self._changed[place] = None
        else:
            del self._changed[place]
        key_of = self._keys.public
        value_of = self._values.public
        return BufferedRecord(
            key if key_of is None else key_of(key), value if value_of is None else value_of(value), place[0], headers
        )

    def num_records(self) -> int:
        """How many records are held."""
        self.ready()
        return len(self._waiting)

    def take_changes(self, timestamp_ms: int) -> Changes:
        places = list(self._changed)
        self._changed.clear()
        self._num_handed += len(places)
        self._logged.update(place for place in places if place in self._waiting)
        return self._records(places)

    def _records(self, places: list[RowPosition]) -> Changes:
        keys = [_TIME.pack(timestamp) + key + _NUMBER.pack(number) for timestamp, key, number in places]
        times = pa.array([place[0] for place in places], pa.int64())
        return Changes(pa.array(keys, pa.binary()), pa.array(map(self._to_bytes, places), pa.binary()), times)

    def _to_bytes(self, place: RowPosition) -> bytes | None:
        entry = self._waiting.get(place)
        if entry is None:
            return None
        _, value, headers = entry
        return packed(self._values.serde.serialize(value) if self._values.direct else value) + packed_headers(headers)

    def written(self) -> None:
        self._num_handed = 0

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._waiting = {}
            self._queue = []
            self._logged = set()
            self._next_number = 0
            self.reload()
        else:
            self._take(changes.keys, changes.values)

    def load(self, everything: bool) -> Iterator[int]:
        for chunk in self.family.chunks(b"", None):
            self._take(*chunk.columns())
        return iter(())

    def _take(self, keys: pa.Array, values: pa.Array) -> None:
        for key, data in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            number = _NUMBER.unpack_from(key, len(key) - _NUMBER.size)[0]
            place = _TIME.unpack_from(key)[0], key[_TIME.size : -_NUMBER.size], number
            if data is None:
                self._waiting.pop(place, None)
                continue
            (value,), at = unpacked(data, 0, 1)
            live = self._values.of_bytes(value or b"")
            self._waiting[place] = self._keys.of_bytes(place[1]), live, unpacked_headers(data, at)
            self._next_number = max(self._next_number, number + 1) & _LAST_NUMBER
        self._logged = set(self._waiting)
        self._queue = sorted(self._waiting)

    def dump(self) -> Changes:
        self.ready()
        return self._records(list(self._waiting))

    def num_pending(self) -> int:
        return len(self._changed) + self._num_handed

    def num_live(self) -> int:
        return len(self._waiting)

    def sample(self) -> list[tuple[Any, ...]]:
        return list(islice(reversed(self._waiting.items()), SAMPLE))
