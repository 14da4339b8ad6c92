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
from kstreams.state.kinds.live_store import SAMPLED_ROWS, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import Entries


class LiveKeyValueStore(LiveStore):
    """Values by key (see `KeyValueStore`)."""

    get: Callable[[Any], Any]
    """Returns the value of a key, or None. An operator may bind this function once: it never changes."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = value_codec(builder)
        complete = not family.durable
        self._entries = Entries(self._keys, self._values, family, complete=complete, **self._access)
        # If keys and values need no conversion, a read is one subscript of a dict, without a Python frame.
        is_plain = self._keys.direct and self._values.public is None
        self.get = self._entries.__getitem__ if is_plain else self._get
        self.put = self._put_plain if is_plain and self._values.live is None else self._put

    put: Callable[[Any, Any], None]
    """Sets the value of a key; None deletes the key."""

    def _put_plain(self, key: object, value: object) -> None:
        if key is None:
            raise self._keys.missing()
        entries = self._entries
        entries[key] = value
        entries.changed[key] = None

    def _put(self, key: object, value: object) -> None:
        live_key = self._keys.to_live(key)
        self._entries[live_key] = self._values.to_live(value)
        self._entries.changed[live_key] = None

    def _get(self, key: object) -> Any:
        return self._values.to_public(self._entries[self._keys.to_live(key)])

    def delete(self, key: object) -> Any:
        """Delete a key and return the value that it had."""
        old_value = self.get(key)
        self.put(key, None)
        return old_value

    def put_if_absent(self, key: object, value: object) -> Any:
        """Set the value of a key if it has none. Return the value that it had, or None."""
        old_value = self.get(key)
        if old_value is None:
            self.put(key, value)
        return old_value

    def put_all(self, entries: Collection[tuple[Any, Any]]) -> None:
        """Put (key, value) pairs, in order."""
        for key, value in entries:
            self.put(key, value)

    def get_many(self, keys: list[Any]) -> list[Any]:
        """Return the values of keys, in the order of the keys."""
        return self._values.shown(self._live_values(keys))

    def get_values(self, keys: list[Any]) -> list[Any]:
        """Return the values of keys as `get_many` does, but without timestamps."""
        return self._values.values(self._live_values(keys))

    def _live_values(self, keys: list[Any]) -> list[Any]:
        key_to_live = self._keys.live
        return self._entries.read_many(keys if key_to_live is None else list(map(key_to_live, keys)))

    def put_many(self, keys: list[Any], values: list[Any]) -> None:
        """Put many values, in order."""
        key_to_live = self._keys.live
        to_live = self._values.live
        live_keys = keys if key_to_live is None else list(map(key_to_live, keys))
        if key_to_live is None and None in live_keys:
            raise self._keys.missing()
        live_values = values if to_live is None else [None if value is None else to_live(value) for value in values]
        self._entries.update(zip(live_keys, live_values, strict=True))
        self._entries.changed.update(dict.fromkeys(live_keys))

    def range(self, low: object = None, high: object = None) -> Iterator[tuple[Any, Any]]:
        """Return (key, value) of the keys from `low` to `high`, in the order of the serialized keys.

        Both bounds are included. None is an open bound.
        """
        return self._scan(*self._keys.span(low, high))

    def reverse_range(self, low: object = None, high: object = None) -> Iterator[tuple[Any, Any]]:
        """Return the entries of `range` in descending order."""
        return self._scan(*self._keys.span(low, high), reverse=True)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Return (key, value) of every key, in the order of the serialized keys."""
        return self._scan(b"", None)

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """Return the entries of `all` in descending order."""
        return self._scan(b"", None, reverse=True)

    def prefix_scan(self, prefix: object, serde: Serde | None = None) -> Iterator[tuple[Any, Any]]:
        """Return (key, value) of the keys that begin with `prefix` when they are serialized.

        `serde` serializes the prefix; None: the key serde of the store.
        """
        if prefix is None:
            raise StateError(f"store {self.name!r} takes no null prefix: give a prefix, or read all()")
        data = (serde or self._keys.serde).serialize(prefix)
        return self._scan(data, after_prefix(data))

    def _scan(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        rows = self._entries.scan(low, high, reverse)
        key_to_public = self._keys.public
        if key_to_public is None and self._values.public is None:
            return rows
        to_public = self._values.to_public
        return ((key if key_to_public is None else key_to_public(key), to_public(value)) for key, value in rows)

    def first_rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Return (key, value) of serialized keys in [low, high), for operators that read few of them.

        The caller does not write to the store between two rows.
        """
        rows = self._entries.first_rows(low, high, reverse)
        to_key = self._keys.to_public
        to_value = self._values.to_public
        return ((to_key(key), to_value(value)) for key, value in rows)

    def approximate_num_entries(self) -> int:
        """Return the number of entries. It is exact if all entries are in memory, else an estimate."""
        num_live = self._entries.num_live()
        return num_live if self._entries.complete else max(self.family.estimated_rows(), num_live)

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
            no_timestamps = pa.repeat(pa.scalar(0, pa.int64()), len(keys))
            return Changes(keys, *as_in_changelog(self.builder, stored, no_timestamps))
        rows = list(self._entries.scan(b"", None))
        return Changes(
            self._keys.encode([key for key, _ in rows]), *self._values.encode([value for _, value in rows], 0)
        )

    def num_pending(self) -> int:
        return self._entries.num_pending()

    def num_live(self) -> int:
        return len(self._entries)

    def sample(self) -> list[tuple[object, ...]]:
        return list(self._entries.sample(SAMPLED_ROWS))

    def evict(self, count: int) -> int:
        return self._entries.evict(count)
