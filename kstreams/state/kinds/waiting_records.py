"""Waiting records: records of a stream that wait for a time or for another attempt, one row each, in bytes.

An operator chooses the keys of the rows, whose order is the order of their bytes. A row holds a `WaitingRecord` in
MessagePack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from kstreams.kernel.decoders import msgpack_decoder
from kstreams.serdes import serde_of
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.key_value import LiveKeyValueStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.store_builder import StoreBuilder


class WaitingRecord(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A record that waits, with its place in the input.

    Parameters
    ----------
    key, value : bytes or None
        Serialized by the serdes of the store.
    timestamp : int
        Event time in milliseconds.
    headers : tuple of (str, bytes or None)
    topic : str or None
        The topic of the input record; None if there was no input record, as in a punctuator.
    partition, offset : int
    since_ms : int
        The wall-clock time at which the wait began.
    due_ms : int
        The wall-clock time at which it ends.
    failures : int
        The number of calls that have failed.
    failed_ms : int
        The wall-clock time of the first failure; 0 without one.
    """

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]
    topic: str | None
    partition: int
    offset: int
    since_ms: int
    due_ms: int
    failures: int = 0
    failed_ms: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_decoder(WaitingRecord).decode
_BYTES = serde_of(bytes)


class WaitingRecordStore(LiveKeyValueStore):
    """The rows of the waiting records of one operator."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(replace(builder, key=_BYTES, value=_BYTES), family, budget)
        self._record_key = builder.key or _BYTES
        self._record_value = builder.value or _BYTES

    # the records in a row

    def key_bytes(self, key: object) -> bytes | None:
        """Return the serialized key of a record."""
        return None if key is None else self._record_key.serialize(key)

    def value_bytes(self, value: object) -> bytes | None:
        """Return the serialized value of a record."""
        return None if value is None else self._record_value.serialize(value)

    def key_of(self, record: WaitingRecord) -> object:
        """Return the key of a record."""
        return None if record.key is None else self._record_key.deserialize(record.key)

    def value_of(self, record: WaitingRecord) -> object:
        """Return the value of a record."""
        return None if record.value is None else self._record_value.deserialize(record.value)

    # rows

    def put_record(self, row: bytes, record: WaitingRecord) -> None:
        """Set a row."""
        self.put(row, _encode(record))

    def record(self, row: bytes) -> WaitingRecord:
        """Return the record of a row that exists."""
        return _decode(self.get(row))

    def remove(self, row: bytes) -> None:
        """Delete a row."""
        self.put(row, None)

    def records(self, low: bytes | None = None, high: bytes | None = None) -> Iterator[tuple[bytes, WaitingRecord]]:
        """Yield the rows from `low` to `high`, both inclusive, in order."""
        return ((row, _decode(data)) for row, data in self.range(low, high))
