"""`Entries`: live values by key over a column family, for key-value and window stores.

A dict has live values; None is a deletion that is not persisted yet. While the dict is `complete`, it has all entries,
and the column family is never read. If memory is full, persisted entries are evicted: then keys that are not in the
dict are looked up in the column family.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice, repeat
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pyarrow as pa

from kstreams.state.codecs import KeyCodec, ValueCodec
from kstreams.state.column_family import Chunk, ColumnFamily, after_prefix
from kstreams.state.rows.sorted_keys import SortedKeys
from kstreams.state.rows.store_measures import ReadCounts

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, bool, type(None))
_CACHED_INTEGERS = range(-5, 257)  # integers that Python creates only once
_MOST_OBJECTS = 5_000  # the limit of objects in a sample, so that few large values are weighed
SLOT_BYTES = 64
"""The bytes of an entry in a dict without its key and value: between 36 and 105, depending on how full the dict is."""


def footprint(objects: Iterable[Any], counted: set[int] | None = None) -> int:
    """Return the bytes of objects with all objects that they refer to.

    Parameters
    ----------
    objects : iterable
    counted : set of int, optional
        The ids of objects that were counted before and are skipped; the ids of counted objects are added.

    Examples
    --------
    >>> footprint([b"0123456789"]) == footprint([b"0123456789", None, 7, int])
    True
    """
    pending = list(objects)
    size = 0
    counted = set() if counted is None else counted
    while pending:
        current = pending.pop()
        if (
            id(current) in counted
            or isinstance(current, _SHARED)
            or (type(current) is int and current in _CACHED_INTEGERS)
        ):
            continue
        counted.add(id(current))
        size += sys.getsizeof(current) + 15 & ~15
        pending += gc.get_referents(current)
    return size


class RowWeight:
    """The average bytes of similar rows, measured again whenever their number has doubled.

    Parameters
    ----------
    sample : callable
        Returns the objects of some rows.
    slots : int
        The number of dict entries of a row.

    Examples
    --------
    >>> weight = RowWeight(lambda: [(bytes([n]) * 1_000, bytes([n]) * 1_000) for n in range(4)], slots=1)
    >>> 2_000 < weight.of(1) < 2_200
    True
    """

    def __init__(self, sample: Callable[[], list[tuple[Any, ...]]], slots: int) -> None:
        self._sample = sample
        self._fixed = slots * SLOT_BYTES
        self._bytes = 0
        self._weighed_at = 0

    def of(self, count: int) -> int:
        """Return the average bytes of `count` rows."""
        if count >= 2 * self._weighed_at or not self._bytes:
            self.weigh(count)
        return self._bytes

    def weigh(self, count: int) -> None:
        """Measure a sample of `count` rows."""
        counted = set[int]()
        weighed = 0
        size = 0
        for row in self._sample():
            size = size + footprint(row, counted)
            weighed = weighed + 1
            if len(counted) > _MOST_OBJECTS:
                break
        if weighed:
            self._bytes = self._fixed + size // weighed
            self._weighed_at = max(1, count)


_FIRST_ROWS = (4, 16, 64)
_MORE_ROWS = 1_000
_ABSENT = object()
_UNSHARED = nullcontext()


class Entries(dict[Any, Any]):
    """Live values by key.

    `entries[key]` is None if there is no entry. `put` writes; on hot paths, writers do what it does without the call.

    Parameters
    ----------
    keys, values : KeyCodec, ValueCodec
    family : ColumnFamily
        The persisted rows.
    prefix : bytes
        The prefix of all persisted keys of this map in the family.
    complete : bool
        True if no row is persisted yet.
    on_read : callable
        Called with a number of persisted rows before they are read, to load all rows, or to evict others.
    lock : context manager
        Held while persisted rows are read or evicted. Several threads may read at once, but not while a thread writes.
        Live values are read without the lock: `complete` is set to False before values are evicted, and set to True
        after all values are loaded.
    reads : ReadCounts
        Counts the reads of persisted rows by key.
    """

    __slots__ = (
        "_deleted",
        "_earlier",
        "_family",
        "_keys",
        "_lock",
        "_on_read",
        "_ordered",
        "_prefix",
        "_reads",
        "_unwritten",
        "_values",
        "changed",
        "complete",
    )

    def __init__(
        self,
        keys: KeyCodec,
        values: ValueCodec,
        family: ColumnFamily,
        *,
        prefix: bytes = b"",
        complete: bool = True,
        on_read: Callable[[int], None] = lambda rows: None,
        lock: AbstractContextManager[Any] = _UNSHARED,
        reads: ReadCounts | None = None,
    ) -> None:
        self._keys = keys
        self._values = values
        self._family = family
        self._prefix = prefix
        self.complete = complete
        self._on_read = on_read
        self._lock = lock
        self._reads = reads or ReadCounts()
        self.changed: dict[Any, None] = {}
        self._earlier: dict[Any, None] = {}  # changed too, and in `_ordered` already
        self._unwritten: dict[Any, None] = {}  # returned as changes, and not persisted yet
        self._deleted: list[Any] = []  # the deletions in `_unwritten`
        self._ordered: SortedKeys | None = None  # created by the first scan: all keys if complete, else pending keys

    def put(self, key: object, value: object) -> None:
        """Set the value of a key; None deletes it."""
        self[key] = value
        self.changed[key] = None

    def __missing__(self, key: object) -> Any:
        if key is None:
            raise self._keys.missing()
        if self.complete:
            value = self.get(key)  # another thread may have loaded it since
            if self.complete:
                return value
        with self._lock:
            if self._is_all() or key in self:
                return self.get(key)
            self._reads.misses += 1
            data = self._family.get(self._prefix + self._keys.to_bytes(key))
            if data is None:
                return None
            value = self[key] = self._values.of_bytes(data)
            return value

    def _is_all(self, rows: int = 1) -> bool:
        if not self.complete:
            self._on_read(rows)
        return self.complete

    def read_many(self, keys: list[Any]) -> list[Any]:
        """Return the values of keys, in their order; values that are not live are read together."""
        with self._lock:
            if self.complete or self._is_all(sum(key not in self for key in keys)):
                return list(map(self.get, keys))
            absent_keys = [key for key in dict.fromkeys(keys) if key not in self]
            persisted = dict(zip(absent_keys, self._read_persisted(absent_keys), strict=True))
            values = [persisted[key] if key in persisted else self.get(key) for key in keys]
            self.update((key, value) for key, value in persisted.items() if value is not None)
            return values

    def _read_persisted(self, keys: list[Any]) -> list[Any]:
        if not keys:
            return []
        self._reads.misses += len(keys)
        prefix = self._prefix
        data = self._family.get_many([prefix + key for key in self._keys.encode(keys).to_pylist()])
        return self._values.of_stored(pa.array(data, pa.binary()))

    def scan(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Yield (key, value) with serialized keys in [low, high), ordered as unsigned bytes.

        The scan may miss a key that is written after the current position; deleted keys are left out.
        """
        return self._frozen(low, high, reverse) if self._family.frozen else self._changing(low, high, reverse)

    def _changing(self, low: bytes, high: bytes | None, reverse: bool) -> Iterator[tuple[Any, Any]]:
        with self._lock:
            keys = self._in_order().between(low, high) if self._is_all() else None
        if keys is None:
            yield from self._merged(low, high, reverse)
            return
        of_bytes = self._keys.of_bytes
        for data in reversed(keys) if reverse else keys:
            key = of_bytes(data)
            value = self[key]
            if value is not None:
                yield key, value

    def first_rows(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Yield (key, value) like `scan`, but read rows as they are asked for: the first one costs little.

        Only for callers that do not write between two rows.
        """
        of_bytes = self._keys.of_bytes
        for count in chain(_FIRST_ROWS, repeat(_MORE_ROWS)):
            with self._lock:
                keys = self._in_order().some_between(low, high, count, reverse=reverse) if self._is_all() else None
            if keys is None:
                yield from self._merged(low, high, reverse)
                return
            for data in keys:
                key = of_bytes(data)
                value = self[key]
                if value is not None:
                    yield key, value
            if not keys:
                return
            if reverse:
                high = keys[-1]
            else:
                low = keys[-1] + b"\0"

    def _frozen(self, low: bytes, high: bytes | None, reverse: bool) -> Iterator[tuple[Any, Any]]:
        """Scan persisted rows that never change: as columns, without adding them to the dict."""
        return chain.from_iterable(map(self._pairs, self._family.chunks(*self._persisted_range(low, high), reverse)))

    def _pairs(self, chunk: Chunk) -> Iterator[tuple[Any, Any]]:
        keys, values = chunk.columns(len(self._prefix))
        return zip(self._keys.decode(keys), self._values.of_stored(values), strict=True)

    def _merged(self, low: bytes, high: bytes | None, reverse: bool) -> Iterator[tuple[Any, Any]]:
        """Scan the persisted rows, merged with the live values."""
        start = len(self._prefix)
        for chunk in self._family.chunks(*self._persisted_range(low, high), reverse):
            persisted_rows = {key[start:]: value for key, value in chunk.rows()}
            with self._lock:
                pending = self._in_order().between(*self._span_of(chunk, high))
            for data in sorted({*persisted_rows, *pending}, reverse=reverse):
                key = self._keys.of_bytes(data)
                value = self.get(key, _ABSENT)
                if value is _ABSENT:
                    value = self._values.of_bytes(persisted_rows[data]) if data in persisted_rows else self[key]
                if value is not None:
                    yield key, value

    def _persisted_range(self, low: bytes, high: bytes | None) -> tuple[bytes, bytes | None]:
        return self._prefix + low, after_prefix(self._prefix) if high is None else self._prefix + high

    def _span_of(self, chunk: Chunk, high: bytes | None) -> tuple[bytes, bytes | None]:
        start = len(self._prefix)
        end = chunk.high
        return chunk.low[start:], end[start:] if end is not None and end.startswith(self._prefix) else high

    def _in_order(self) -> SortedKeys:
        to_bytes = self._keys.to_bytes
        if self._ordered is None:
            rows = [key for key, value in self.items() if value is not None] if self.complete else self._pending()
            self._ordered = SortedKeys(map(to_bytes, rows))
        else:
            for key in self.changed:
                # A deleted key of a complete map is in the way of scans; else it hides a persisted row.
                is_deleted = self.complete and self.get(key) is None
                change = self._ordered.discard if is_deleted else self._ordered.add
                change(to_bytes(key))
        self._earlier.update(self.changed)
        self.changed.clear()
        return self._ordered

    def _pending(self) -> dict[Any, None]:
        """Return the keys whose live values are not persisted yet."""
        return dict.fromkeys(chain(self._unwritten, self._earlier, self.changed))

    def take_changes(self, last: Iterable[Any] = ()) -> tuple[list[Any], list[Any]]:
        """Return the keys and live values that changed since the last call, then those of the keys in `last`."""
        if self._ordered is not None:
            self._in_order()
        changed = self._earlier | self.changed if self._earlier else self.changed
        for key in last:
            changed.pop(key, None)
            changed[key] = None
        self._earlier = {}
        self.changed = {}
        self._unwritten = self._unwritten | changed if self._unwritten else changed
        keys = list(changed)
        values = list(map(self.get, keys))
        if None in values:
            self._deleted += [key for key, value in zip(keys, values, strict=True) if value is None]
        return keys, values

    def written(self) -> None:
        """Note that the changes from `take_changes` are persisted, so that deletions need no entry any more."""
        deleted = [key for key in self._deleted if self.get(key, _ABSENT) is None and not self._changed_since(key)]
        for key in deleted:
            self.pop(key, None)
        if not self.complete:
            self._ordered = None
        elif self._ordered is not None:
            for key in deleted:
                self._ordered.discard(self._keys.to_bytes(key))
        self._unwritten.clear()
        self._deleted.clear()

    def _changed_since(self, key: object) -> bool:
        return key in self.changed or key in self._earlier

    def num_live(self) -> int:
        """Return the number of values in memory: all values if `complete`."""
        self._is_all()
        return len(self) - sum(self.get(key) is None for key in self._pending())

    def sample(self, count: int) -> list[tuple[Any, Any]]:
        """Return the newest entries, at most `count`."""
        return list(islice(reversed(self.items()), count))

    def num_pending(self) -> int:
        """Return the number of keys whose changes are not persisted."""
        return len(self.changed) + len(self._earlier) + len(self._unwritten)

    def evict(self, count: int) -> int:
        """Evict up to `count` persisted entries, the oldest first; return their number."""
        with self._lock:
            pending = self._pending()
            clean = list(islice((key for key in self if key not in pending), count))
            if clean and self.complete:
                self.complete = False
                self._ordered = None
            for key in clean:
                del self[key]
        return len(clean)

    def forget(self) -> None:
        """Remove all live values, because the persisted rows were changed without them."""
        self.complete = False
        self._ordered = None
        self.clear()

    def load(self, keys: list[Any], values: list[Any]) -> None:
        """Set values from persisted rows or a changelog; None deletes. Pending changes, which are newer, stay."""
        fresh = dict(zip(keys, values, strict=True))
        for pending in (self._unwritten, self._earlier, self.changed):
            for key in fresh.keys() & pending.keys():
                del fresh[key]
        self.update(fresh)
        self._ordered = None
        for key in [key for key, value in fresh.items() if value is None]:
            del self[key]
