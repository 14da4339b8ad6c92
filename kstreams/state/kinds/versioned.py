"""Versioned stores: the versions of each key, as far back as the history retention reaches."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import NOT_PUT, VALID_TO_UNDEFINED, Changes, StoreBuilder, VersionedRecord
from kstreams.state.codecs import KeyCodec, PlainValueCodec, ValueCodec
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLED_ROWS, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import Entries
from kstreams.state.rows.version_rows import Versions, version_rows, versions_of

History: TypeAlias = list[tuple[int, Any]]
"""The versions of a key, ordered by time: (timestamp, live value or None for a deletion)."""

_VERSION = struct.Struct(">qi")  # timestamp, length of the value (-1: deleted)
_EXPIRED = object()
"""Stands for the value of a version that has expired."""


class HistoryCodec(ValueCodec):
    """The persisted form of a key's history: its versions, one after another."""

    live: Callable[[Any], Any] | None = None
    public: Callable[[Any], Any] | None = None

    def __init__(self, values: PlainValueCodec) -> None:
        self._values = values

    def to_bytes(self, history: History | None) -> bytes | None:
        """Serialize a history; None if it is empty."""
        if not history:
            return None
        data = self._values.to_bytes([value for _, value in history]).to_pylist()
        times = (timestamp for timestamp, _ in history)
        return b"".join(
            _VERSION.pack(timestamp, -1) if value is None else _VERSION.pack(timestamp, len(value)) + value
            for timestamp, value in zip(times, data, strict=True)
        )

    def of_bytes(self, data: bytes) -> History:
        """Return the history that `to_bytes` serialized."""
        history = []
        offset = 0
        while offset < len(data):
            timestamp, length = _VERSION.unpack_from(data, offset)
            offset += _VERSION.size
            value = None if length < 0 else self._values.of_bytes(data[offset : offset + length])
            history.append((timestamp, value))
            offset += max(0, length)
        return history

    def of_stored(self, column: pa.Array) -> list[Any]:
        """Return the histories of persisted rows."""
        return [None if data is None else self.of_bytes(data) for data in column.to_pylist()]

    def encode(self, live_values: list[Any], timestamp_ms: int) -> tuple[pa.Array, pa.Array]:
        """Return persisted rows of histories."""
        stored = pa.array(map(self.to_bytes, live_values), pa.binary())
        return stored, pa.repeat(pa.scalar(timestamp_ms, pa.int64()), len(live_values))

    def stored(self, values: pa.Array, timestamps: pa.Array) -> pa.Array:
        return values

    def shown(self, live_values: list[Any]) -> list[Any]:
        return live_values

    values = shown


