"""`KeyQueues`: waiting records in a queue per key. The first record of a queue has a time, the others wait behind it.

A row's key is the queue and a number of 8 bytes. Memory holds the bounds of each queue, the store its records.
"""

from __future__ import annotations

import heapq
import struct
from dataclasses import dataclass

import msgspec

from kstreams.processor.api.punctuation import NEVER
from kstreams.processor.context.operator_context import Waits
from kstreams.state.kinds.waiting_records import WaitingRecord, WaitingRecordStore

_NUMBER = struct.Struct(">Q")
_KEYED = b"k"
_KEYLESS = b"n"


@dataclass(slots=True)
class _Queue:
    """The numbers of the first record and after the last one, and the time since which the first one waits."""

    first: int
    end: int
    since_ms: int


class KeyQueues:
    """The queues of one operator in one task. A record without a key is alone in its queue.

    Parameters
    ----------
    store : WaitingRecordStore
        May have records of an earlier run.
    """

    def __init__(self, store: WaitingRecordStore) -> None:
        self._store = store
        self._queues: dict[bytes, _Queue] = {}
        self._due: list[tuple[int, int, bytes]] = []
        """The time of the first record of each queue whose record is not being called, in order."""
        self._num_pushed = 0
        self._next_keyless = 0
        self.count = 0
        """The number of waiting records."""
        self._load()

    def _load(self) -> None:
        for row, record in self._store.records():
            queue = row[: -_NUMBER.size]
            number = _NUMBER.unpack(row[-_NUMBER.size :])[0]
            self.count += 1
            if queue.startswith(_KEYLESS):
                self._next_keyless = max(self._next_keyless, _NUMBER.unpack(queue[1:])[0] + 1)
            bounds = self._queues.setdefault(queue, _Queue(number, number + 1, record.since_ms))
            if number < bounds.first:
                bounds.first = number
                bounds.since_ms = record.since_ms
            bounds.end = max(bounds.end, number + 1)
        for queue in self._queues:
            self._push(queue, self.first(queue).due_ms)

    def holds(self, key: object) -> bool:
        """Return whether records of a key wait."""
        data = self._store.key_bytes(key)
        return data is not None and _KEYED + data in self._queues

    def add(self, record: WaitingRecord) -> None:
        """Add a record at the end of the queue of its key; the first record of a queue is due at its `due_ms`."""
        queue = self._queue_of(record)
        bounds = self._queues.get(queue)
        if bounds is None:
            bounds = self._queues[queue] = _Queue(0, 0, record.since_ms)
            self._push(queue, record.due_ms)
        self._store.put_record(queue + _NUMBER.pack(bounds.end), record)
        bounds.end += 1
        self.count += 1

    def next_due_ms(self) -> int:
        """Return the earliest time of a first record; `NEVER` if no record waits."""
        return self._due[0][0] if self._due else NEVER

    def take_due(self, now_ms: int, most: int) -> list[bytes]:
        """Return up to `most` queues whose first record is due. Each needs `put_off` or `remove_first` afterwards."""
        queues: list[bytes] = []
        while len(queues) < most and self.next_due_ms() <= now_ms:
            queues.append(heapq.heappop(self._due)[2])
        return queues

    def first(self, queue: bytes) -> WaitingRecord:
        """Return the first record of a queue."""
        return self._store.record(self._first_row(queue))

    def put_off(self, queue: bytes, record: WaitingRecord) -> None:
        """Replace the first record of a queue by itself with a later time."""
        self._store.put_record(self._first_row(queue), record)
        self._push(queue, record.due_ms)

    def remove_first(self, queue: bytes, now_ms: int) -> None:
        """Remove the first record of a queue. The next one is due now."""
        bounds = self._queues[queue]
        self._store.remove(self._first_row(queue))
        self.count -= 1
        bounds.first += 1
        if bounds.first == bounds.end:
            del self._queues[queue]
            return
        bounds.since_ms = self.first(queue).since_ms
        self._push(queue, now_ms)

    def waits(self) -> Waits:
        """Return the number of records and the oldest wait. Any thread may call it."""
        since = [queue.since_ms for queue in list(self._queues.values())]
        return Waits(self.count, min(since, default=0))

    def _queue_of(self, record: WaitingRecord) -> bytes:
        if record.key is not None:
            return _KEYED + record.key
        self._next_keyless += 1
        return _KEYLESS + _NUMBER.pack(self._next_keyless - 1)

    def _first_row(self, queue: bytes) -> bytes:
        return queue + _NUMBER.pack(self._queues[queue].first)

    def _push(self, queue: bytes, due_ms: int) -> None:
        self._num_pushed += 1
        heapq.heappush(self._due, (due_ms, self._num_pushed, queue))


def failed_again(record: WaitingRecord, now_ms: int, delay_ms: int) -> WaitingRecord:
    """Return a record after another failed call, with its next time."""
    first_ms = record.failed_ms if record.failures else now_ms
    return msgspec.structs.replace(record, failures=record.failures + 1, failed_ms=first_ms, due_ms=now_ms + delay_ms)
