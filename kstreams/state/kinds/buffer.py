"""Time-ordered buffers: the updates of a table that `suppress` holds back, in memory or only on disk.

The key of a row is the serialized key. Its value is, in this order and big endian: the time that decides when the
update leaves (8 bytes), the timestamp of the update (8), new value and old value as parts, and the headers (see
`packing`).
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
from kstreams.state.kinds.live_store import SAMPLED_ROWS, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.packing import packed, packed_headers, unpacked, unpacked_headers
from kstreams.state.rows.persisted_queue import PersistedOrder, PersistedQueue, PersistedRow

_TIMES = struct.Struct(">qq")
_CONTEXT_BYTES = 28
"""Bytes that Kafka Streams counts for the context of a record: offset, timestamp, partition, and a length."""


class LiveTimeOrderedBuffer(LiveStore):
    """The buffered updates of a table, one per key (see `TimeOrderedBuffer`).

    Parameters
    ----------
    order : ColumnFamily
        Stores the order of the rows that are only on disk (see `PersistedQueue`).
    """

    # one slot of a dict, and an entry of the queue, which takes as much memory as two slots
    row_slots = 3
    object_bytes = 600

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget, order: ColumnFamily) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = PlainValueCodec(builder.name, builder.value)
        self._buffered: dict[Any, tuple[int, BufferedChange]] = {}
        self._queue: list[tuple[int, bytes, Any]] = []
        """A heap of (time, serialized key, live key), with one entry per key in memory."""
        self._changed: dict[object, None] = {}
        self._unwritten: dict[object, None] = {}
        """Keys whose changes `take_changes` returned and `write` has not persisted yet."""
        self._order = PersistedOrder(family, order)
        self._persisted = PersistedQueue(self._order.read, self._is_known)
        self._sizes: dict[object, int] | None = None
        """Bytes of each update in memory. None until the first call of `num_bytes`."""
        self._num_bytes = 0

    def _is_known(self, key: bytes) -> bool:
        """Return whether memory has a later state of a key than the persisted row."""
        live_key = self._keys.of_bytes(key)
        return live_key in self._buffered or live_key in self._changed or live_key in self._unwritten

    def get(self, key: object) -> BufferedChange | None:
        """Return the buffered update of a key, or None."""
        self.ready()
        live_key = self._live_key(key)
        change = self._buffered.get(live_key)
        if change is None and self._persisted.count:
            data = self._read_from_disk(self._keys.to_bytes(live_key))
            change = None if data is None else self._of_bytes(data)
        return None if change is None else change[1]

    def _read_from_disk(self, key: bytes) -> bytes | None:
        """Return the row of a key whose update is only on disk, or None."""
        data = self.family.get(key)
        return data if data is not None and self._persisted.holds(data[: _TIMES.size // 2] + key, key) else None

    def put(self, key: object, change: BufferedChange, time_ms: int) -> None:
        """Buffer an update. If the key has one already, the new update replaces it and leaves at its time."""
        self.ready()
        live_key = self._live_key(key)
        replaced = self._buffered.get(live_key)
        if replaced is None and self._persisted.count:
            replaced = self._take_from_disk(live_key)
        if replaced is None:
            heapq.heappush(self._queue, (time_ms, self._keys.to_bytes(live_key), live_key))
        self._buffered[live_key] = (time_ms if replaced is None else replaced[0], change)
        self._changed[live_key] = None
        if self._sizes is not None:
            self._note_size(self._sizes, live_key, change)

    def _take_from_disk(self, live_key: object) -> tuple[int, BufferedChange] | None:
        """Return the update of a key that is only on disk, and queue it in memory."""
        key = self._keys.to_bytes(live_key)
        data = self._read_from_disk(key)
        if data is None:
            return None
        self._persisted.count -= 1
        change = self._of_bytes(data)
        heapq.heappush(self._queue, (change[0], key, live_key))
        if self._sizes is not None:
            self._sizes[live_key] = _size(key, data)
        return change

    def pop_until(self, time_ms: int) -> Iterator[tuple[Any, BufferedChange]]:
        """Remove and yield the updates with time <= time_ms, in order. Each is removed when it is yielded."""
        while (first_ms := self.first_time()) is not None and first_ms <= time_ms:
            yield self._pop()

    def pop_first(self) -> tuple[Any, BufferedChange] | None:
        """Remove and return the first update."""
        return None if self.first_time() is None else self._pop()

    def first_time(self) -> int | None:
        """Return the time of the update that leaves next, or None."""
        self.ready()
        queue = self._queue
        if self._persisted.count and (first := self._persisted.first()) is not None and self._precedes_queue(first):
            return first.time_ms
        return queue[0][0] if queue else None

    def _precedes_queue(self, persisted_row: PersistedRow) -> bool:
        """Return whether a row that is only on disk leaves before all updates in memory."""
        return not self._queue or (persisted_row.time_ms, persisted_row.key) < self._queue[0][:2]

    def _pop(self) -> tuple[Any, BufferedChange]:
        public = self._keys.public
        if self._persisted.count and (first := self._persisted.first()) is not None and self._precedes_queue(first):
            self._persisted.pop()
            live_key = self._keys.of_bytes(first.key)
            change = self._of_bytes(first.value)[1]
            self._num_bytes -= 0 if self._sizes is None else _size(first.key, first.value)
        else:
            live_key = heapq.heappop(self._queue)[2]
            change = self._buffered.pop(live_key)[1]
            self._changed[live_key] = None
            self._num_bytes -= 0 if self._sizes is None else self._sizes.pop(live_key)
        return (live_key if public is None else public(live_key)), change

    def num_records(self) -> int:
        """Return the number of buffered updates."""
        self.ready()
        return len(self._buffered) + self._persisted.count

    def num_bytes(self) -> int:
        """Return the size of the buffered updates as bytes on disk, as Kafka Streams counts them."""
        self.ready()
        if self._sizes is None:
            sizes = self._sizes = dict[object, int]()
            self._num_bytes = sum(_size(row.key, row.value) for row in self._persisted.rows())
            for live_key, (_, change) in self._buffered.items():
                self._note_size(sizes, live_key, change)
        return self._num_bytes

    def _note_size(self, sizes: dict[object, int], live_key: object, change: BufferedChange) -> None:
        size = _size(self._keys.to_bytes(live_key), self._to_bytes(0, change))
        self._num_bytes += size - sizes.get(live_key, 0)
        sizes[live_key] = size

    def _live_key(self, key: object) -> Any:
        to_live = self._keys.live
        return key if to_live is None else to_live(key)

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
        self._unwritten |= changed
        return self._records(list(changed), timestamp_ms)

    def take_popped(self, timestamp_ms: int) -> Iterator[Changes]:
        for keys in self._persisted.take_popped():
            times = pa.repeat(pa.scalar(timestamp_ms, pa.int64()), len(keys))
            yield Changes(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary()), times)

    def _records(self, keys: list[Any], timestamp_ms: int) -> Changes:
        changes = [self._buffered.get(key) for key in keys]
        values = [None if change is None else self._to_bytes(*change) for change in changes]
        times = [timestamp_ms if change is None else change[1].timestamp for change in changes]
        return Changes(self._keys.encode(keys), pa.array(values, pa.binary()), pa.array(times, pa.int64()))

    def write(self, changes: Changes | None, offset: int | None) -> None:
        for keys in self._persisted.written():
            self.family.write(
                ByteRows(pa.array(keys, pa.binary()), pa.nulls(len(keys), pa.binary())), None, self._changes_observed_ms
            )
        if not self._persisted.num_popped():
            self._order.drop_until(self._persisted.front)
        super().write(changes, offset)

    def written(self) -> None:
        self._unwritten = {}

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._buffered = {}
            self._queue = []
            self._sizes = None
            self._num_bytes = 0
            self.reload()
        else:
            self._load_rows(changes.keys, changes.values)
            self._rebuild_queue()

    def load(self, everything: bool) -> Iterator[int]:
        self._persisted.clear()
        self._order.clear()
        for chunk in self.family.chunks(b"", None):
            if everything:
                self._load_rows(*chunk.columns())
            else:
                self._spill([(_TIMES.unpack_from(value)[0], key) for key, value in chunk.rows()])
        self._rebuild_queue()
        return iter(())

    def _load_rows(self, keys: pa.Array, values: pa.Array) -> None:
        for live_key, data in zip(self._keys.decode(keys), values.to_pylist(), strict=True):
            if data is None:
                self._buffered.pop(live_key, None)
            else:
                self._buffered[live_key] = self._of_bytes(data)

    def _rebuild_queue(self) -> None:
        """Queue all updates in memory again."""
        times = ((live_key, time_ms) for live_key, (time_ms, _) in self._buffered.items())
        self._queue = [(time_ms, self._keys.to_bytes(live_key), live_key) for live_key, time_ms in times]
        heapq.heapify(self._queue)
        self._sizes = None
        self._num_bytes = 0

    def dump(self) -> Changes:
        self.ready()
        in_memory = self._records(list(self._buffered), 0)
        on_disk = list(self._persisted.rows())
        keys = [row.key for row in on_disk]
        values = [row.value for row in on_disk]
        times = [_TIMES.unpack_from(value)[1] for value in values]
        columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64())
        return Changes(*(pa.concat_arrays(pair) for pair in zip(in_memory, columns, strict=True)))

    def num_pending(self) -> int:
        return len(self._changed) + len(self._unwritten) + self._persisted.num_popped()

    def num_live(self) -> int:
        return len(self._buffered)

    def sample(self) -> list[tuple[object, ...]]:
        return list(islice(reversed(self._buffered.items()), SAMPLED_ROWS))

    def evict(self, count: int) -> int:
        """Evict persisted updates from memory."""
        if self._persisted.num_popped():
            return 0  # an evicted update could be ordered before rows that were popped from disk and not deleted yet
        pending = self._changed.keys() | self._unwritten.keys()
        evictable = (live_key for live_key in self._buffered if live_key not in pending)
        evicted = [(self._buffered[live_key][0], live_key) for live_key in islice(evictable, count)]
        self._spill([(time_ms, self._keys.to_bytes(live_key)) for time_ms, live_key in evicted])
        for _, live_key in evicted:
            del self._buffered[live_key]
            if self._sizes is not None:
                del self._sizes[live_key]
        self._queue = [row for row in self._queue if row[2] in self._buffered]
        heapq.heapify(self._queue)
        return len(evicted)

    def _spill(self, rows: list[tuple[int, bytes]]) -> None:
        """Note the times and keys of rows that are only on disk from now on."""
        if rows:
            self._persisted.add(self._order.add(rows))


def _size(key: bytes, data: bytes) -> int:
    return len(key) + len(data) + _CONTEXT_BYTES