class LiveVersionedStore(LiveStore):
    """Values by key and time (see `VersionedStore`).

    A version is valid until the next one begins. The latest version never expires; a version that ended before
    (greatest timestamp put - history retention) has expired. The changelog has a record for each version that was put
    or has expired since (see `kstreams.state.rows.version_rows`).
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.history_retention_ms is None:
            raise StateError(
                f"the versioned store {builder.name!r} has no history_retention_ms: give the time for which it keeps "
                "old versions"
            )
        self._history_ms = builder.history_retention_ms
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = PlainValueCodec(builder.name, builder.value)
        self._histories = HistoryCodec(self._values)
        complete = not family.durable
        self._entries = Entries(self._keys, self._histories, family, complete=complete, **self._access)
        self._changed: dict[tuple[Any, int], Any] = {}
        """The live value of each changed version by key and time; None for a deletion, or `_EXPIRED`."""
        self._deleted_since: dict[object, int] = {}
        """The keys whose latest version is a deletion, and the time of the deletion."""
        self._rows_to_write = ByteRows(pa.array([], pa.binary()), pa.array([], pa.binary()))

    def put(self, key: object, value: object, timestamp: int) -> int:
        """Set the value that is valid from `timestamp` on; None deletes the key from then on.

        Returns
        -------
        int
            The end of the version: the timestamp of the next version; VALID_TO_UNDEFINED if it is the latest version;
            NOT_PUT if it is older than the history retention.
        """
        return self._put(self._keys.to_live(key), self._values.to_live(value), timestamp)

    def _put(self, key: object, live_value: object, timestamp: int) -> int:
        if timestamp < self._history_start_ms():
            return NOT_PUT
        self.observed_ms = max(self.observed_ms, timestamp)
        history = self._entries[key]
        if history is None:
            history = self._entries[key] = []
        index = _replace_version(history, timestamp, [(timestamp, live_value)])
        valid_to = history[index + 1][0] if index + 1 < len(history) else VALID_TO_UNDEFINED
        self._changed[key, timestamp] = live_value
        self._entries.changed[key] = None
        self._note_deletion(key, history)
        self._expire_versions(key, history)
        return valid_to

    def _note_deletion(self, key: object, history: History) -> None:
        if history and history[-1][1] is None:
            self._deleted_since[key] = history[-1][0]
        else:
            self._deleted_since.pop(key, None)

    def delete(self, key: object, timestamp: int) -> VersionedRecord | None:
        """Delete a key from `timestamp` on. Return the version that was valid then, or None."""
        if key is None:
            raise self._keys.missing()
        if timestamp < self._history_start_ms():
            return None
        old_version = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return old_version

    def get(self, key: object, as_of_ms: int | None = None) -> VersionedRecord | None:
        """Return the version that is valid at a time, or None. Without a time, return the latest version.

        For a time before the history retention, only the latest version is returned.
        """
        history: History = self._entries[self._keys.to_live(key)] or []
        index = len(history) - 1 if as_of_ms is None else bisect_right(history, as_of_ms, key=_timestamp) - 1
        is_latest = index == len(history) - 1
        if index < 0 or (as_of_ms is not None and as_of_ms < self._history_start_ms() and not is_latest):
            return None
        timestamp, live_value = history[index]
        if live_value is None:
            return None
        public = self._values.public
        value = live_value if public is None else public(live_value)
        return VersionedRecord(value, timestamp, None if is_latest else history[index + 1][0])

    def history(self, key: object, from_ms: int | None = None, to_ms: int | None = None) -> Iterator[VersionedRecord]:
        """Return the versions of a key that were valid at some time from `from_ms` to `to_ms`, ordered by time.

        Both bounds are included. None is an open bound. Versions that have expired are not returned.
        """
        return self._versions_between(self._entries[self._keys.to_live(key)] or [], from_ms, to_ms)

    def range(
        self, low: object = None, high: object = None, from_ms: int | None = None, to_ms: int | None = None
    ) -> Iterator[tuple[Any, VersionedRecord]]:
        """Return (key, version) of the keys from `low` to `high`, with the versions of `history`.

        Keys are in the order of their serialized form.
        """
        return self._range(low, high, from_ms, to_ms, reverse=False)

    def reverse_range(
        self, low: object = None, high: object = None, from_ms: int | None = None, to_ms: int | None = None
    ) -> Iterator[tuple[Any, VersionedRecord]]:
        """Return the versions of `range` with keys in descending order. The versions of a key stay ordered by time."""
        return self._range(low, high, from_ms, to_ms, reverse=True)

    def _range(
        self, low: object, high: object, from_ms: int | None, to_ms: int | None, *, reverse: bool
    ) -> Iterator[tuple[Any, VersionedRecord]]:
        for live_key, history in self._entries.scan(*self._keys.span(low, high), reverse):
            key = self._keys.to_public(live_key)
            yield from ((key, version) for version in self._versions_between(history, from_ms, to_ms))

    def _versions_between(self, history: History, from_ms: int | None, to_ms: int | None) -> Iterator[VersionedRecord]:
        public = self._values.public
        history_start_ms = self._history_start_ms()
        ends = [*(timestamp for timestamp, _ in history[1:]), None]  # the latest version has no end
        for (timestamp, live_value), end in zip(history, ends, strict=False):  # `ends` of an empty history has one item
            is_over = end is not None and (end <= history_start_ms or (from_ms is not None and end <= from_ms))
            if live_value is not None and not is_over and (to_ms is None or timestamp <= to_ms):
                yield VersionedRecord(live_value if public is None else public(live_value), timestamp, end)

    def _history_start_ms(self) -> int:
        """Return the first time that the history retention covers."""
        return self.observed_ms - self._history_ms

    def _expire_versions(self, key: object, history: History) -> None:
        """Drop the versions that have expired."""
        num_expired = self._num_expired(history)
        self._changed.update(((key, timestamp), _EXPIRED) for timestamp, _ in history[:num_expired])
        del history[:num_expired]

    def _num_expired(self, history: History) -> int:
        history_start_ms = self._history_start_ms()
        count = 0
        while count + 1 < len(history) and history[count + 1][0] <= history_start_ms:
            count += 1
        return count

    def take_changes(self, timestamp_ms: int) -> Changes:
        dropped = self._drop_deleted_keys()
        self._encode_rows()
        changed, self._changed = self._changed, {}
        versions = version_rows(
            self._versions([(key, time, live_value) for (key, time), live_value in changed.items()])
        )
        return Changes(*map(pa.concat_arrays, zip(dropped, versions, strict=True)))

    def _drop_deleted_keys(self) -> Changes:
        """Drop the keys whose deletion has expired. Return tombstones for their records in Kafka Streams' format."""
        history_start_ms = self._history_start_ms()
        expired = [key for key, since in self._deleted_since.items() if since < history_start_ms]
        times = [self._deleted_since.pop(key) for key in expired]
        for key in expired:
            self._changed.update(((key, timestamp), _EXPIRED) for timestamp, _ in self._entries[key] or [])
            self._entries[key] = None
            self._entries.changed[key] = None
        return Changes(self._keys.encode(expired), pa.nulls(len(expired), pa.binary()), pa.array(times, pa.int64()))

    def _encode_rows(self) -> None:
        """Encode the changed histories, which `write` persists."""
        keys, histories = self._entries.take_changes()
        self._rows_to_write = ByteRows(self._keys.encode(keys), self._histories.encode(histories, 0)[0])

    def _versions(self, changed: list[tuple[Any, int, Any]]) -> Versions:
        """Return versions as columns. Each has a key, a time, and a live value, None or `_EXPIRED`."""
        keys, times, live_values = ([row[part] for row in changed] for part in range(3))
        values = self._values.to_bytes([None if value is _EXPIRED else value for value in live_values])
        are_gone = pa.array([value is _EXPIRED for value in live_values], pa.bool_())
        return Versions(self._keys.encode(keys), pa.array(times, pa.int64()), values, are_gone)

    def rows(self, changes: Changes) -> ByteRows:
        return self._rows_to_write

    def written(self) -> None:
        self._entries.written()

    def restore(self, records: Changes, offset: int) -> None:
        self.refuse_when_pending()
        changes = self.builder.kind.current_form(records)
        self.apply(changes)
        self._changes_observed_ms = self.observed_ms
        self._encode_rows()
        self.write(changes, offset)

    def apply(self, changes: Changes) -> None:
        versions = versions_of(changes)
        keys = self._keys.decode(versions.keys)
        values = self._values.of_stored(versions.values)
        times = versions.times.to_pylist()
        are_gone = versions.are_gone.to_pylist()
        for key, timestamp, live_value, is_gone in zip(keys, times, values, are_gone, strict=True):
            history = self._entries[key] or []
            _replace_version(history, timestamp, [] if is_gone else [(timestamp, live_value)])
            self._entries[key] = history or None
            self._entries.changed[key] = None
            self._note_deletion(key, history)
            self.observe(timestamp)

    def load(self, everything: bool) -> Iterator[int]:
        if everything:
            for chunk in self.family.chunks(b"", None):
                rows = chunk.columns()
                self._entries.load(self._keys.decode(rows.keys), self._histories.of_stored(rows.values))
            self._entries.complete = True
            for key, history in self._entries.items():
                self._note_deletion(key, history)
        return iter(())

    def dump(self) -> Changes:
        histories = self._entries.scan(b"", None)
        return version_rows(
            self._versions(
                [
                    (key, time, live_value)
                    for key, history in histories
                    for time, live_value in history[self._num_expired(history) :]
                ]
            )
        )

    def num_pending(self) -> int:
        return len(self._changed) + self._entries.num_pending()

    def num_live(self) -> int:
        return len(self._entries)

    def sample(self) -> list[tuple[object, ...]]:
        return list(self._entries.sample(SAMPLED_ROWS))

    def evict(self, count: int) -> int:
        return self._entries.evict(count)


def _replace_version(history: History, timestamp: int, version: History) -> int:
    """Replace the version that starts at a time, if there is one, by `version` (one or none). Return its index."""
    index = bisect_left(history, (timestamp,))
    history[index : index + (index < len(history) and history[index][0] == timestamp)] = version
    return index


def _timestamp(version: tuple[int, Any]) -> int:
    return version[0]
