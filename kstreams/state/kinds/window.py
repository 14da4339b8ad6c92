"""`LiveWindowStore`: the window store of aggregations: one value per key and window start, grouped by start."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import ALL_KEYS, KeyRange, as_in_changelog
from kstreams.state.column_family import ByteRows, ColumnFamily, all_rows
from kstreams.state.kinds.live_store import ROWS_OF_FIRST_READ, SAMPLED_ROWS
from kstreams.state.kinds.window_reads import WindowReads, WindowRows
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.byte_columns import big_endian, cut, integers, join
from kstreams.state.rows.entries import Entries
from kstreams.state.rows.scan_order import scan_order, scans_by_segment


class StartsByKey(dict[Any, list[int]]):
    """The window starts of every live key, ascending. It makes fetches fast if few windows share a start."""

    def note(self, key: object, start_ms: int) -> None:
        """Add the start of a key's window, unless it is known."""
        starts = self.setdefault(key, [])
        index = bisect_left(starts, start_ms)
        if starts[index : index + 1] != [start_ms]:
            starts.insert(index, start_ms)

    def between(self, key: object, from_ms: int, to_ms: int) -> list[int]:
        """Return the starts of a key with from_ms <= start <= to_ms."""
        starts = self.get(key, [])
        return starts[bisect_left(starts, from_ms) : bisect_right(starts, to_ms)]

    def drop_until(self, keys: Iterable[Any], start_ms: int) -> None:
        """Drop the starts of some keys up to `start_ms`."""
        for key in keys:
            starts = self.get(key, [])
            del starts[: bisect_right(starts, start_ms)]
            if not starts:
                self.pop(key, None)


def indices_by_start(starts: list[int]) -> list[tuple[int, list[int]]]:
    """Return the indices at which each start occurs.

    Examples
    --------
    >>> indices_by_start([5, 0, 5])
    [(5, [0, 2]), (0, [1])]
    """
    indices = defaultdict[int, list[int]](list)
    for index, start_ms in enumerate(starts):
        indices[start_ms].append(index)
    return list(indices.items())


_NO_SEQUENCE = bytes(4)
_STARTS_WORTH_AN_INDEX = 32
_ROWS_PER_NOTED_START = 16  # to note a start, which is a seek on disk, pays off from this number of rows on


