"""`DueRecords`: waiting records in the order of their times. A row's key is the time and a number, 8 bytes each."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice

from kstreams.processor.api.punctuation import NEVER
from kstreams.processor.context.operator_context import Waits
from kstreams.state.kinds.waiting_records import WaitingRecord, WaitingRecordStore

_PLACE = struct.Struct(">QQ")
_ROWS_PER_READ = 1_000
_LAST_NUMBER = 2**64 - 1


class DueRecords:
    """The waiting records of one operator in one task.

    Parameters
    ----------
    store : WaitingRecordStore
        May have records of an earlier run.
    """

    def __init__(self, store: WaitingRecordStore) -> None:
        self._store = store
        self.count = 0
        """The number of waiting records."""
        self.next_due_ms = NEVER
        """The earliest time; `NEVER` if no record waits."""
        self._first_since_ms = 0
        self._next_number = 0
        for row, record in store.records():
            if not self.count:
                self._begins_with(record)
            self._next_number = max(self._next_number, _PLACE.unpack(row)[1] + 1)
            self.count += 1

    def add(self, record: WaitingRecord) -> None:
        """Add a record, after those with the same time."""
        self._store.put_record(_PLACE.pack(record.due_ms, self._next_number), record)
        self._next_number += 1
        self.count += 1
        if record.due_ms < self.next_due_ms:
            self._begins_with(record)

    def take_until(self, now_ms: int) -> Iterator[WaitingRecord]:
        """Remove and yield the records that are due, in order. Each is removed before it is yielded."""
        last = _PLACE.pack(now_ms, _LAST_NUMBER)
        while self.next_due_ms <= now_ms:
            # Deleted rows before the first one are not read again.
            first = _PLACE.pack(self.next_due_ms, 0)
            for row, record in list(islice(self._store.records(first, last), _ROWS_PER_READ)):
                self._store.remove(row)
                self.count -= 1
                yield record
            self._find_first(first)

    def waits(self) -> Waits:
        """Return the number of records, and since when the record that is due next waits. Any thread may call it."""
        return Waits(self.count, self._first_since_ms)

    def _find_first(self, low: bytes) -> None:
        first = next(self._store.records(low), None)
        if first is None:
            self.next_due_ms = NEVER
        else:
            self._begins_with(first[1])

    def _begins_with(self, record: WaitingRecord) -> None:
        self.next_due_ms = record.due_ms
        self._first_since_ms = record.since_ms
