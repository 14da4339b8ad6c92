"""Window stores of aggregations, plain, timestamped and with headers: one value by key and window start."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.record import Window, Windowed
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import KeyCodec, as_in_changelog, value_codec
from kstreams.state.column_family import ByteRows, ColumnFamily, all_rows
from kstreams.state.kinds.keyed_window_store import KeyedWindowStore
from kstreams.state.kinds.live_store import AT_ONCE, SAMPLE, LiveStore
from kstreams.state.kinds.rows_by_key_store import segment_ms
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.byte_columns import big_endian, cut, integers, join
from kstreams.state.rows.entries import Entries
from kstreams.state.rows.scan_order import scan_order, scans_by_segment


class StartsOfKeys(dict[Any, list[int]]):
    """The starts of every live key, ascending: what makes fetches cheap where nearly every record has its own."""

    def note(self, key: object, start_ms: int) -> None:
        """A key has a window at a start, perhaps known already."""
        starts = self.setdefault(key, [])
        place = bisect_left(starts, start_ms)
        if starts[place : place + 1] != [start_ms]:
            starts.insert(place, start_ms)

    def between(self, key: object, from_ms: int, to_ms: int) -> list[int]:
        """The starts of a key with from <= start <= to."""
        starts = self.get(key, [])
        return starts[bisect_left(starts, from_ms) : bisect_right(starts, to_ms)]

    def drop_until(self, keys: Iterable[Any], start_ms: int) -> None:
        """Forget the starts of keys up to this one."""
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


class SparseWindowStore(KeyedWindowStore):
    """One value by key and window start (see `WindowStore`).

    A map per start, which `LiveWindowStore` keeps, would hold one entry each here.
    """

    has_plain_frames = False

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Set the value of a key's window; None deletes it. Nothing happens when the window has expired."""
        if key is None:
            raise self._keys.missing()
        if self._observe(start_ms):
            self._groups.put(self._key(key), (start_ms, 0), self._held(value))

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of a key's window, or None. A caching store finds it even if it has just expired."""
        if key is None:
            raise self._keys.missing()
        if start_ms <= self._hidden_ms():
            return None
        return self._public(self._groups.peek(self._key(key)).get((start_ms, 0)))

    def latest_first(self, key: Any, from_ms: int, to_ms: int) -> dict[int, Any]:
        """What `get` gives of all windows that start between two times, by start, the latest first."""
        group = self._groups.peek(self._key(key))
        public = self._values.public
        limit_ms = self.observed_ms - self._retention_ms
        places = group.span(from_ms if from_ms > limit_ms else max(from_ms, self._hidden_ms() + 1), to_ms)
        places.reverse()
        if public is None:
            return {place[0]: group[place] for place in places}
        return {place[0]: public(group[place]) for place in places}

    def started_between(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """All keys, from <= start <= to, ordered by (start, serialized key): what closes at one time comes together.

        The first call makes an index by time, which stays in memory from then on.
        """
        for key, place in self._groups.between(max(from_ms, self._limit_ms() + 1), to_ms):
            value = self._groups.peek(key).get(place)
            if value is not None:
                yield self._shown(key, place[0], value)

    def _hidden_ms(self) -> int:
        """A cache of Kafka Streams still finds what has expired."""
        return self._gone_ms(self.observed_ms) if self.builder.caches else self._limit_ms()


class JoinWindowStore(KeyedWindowStore):
    """All values by key and start, in the order of their puts (see `WindowStore`); time is the start.

    A value is told from its twins by a sequence number, counted within its key and start: what a put does is then
    decided by the content of the store alone, and a replay writes the same bytes.
    """

    def put(self, key: Any, value: Any, start_ms: int) -> None:
        """Add a value; None is no value and changes nothing, nor does one that has expired."""
        if value is None or not self._observe(start_ms):
            return
        live = self._key(key)
        self._groups.put(live, (start_ms, self._groups[live].after_last(start_ms)), self._held(value))

    def get(self, key: Any, start_ms: int) -> Any:
        """The value put first at a start, or None."""
        return next((value for _, value in self.fetch(key, start_ms, start_ms)), None)


_NO_SEQUENCE = bytes(4)
_MANY_STARTS = 32
_MANY_ROWS = 16  # of a start


class LiveWindowStore(LiveStore):
    """Values by key and window start (see `WindowStore`): a map of entries per start.

    So a window that has expired goes as a whole, and what closes at one time is together. On disk the start comes
    before the key for the same reason; the changelog has Kafka Streams' order: key, start (8 bytes), sequence (4).
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.retention_ms is None or builder.window_size_ms is None:
            raise StateError(f"window store {builder.name!r} needs retention_ms and window_size_ms")
        self._retention_ms = builder.retention_ms
        self._size_ms = builder.window_size_ms
        self._segment_ms = segment_ms(builder)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = value_codec(builder)
        self._frames: dict[int, Entries] = {}
        self._starts: list[int] = []  # of the frames, ascending
        self._swept_ms = max(-1, self._gone_ms())  # starts up to here are deleted on disk too, or nearly
        self._starts_of: StartsOfKeys | None = None  # made when fetches need it
        self._is_written_in_place = False  # then no such map is kept

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
        if self._starts_of is not None and key not in frame:
            self._starts_of.note(key, start_ms)
        live = self._values.live
        frame[key] = value if live is None or value is None else live(value)
        frame.changed[key] = None

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of a key's window, or None. A caching store finds it even if it has just expired."""
        if key is None:
            raise self._keys.missing()
        if start_ms <= self.observed_ms - self._retention_ms and start_ms <= self._hidden_ms():
            return None
        frame = self._known(start_ms)
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

        What is written to a window that has expired goes nowhere.
        """
        self._starts_of = None
        self._is_written_in_place = True
        frame = self._open(start_ms)
        return Entries(self._keys, self._values, self.family) if frame is None else frame

    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]:
        """The values of many windows, in their order."""
        results: list[Any] = [None] * len(keys)
        live = self._keys.live
        hidden_ms = self._hidden_ms()
        for start_ms, places in places_by_start(starts_ms):
            frame = self._known(start_ms) if start_ms > hidden_ms else None
            if frame is None:
                continue
            frame_keys = [keys[place] for place in places]
            values = frame.read_many(frame_keys if live is None else list(map(live, frame_keys)))
            for place, value in zip(places, values, strict=True):
                results[place] = value
        return self._values.shown(results)

    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None:
        """Put many, in order; the latest window first, since what it lets expire is gone either way."""
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
        if self._starts_of is not None:
            for key in lives:
                self._starts_of.note(key, start_ms)
        frame.update(zip(lives, live_values, strict=True))
        frame.changed.update(dict.fromkeys(lives))

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """(start, value) of a key with from <= start <= to, ascending."""
        return self._fetch(key, self._starts_with(key, from_ms, to_ms))

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """`fetch` in descending order."""
        return self._fetch(key, reversed(self._starts_with(key, from_ms, to_ms)))

    def _fetch(self, key: Any, starts: Any) -> Iterator[tuple[int, Any]]:
        for start_ms in starts:
            value = self.get(key, start_ms)
            if value is not None:
                yield start_ms, value

    def _starts_with(self, key: object, from_ms: int, to_ms: int) -> list[int]:
        """Starts at which the key may have a window."""
        if key is None:
            raise self._keys.missing()
        self.ready()
        from_ms = max(from_ms, self._limit_ms() + 1)
        first = bisect_left(self._starts, from_ms)
        stop = bisect_right(self._starts, to_ms)
        starts_of = self._starts_of
        if starts_of is None and stop - first > _MANY_STARTS and not self._is_written_in_place:
            with self._lock:  # nothing is evicted meanwhile
                starts_of = self._starts_of = self._index()
        if starts_of is None:
            return self._starts[first:stop]
        live = self._keys.live
        return starts_of.between(key if live is None else live(key), from_ms, to_ms)

    def _index(self) -> StartsOfKeys | None:
        """The starts of every key, if all are live."""
        if not all(frame.complete for frame in self._frames.values()):
            return None
        starts_of = StartsOfKeys()
        for start_ms in self._starts:
            for key in self._frames[start_ms]:
                starts_of.setdefault(key, []).append(start_ms)
        return starts_of

    def started_between(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """All keys, from <= start <= to, ordered by (start, serialized key): what closes at one time comes together."""
        return self._in_start_order(max(from_ms, self._limit_ms() + 1), to_ms, (b"", None), reverse=False)

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """All keys, from <= start <= to, in the order of the store: see `scan_order`."""
        return self._scan(max(from_ms, self._limit_ms() + 1), to_ms)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """`fetch_all` in descending order."""
        return self._scan(max(from_ms, self._limit_ms() + 1), to_ms, reverse=True)

    def fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        return self._scan(max(from_ms, self._limit_ms() + 1), to_ms, self._keys.span(low, high))

    def backward_fetch_range(
        self, low: object, high: object, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """`fetch_range` in descending order."""
        return self._scan(max(from_ms, self._limit_ms() + 1), to_ms, self._keys.span(low, high), reverse=True)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Everything that is kept, in the order of `fetch_all`; a caching store shows what has expired too."""
        return self._scan(self._hidden_ms() + 1, self.observed_ms)

    def backward_all(self) -> Iterator[tuple[Windowed, Any]]:
        """`all` in descending order."""
        return self._scan(self._hidden_ms() + 1, self.observed_ms, reverse=True)

    def _hidden_ms(self) -> int:
        """`get` and `all` hide windows that start here or before; a cache of Kafka Streams finds what has expired."""
        return self._gone_ms() if self.builder.caches else self._limit_ms()

    def _scan(
        self, from_ms: int, to_ms: int, span: tuple[bytes, bytes | None] = (b"", None), reverse: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        in_store_order = self._in_segment_order if scans_by_segment(self.builder) else self._in_start_order
        return in_store_order(from_ms, to_ms, span, reverse)

    def _in_start_order(
        self, from_ms: int, to_ms: int, span: tuple[bytes, bytes | None], reverse: bool
    ) -> Iterator[tuple[Windowed, Any]]:
        for start_ms in self._known_starts(from_ms, to_ms, reverse):
            for key, value in self._frame_rows(start_ms, span, reverse):
                yield self._shown(key, start_ms, value)

    def _in_segment_order(
        self, from_ms: int, to_ms: int, span: tuple[bytes, bytes | None], reverse: bool
    ) -> Iterator[tuple[Windowed, Any]]:
        length_ms = segment_ms(self.builder) or 1
        in_order = scan_order(self.builder)
        to_bytes = self._keys.to_bytes
        for _, starts in groupby(self._known_starts(from_ms, to_ms, reverse), lambda start_ms: start_ms // length_ms):
            rows = [(key, start_ms, value) for start_ms in starts for key, value in self._frame_rows(start_ms, span)]
            for row in sorted(rows, key=lambda row: in_order(to_bytes(row[0]), row[1], 0), reverse=reverse):
                yield self._shown(*row)

    def _known_starts(self, from_ms: int, to_ms: int, reverse: bool) -> list[int]:
        self.ready()
        starts = self._starts[bisect_left(self._starts, from_ms) : bisect_right(self._starts, to_ms)]
        return starts[::-1] if reverse else starts

    def _frame_rows(
        self, start_ms: int, span: tuple[bytes, bytes | None], reverse: bool = False
    ) -> Iterator[tuple[Any, Any]]:
        frame = self._frames.get(start_ms)
        return iter(()) if frame is None else frame.scan(*span, reverse)

    def _shown(self, key: object, start_ms: int, value: object) -> tuple[Windowed, Any]:
        key_of = self._keys.public
        value_of = self._values.public
        window = Window(start_ms, start_ms + self._size_ms)
        windowed = Windowed(key if key_of is None else key_of(key), window)
        return windowed, value if value_of is None else value_of(value)

    def _limit_ms(self) -> int:
        """Windows that start here or before have expired: nobody finds them any more."""
        return self.observed_ms - self._retention_ms

    def _gone_ms(self, observed_ms: int | None = None) -> int:
        """Windows that start here or before are gone, with their segment."""
        limit_ms = (self.observed_ms if observed_ms is None else observed_ms) - self._retention_ms
        return limit_ms if self._segment_ms is None else limit_ms // self._segment_ms * self._segment_ms - 1

    def _known(self, start_ms: int) -> Entries | None:
        """The frame of a start, when there is one."""
        frame = self._frames.get(start_ms)
        if frame is None:
            self.ready()
            frame = self._frames.get(start_ms)
        return frame

    def _open(self, start_ms: int) -> Entries | None:
        """The frame of a start, new if need be; None when it has expired."""
        frame = self._known(start_ms)
        if frame is not None:
            return frame
        if start_ms > self.observed_ms:
            self.observed_ms = start_ms
            self._expire()
        return None if start_ms <= self._gone_ms() else self._add_frame(start_ms, complete=True)

    def _add_frame(self, start_ms: int, complete: bool) -> Entries:
        if start_ms < 0:
            raise StateError(f"window store {self.name!r} takes no window that starts before the epoch: {start_ms}")
        prefix = start_ms.to_bytes(8, "big")
        frame = Entries(self._keys, self._values, self.family, prefix=prefix, complete=complete, **self._access)
        self._frames[start_ms] = frame
        insort(self._starts, start_ms)
        return frame

    def _expire(self) -> None:
        """Drop the frames that are gone."""
        count = bisect_right(self._starts, self._gone_ms())
        for start_ms in self._starts[:count]:
            frame = self._frames.pop(start_ms)
            if self._starts_of is not None:
                self._starts_of.drop_until(frame, start_ms)
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
        gone_ms = max(-1, self._gone_ms(self._handed_ms))
        pause_ms = self._retention_ms // 8 + 1
        if gone_ms // pause_ms > self._swept_ms // pause_ms:
            self.family.delete_range(bytes(8), (gone_ms + 1).to_bytes(8, "big"))
        self._swept_ms = gone_ms

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
            self._starts_of = None
            self.reload()
            return
        self._starts_of = None
        values = self._values.of_stored(self._values.stored(changes.values, changes.timestamps))
        self._take(self._keys.decode(cut(changes.keys, 0, -12)), starts.to_pylist(), values)
        self._expire()

    def _take(self, keys: list[Any], starts: list[int], values: list[Any]) -> None:
        gone_ms = self._gone_ms()
        for start_ms, places in places_by_start(starts):
            if start_ms > gone_ms:
                if start_ms not in self._frames:
                    self._add_frame(start_ms, complete=not self.family.durable)
                self._frames[start_ms].load([keys[place] for place in places], [values[place] for place in places])

    def load(self, everything: bool) -> Iterator[int]:
        low = max(0, self._gone_ms() + 1).to_bytes(8, "big")
        if everything:
            yield from self._load_backwards(low)
        else:
            self._note_starts(low)

    def _load_backwards(self, low: bytes) -> Iterator[int]:
        """The latest windows first; in one go where too many starts would have to be noted before."""
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
        """Make frames for what is persisted: the first key of a start leads to the next start."""
        while (first_row := self.family.first_from(low)) is not None:
            start_ms = int.from_bytes(first_row[:8], "big")
            if start_ms not in self._frames:
                self._add_frame(start_ms, complete=False)
            low = (start_ms + 1).to_bytes(8, "big")

    def dump(self) -> Changes:
        hidden_ms = self._gone_ms() if self.builder.time_ordered else self._hidden_ms()
        if self.family.frozen:
            return self._persisted_from(max(0, hidden_ms + 1))
        visible_starts = self._known_starts(hidden_ms + 1, self.observed_ms, reverse=False)
        rows = [
            (key, start_ms, value)
            for start_ms in visible_starts
            for key, value in self._frame_rows(start_ms, (b"", None))
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
        self._starts_of = None
        for start_ms in self._starts:
            if evicted >= count:
                break
            evicted += self._frames[start_ms].evict(count - evicted)
        return evicted
