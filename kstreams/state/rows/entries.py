"""`Entries`: live values by key over a family of bytes: the map from which key-value and window stores are made.

A dict holds live values; None in it is a deletion that is not persisted yet. As long as it is `complete` it
holds everything and no byte is ever read. When memory runs out, persisted entries are evicted: from then on
a key that is not in the dict is looked up in the column family.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import pyarrow as pa

from kstreams.state.codecs import KeyCodec, ValueCodec
from kstreams.state.column_family import Chunk, ColumnFamily, after_prefix
from kstreams.state.rows.sorted_keys import SortedKeys
from kstreams.state.rows.store_measures import ReadCounts

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, bool, type(None))
_KEPT_BY_PYTHON = range(-5, 257)  # integers of which there is one each
_MOST_OBJECTS = 5_000  # of a sample: large values are not weighed by the dozen
SLOT_BYTES = 64
"""What a dict takes for an entry, beside the key and the value: between 36 and 105, as full as it is."""


def footprint(objects: Iterable[Any], counted: set[int] | None = None) -> int:
    """Bytes that objects take with all they hold.

    Parameters
    ----------
    objects : iterable
    counted : set of int, optional
        Identities of what was counted before, and counts no more; those of the objects are added.

    Examples
    --------
    >>> footprint([b"0123456789"]) == footprint([b"0123456789", None, 7, int])
    True
    """
    todo = list(objects)
    size = 0
    counted = set() if counted is None else counted
    while todo:
        current = todo.pop()
        if (
            id(current) in counted
            or isinstance(current, _SHARED)
            or (type(current) is int and current in _KEPT_BY_PYTHON)
        ):
            continue
        counted.add(id(current))
        size += sys.getsizeof(current) + 15 & ~15
        todo += gc.get_referents(current)
    return size


class RowWeight:
    """The bytes of a row of many alike, weighed anew whenever their number has doubled.

    Parameters
    ----------
    sample : callable
        Some of the rows: for each, the objects that are held for it.
    slots : int
        How many entries of dicts a row has.

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
        """The bytes of a row, when there are `count` of them."""
        if count >= 2 * self._weighed_at or not self._bytes:
            self.weigh(count)
        return self._bytes

    def weigh(self, count: int) -> None:
        """Weigh anew."""
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


_ABSENT = object()
_UNSHARED = nullcontext()


