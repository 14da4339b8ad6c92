"""`LiveWindowStore`: the window store whose rows are grouped by start: one value by key and window start."""

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
from kstreams.state.kinds.live_store import AT_ONCE, SAMPLE
from kstreams.state.kinds.window_reads import WindowReads, WindowRows
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.byte_columns import big_endian, cut, integers, join
from kstreams.state.rows.entries import Entries
from kstreams.state.rows.scan_order import scan_order, scans_by_segment


class StartsByKey(dict[Any, list[int]]):
    """The starts of every live key, ascending. It makes fetches cheap if nearly every record has a start of its own."""

    def note(self, key: object, start_ms: int) -> None:
        """Add the start of a key's window, if it is new."""
        starts = self.setdefault(key, [])
        place = bisect_left(starts, start_ms)
        if starts[place : place + 1] != [start_ms]:
            starts.insert(place, start_ms)

    def between(self, key: object, from_ms: int, to_ms: int) -> list[int]:
        """The starts of a key with from <= start <= to."""
        starts = self.get(key, [])
        return starts[bisect_left(starts, from_ms) : bisect_right(starts, to_ms)]

    def drop_until(self, keys: Iterable[Any], start_ms: int) -> None:
        """Drop the starts of keys up to this one."""
        for key in keys:
            starts = self.get(key, [])
            del starts[: bisect_right(starts, start_ms)]
            if not starts:
                self.pop(key, None)


def places_by_start(starts: list[int]) -> list[tuple[int, list[int]]]:
    """The places at which each start stands.

    Examples
    --------
    >>> places_by_start([5, 0, 5])
    [(5, [0, 2]), (0, [1])]
    """
    places = defaultdict[int, list[int]](list)
    for place, start_ms in enumerate(starts):
        places[start_ms].append(place)
    return list(places.items())


_NO_SEQUENCE = bytes(4)
_MANY_STARTS = 32
_MANY_ROWS = 16  # of a start


