"""`RowsByKey`: live rows by key and position, for session stores and window stores of joins.

A position is (time, second): a session's (end, start), or a join window's (start, sequence number). Stores are read one
key at a time, so the rows of a key stay together: all of them are in memory, or none.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, TypeAlias

from kstreams.state.codecs import KeyCodec, ValueCodec
from kstreams.state.column_family import ColumnFamily
from kstreams.state.rows.sorted_keys import SortedKeys
from kstreams.state.rows.store_measures import ReadCounts

RowPosition: TypeAlias = tuple[int, int]


class RowsOfKey(dict[RowPosition, Any]):
    """The rows of one key: values by position, and the positions in order."""

    __slots__ = ("places",)

    def __init__(self) -> None:
        self.places: list[RowPosition] = []

    def add(self, place: RowPosition, value: object) -> None:
        """Set the value at a new position."""
        places = self.places
        if not places or place > places[-1]:  # the most frequent case
            places.append(place)
        else:
            insort(places, place)
        self[place] = value

    def remove(self, place: RowPosition) -> None:
        """Remove the value at a position."""
        places = self.places
        del self[place], places[-1 if place == places[-1] else bisect_left(places, place)]

    def span(self, from_time: int, to_time: int) -> list[RowPosition]:
        """Return the positions with from_time <= time <= to_time."""
        places = self.places
        if not places or places[-1][0] < from_time:
            return []
        start = bisect_left(places, (from_time,))
        return places[start:] if places[-1][0] <= to_time else places[start : bisect_left(places, (to_time + 1,))]

    def rows(self, from_time: int, to_time: int) -> list[tuple[RowPosition, Any]]:
        """Return the rows with from_time <= time <= to_time."""
        return [(place, self[place]) for place in self.span(from_time, to_time)]

    def after_last(self, time: int) -> int:
        """Return the second number after the last one at a time; 0 if there is none."""
        if not self.places or self.places[-1][0] < time:
            return 0
        at = bisect_left(self.places, (time + 1,))
        return self.places[at - 1][1] + 1 if at and self.places[at - 1][0] == time else 0

    def first(self, count: int) -> RowsOfKey:
        """Return the first rows: all of them if there are no more than `count`."""
        if len(self) <= count:
            return self
        part = RowsOfKey()
        for place in self.places[:count]:
            part.add(place, self[place])
        return part

    def drop_until(self, time: int) -> int:
        """Remove the rows with a time up to `time`; return their number."""
        dropped = self.span(-1, time)
        if len(dropped) == len(self):
            self.clear()
        for place in dropped if self else ():
            del self[place]
        del self.places[: len(dropped)]
        return len(dropped)


class RowsByKey(dict[Any, RowsOfKey]):
    """Rows by key; `groups[key]` is the group of a key, which is read from the column family if it is not in memory.

    Parameters
    ----------
    keys, values : KeyCodec, ValueCodec
    family : ColumnFamily
        The persisted rows: key, then the two numbers of the position.
    second : struct format
        "I" or "q": the format of the second number of a position. The first number has 8 bytes.
    alive : callable
        Returns the first and the last time of rows that have not expired; only these are read.
    on_read : callable
        Called before persisted rows are read.
    lock : context manager
        Held while groups are created, loaded or evicted (see `Entries`).
    reads : ReadCounts
        Counts the reads of persisted rows by key.
    """

    def __init__(
        self,
        keys: KeyCodec,
        values: ValueCodec,
        family: ColumnFamily,
        second: str,
        *,
        alive: Callable[[], tuple[int, int]],
        on_read: Callable[[], None],
        lock: AbstractContextManager[Any],
        reads: ReadCounts,
    ) -> None:
        self._reads = reads
        self._keys = keys
        self._values = values
        self._family = family
        self._alive = alive
        self._on_read = on_read
        self.place = struct.Struct(">q" + second)
        self.complete = not family.durable
        self._lock = lock
        self.num_rows = 0
        self._changed: dict[tuple[Any, RowPosition], Any] = {}  # values of rows
        self._fresh = set[tuple[Any, RowPosition]]()  # new rows in `_changed`: their removal is not persisted
        self._unwritten: dict[tuple[Any, RowPosition], None] = {}  # returned as changes, and not persisted yet
        self._tails: dict[Any, RowsOfKey] = {}  # rows that are not persisted, of keys that are not in memory
        self._timeline: SortedKeys | None = None  # created by the first read by time
        self._untimed: list[tuple[Any, RowPosition]] = []  # rows that are not in `_timeline` yet

    def __missing__(self, key: object) -> RowsOfKey:
        with self._lock:
            if not self.complete:
                self._on_read()
            rows = self.get(key)
            if rows is not None:
                return rows
            group = self[key] = RowsOfKey() if self.complete else self._read(key)
            return group

    def _read(self, key: object) -> RowsOfKey:
        self._reads.misses += 1
        group = RowsOfKey()
        data = self._keys.to_bytes(key)
        size = self.place.size
        first_ms, last_ms = self._alive()  # excludes most of the longer keys with the same prefix
        low = self.place.pack(max(0, first_ms), 0)
        high = self.place.pack(last_ms + 1, 0)
        for chunk in self._family.chunks(data + low, data + high):
            for row_key, value in chunk.rows():
                if len(row_key) == len(data) + size:
                    group.add(self.place.unpack(row_key[-size:]), self._values.of_bytes(value))
        self.num_rows += len(group)
        self._take_tail(key, group)
        return group

    def _take_tail(self, key: object, group: RowsOfKey) -> None:
        """Move the rows that are not persisted into the group of a key. Some may have been persisted by now."""
        tail = self._tails.pop(key, _NOTHING)
        for place in tail.places:
            if place in group:
                self.num_rows -= 1
            else:
                group.add(place, tail[place])

    def peek(self, key: object) -> RowsOfKey:
        """Return the group of a key for reading only; no group is created."""
        was_complete = self.complete
        rows = self.get(key)
        if rows is not None:
            return rows
        return _NOTHING if was_complete and self.complete else self[key]

    def put(self, key: Any, place: RowPosition, value: Any) -> None:
        """Set the value of a key at a position; None removes it."""
        group = self[key]
        row = (key, place)
        changed = self._changed
        if value is None:
            self._remove(group, row)
        elif place in group:
            group[place] = changed[row] = value
        else:
            self._add(group, row, value)

    def append(self, key: Any, time: int, value: Any) -> None:
        """Add a value after those of its key and time, without reading the rows of a key that is not in memory."""
        group = self.get(key)
        if group is None:
            self._append_unread(key, time, value)
        else:
            self._add(group, (key, (time, group.after_last(time))), value)

    def _append_unread(self, key: Any, time: int, value: Any) -> None:
        with self._lock:
            group = self[key] if self.complete else self.get(key)
            if group is not None:
                second = group.after_last(time)
            else:
                group = self._tails.setdefault(key, RowsOfKey())
                second = group.after_last(time) or self._after_last_persisted(key, time)
            self._add(group, (key, (time, second)), value)

    def _after_last_persisted(self, key: Any, time: int) -> int:
        """Return the second number after the last persisted one of a key and time."""
        if time > self._family.observed_ms:  # the most frequent case: no row on disk is as late
            return 0
        data = self._keys.to_bytes(key)
        size = len(data) + self.place.size
        second = 0
        for chunk in self._family.chunks(data + self.place.pack(time, 0), data + self.place.pack(time + 1, 0)):
            for row_key in chunk.keys:
                if len(row_key) == size:
                    second = self.place.unpack(row_key[len(data) :])[1] + 1
        return second

    def _add(self, group: RowsOfKey, row: tuple[Any, RowPosition], value: Any) -> None:
        """Add a row at a new position."""
        group.add(row[1], value)
        self.num_rows += 1
        changed = self._changed
        if row not in changed:
            self._fresh.add(row)
        changed[row] = value
        if self._timeline is not None:
            self._untimed.append(row)

    def _remove(self, group: RowsOfKey, row: tuple[Any, RowPosition]) -> None:
        if row[1] in group:
            group.remove(row[1])
            self.num_rows -= 1
        if row in self._fresh:
            self._fresh.remove(row)
            del self._changed[row]
        else:
            self._changed[row] = None

    def take_changes(self, gone_ms: int) -> tuple[list[Any], list[RowPosition], list[Any]]:
        """Return the keys, positions and live values that changed since the last call.

        Rows that were added and removed since are left out, as are rows up to the time `gone_ms`, which have expired.
        """
        changed = {row: value for row, value in self._changed.items() if row[1][0] > gone_ms}
        self._changed = {}
        self._fresh = set()
        self._unwritten = self._unwritten | changed if self._unwritten else changed
        return [key for key, _ in changed], [place for _, place in changed], list(changed.values())

    def written(self) -> None:
        """Note that the changes from `take_changes` are persisted."""
        emptied = {key for key, _ in self._unwritten if not self.get(key, _NOTHING)}
        changing = {key for key, _ in self._changed} if emptied else ()
        for key in emptied.difference(changing):
            self.pop(key, None)
        self._unwritten = {}
        if self._tails:
            self._drop_persisted_tails()

    def _drop_persisted_tails(self) -> None:
        with self._lock:
            for key, tail in list(self._tails.items()):
                pending = RowsOfKey()
                for place in tail.places:
                    if (key, place) in self._changed:
                        pending.add(place, tail[place])
                self.num_rows -= len(tail) - len(pending)
                if pending:
                    self._tails[key] = pending
                else:
                    del self._tails[key]

    def num_pending(self) -> int:
        """Return the number of rows whose changes are not persisted."""
        return len(self._changed) + len(self._unwritten)

    def between(self, from_time: int, to_time: int) -> list[tuple[Any, RowPosition]]:
        """Return rows with from_time <= time <= to_time by (time, second, serialized key); some may be removed ones."""
        size = self.place.size
        of_bytes = self._keys.of_bytes
        low = self.place.pack(max(0, from_time), 0)
        high = self.place.pack(max(0, to_time + 1), 0)
        rows = self._in_time_order().between(low, high)
        return [(of_bytes(data[size:]), self.place.unpack(data[:size])) for data in rows]

    def _in_time_order(self) -> SortedKeys:
        to_bytes = self._keys.to_bytes
        pack = self.place.pack
        if self._timeline is None:
            rows = ((key, place) for key in self.every_key() for place in self[key].places)
            self._timeline = SortedKeys(pack(*place) + to_bytes(key) for key, place in rows)
        else:
            for key, place in self._untimed:
                self._timeline.add(pack(*place) + to_bytes(key))
        self._untimed.clear()
        return self._timeline

    def every_key(self) -> list[Any]:
        """Return all keys, live or persisted, in any order."""
        if not self.complete:
            self._on_read()
        keys = dict.fromkeys(self) | dict.fromkeys(self._tails)
        if not self.complete:
            size = self.place.size
            of_bytes = self._keys.of_bytes
            for chunk in self._family.chunks(b"", None):
                keys.update((of_bytes(data), None) for data in {data[:-size] for data in chunk.keys})
        return list(keys)

    def load(self, keys: list[Any], places: list[RowPosition], values: list[Any]) -> None:
        """Set rows; None removes."""
        fresh: dict[Any, RowsOfKey] = {}  # the rows of a key appear together, because other threads may read
        for key, place, value in zip(keys, places, values, strict=True):
            group = fresh.get(key) or self.get(key)
            if group is None:
                group = fresh[key] = RowsOfKey()
            self.num_rows -= len(group)
            if place in group:
                group.remove(place)
            if value is not None:
                group.add(place, value)
            self.num_rows += len(group)
        for key in list(self._tails):
            group = fresh.get(key) or self.get(key) or RowsOfKey()
            self._take_tail(key, group)
            fresh[key] = group
        self.update(fresh)
        self._timeline = None

    def drop_until(self, time: int) -> None:
        """Remove all rows with a time up to `time`."""
        self._timeline = None
        for groups in (self, self._tails):
            for key in list(groups):
                group = groups[key]
                self.num_rows -= group.drop_until(time)
                if not group:
                    del groups[key]

    def forget(self) -> None:
        """Remove all live rows, because the persisted rows were changed without them."""
        self.complete = False
        self.num_rows = 0
        self._timeline = None
        self.clear()

    def evict(self, count: int) -> int:
        """Evict about `count` rows of keys without pending changes; return their number."""
        with self._lock:
            pending = {key for key, _ in (*self._changed, *self._unwritten)}
            clean = list(islice((key for key in self if key not in pending), count))
            self.complete = self.complete and not clean
            evicted = 0
            for key in clean:
                if evicted >= count:
                    break
                evicted += len(self.pop(key))
            self.num_rows -= evicted
        return evicted


_NOTHING = RowsOfKey()
