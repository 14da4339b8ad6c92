"""Sliding windows: which windows a record of a key falls into, and what those that are new begin with.

Only windows that hold something are kept: for each record at t the one that ends at t ("left", [t - d, t]), and the one
that starts behind it ("right", [t + 1, t + 1 + d]) once a later record falls into it. All records before d share one
window [0, d], since none starts before the epoch. The order is that in which Kafka Streams emits them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Kept(NamedTuple):
    """A window of the record's key that is kept already."""

    start_ms: int
    latest_ms: int
    """The greatest time of a record in it."""


class Placement(NamedTuple):
    """One window that changes because of a record."""

    start_ms: int
    like_ms: int | None
    """Start of the kept window whose aggregate it begins with, itself if it is kept already; None: a new aggregate."""
    takes_record: bool
    """False: the record lies before it, which is cut out of a longer window."""


def placements(kept: Iterable[Kept], time_ms: int, difference_ms: int) -> list[Placement]:
    """The windows that a record changes, in the order in which they do.

    Parameters
    ----------
    kept : iterable of Kept
        Windows of its key with time - 2 * difference <= start <= time + 1, the latest first.
    time_ms : int
        Of the record.
    difference_ms : int
        Of the windows.

    Examples
    --------
    The first record fills the window that ends with it; one that follows also fills the window behind the first.

    >>> placements([], 20, 10)
    [Placement(start_ms=10, like_ms=None, takes_record=True)]
    >>> [placement.start_ms for placement in placements([Kept(10, 20)], 25, 10)]
    [21, 15]
    """
    return (_early if time_ms < difference_ms else _placed)(kept, time_ms, difference_ms)


def _placed(kept: Iterable[Kept], time_ms: int, difference_ms: int) -> list[Placement]:
    left_ms, right_ms = time_ms - difference_ms, time_ms + 1
    found: list[Placement] = []
    starts: set[int] = set()
    latest_around: Kept | None = None
    before: Kept | None = None
    for window in kept:
        start_ms, latest_ms = window
        starts.add(start_ms)
        if start_ms == right_ms:
            continue
        if start_ms < left_ms:
            before = window
            break
        found.append(Placement(start_ms, start_ms, True))
        if start_ms == left_ms:
            if latest_ms == time_ms:
                return found  # a record of the same time has made all there is to make
            before = window
            break
        latest_around = latest_around or window
    if before is not None and (behind_ms := before.latest_ms + 1) not in starts and behind_ms >= left_ms:
        found.append(Placement(behind_ms, None, True))
    if left_ms not in starts:
        found.append(Placement(left_ms, _if_within(before, left_ms), True))
    if right_ms not in starts and latest_around is not None and latest_around.latest_ms > time_ms:
        found.append(Placement(right_ms, latest_around.start_ms, False))
    return found


def _if_within(before: Kept | None, left_ms: int) -> int | None:
    return before.start_ms if before is not None and before.latest_ms >= left_ms else None


def _early(kept: Iterable[Kept], time_ms: int, difference_ms: int) -> list[Placement]:
    """Of a record before `difference_ms`: the window [0, difference] changes last."""
    right_ms = time_ms + 1
    windows = sorted(kept)
    starts = {window.start_ms for window in windows}
    around = [window for window in windows if 0 < window.start_ms <= time_ms]
    combined = windows[0] if 0 in starts else None
    found = [Placement(window.start_ms, window.start_ms, True) for window in around]
    later = around[-1] if around else combined
    if right_ms not in starts and later is not None and later.latest_ms > time_ms:
        found.append(Placement(right_ms, later.start_ms, False))
    if combined is not None and combined.latest_ms < time_ms and combined.latest_ms + 1 not in starts:
        found.append(Placement(combined.latest_ms + 1, None, True))
    found.append(Placement(0, None if combined is None else 0, True))
    return found