class Entries(dict[Any, Any]):
    """Live values by key.

    `entries[key]` reads a value: None if there is none. `put` writes; on hot paths, writers do what it does without the
    call.

    Parameters
    ----------
    keys, values : KeyCodec, ValueCodec
        How both become bytes.
    family : ColumnFamily
        The persisted bytes.
    prefix : bytes
        In front of every persisted key: the part of the family that belongs to this map.
    complete : bool
        Whether nothing is persisted yet.
    on_read : callable
        Called before so many persisted rows are read: the place to load them, or to make room.
    lock : context manager
        Held while persisted rows are read or evicted. Several threads may read at once, none beside a writer;
        what is live is read without it, so a value goes only after `complete`, and `complete` comes only after all.
    reads : ReadCounts
        Gets the reads of persisted rows by key.
    """

    __slots__ = (
        "_deleted",
        "_earlier",
        "_family",
        "_handed",
        "_keys",
        "_lock",
        "_on_read",
        "_ordered",
        "_prefix",
        "_reads",
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
        self._earlier: dict[Any, None] = {}  # changed too, and in the order already
        self._handed: dict[Any, None] = {}  # handed out as changes, not persisted yet
        self._deleted: list[Any] = []  # those of them that are deletions
        self._ordered: SortedKeys | None = None  # made by the first scan: all keys when complete, else the pending ones

    def put(self, key: object, value: object) -> None:
        """Set the value of a key; None deletes it."""
        self[key] = value
        self.changed[key] = None

    def __missing__(self, key: object) -> Any:
        if key is None:
            raise self._keys.missing()
        if self.complete:
            value = self.get(key)  # another thread may have loaded it just now
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
        """The values of keys, in their order; what is not live is read at once."""
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
        """(key, value) with serialized keys in [low, high), in their unsigned order.

        Keys that are written behind the place a scan has reached may be missed, deleted ones are left out.
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

    def _frozen(self, low: bytes, high: bytes | None, reverse: bool) -> Iterator[tuple[Any, Any]]:
        """A scan of persisted rows that nobody changes: as columns, and none of them stays."""
        return chain.from_iterable(map(self._pairs, self._family.chunks(*self._persisted_range(low, high), reverse)))

    def _pairs(self, chunk: Chunk) -> Iterator[tuple[Any, Any]]:
        keys, values = chunk.columns(len(self._prefix))
        return zip(self._keys.decode(keys), self._values.of_stored(values), strict=True)

    def _merged(self, low: bytes, high: bytes | None, reverse: bool) -> Iterator[tuple[Any, Any]]:
        """A scan of the persisted rows, overlaid with the live ones."""
        start = len(self._prefix)
        for chunk in self._family.chunks(*self._persisted_range(low, high), reverse):
            below = {key[start:]: value for key, value in chunk.rows()}
            with self._lock:
                pending = self._in_order().between(*self._span_here(chunk, high))
            for data in sorted({*below, *pending}, reverse=reverse):
                key = self._keys.of_bytes(data)
                value = self.get(key, _ABSENT)
                if value is _ABSENT:
                    value = self._values.of_bytes(below[data]) if data in below else self[key]
                if value is not None:
                    yield key, value

    def _persisted_range(self, low: bytes, high: bytes | None) -> tuple[bytes, bytes | None]:
        return self._prefix + low, after_prefix(self._prefix) if high is None else self._prefix + high

    def _span_here(self, chunk: Chunk, high: bytes | None) -> tuple[bytes, bytes | None]:
        start = len(self._prefix)
        end = chunk.high
        return chunk.low[start:], end[start:] if end is not None and end.startswith(self._prefix) else high

    def _in_order(self) -> SortedKeys:
        to_bytes = self._keys.to_bytes
        if self._ordered is None:
            rows = self if self.complete else self._pending()
            self._ordered = SortedKeys(map(to_bytes, rows))
        else:
            for key in self.changed:
                self._ordered.add(to_bytes(key))
        self._earlier.update(self.changed)
        self.changed.clear()
        return self._ordered

    def _pending(self) -> dict[Any, None]:
        """Keys whose live value is not persisted yet."""
        return dict.fromkeys(chain(self._handed, self._earlier, self.changed))

    def take_changes(self, last: Iterable[Any] = ()) -> tuple[list[Any], list[Any]]:
        """Keys and live values that changed since the last call; also these, which come last and in their order."""
        if self._ordered is not None:
            self._in_order()
        changed = self._earlier | self.changed if self._earlier else self.changed
        for key in last:
            changed.pop(key, None)
            changed[key] = None
        self._earlier = {}
        self.changed = {}
        self._handed = self._handed | changed if self._handed else changed
        keys = list(changed)
        values = list(map(self.get, keys))
        if None in values:
            self._deleted += [key for key, value in zip(keys, values, strict=True) if value is None]
        return keys, values

    def written(self) -> None:
        """The changes that were handed out are persisted: deletions need no mark any more."""
        deleted = [key for key in self._deleted if self.get(key, _ABSENT) is None and not self._changed_since(key)]
        for key in deleted:
            self.pop(key, None)
        if not self.complete:
            self._ordered = None
        elif self._ordered is not None:
            for key in deleted:
                self._ordered.discard(self._keys.to_bytes(key))
        self._handed.clear()
        self._deleted.clear()

    def _changed_since(self, key: object) -> bool:
        return key in self.changed or key in self._earlier

    def num_live(self) -> int:
        """How many values there are in memory: all of them when `complete`."""
        self._is_all()
        return len(self) - sum(self.get(key) is None for key in self._pending())

    def sample(self, count: int) -> list[tuple[Any, Any]]:
        """The entries that were made last, up to `count`."""
        return list(islice(reversed(self.items()), count))

    def num_pending(self) -> int:
        """How many keys are to be handed out or persisted."""
        return len(self.changed) + len(self._earlier) + len(self._handed)

    def evict(self, count: int) -> int:
        """Evict up to `count` persisted entries, the oldest first; returns how many."""
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
        """Drop everything live: the persisted rows were changed from outside."""
        self.complete = False
        self._ordered = None
        self.clear()

    def load(self, keys: list[Any], values: list[Any]) -> None:
        """Take over persisted rows or those of a changelog; None deletes. What is pending here is newer and stays."""
        fresh = dict(zip(keys, values, strict=True))
        for pending in (self._handed, self._earlier, self.changed):
            for key in fresh.keys() & pending.keys():
                del fresh[key]
        self.update(fresh)
        self._ordered = None
        for key in [key for key, value in fresh.items() if value is None]:
            del self[key]
