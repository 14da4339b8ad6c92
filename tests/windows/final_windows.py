"""The final windows of some records, in plain Python: no store, nothing that expires, only lists.

What `EmitStrategy.ON_WINDOW_CLOSE` must emit is compared with this, on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import kstreams as ks


class Final(NamedTuple):
    """One closed window: what is emitted of it, and the position of the record by which it closes."""

    closed_by: int
    key: str
    start_ms: int
    end_ms: int
    value: Any
    timestamp_ms: int


class Fold(NamedTuple):
    """How values are aggregated; `merge` is for sessions alone. A step or merge to None deletes."""

    initial: Callable[[], Any]
    step: Callable[[str, Any, Any], Any]
    merge: Callable[[str, Any, Any], Any] | None = None


COUNT = Fold(lambda: 0, lambda key, value, count: count + 1, lambda key, a, b: a + b)

Record = tuple[str | None, Any, int]
"""Key, value and event time."""


class Entry(NamedTuple):
    """An open window of a key."""

    key: str
    start_ms: int
    end_ms: int
    value: Any
    timestamp_ms: int


def final_windows(windows: ks.Windows, records: Iterable[Record], fold: Fold = COUNT) -> list[Final]:
    """All windows in the order in which they close; at the end of the input those that are still open."""
    return list(_WAYS[type(windows)](windows, list(records), fold))


def _timed(records: list[Record], *, values: bool = False) -> Iterator[tuple[int, str, Any, int, int]]:
    """Position, key, value and time of the records that are taken, and the stream time with each."""
    stream_time = -1
    for at, (key, value, time) in enumerate(records):
        if key is not None and (value is not None or not values):
            stream_time = max(stream_time, time)
            yield at, key, value, time, stream_time


def _closed(at: int, entries: Iterable[Entry], *, by_end: bool = False) -> Iterator[Final]:
    ranks = {entry: (entry.end_ms, entry.start_ms) if by_end else (entry.start_ms,) for entry in entries}
    for entry in sorted(ranks, key=lambda entry: (ranks[entry], entry.key.encode())):
        yield Final(at, *entry)


def _fixed(windows: ks.TimeWindows, records: list[Record], fold: Fold) -> Iterator[Final]:
    still_open: dict[tuple[str, int], Entry] = {}
    for at, key, value, time, stream_time in _timed(records):
        over = [entry for entry in still_open.values() if entry.end_ms + windows.grace_ms <= stream_time]
        yield from _closed(at, over)
        for entry in over:
            del still_open[entry.key, entry.start_ms]
        for start in range(0, time + 1, windows.advance_ms)[-1 - windows.size_ms // windows.advance_ms :]:
            end = start + windows.size_ms
            if time < end and end + windows.grace_ms > stream_time:
                before = still_open.pop((key, start), None) or Entry(key, start, end, fold.initial(), time)
                new = fold.step(key, value, before.value)
                if new is not None:
                    still_open[key, start] = Entry(key, start, end, new, max(time, before.timestamp_ms))
    yield from _closed(len(records), still_open.values())


def _sessions(windows: ks.SessionWindows, records: list[Record], fold: Fold) -> Iterator[Final]:
    assert fold.merge is not None
    still_open: list[Entry] = []
    for at, key, value, time, stream_time in _timed(records):
        closed_ms = stream_time - windows.gap_ms - windows.grace_ms  # what ended before
        yield from _closed(at, [entry for entry in still_open if entry.end_ms < closed_ms], by_end=True)
        still_open = [entry for entry in still_open if entry.end_ms >= closed_ms]
        near = [
            entry
            for entry in sorted(still_open, key=lambda entry: (entry.end_ms, entry.start_ms))
            if entry.key == key and time - windows.gap_ms <= entry.end_ms and entry.start_ms <= time + windows.gap_ms
        ]
        start, end = min([time, *(entry.start_ms for entry in near)]), max([time, *(entry.end_ms for entry in near)])
        if end < closed_ms:
            continue
        aggregate = fold.initial()
        for entry in near:
            aggregate = fold.merge(key, aggregate, entry.value)
        aggregate = fold.step(key, value, aggregate)
        still_open = [entry for entry in still_open if entry not in near]
        if aggregate is not None:
            still_open.append(Entry(key, start, end, aggregate, end))
    yield from _closed(len(records), still_open, by_end=True)


def _sliding(windows: ks.SlidingWindows, records: list[Record], fold: Fold) -> Iterator[Final]:
    difference, still_open_ms = windows.difference_ms, -1
    kept: dict[tuple[str, int], Entry] = {}
    for at, key, value, time, stream_time in _timed(records, values=True):
        closed_ms, still_open_ms = still_open_ms, stream_time - windows.grace_ms - difference
        yield from _closed(at, [entry for entry in kept.values() if closed_ms <= entry.start_ms < still_open_ms])
        if time < still_open_ms:
            continue
        ours = {start: entry for (owner, start), entry in kept.items() if owner == key}
        for start, before in _changed(ours, time, difference).items():
            if start > time and before is not None:  # it lies behind the record: the part of a longer one
                kept[key, start] = before._replace(start_ms=start, end_ms=start + difference)
            elif start >= still_open_ms:
                kept.pop((key, start), None)
                old, latest = (fold.initial(), time) if before is None else (before.value, before.timestamp_ms)
                new = fold.step(key, value, old)
                if new is not None:
                    kept[key, start] = Entry(key, start, start + difference, new, max(time, latest))
    yield from _closed(len(records), [entry for entry in kept.values() if entry.start_ms >= still_open_ms])


def _changed(kept: dict[int, Entry], time: int, difference: int) -> dict[int, Entry | None]:
    """The windows of a key that a record changes, by start, each with what it goes on from.

    There is one that ends with each record, and one behind it once a later record lies in that. All that would begin
    before the epoch are one, which begins there.
    """
    own = max(0, time - difference)
    changed: dict[int, Entry | None] = {start: kept[start] for start in kept if own <= start <= time}
    if time >= difference and own in kept and kept[own].timestamp_ms == time:
        return changed  # an earlier record of the same time has made all there is to make
    around = kept.get(max(changed, default=own))
    previous = kept.get(max((start for start in kept if time - 2 * difference <= start < own), default=own))
    if previous is not None and own - 1 <= previous.timestamp_ms < time:
        changed.setdefault(previous.timestamp_ms + 1, None)
    if own not in kept:
        changed[own] = previous if previous is not None and previous.timestamp_ms >= own else None
    if around is not None and around.timestamp_ms > time and time + 1 not in kept:
        changed[time + 1] = around
    return changed


_WAYS: dict[type, Callable[[Any, list[Record], Fold], Iterator[Final]]] = {
    ks.TimeWindows: _fixed,
    ks.SlidingWindows: _sliding,
    ks.SessionWindows: _sessions,
}
