"""The LRU map: a key-value store in memory that keeps the entries that were used last."""

from __future__ import annotations

from typing import Any

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.key_value import LiveKeyValueStore
from kstreams.state.live_budget import LiveBudget


class LruMap(LiveKeyValueStore):
    """Values of the `max_entries` keys used last; what falls out is deleted in the changelog too."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.max_entries is None:
            raise StateError(f"LRU map {builder.name!r} needs max_entries: how many it keeps")
        self._max_entries = builder.max_entries
        self._recent: dict[Any, None] = {}  # least recently used first
        self.get, self.put = self._read, self._write

    def _read(self, key: Any) -> Any:
        value = self._get(key)
        if value is not None:
            self._touch(self._key(key))
        return value

    def _write(self, key: Any, value: Any) -> None:
        self._put(key, value)
        if value is None:
            self._recent.pop(self._key(key), None)
            return
        self._touch(self._key(key))
        if len(self._recent) > self._max_entries:
            self._drop(next(iter(self._recent)))

    def put_many(self, keys: list[Any], values: list[Any]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.put(key, value)

    def apply(self, changes: Changes) -> None:
        super().apply(changes)
        self._recent = dict.fromkeys(self._entries)

    def _touch(self, live: Any) -> None:
        self._recent.pop(live, None)
        self._recent[live] = None

    def _drop(self, live: Any) -> None:
        del self._recent[live]
        self._entries[live] = None
        self._entries.changed[live] = None
