"""Time-ordered buffers: updates of a table that wait (suppress). Always in memory as a whole; the log has their bytes.

A row's key is the serialized key; its value is, in this order and big endian: time at which it waits (8 bytes),
timestamp of the update (8), new value and old value as parts, and the headers (see `packing`).
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kstreams.state.api import BufferedChange, Changes, StoreBuilder
from kstreams.state.codecs import Keys, PlainValues
from kstreams.state.family import Family
from kstreams.state.live_budget import LiveBudget
from kstreams.state.live_store import LiveStore
from kstreams.state.packing import packed, packed_headers, unpacked, unpacked_headers

_TIMES = struct.Struct(">qq")
_FIXED_BYTES = 28  # what Kafka Streams counts for a record's context: offset, timestamp, partition, and a length


class LiveTimeOrderedBuffer(LiveStore):
    """Updates that wait, one per key (see `TimeOrderedBuffer`)."""

    def __init__(self, builder: StoreBuilder, family: Family, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys, self._values = Keys(builder.name, builder.key), PlainValues(builder.name, builder.value)
        self._waiting: dict[Any, tuple[int, BufferedChange]] = {}
        self._queue: list[tuple[int, bytes, Any]] = []  # heap of (time, serialized key, key): one entry per waiting key
        self._changed: dict[Any, None] = {}
        self._num_handed = 0
        self._sizes: dict[Any, int] | None = None  # made when somebody asks for bytes
        self._num_bytes = 0

    def get(self, key: Any) -> BufferedChange | None:
        """What waits for a key."""
        self.ready()
        found = self._waiting.get(self._key(key))
        return None if found is None else found[1]

    def put(self, key: Any, change: BufferedChange, time_ms: int) -> None:
        """Keep `change`; a key that waits already keeps its place (its first time)."""
        self.ready()
        live = self._key(key)
        found = self._waiting.get(live)
        if found is None:
            heapq.heappush(self._queue, (time_ms, self._keys.to_bytes(live), live))
        self._waiting[live] = (time_ms if found is None else found[0], change)
        self._changed[live] = None
        if self._sizes is not None:
            self._weigh(live, change)

    def pop_until(self, time_ms: int) -> Iterator[tuple[Any, BufferedChange]]:
        """Remove and give, in order, what has time <= time_ms; nothing leaves that is not taken from the iterator."""
        self.ready()
        while self._queue and self._queue[0][0] <= time_ms:
            yield self._pop()

    def pop_first(self) -> tuple[Any, BufferedChange] | None:
        """Remove and give what waits longest."""
        self.ready()
        return self._pop() if self._queue else None

    def first_time(self) -> int | None:
        """The time of what would leave first."""
        self.ready()
        return self._queue[0][0] if self._queue else None

    def _pop(self) -> tuple[Any, BufferedChange]:
        live = heapq.heappop(self._queue)[2]
        change = self._waiting.pop(live)[1]
        self._changed[live] = None
        if self._sizes is not None:
            self._num_bytes -= self._sizes.pop(live)
        public = self._keys.public
        return (live if public is None else public(live)), change

    def num_records(self) -> int:
        """How many updates wait."""
        self.ready()
        return len(self._waiting)

    def num_bytes(self) -> int:
        """What the waiting updates take, serialized."""
        self.ready()
        if self._sizes is None:
            self._sizes = {}
            for live, (_, change) in self._waiting.items():
                self._weigh(live, change)
        return self._num_bytes

    def _weigh(self, live: Any, change: BufferedChange) -> None:
        assert self._sizes is not None
        size = len(self._keys.to_bytes(live)) + len(self._to_bytes(0, change)) + _FIXED_BYTES
        self._num_bytes += size - self._sizes.get(live, 0)
        self._sizes[live] = size

    def _key(self, key: Any) -> Any:
        live = self._keys.live
        return key if live is None else live(key)

    def _to_bytes(self, time_ms: int, change: BufferedChange) -> bytes:
        write = self._values.serde.serialize
        parts = [packed(None if value is None else write(value)) for value in (change.new, change.old)]
        return b"".join((_TIMES.pack(time_ms, change.timestamp), *parts, packed_headers(change.headers)))

    def _of_bytes(self, data: bytes) -> tuple[int, BufferedChange]:
        time_ms, timestamp = _TIMES.unpack_from(data)
        (new, old), at = unpacked(data, _TIMES.size, 2)
        read = self._values.serde.deserialize
        new_value, old_value = (None if part is None else read(part) for part in (new, old))
        return time_ms, BufferedChange(new_value, old_value, timestamp, unpacked_headers(data, at))

    def take_changes(self, timestamp_ms: int) -> Changes:
        keys = list(self._changed)
        self._changed.clear()
        self._num_handed += len(keys)
        return self._records(keys, timestamp_ms)

    def _records(self, keys: list[Any], timestamp_ms: int) -> Changes:
        found = [self._waiting.get(key) for key in keys]
        values = [None if waiting is None else self._to_bytes(*waiting) for waiting in found]
        times = [timestamp_ms if waiting is None else waiting[1].timestamp for waiting in found]
        return Changes(self._keys.encode(keys), pa.array(values, pa.binary()), pa.array(times, pa.int64()))

    def written(self) -> None:
        self._num_handed = 0

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._waiting, self._queue, self._sizes, self._num_bytes = {}, [], None, 0
            self.reload()
        else:
            self._take(changes.keys, changes.values)

    def load(self, everything: bool) -> None:
        for chunk in self.family.chunks(b"", None):
            self._take(*chunk.columns())

    def _take(self, keys: pa.Array, values: pa.Array) -> None:
        for live, data in zip(self._keys.decode(keys), values.to_pylist(), strict=True):
            if data is None:
                self._waiting.pop(live, None)
            else:
                self._waiting[live] = self._of_bytes(data)
        self._queue = [(time, self._keys.to_bytes(live), live) for live, (time, _) in self._waiting.items()]
        heapq.heapify(self._queue)
        self._sizes, self._num_bytes = None, 0

    def dump(self) -> Changes:
        self.ready()
        return self._records(list(self._waiting), 0)

    def num_pending(self) -> int:
        return len(self._changed) + self._num_handed

    def num_live(self) -> int:
        return len(self._waiting)
