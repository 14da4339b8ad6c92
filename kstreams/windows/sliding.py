"""Sliding windows: which windows a record of a key falls into, and what those that are new begin with.

Only windows that hold something are kept: for each record at t the one that ends at t ("left", [t - d, t]), and the one
that starts behind it ("right", [t + 1, t + 1 + d]) once a later record falls into it. All records before d share one
window [0, d], since none starts before the epoch. The order is that in which Kafka Streams emits them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

SavedState: TypeAlias = tuple[int, int]
"""A window that is kept already: its start, and the greatest time of a record in it."""

Placement: TypeAlias = tuple[int, int | None, bool]
"""One window that changes: its start; the start of the kept window whose aggregate it begins with (itself if it is kept
already, None if it begins anew); and whether the record is in it, or lies before it and is the reason to cut it out."""


def placements(windows: Iterable[SavedState], time_ms: int, difference_ms: int) -> list[Placement]:
    """The windows that a record changes, in the order in which they do.

    Parameters
    ----------
    kept : iterable of (start, latest time)
        Windows of its key with time - 2 * difference <= start <= time + 1, the latest first.
    time_ms : int
        Of the record.
    difference_ms : int
        Of the windows.

    Examples
    --------
    The first record fills the window that ends with it; the next one also a new window behind the first. One between
    them falls into all three, and has both a window that ends with it and one behind it, cut out of the longer one.

    >>> placements([], 20, 10)
    [(10, None, True)]
    >>> placements([(10, 20)], 25, 10)
    [(21, None, True), (15, 10, True)]
    >>> placements([(21, 25), (15, 25), (10, 20)], 22, 10)
    [(21, 21, True), (15, 15, True), (12, 10, True), (23, 21, False)]
    """
    return (_early if time_ms < difference_ms else _placed)(windows, time_ms, difference_ms)


def _placed(windows: Iterable[SavedState], time_ms: int, difference_ms: int) -> list[Placement]:
    left_ms = time_ms - difference_ms
    right_ms = time_ms + 1
    placed: list[Placement] = []
    starts: set[int] = set()
    around: SavedState | None = None  # the latest window that the record lies in, but not at its end
    before: SavedState | None = None  # the latest one that ended before, else the one that ends with the record
    for window in windows:
        start_ms = window[0]
        starts.add(start_ms)
        if start_ms == right_ms:
            continue
        if start_ms <= left_ms:
            before = window
        if start_ms < left_ms:
            break
        placed.append((start_ms, start_ms, True))
        if window == (left_ms, time_ms):
            return placed  # an earlier record of the same time has made all there is to make
        around = around or (window if start_ms > left_ms else None)
    placed += _new(before, starts, left_ms)
    if right_ms not in starts and around is not None and around[1] > time_ms:
        placed.append((right_ms, around[0], False))
    return placed


def _new(before: SavedState | None, starts: set[int], left_ms: int) -> list[Placement]:
    """The window behind the record before, and the one that ends with the record, where they are not kept yet."""
    placed: list[Placement] = []
    if before is not None and before[1] + 1 >= left_ms and before[1] + 1 not in starts:
        placed.append((before[1] + 1, None, True))
    if left_ms not in starts:
        placed.append((left_ms, before[0] if before is not None and before[1] >= left_ms else None, True))
    return placed


def _early(windows: Iterable[SavedState], time_ms: int, difference_ms: int) -> list[Placement]:
    """Of a record before `difference_ms`: the window [0, difference] changes last."""
    right_ms = time_ms + 1
    latest = dict(windows)
    around = sorted(start_ms for start_ms in latest if 0 < start_ms <= time_ms)
    placed: list[Placement] = [(start_ms, start_ms, True) for start_ms in around]
    longest = around[-1] if around else 0
    if right_ms not in latest and latest.get(longest, -1) > time_ms:
        placed.append((right_ms, longest, False))
    previous_ms = latest.get(0, time_ms)
    if previous_ms < time_ms and previous_ms + 1 not in latest:
        placed.append((previous_ms + 1, None, True))
    placed.append((0, 0 if 0 in latest else None, True))
    return placed
