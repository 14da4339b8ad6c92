"""Pieces of output: encoded rows of one topic, joined one after the other, or merged by time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.batch import HEADERS_TYPE


class EncodedRows(NamedTuple):
    """Encoded rows of one topic, in order, with the partition of each."""

    keys: pa.Array
    values: pa.Array
    timestamps: pa.Array
    headers: pa.Array | None
    partitions: np.ndarray[Any, Any]


def joined(pieces: list[EncodedRows]) -> EncodedRows:
    """The rows of all pieces, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    keys, values, timestamps, headers, partitions = zip(*pieces, strict=True)
    joined_headers = None
    if any(column is not None for column in headers):
        filled = [
            pa.nulls(len(key), HEADERS_TYPE) if column is None else column
            for key, column in zip(keys, headers, strict=True)
        ]
        joined_headers = pa.concat_arrays(filled)
    key, value, time = (pa.concat_arrays(column) for column in (keys, values, timestamps))
    return EncodedRows(key, value, time, joined_headers, np.concatenate(partitions))


class TimeMerge:
    """What several tasks wrote to one topic, merged as a reader of several partitions takes records.

    The rows of one task keep their order; between tasks the row goes first whose task has come less far in time, which
    is a sort by the greatest timestamp that the task has written so far.

    Examples
    --------
    >>> merge, column = TimeMerge(), lambda *values: pa.array(values)
    >>> for writer, times in ((0, (1, 5, 2)), (1, (3, 4, 9))):
    ...     merge.add(EncodedRows(column(*times), column(*times), column(*times), None, np.zeros(3)), writer)
    >>> [piece.timestamps.to_pylist() for piece in merge.take()]
    [[1, 3, 4, 5, 2, 9]]
    """

    def __init__(self) -> None:
        self._pieces: dict[int, list[EncodedRows]] = {}
        self.latest: dict[int, int] = {}
        """By writer: the greatest timestamp of its rows so far. To be kept with its commits and put back on restart."""

    def add(self, piece: EncodedRows, writer: int) -> None:
        """Take rows that follow those of the same writer."""
        if len(piece.keys):
            self._pieces.setdefault(writer, []).append(piece)

    def take(self) -> list[EncodedRows]:
        """All rows in order, as at most one piece."""
        found = {writer: joined(self._pieces[writer]) for writer in sorted(self._pieces)}
        self._pieces.clear()
        times = [self._running_latest(writer, piece) for writer, piece in found.items()]
        if len(found) < 2:
            return list(found.values())
        rows = pa.array(np.argsort(np.concatenate(times), kind="stable"))
        whole = joined(list(found.values()))
        key, value, time = (column.take(rows) for column in (whole.keys, whole.values, whole.timestamps))
        headers = None if whole.headers is None else whole.headers.take(rows)
        return [EncodedRows(key, value, time, headers, whole.partitions[rows.to_numpy()])]

    def _running_latest(self, writer: int, piece: EncodedRows) -> np.ndarray[Any, Any]:
        before = self.latest.get(writer, -1)
        latest = np.maximum(np.maximum.accumulate(piece.timestamps.to_numpy()), before)
        self.latest[writer] = int(latest[-1])
        return latest