class LiveWindowStore(WindowReads):
    """Values by key and window start (see `WindowStore`). The entries of one start are called a frame.

    So windows of one start expire together, and windows that close at one time are adjacent. On disk the start precedes
    the key for the same reason. A changelog key has the format of Kafka Streams: key, start (8 bytes), sequence (4).
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.window_size_ms is None:
            raise StateError(f"the window store {builder.name!r} has no window_size_ms: give the size of its windows")
        self._frames: dict[int, Entries] = {}
        self._starts: list[int] = []
        """The starts of the frames, ascending."""
        self._starts_by_key: StartsByKey | None = None
        """An index that the first fetch over many frames builds."""
        self._frames_are_shared = False
        """True once `frame` was called: an index by key would miss the keys that its callers write."""

    def put(self, key: object, value: object, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. Nothing happens when the window has expired."""
        if key is None:
            raise self._keys.missing()
        frame = self._frames.get(start_ms)
        if frame is None:
            frame = self._open_frame(start_ms)
            if frame is None:
                return
        if (key_to_live := self._keys.live) is not None:
            key = key_to_live(key)
        if self._starts_by_key is not None and key not in frame:
            self._starts_by_key.note(key, start_ms)
        to_live = self._values.live
        frame[key] = value if to_live is None or value is None else to_live(value)
        frame.changed[key] = None

    def get(self, key: object, start_ms: int) -> Any:
        """Return the value of a key's window, or None. A caching store returns it even if it has just expired."""
        if key is None:
            raise self._keys.missing()
        if start_ms <= self.observed_ms - self._retention_ms and start_ms <= self._hidden_ms():
            return None
        frame = self._frame_at(start_ms)
        if frame is None:
            return None
        key_to_live = self._keys.live
        to_public = self._values.public
        value = frame[key if key_to_live is None else key_to_live(key)]
        return value if to_public is None or value is None else to_public(value)

    @property
    def has_plain_frames(self) -> bool:
        """True if keys and values are in memory as the objects that were put: then `frame` may be used."""
        return self._keys.direct and self._values.public is None and self._values.live is None

    def frame(self, start_ms: int) -> Entries:
        """Return the entries of one start, which the caller may read and write until the next commit (see `Entries`).

        If the start has expired, the entries are not part of the store and writes have no effect.
        """
        self._starts_by_key = None
        self._frames_are_shared = True
        frame = self._open_frame(start_ms)
        return Entries(self._keys, self._values, self.family) if frame is None else frame

    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]:
        """Return the values of many windows, in the order of the arguments."""
        results: list[Any] = [None] * len(keys)
        key_to_live = self._keys.live
        hidden_ms = self._hidden_ms()
        for start_ms, indices in indices_by_start(starts_ms):
            frame = self._frame_at(start_ms) if start_ms > hidden_ms else None
            if frame is None:
                continue
            frame_keys = [keys[index] for index in indices]
            values = frame.read_many(frame_keys if key_to_live is None else list(map(key_to_live, frame_keys)))
            for index, value in zip(indices, values, strict=True):
                results[index] = value
        return self._values.shown(results)

    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None:
        """Put many values, the latest window first: its start decides which windows have expired."""
        key_to_live = self._keys.live
        to_live = self._values.live
        live_keys = keys if key_to_live is None else list(map(key_to_live, keys))
        if key_to_live is None and None in live_keys:
            raise self._keys.missing()
        live_values = values if to_live is None else [None if value is None else to_live(value) for value in values]
        for start_ms, indices in sorted(indices_by_start(starts_ms), reverse=True):
            frame = self._open_frame(start_ms)
            if frame is None:
                break
            self._put_frame(
                frame, start_ms, [live_keys[index] for index in indices], [live_values[index] for index in indices]
            )

    def _put_frame(self, frame: Entries, start_ms: int, live_keys: list[Any], live_values: list[Any]) -> None:
        if self._starts_by_key is not None:
            for key in live_keys:
                self._starts_by_key.note(key, start_ms)
        frame.update(zip(live_keys, live_values, strict=True))
        frame.changed.update(dict.fromkeys(live_keys))

    def _windows_of(self, key: object, from_ms: int, to_ms: int, *, backward: bool) -> Iterator[tuple[int, Any]]:
        starts = self._possible_starts(key, from_ms, to_ms)
        return self._values_at(key, reversed(starts) if backward else starts)

    def _values_at(self, key: object, starts: Iterable[int]) -> Iterator[tuple[int, Any]]:
        for start_ms in starts:
            value = self.get(key, start_ms)
            if value is not None:
                yield start_ms, value

    def _possible_starts(self, key: object, from_ms: int, to_ms: int) -> list[int]:
        """Return the starts at which the key may have a window."""
        if key is None:
            raise self._keys.missing()
        self.ready()
        from_ms = max(from_ms, self._expired_ms() + 1)
        first = bisect_left(self._starts, from_ms)
        stop = bisect_right(self._starts, to_ms)
        starts_by_key = self._starts_by_key
        if starts_by_key is None and stop - first > _STARTS_WORTH_AN_INDEX and not self._frames_are_shared:
            with self._lock:  # so that no row is evicted meanwhile
                starts_by_key = self._starts_by_key = self._index_starts()
        if starts_by_key is None:
            return self._starts[first:stop]
        return starts_by_key.between(self._keys.to_live(key), from_ms, to_ms)

    def _index_starts(self) -> StartsByKey | None:
        """Return the starts of every key, or None if some rows are only on disk."""
        if not all(frame.complete for frame in self._frames.values()):
            return None
        starts_by_key = StartsByKey()
        for start_ms in self._starts:
            for key in self._frames[start_ms]:
                starts_by_key.setdefault(key, []).append(start_ms)
        return starts_by_key

    def first_rows(
        self, start_ms: int, low: bytes, high: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[Any, Any]]:
        """Return (key, value) of the windows of one start with serialized keys in [low, high).

        For operators that read few of them. The caller does not write to the store between two rows.
        """
        frame = self._frame_at(start_ms)
        rows = iter(()) if frame is None else frame.first_rows(low, high, reverse)
        to_key = self._keys.to_public
        to_value = self._values.to_public
        return ((to_key(key), to_value(value)) for key, value in rows)

    def started_between(self, from_ms: int, to_ms: int) -> WindowRows:
        """Return the windows of all keys with from_ms <= start <= to_ms, ordered by start and serialized key.

        Windows that close together are adjacent.
        """
        return self._in_start_order(ALL_KEYS, max(from_ms, self._expired_ms() + 1), to_ms, backward=False)

    def _windows_between(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        in_store_order = self._in_segment_order if scans_by_segment(self.builder) else self._in_start_order
        return in_store_order(keys, from_ms, to_ms, backward=backward)

    def _in_start_order(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        for start_ms in self._starts_between(from_ms, to_ms, backward=backward):
            for key, value in self._frame_rows(start_ms, keys, backward=backward):
                yield self._public_row(key, start_ms, value)

    def _in_segment_order(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        length_ms = self._segment_ms or 1
        in_order = scan_order(self.builder)
        to_bytes = self._keys.to_bytes
        starts = self._starts_between(from_ms, to_ms, backward=backward)
        for _, segment in groupby(starts, lambda start_ms: start_ms // length_ms):
            rows = [(key, start_ms, value) for start_ms in segment for key, value in self._frame_rows(start_ms, keys)]
            rows.sort(key=lambda row: in_order(to_bytes(row[0]), row[1], 0), reverse=backward)
            for key, start_ms, value in rows:
                yield self._public_row(key, start_ms, value)

    def _starts_between(self, from_ms: int, to_ms: int, *, backward: bool = False) -> list[int]:
        self.ready()
        starts = self._starts[bisect_left(self._starts, from_ms) : bisect_right(self._starts, to_ms)]
        return starts[::-1] if backward else starts

    def _frame_rows(self, start_ms: int, keys: KeyRange, *, backward: bool = False) -> Iterator[tuple[Any, Any]]:
        frame = self._frames.get(start_ms)
        return iter(()) if frame is None else frame.scan(*keys, backward)

    def _frame_at(self, start_ms: int) -> Entries | None:
        """Return the frame of a start, or None."""
        frame = self._frames.get(start_ms)
        if frame is None:
            self.ready()
            frame = self._frames.get(start_ms)
        return frame

    def _open_frame(self, start_ms: int) -> Entries | None:
        """Return the frame of a start, and create it if necessary; None if its rows are deleted already."""
        frame = self._frame_at(start_ms)
        if frame is not None:
            return frame
        if start_ms > self.observed_ms:
            self.observed_ms = start_ms
            self._drop_deleted_frames()
        return None if start_ms <= self._deleted_ms() else self._add_frame(start_ms, complete=True)

    def _add_frame(self, start_ms: int, complete: bool) -> Entries:
        if start_ms < 0:
            raise StateError(
                f"the window store {self.name!r} got a window that starts at {start_ms} ms, before the epoch: "
                "put windows that start at 0 or later"
            )
        prefix = start_ms.to_bytes(8, "big")
        frame = Entries(self._keys, self._values, self.family, prefix=prefix, complete=complete, **self._access)
        self._frames[start_ms] = frame
        insort(self._starts, start_ms)
        return frame

    def _drop_deleted_frames(self) -> None:
        """Drop the frames of starts whose rows are to be deleted."""
        count = bisect_right(self._starts, self._deleted_ms())
        for start_ms in self._starts[:count]:
            frame = self._frames.pop(start_ms)
            if self._starts_by_key is not None:
                self._starts_by_key.drop_until(frame, start_ms)
        del self._starts[:count]

    def take_changes(self, timestamp_ms: int) -> Changes:
        keys = []
        starts = []
        values = []
        for start_ms, frame in self._frames.items():
            if frame.changed or frame.num_pending():
                changed, live_values = frame.take_changes()
                keys += changed
                values += live_values
                starts += [start_ms] * len(changed)
        return self._records(keys, starts, values, timestamp_ms)

    def _records(self, keys: list[Any], starts: list[int], values: list[Any], timestamp_ms: int) -> Changes:
        column = pa.array(starts, pa.int64())
        encoded, timestamps = self._values.encode(values, timestamp_ms)
        timestamps = timestamps if self.builder.kind.timestamped else column
        return Changes(join(self._keys.encode(keys), big_endian(column), _NO_SEQUENCE), encoded, timestamps)

    def rows(self, changes: Changes) -> ByteRows:
        keys = join(cut(changes.keys, -12, -4), cut(changes.keys, 0, -12))
        return ByteRows(keys, self._values.stored(changes.values, changes.timestamps))

    def write(self, changes: Changes | None, offset: int | None) -> None:
        super().write(changes, offset)
        deleted_ms = max(-1, self._deleted_ms_at(self._changes_observed_ms))
        sweep_interval_ms = self._retention_ms // 8 + 1
        if deleted_ms // sweep_interval_ms > self._swept_ms // sweep_interval_ms:
            self.family.delete_range(bytes(8), (deleted_ms + 1).to_bytes(8, "big"))
        self._swept_ms = deleted_ms

    def written(self) -> None:
        for frame in self._frames.values():
            if frame.num_pending():
                frame.written()

    def apply(self, changes: Changes) -> None:
        starts = integers(cut(changes.keys, -12, -4))
        self.observed_ms = max(self.observed_ms, int(np.max(np.asarray(starts), initial=-1)))
        if self.family.durable:
            self._frames = {}
            self._starts = []
            self._starts_by_key = None
            self.reload()
            return
        self._starts_by_key = None
        values = self._values.of_stored(self._values.stored(changes.values, changes.timestamps))
        self._load_rows(self._keys.decode(cut(changes.keys, 0, -12)), starts.to_pylist(), values)
        self._drop_deleted_frames()

    def _load_rows(self, keys: list[Any], starts: list[int], values: list[Any]) -> None:
        deleted_ms = self._deleted_ms()
        for start_ms, indices in indices_by_start(starts):
            if start_ms > deleted_ms:
                if start_ms not in self._frames:
                    self._add_frame(start_ms, complete=not self.family.durable)
                self._frames[start_ms].load([keys[index] for index in indices], [values[index] for index in indices])

    def load(self, everything: bool) -> Iterator[int]:
        low = max(0, self._deleted_ms() + 1).to_bytes(8, "big")
        if everything:
            yield from self._load_backwards(low)
        else:
            self._note_starts(low)

    def _load_backwards(self, low: bytes) -> Iterator[int]:
        """Load all rows, the latest windows first.

        Before the first step ends, a frame is created for each persisted start. If the starts have few rows, this would
        take longer than to load the rows: then there is one step, which loads all of them.
        """
        starts_are_noted = False
        loaded = 0
        for chunk in self.family.chunks(low, None, reverse=True):
            keys, values = chunk.columns()
            starts = integers(cut(keys, 0, 8)).to_pylist()
            self._load_rows(self._keys.decode(cut(keys, 8)), starts, self._values.of_stored(values))
            loaded += len(chunk.values)
            if not starts_are_noted and loaded >= max(ROWS_OF_FIRST_READ, _ROWS_PER_NOTED_START * len(self._frames)):
                self._note_starts(low)
                starts_are_noted = True
            if starts_are_noted:
                for start_ms in self._starts[bisect_right(self._starts, int.from_bytes(chunk.low[:8], "big")) :]:
                    self._frames[start_ms].complete = True
                yield loaded
                loaded = 0
        for frame in self._frames.values():
            frame.complete = True

    def _note_starts(self, low: bytes) -> None:
        """Create a frame for each persisted start, with one seek per start."""
        while (first_row := self.family.first_from(low)) is not None:
            start_ms = int.from_bytes(first_row[:8], "big")
            if start_ms not in self._frames:
                self._add_frame(start_ms, complete=False)
            low = (start_ms + 1).to_bytes(8, "big")

    def dump(self) -> Changes:
        hidden_ms = self._deleted_ms() if self.builder.time_ordered else self._hidden_ms()
        if self.family.frozen:
            return self._persisted_from(max(0, hidden_ms + 1))
        visible_starts = self._starts_between(hidden_ms + 1, self.observed_ms)
        rows = [
            (key, start_ms, value) for start_ms in visible_starts for key, value in self._frame_rows(start_ms, ALL_KEYS)
        ]
        keys, starts, values = ([row[part] for row in rows] for part in range(3))
        return self._records(keys, starts, values, 0)

    def _persisted_from(self, from_ms: int) -> Changes:
        keys, data = all_rows(self.family, from_ms.to_bytes(8, "big"))
        starts = cut(keys, 0, 8)
        return Changes(join(cut(keys, 8), starts, _NO_SEQUENCE), *as_in_changelog(self.builder, data, integers(starts)))

    def num_pending(self) -> int:
        return sum(frame.num_pending() for frame in self._frames.values())

    def num_live(self) -> int:
        return sum(map(len, self._frames.values()))

    def sample(self) -> list[tuple[object, ...]]:
        rows = (row for start_ms in reversed(self._starts) for row in self._frames[start_ms].sample(SAMPLED_ROWS))
        return list(islice(rows, SAMPLED_ROWS))

    def evict(self, count: int) -> int:
        """Evict the rows of the earliest windows first."""
        evicted = 0
        self._starts_by_key = None
        for start_ms in self._starts:
            if evicted >= count:
                break
            evicted += self._frames[start_ms].evict(count - evicted)
        return evicted
