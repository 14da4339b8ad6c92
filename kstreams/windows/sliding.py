"""Sliding windows: the windows that a record changes, and the aggregates from which new windows start.

A store keeps only windows with records. For each record at time t, there is the window that ends at t ("left",
[t - d, t], where d is the time difference), and the window that starts after t ("right", [t + 1, t + 1 + d]) as soon as
a later record is in it. All records before d share the window [0, d], because no window starts before the epoch. The
windows are in the order in which Kafka Streams emits them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

SavedState: TypeAlias = tuple[int, int]
"""A window in the store: its start, and the greatest time of a record in it."""

Placement: TypeAlias = tuple[int, int | None, bool]
"""A window that changes: its start; the start of the stored window whose aggregate it starts from (the window itself if
it is stored, None if there is none); and True if the record is in it, False if the record is before it."""


def placements(windows: Iterable[SavedState], time_ms: int, difference_ms: int) -> list[Placement]:
    """Return the windows that a record changes, in the order of the changes.

    Parameters
    ----------
    windows : iterable of (start, latest time)
        The stored windows of the key with time - 2 * difference <= start <= time + 1, the latest first.
    time_ms : int
        The time of the record.
    difference_ms : int
        The time difference of the windows.

    Examples
    --------
    The first record creates the window that ends with it. The second one creates its own left window, and the right
    window of the first record. A record between them is in the second and the third window, and creates its own left
    and right windows, which start from the aggregates of longer windows.

    >>> placements([], 20, 10)
    [(10, None, True)]
    >>> placements([(10, 20)], 25, 10)
    [(21, None, True), (15, 10, True)]
    >>> placements([(21, 25), (15, 25), (10, 20)], 22, 10)
    [(21, 21, True), (15, 15, True), (12, 10, True), (23, 21, False)]
    """
    place = _place_early if time_ms < difference_ms else _place
    return place(windows, time_ms, difference_ms)


def _place(windows: Iterable[SavedState], time_ms: int, difference_ms: int) -> list[Placement]:
    left_ms = time_ms - difference_ms
    right_ms = time_ms + 1
    placed: list[Placement] = []
    starts: set[int] = set()
    around: SavedState | None = None  # the latest window that contains the record, except at its end
    before: SavedState | None = None  # the latest window that ended before, else the one that ends with the record
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
            return placed  # an earlier record of the same time has created all windows
        around = around or (window if start_ms > left_ms else None)
    placed += _new_windows(before, starts, left_ms)
    if right_ms not in starts and around is not None and around[1] > time_ms:
        placed.append((right_ms, around[0], False))
    return placed


def _new_windows(before: SavedState | None, starts: set[int], left_ms: int) -> list[Placement]:
    """Return the right window of the previous record and the left window of the record, if they are not stored."""
    placed: list[Placement] = []
    if before is not None and before[1] + 1 >= left_ms and before[1] + 1 not in starts:
        placed.append((before[1] + 1, None, True))
    if left_ms not in starts:
        placed.append((left_ms, before[0] if before is not None and before[1] >= left_ms else None, True))
    return placed


def _place_early(windows: Iterable[SavedState], time_ms: int, difference_ms: int) -> list[Placement]:
    """Place a record before `difference_ms`: the window [0, difference] changes last."""
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
