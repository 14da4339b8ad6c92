"""Event-time windows of whole batches: the windows of each record, late records, and groups by key and window."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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


_DENSE = 4
"""Up to this number of possible (key, window) pairs per record, an array of all pairs is cheaper than a hash table."""


class RowGroups(NamedTuple):
    """`of_row[i]` is the group of record i; `keys` and `starts` (None without windows) name the groups."""

    of_row: Integers
    keys: list[Any]
    starts: list[int] | None

    def __len__(self) -> int:
        return len(self.keys)

    def by_last_row(self) -> list[int]:
        """Return the groups in the order of their last records."""
        last = np.zeros(len(self.keys), np.int64)
        np.maximum.at(last, self.of_row, np.arange(len(self.of_row)))
        order: list[int] = np.argsort(last).tolist()
        return order


def group(keys: pa.Array, starts: Integers | None) -> RowGroups:
    """Group records by key, or by key and window start.

    Examples
    --------
    >>> group(pa.array(["b", "a", "b"]), np.array([0, 0, 10]))
    RowGroups(of_row=array([0, 1, 2]), keys=['b', 'a', 'b'], starts=[0, 0, 10])
    """
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    if starts is None:
        return RowGroups(codes, encoded.dictionary.to_pylist(), None)
    low = int(starts.min()) if len(starts) else 0
    span = int(starts.max()) - low + 1 if len(starts) else 1
    step = int(np.gcd.reduce(starts - low)) or 1
    width = span // step + 1
    of_row, pairs = _numbered(codes * width + (starts - low) // step, len(encoded.dictionary) * width)
    names = encoded.dictionary.take(pa.array(pairs // width)).to_pylist()
    return RowGroups(of_row, names, (pairs % width * step + low).tolist())


def _numbered(pairs: Integers, possible: int) -> tuple[Integers, Integers]:
    """Number distinct values in order of first appearance; return the number of each value, and the distinct values."""
    if possible > _DENSE * len(pairs):
        encoded = pa.array(pairs).dictionary_encode()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_numpy()
    first = np.full(possible, len(pairs))
    np.minimum.at(first, pairs, np.arange(len(pairs)))
    present = np.flatnonzero(first < len(pairs))
    distinct = present[np.argsort(first[present])]
    place = np.empty(possible, np.int64)
    place[distinct] = np.arange(len(distinct))
    return place[pairs], distinct
