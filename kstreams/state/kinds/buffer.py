"""Time-ordered buffers: updates of a table that are held back (suppress), in memory or on disk alone.

A row's key is the serialized key; its value is, in this order and big endian: time at which it waits (8 bytes),
timestamp of the update (8), new value and old value as parts, and the headers (see `packing`).
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from kstreams.state.api import BufferedChange, Changes, StoreBuilder
from kstreams.state.codecs import KeyCodec, PlainValueCodec
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLE, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.packing import packed, packed_headers, unpacked, unpacked_headers
from kstreams.state.rows.persisted_queue import PersistedOrder, PersistedQueue, PersistedRow

_TIMES = struct.Struct(">qq")
_FIXED_BYTES = 28  # what Kafka Streams counts for a record's context: offset, timestamp, partition, and a length


class LiveTimeOrderedBuffer(LiveStore):
    """Updates that are held back, one per key (see `TimeOrderedBuffer`).

    Parameters
    ----------
    order : ColumnFamily
        For the order of the rows that are held on disk alone (see `PersistedQueue`).
    """

    # a dict's slot, and the place in the queue, which takes as much as two
    row_slots = 3
    object_bytes = 600

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget, order: ColumnFamily) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = PlainValueCodec(builder.name, builder.value)
        self._waiting: dict[Any, tuple[int, BufferedChange]] = {}
        self._queue: list[tuple[int, bytes, Any]] = []  # heap of (time, serialized key, key): one entry per waiting key
        self._changed: dict[Any, None] = {}
        self._handed: dict[Any, None] = {}  # handed out as changes, not persisted yet
        self._places = PersistedOrder(family, order)
        self._persisted = PersistedQueue(self._places.read, self._is_known)
        self._sizes: dict[Any, int] | None = None  # of what is in memory; made when somebody asks for bytes
        self._num_bytes = 0

    def _is_known(self, key: bytes) -> bool:
        """Whether memory, not the persisted bytes, has the latest of a key."""
        live = self._keys.of_bytes(key)
        return live in self._waiting or live in self._changed or live in self._handed

    def get(self, key: Any) -> BufferedChange | None:
        """The update that is held for a key."""
        self.ready()
        live = self._key(key)
        change = self._waiting.get(live)
        if change is None and self._persisted.count:
            data = self._below(self._keys.to_bytes(live))
            change = None if data is None else self._of_bytes(data)
        return None if change is None else change[1]

    def _below(self, key: bytes) -> bytes | None:
        """The update of a key that is held on disk alone."""
        data = self.family.get(key)
        return data if data is not None and self._persisted.holds(data[: _TIMES.size // 2] + key, key) else None

    def put(self, key: Any, change: BufferedChange, time_ms: int) -> None:
        """Keep `change`; a key that is held already keeps its place (its first time)."""
        self.ready()
        live = self._key(key)
        buffered_change = self._waiting.get(live)
        if buffered_change is None and self._persisted.count:
            buffered_change = self._taken_back(live)
        if buffered_change is None:
            heapq.heappush(self._queue, (time_ms, self._keys.to_bytes(live), live))
        self._waiting[live] = (time_ms if buffered_change is None else buffered_change[0], change)
        self._changed[live] = None
        if self._sizes is not None:
            self._weigh(self._sizes, live, change)

    def _taken_back(self, live: object) -> tuple[int, BufferedChange] | None:
        """The update of a key that is held on disk alone; it is held in memory from now on."""
        key = self._keys.to_bytes(live)
        data = self._below(key)
        if data is None:
            return None
        self._persisted.count -= 1
        change = self._of_bytes(data)
        heapq.heappush(self._queue, (change[0], key, live))
        if self._sizes is not None:
            self._sizes[live] = _size(key, data)
        return change

    def pop_until(self, time_ms: int) -> Iterator[tuple[Any, BufferedChange]]:
        """Remove and give, in order, what has time <= time_ms; nothing leaves that is not taken from the iterator."""
        while (first_ms := self.first_time()) is not None and first_ms <= time_ms:
            yield self._pop()

    def pop_first(self) -> tuple[Any, BufferedChange] | None:
        """Remove and return the first update."""
        return None if self.first_time() is None else self._pop()

    def first_time(self) -> int | None:
        """The time of what would leave first."""
        self.ready()
        queue = self._queue
        if self._persisted.count and (first := self._persisted.first()) is not None and self._is_first(first):
            return first.time_ms
        return queue[0][0] if queue else None

    def _is_first(self, spilled: PersistedRow) -> bool:
        return not self._queue or (spilled.time_ms, spilled.key) < self._queue[0][:2]

    def _pop(self) -> tuple[Any, BufferedChange]:
        public = self._keys.public
        if self._persisted.count and (first := self._persisted.first()) is not None and self._is_first(first):
            self._persisted.pop()
            live = self._keys.of_bytes(first.key)
            change = self._of_bytes(first.value)[1]
            self._num_bytes -= 0 if self._sizes is None else _size(first.key, first.value)
        else:
            live = heapq.heappop(self._queue)[2]
            change = self._waiting.pop(live)[1]
            self._changed[live] = None
            self._num_bytes -= 0 if self._sizes is None else self._sizes.pop(live)
        return (live if public is None else public(live)), change

    def num_records(self) -> int:
        """How many updates are held."""
        self.ready()
        return len(self._waiting) + self._persisted.count

    def num_bytes(self) -> int:
        """How many bytes the updates take, serialized."""
        self.ready()
        if self._sizes is None:
            sizes = self._sizes = dict[Any, int]()
            self._num_bytes = sum(_size(row.key, row.value) for row in self._persisted.rows())
            for live, (_, change) in self._waiting.items():
                self._weigh(sizes, live, change)
        return self._num_bytes

    def _weigh(self, sizes: dict[Any, int], live: object, change: BufferedChange) -> None:
        size = _size(self._keys.to_bytes(live), self._to_bytes(0, change))
        self._num_bytes += size - sizes.get(live, 0)
        sizes[live] = size

    def _key(self, key: object) -> Any:
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
        changed, self._changed = self._changed, {}
        self._handed |= changed
        return self._records(list(changed), timestamp_ms)

    def take_popped(self, timestamp_ms: int) -> Iterator[Changes]:
        for keys in self._persisted.take_popped():
            times = pa.repeat(pa.scalar(timestamp_ms, pa.int64()), len(keys))
            yield Changes(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary()), times)

    def _records(self, keys: list[Any], timestamp_ms: int) -> Changes:
        changes = [self._waiting.get(key) for key in keys]
        values = [None if change is None else self._to_bytes(*change) for change in changes]
        times = [timestamp_ms if change is None else change[1].timestamp for change in changes]
        return Changes(self._keys.encode(keys), pa.array(values, pa.binary()), pa.array(times, pa.int64()))

    def write(self, changes: Changes | None, offset: int | None) -> None:
        for keys in self._persisted.written():
            self.family.write(
                ByteRows(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary())), None, self._handed_ms
            )
        if not self._persisted.num_popped():
            self._places.drop_until(self._persisted.front)
        super().write(changes, offset)

    def written(self) -> None:
        self._handed = {}

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._waiting = {}
            self._queue = []
            self._sizes = None
            self._num_bytes = 0
            self.reload()
        else:
            self._take(changes.keys, changes.values)
            self._line_up()

    def load(self, everything: bool) -> Iterator[int]:
        self._persisted.clear()
        self._places.clear()
        for chunk in self.family.chunks(b"", None):
            if everything:
                self._take(*chunk.columns())
            else:
                self._spill([(_TIMES.unpack_from(value)[0], key) for key, value in chunk.rows()])
        self._line_up()
        return iter(())

    def _take(self, keys: pa.Array, values: pa.Array) -> None:
        for live, data in zip(self._keys.decode(keys), values.to_pylist(), strict=True):
            if data is None:
                self._waiting.pop(live, None)
            else:
                self._waiting[live] = self._of_bytes(data)

    def _line_up(self) -> None:
        """Make the queue of what is in memory."""
        self._queue = [(time, self._keys.to_bytes(live), live) for live, (time, _) in self._waiting.items()]
        heapq.heapify(self._queue)
        self._sizes = None
        self._num_bytes = 0

    def dump(self) -> Changes:
        self.ready()
        here = self._records(list(self._waiting), 0)
        below = list(self._persisted.rows())
        keys = [row.key for row in below]
        values = [row.value for row in below]
        times = [_TIMES.unpack_from(value)[1] for value in values]
        columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64())
        return Changes(*(pa.concat_arrays(pair) for pair in zip(here, columns, strict=True)))

    def num_pending(self) -> int:
        return len(self._changed) + len(self._handed) + self._persisted.num_popped()

    def num_live(self) -> int:
        return len(self._waiting)

    def sample(self) -> list[tuple[Any, ...]]:
        return list(islice(reversed(self._waiting.items()), SAMPLE))

    def evict(self, count: int) -> int:
        """Evict persisted updates from memory."""
        if self._persisted.num_popped():
            return 0  # what comes now could stand before what has left
        clean = (live for live in self._waiting if live not in self._changed and live not in self._handed)
        gone = [(self._waiting[live][0], live) for live in islice(clean, count)]
        self._spill([(time_ms, self._keys.to_bytes(live)) for time_ms, live in gone])
        for _, live in gone:
            del self._waiting[live]
            if self._sizes is not None:
                del self._sizes[live]
        self._queue = [row for row in self._queue if row[2] in self._waiting]
        heapq.heapify(self._queue)
        return len(gone)

    def _spill(self, rows: list[tuple[int, bytes]]) -> None:
        """Note rows that are held on disk alone: their times and keys."""
        if rows:
            self._persisted.add(self._places.add(rows))


def _size(key: bytes, data: bytes) -> int:
    return len(key) + len(data) + _FIXED_BYTES
