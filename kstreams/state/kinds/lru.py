"""The LRU map: a key-value store in memory that keeps the most recently used entries.

If it is persisted, its rows lie in the order of their last use, so that the order is the same after a restart. A use
counts as a change. All rows are loaded when the store is opened: there are at most `max_entries`.
"""

from __future__ import annotations

from typing import Any

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.key_value import LiveKeyValueStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.rows_in_order import RowsInOrder


class LruMap(LiveKeyValueStore):
    """Values of the `max_entries` most recently used keys. An evicted entry is deleted in the changelog too."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.max_entries is None:
            raise StateError(
                f"the LRU map {builder.name!r} has no max_entries: give the number of entries that it keeps"
            )
        self._max_entries = builder.max_entries
        self._recent: dict[object, None] = {}  # least recently used first
        self.get = self._read
        self.put = self._write
        self._ordered_rows = RowsInOrder(family)
        self._used: dict[object, None] = {}  # keys used since the last commit, if rows are persisted
        self._entries.complete = self._loaded = True
        if family.durable:
            self.apply(self._ordered_rows.read())

    def _read(self, key: object) -> Any:
        value = self._get(key)
        if value is not None:
            self._note_use(self._keys.to_live(key))
        return value

    def _write(self, key: object, value: object) -> None:
        self._put(key, value)
        if value is None:
            self._recent.pop(self._keys.to_live(key), None)
            self._used.pop(self._keys.to_live(key), None)
            return
        self._note_use(self._keys.to_live(key))
        if len(self._recent) > self._max_entries:
            self._evict_oldest()

    def _live_values(self, keys: list[Any]) -> list[Any]:
        live_values = super()._live_values(keys)
        for key, live_value in zip(keys, live_values, strict=True):
            if live_value is not None:
                self._note_use(self._keys.to_live(key))
        return live_values

    def put_many(self, keys: list[Any], values: list[Any]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.put(key, value)

    def take_changes(self, timestamp_ms: int) -> Changes:
        keys, values = self._entries.take_changes(self._used)
        self._used = {}
        return Changes(self._keys.encode(keys), *self._values.encode(values, timestamp_ms))

    def rows(self, changes: Changes) -> ByteRows:
        return self._ordered_rows.numbered(changes)

    def apply(self, changes: Changes) -> None:
        keys = self._keys.decode(changes.keys)
        rows = super().rows(changes)
        for key in keys:
            self._entries.pop(key, None)
        self._entries.load(keys, self._values.of_stored(rows.values))
        self._recent = dict.fromkeys(self._entries)

    def num_pending(self) -> int:
        return super().num_pending() + len(self._used)

    def evict(self, count: int) -> int:
        return 0

    def _note_use(self, live_key: object) -> None:
        self._recent.pop(live_key, None)
        self._recent[live_key] = None
        if self.family.durable:
            self._used.pop(live_key, None)
            self._used[live_key] = None

    def _evict_oldest(self) -> None:
        live_key = next(iter(self._recent))
        del self._recent[live_key]
        self._used.pop(live_key, None)
        self._entries[live_key] = None
        self._entries.changed[live_key] = None
