"""`TimeMerge`: what several tasks wrote to one topic, in order of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.runtime.native.thread.encoded_rows import EncodedRows, concatenated


class TimeMerge:
    """What several tasks wrote to one topic, merged as a reader of several partitions takes records.

    The rows of one task keep their order; between tasks the row goes first whose task has come less far in time, which
    is a sort by the greatest timestamp that the task has written so far.

    Examples
    --------
    >>> merge, column = TimeMerge(), lambda *values: pa.array(values)
    >>> for writer, times in ((0, (1, 5, 2)), (1, (3, 4, 9))):
    ...     merge.add(EncodedRows(column(*times), column(*times), column(*times), None, np.zeros(3)), writer)
    >>> [rows.timestamps.to_pylist() for rows in merge.take()]
    [[1, 3, 4, 5, 2, 9]]
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[EncodedRows]] = {}
        self._latest: dict[int, int] = {}

    def add(self, rows: EncodedRows, writer: int) -> None:
        """Take rows that follow those of the same writer."""
        if len(rows.keys):
            self._waiting.setdefault(writer, []).append(rows)

    def latest_of(self, writer: int) -> int | None:
        """The greatest timestamp that a writer has written so far; None before its first row."""
        return self._latest.get(writer)

    def resume(self, writer: int, latest: int) -> None:
        """Go on after a restart from what `latest_of` gave at the last commit."""
        self._latest[writer] = latest

    def take(self) -> list[EncodedRows]:
        """All rows in order, as at most one part."""
        found = {writer: concatenated(self._waiting[writer]) for writer in sorted(self._waiting)}
        self._waiting.clear()
        times = [self._running_latest(writer, part) for writer, part in found.items()]
        if len(found) < 2:
            return list(found.values())
        rows = pa.array(np.argsort(np.concatenate(times), kind="stable"))
        whole = concatenated(list(found.values()))
        key, value, time = (column.take(rows) for column in (whole.keys, whole.values, whole.timestamps))
        headers = None if whole.headers is None else whole.headers.take(rows)
        return [EncodedRows(key, value, time, headers, whole.partitions[rows.to_numpy()])]

    def _running_latest(self, writer: int, rows: EncodedRows) -> np.ndarray[Any, Any]:
        before = self._latest.get(writer, -1)
        latest = np.maximum(np.maximum.accumulate(rows.timestamps.to_numpy()), before)
        self._latest[writer] = int(latest[-1])
        return latest