class LiveWindowStore(WindowReads):
    """Values by key and window start (see `WindowStore`), in a map of entries per start, which is called a frame.

    So windows of one start expire together, and windows that close at one time are adjacent. On disk the start comes
    before the key for the same reason; the changelog has Kafka Streams' order: key, start (8 bytes), sequence (4).
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.window_size_ms is None:
            raise StateError(f"window store {builder.name!r} needs window_size_ms")
        self._frames: dict[int, Entries] = {}
        self._starts: list[int] = []  # of the frames, ascending
        self._starts_by_key: StartsByKey | None = None  # made by the first fetch over many frames
        self._is_written_in_place = False  # by `frame`: then `_starts_by_key` would miss keys

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. Nothing happens when the window has expired."""
        if key is None:
            raise self._keys.missing()
        frame = self._frames.get(start_ms)
        if frame is None:
            frame = self._open(start_ms)
            if frame is None:
                return
        if (live := self._keys.live) is not None:
            key = live(key)
        if self._starts_by_key is not None and key not in frame:
            self._starts_by_key.note(key, start_ms)
        live = self._values.live
        frame[key] = value if live is None or value is None else live(value)
        frame.changed[key] = None

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of a key's window, or None. A caching store finds it even if it has just expired."""
        if key is None:
            raise self._keys.missing()
        if start_ms <= self.observed_ms - self._retention_ms and start_ms <= self._hidden_ms():
            return None
        frame = self._frame_at(start_ms)
        if frame is None:
            return None
        live = self._keys.live
        public = self._values.public
        value = frame[key if live is None else live(key)]
        return value if public is None or value is None else public(value)

    @property
    def has_plain_frames(self) -> bool:
        """Whether keys and values live as the objects that they are: then `frame` may be used."""
        return self._keys.direct and self._values.public is None and self._values.live is None

    def frame(self, start_ms: int) -> Entries:
        """The entries of one start, to be read and written in place until the next commit (see `Entries`).

        Nobody reads what is written to a window that has expired.
        """
        self._starts_by_key = None
        self._is_written_in_place = True
        frame = self._open(start_ms)
        return Entries(self._keys, self._values, self.family) if frame is None else frame

    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]:
        """The values of many windows, in their order."""
        results: list[Any] = [None] * len(keys)
        live = self._keys.live
        hidden_ms = self._hidden_ms()
        for start_ms, places in places_by_start(starts_ms):
            frame = self._frame_at(start_ms) if start_ms > hidden_ms else None
            if frame is None:
                continue
            frame_keys = [keys[place] for place in places]
            values = frame.read_many(frame_keys if live is None else list(map(live, frame_keys)))
            for place, value in zip(places, values, strict=True):
                results[place] = value
        return self._values.shown(results)

    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None:
        """Put many, in order; the latest window first, since its start decides which windows have expired."""
        live_key = self._keys.live
        live = self._values.live
        lives = keys if live_key is None else list(map(live_key, keys))
        if live_key is None and None in lives:
            raise self._keys.missing()
        live_values = values if live is None else [None if value is None else live(value) for value in values]
        for start_ms, places in sorted(places_by_start(starts_ms), reverse=True):
            frame = self._open(start_ms)
            if frame is None:
                break
            self._put_frame(
                frame, start_ms, [lives[place] for place in places], [live_values[place] for place in places]
            )

    def _put_frame(self, frame: Entries, start_ms: int, lives: list[Any], live_values: list[Any]) -> None:
        if self._starts_by_key is not None:
            for key in lives:
                self._starts_by_key.note(key, start_ms)
        frame.update(zip(lives, live_values, strict=True))
        frame.changed.update(dict.fromkeys(lives))

    def _windows_of(self, key: object, from_ms: int, to_ms: int, *, backward: bool) -> Iterator[tuple[int, Any]]:
        starts = self._starts_with(key, from_ms, to_ms)
        return self._values_at(key, reversed(starts) if backward else starts)

    def _values_at(self, key: object, starts: Iterable[int]) -> Iterator[tuple[int, Any]]:
        for start_ms in starts:
            value = self.get(key, start_ms)
            if value is not None:
                yield start_ms, value

    def _starts_with(self, key: object, from_ms: int, to_ms: int) -> list[int]:
        """Return the starts at which the key may have a window."""
        if key is None:
            raise self._keys.missing()
        self.ready()
        from_ms = max(from_ms, self._expired_ms() + 1)
        first = bisect_left(self._starts, from_ms)
        stop = bisect_right(self._starts, to_ms)
        starts_by_key = self._starts_by_key
        if starts_by_key is None and stop - first > _MANY_STARTS and not self._is_written_in_place:
            with self._lock:  # nothing is evicted meanwhile
                starts_by_key = self._starts_by_key = self._index()
        if starts_by_key is None:
            return self._starts[first:stop]
        live = self._keys.live
        return starts_by_key.between(key if live is None else live(key), from_ms, to_ms)

    def _index(self) -> StartsByKey | None:
        """Return the starts of every key, or None unless all are live."""
        if not all(frame.complete for frame in self._frames.values()):
            return None
        starts_by_key = StartsByKey()
        for start_ms in self._starts:
            for key in self._frames[start_ms]:
                starts_by_key.setdefault(key, []).append(start_ms)
        return starts_by_key

    def started_between(self, from_ms: int, to_ms: int) -> WindowRows:
        """All keys, from <= start <= to, by (start, serialized key): windows that close together are adjacent."""
        return self._in_start_order(ALL_KEYS, max(from_ms, self._expired_ms() + 1), to_ms, backward=False)

    def _windows_between(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        in_store_order = self._in_segment_order if scans_by_segment(self.builder) else self._in_start_order
        return in_store_order(keys, from_ms, to_ms, backward=backward)

    def _in_start_order(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        for start_ms in self._starts_between(from_ms, to_ms, backward=backward):
            for key, value in self._frame_rows(start_ms, keys, backward=backward):
                yield self._shown(key, start_ms, value)

    def _in_segment_order(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        length_ms = self._segment_ms or 1
        in_order = scan_order(self.builder)
        to_bytes = self._keys.to_bytes
        starts = self._starts_between(from_ms, to_ms, backward=backward)
        for _, segment in groupby(starts, lambda start_ms: start_ms // length_ms):
            rows = [(key, start_ms, value) for start_ms in segment for key, value in self._frame_rows(start_ms, keys)]
            rows.sort(key=lambda row: in_order(to_bytes(row[0]), row[1], 0), reverse=backward)
            for key, start_ms, value in rows:
                yield self._shown(key, start_ms, value)

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

    def _open(self, start_ms: int) -> Entries | None:
        """Return the frame of a start, which may be new; None if frames of this start are deleted already."""
        frame = self._frame_at(start_ms)
        if frame is not None:
            return frame
        if start_ms > self.observed_ms:
            self.observed_ms = start_ms
            self._expire()
        return None if start_ms <= self._deleted_ms() else self._add_frame(start_ms, complete=True)

    def _add_frame(self, start_ms: int, complete: bool) -> Entries:
        if start_ms < 0:
            raise StateError(f"window store {self.name!r} takes no window that starts before the epoch: {start_ms}")
        prefix = start_ms.to_bytes(8, "big")
        frame = Entries(self._keys, self._values, self.family, prefix=prefix, complete=complete, **self._access)
        self._frames[start_ms] = frame
        insort(self._starts, start_ms)
        return frame

    def _expire(self) -> None:
        """Drop the frames whose rows are deleted."""
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
        deleted_ms = max(-1, self._deleted_ms_at(self._handed_ms))
        pause_ms = self._retention_ms // 8 + 1
        if deleted_ms // pause_ms > self._swept_ms // pause_ms:
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
        self._take(self._keys.decode(cut(changes.keys, 0, -12)), starts.to_pylist(), values)
        self._expire()

    def _take(self, keys: list[Any], starts: list[int], values: list[Any]) -> None:
        deleted_ms = self._deleted_ms()
        for start_ms, places in places_by_start(starts):
            if start_ms > deleted_ms:
                if start_ms not in self._frames:
                    self._add_frame(start_ms, complete=not self.family.durable)
                self._frames[start_ms].load([keys[place] for place in places], [values[place] for place in places])

    def load(self, everything: bool) -> Iterator[int]:
        low = max(0, self._deleted_ms() + 1).to_bytes(8, "big")
        if everything:
            yield from self._load_backwards(low)
        else:
            self._note_starts(low)

    def _load_backwards(self, low: bytes) -> Iterator[int]:
        """Load the latest windows first, in one step if more starts than rows would have to be noted before."""
        are_noted = False
        loaded = 0
        for chunk in self.family.chunks(low, None, reverse=True):
            keys, values = chunk.columns()
            starts = integers(cut(keys, 0, 8)).to_pylist()
            self._take(self._keys.decode(cut(keys, 8)), starts, self._values.of_stored(values))
            loaded += len(chunk.values)
            if not are_noted and loaded >= max(AT_ONCE, _MANY_ROWS * len(self._frames)):
                self._note_starts(low)
                are_noted = True
            if are_noted:
                for start_ms in self._starts[bisect_right(self._starts, int.from_bytes(chunk.low[:8], "big")) :]:
                    self._frames[start_ms].complete = True
                yield loaded
                loaded = 0
        for frame in self._frames.values():
            frame.complete = True

    def _note_starts(self, low: bytes) -> None:
        """Make a frame for each persisted start. One read per start: a seek behind a start finds the next one."""
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

    def sample(self) -> list[tuple[Any, ...]]:
        rows = (row for start_ms in reversed(self._starts) for row in self._frames[start_ms].sample(SAMPLE))
        return list(islice(rows, SAMPLE))

    def evict(self, count: int) -> int:
        """The earliest windows first."""
        evicted = 0
        self._starts_by_key = None
        for start_ms in self._starts:
            if evicted >= count:
                break
            evicted += self._frames[start_ms].evict(count - evicted)
        return evicted
