"""Key-value stores, plain, timestamped and with headers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.serdes import Serde
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import KeyCodec, as_in_changelog, value_codec
from kstreams.state.column_family import ByteRows, ColumnFamily, after_prefix, all_rows
from kstreams.state.kinds.live_store import SAMPLE, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import Entries


class LiveKeyValueStore(LiveStore):
    """Values by key (see `KeyValueStore`)."""

    get: Callable[[Any], Any]
    """The value of a key, or None; stays valid for the life of the store, so that an operator may bind it once."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = value_codec(builder)
        complete = not family.durable
        self._entries = Entries(self._keys, self._values, family, complete=complete, **self._access)
        # where objects are kept as they are, a read is one subscript of a dict, without a Python frame
        plain = self._keys.direct and self._values.public is None
        self.get = self._entries.__getitem__ if plain else self._get
        self.put = self._put_plain if plain and self._values.live is None else self._put

    put: Callable[[Any, Any], None]
    """Set the value of a key; None deletes it."""

    def _put_plain(self, key: object, value: object) -> None:
        if key is None:
            raise self._keys.missing()
        entries = self._entries
        entries[key] = value
        entries.changed[key] = None

    def _put(self, key: object, value: object) -> None:
        live = self._keys.to_live(key)
        self._entries[live] = self._values.to_live(value)
        self._entries.changed[live] = None

    def _get(self, key: object) -> Any:
        return self._values.to_public(self._entries[self._keys.to_live(key)])

    def delete(self, key: object) -> Any:
        """Delete a key and answer what it was."""
        old = self.get(key)
        self.put(key, None)
        return old

    def put_if_absent(self, key: object, value: object) -> Any:
        """Set the value of a key that has none; answers the one it has."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, entries: Collection[tuple[Any, Any]]) -> None:
        """Put (key, value) pairs, in order."""
        for key, value in entries:
            self.put(key, value)

    def get_many(self, keys: list[Any]) -> list[Any]:
        """The values of keys, in their order."""
        return self._values.shown(self._live_values(keys))

    def get_values(self, keys: list[Any]) -> list[Any]:
        """`get_many`, without timestamps."""
        return self._values.values(self._live_values(keys))

    def _live_values(self, keys: list[Any]) -> list[Any]:
        live = self._keys.live
        return self._entries.read_many(keys if live is None else list(map(live, keys)))

    def put_many(self, keys: list[Any], values: list[Any]) -> None:
        """Put many, in order."""
        live_key = self._keys.live
        live = self._values.live
        lives = keys if live_key is None else list(map(live_key, keys))
        if live_key is None and None in lives:
            raise self._keys.missing()
        live_values = values if live is None else [None if value is None else live(value) for value in values]
        self._entries.update(zip(lives, live_values, strict=True))
        self._entries.changed.update(dict.fromkeys(lives))

    def range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]:
        """(key, value) from `low` to `high`, both included and None for open, in the order of the serialized keys."""
        return self._scan(*self._keys.span(low, high))

    def reverse_range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]:
        """`range` in descending order."""
        return self._scan(*self._keys.span(low, high), reverse=True)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Every (key, value), in the order of the serialized keys."""
        return self._scan(b"", None)

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """`all` in descending order."""
        return self._scan(b"", None, reverse=True)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[tuple[Any, Any]]:
        """(key, value) whose serialized key begins with `prefix`, written by `serde` (the store's own when None)."""
        if prefix is None:
            raise StateError(f"store {self.name!r} takes no null prefix: all() gives all rows")
        data = (serde or self._keys.serde).serialize(prefix)
        return self._scan(data, after_prefix(data))

    def _scan(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        rows = self._entries.scan(low, high, reverse)
        key_of = self._keys.public
        if key_of is None and self._values.public is None:
            return rows
        return ((live if key_of is None else key_of(live), self._values.to_public(value)) for live, value in rows)

    def approximate_num_entries(self) -> int:
        """How many entries there are: exactly when all of them are live, else roughly."""
        live = self._entries.num_live()
        return live if self._entries.complete else max(self.family.estimated_rows(), live)

    def take_changes(self, timestamp_ms: int) -> Changes:
        keys, values = self._entries.take_changes()
        return Changes(self._keys.encode(keys), *self._values.encode(values, timestamp_ms))

    def rows(self, changes: Changes) -> ByteRows:
        return ByteRows(changes.keys, self._values.stored(changes.values, changes.timestamps))

    def written(self) -> None:
        self._entries.written()

    def apply(self, changes: Changes) -> None:
        if self.family.durable:
            self._entries.forget()
            self.reload()
        else:
            rows = self.rows(changes)
            self._entries.load(self._keys.decode(rows.keys), self._values.of_stored(rows.values))

    def load(self, everything: bool) -> Iterator[int]:
        if everything:
            for chunk in self.family.chunks(b"", None):
                rows = chunk.columns()
                self._entries.load(self._keys.decode(rows.keys), self._values.of_stored(rows.values))
                yield len(chunk.values)
            self._entries.complete = True

    def dump(self) -> Changes:
        if self.family.frozen:
            keys, stored = all_rows(self.family)
            none = pa.repeat(pa.scalar(0, pa.int64()), len(keys))
            return Changes(keys, *as_in_changelog(self.builder, stored, none))
        rows = list(self._entries.scan(b"", None))
        return Changes(
            self._keys.encode([key for key, _ in rows]), *self._values.encode([value for _, value in rows], 0)
        )

    def num_pending(self) -> int:
        return self._entries.num_pending()

    def num_live(self) -> int:
        return len(self._entries)

    def sample(self) -> list[tuple[Any, ...]]:
        return list(self._entries.sample(SAMPLE))

    def evict(self, count: int) -> int:
        return self._entries.evict(count)
