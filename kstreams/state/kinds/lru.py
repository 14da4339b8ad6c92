"""The LRU map: a key-value store in memory that keeps the entries that were used last.

Where it is persisted, its rows lie in the order of their last use, which counts as a change: whoever opens it goes on
with the same order. It is read as a whole, since it holds no more than so many entries.
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
    """Values of the `max_entries` keys used last; what falls out is deleted in the changelog too."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.max_entries is None:
            raise StateError(f"LRU map {builder.name!r} needs max_entries: how many it keeps")
        self._max_entries = builder.max_entries
        self._recent: dict[Any, None] = {}  # least recently used first
        self.get = self._read
        self.put = self._write
        self._in_turn = RowsInOrder(family)
        self._used: dict[Any, None] = {}  # since the last commit, where rows are persisted
        self._entries.complete = self._loaded = True
        if family.durable:
            self.apply(self._in_turn.read())

    def _read(self, key: object) -> Any:
        value = self._get(key)
        if value is not None:
            self._touch(self._keys.to_live(key))
        return value

    def _write(self, key: object, value: object) -> None:
        self._put(key, value)
        if value is None:
            self._recent.pop(self._keys.to_live(key), None)
            self._used.pop(self._keys.to_live(key), None)
            return
        self._touch(self._keys.to_live(key))
        if len(self._recent) > self._max_entries:
            self._drop(next(iter(self._recent)))

    def _live_values(self, keys: list[Any]) -> list[Any]:
        lives = super()._live_values(keys)
        for key, live in zip(keys, lives, strict=True):
            if live is not None:
                self._touch(self._keys.to_live(key))
        return lives

    def put_many(self, keys: list[Any], values: list[Any]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.put(key, value)

    def take_changes(self, timestamp_ms: int) -> Changes:
        keys, values = self._entries.take_changes(self._used)
        self._used = {}
        return Changes(self._keys.encode(keys), *self._values.encode(values, timestamp_ms))

    def rows(self, changes: Changes) -> ByteRows:
        return self._in_turn.numbered(changes)

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

    def _touch(self, live: object) -> None:
        self._recent.pop(live, None)
        self._recent[live] = None
        if self.family.durable:
            self._used.pop(live, None)
            self._used[live] = None

    def _drop(self, live: object) -> None:
        del self._recent[live]
        self._used.pop(live, None)
        self._entries[live] = None
        self._entries.changed[live] = None
