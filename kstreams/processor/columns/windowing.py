"""Event-time windows of whole batches: the windows of each record, and the records that are late."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kstreams.kernel.batch import Integers
from kstreams.windows import TimeWindows


class WindowPlacement(NamedTuple):
    """One entry per record and window, in the order in which the record path meets them.

    `rows` are positions in the batch, `starts` are window starts in ms. Late entries are left out; `late` is their
    number.
    """

    rows: Integers
    starts: Integers
    late: int


def place(timestamps: Integers, times: Integers, windows: TimeWindows) -> WindowPlacement:
    """Return the windows of every record, ascending, without windows that had closed at the record's stream time.

    Parameters
    ----------
    timestamps, times : numpy int64 array, shape (n,)
        Event time and stream time of each record in milliseconds.
    windows : TimeWindows

    Examples
    --------
    >>> place(np.array([0, 7]), np.array([0, 7]), TimeWindows(size=10, advance=5)).starts.tolist()
    [0, 0, 5]
    """
    advance = windows.advance_ms
    size = windows.size_ms
    rows = np.arange(len(timestamps))
    last = timestamps // advance * advance
    if advance == size:
        starts = last
    else:
        first = np.maximum(0, timestamps - size + advance) // advance * advance
        counts = (last - first) // advance + 1
        rows = np.repeat(rows, counts)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = first[rows] + nth * advance
    open_ = starts + (size + windows.grace_ms) > times[rows]
    if open_.all():
        return WindowPlacement(rows, starts, 0)
    return WindowPlacement(rows[open_], starts[open_], int(len(open_) - open_.sum()))


def closings(times: Integers, before: int, windows: TimeWindows) -> list[int]:
    """Return the positions of the records at which a window closes.

    Examples
    --------
    >>> closings(np.array([9, 10, 12, 31]), -1, TimeWindows(size=10))
    [1, 3]
    """
    closed = (np.concatenate(([before], times)) - windows.grace_ms - windows.size_ms) // windows.advance_ms
    closed = np.maximum(closed, -1)
    rows: list[int] = np.flatnonzero(closed[1:] > closed[:-1]).tolist()
    return rows
