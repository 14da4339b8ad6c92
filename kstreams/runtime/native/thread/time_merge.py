"""`TimeMerge`: what several tasks wrote to one topic, in order of their stream times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.processor.context.encoded_rows import EncodedRows, concatenated


class TimeMerge:
    """What several tasks wrote to one topic, in the order in which they would have written it had they kept step.

    The row goes first whose task had come less far in time when it wrote the row; of equal ones that of the lower
    partition. The rows of one task keep their order.

    Examples
    --------
    >>> merge, column = TimeMerge(), lambda *values: pa.array(values)
    >>> for writer, times, reached in ((0, (1, 5, 2), (1, 5, 5)), (1, (3, 4, 9), (3, 4, 9))):
    ...     rows = EncodedRows(column(*times), column(*times), column(*times), None, np.zeros(3), column(*reached))
    ...     merge.add(rows, writer)
    >>> [rows.timestamps.to_pylist() for rows in merge.take()]
    [[1, 3, 4, 5, 2, 9]]
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[EncodedRows]] = {}

    def add(self, rows: EncodedRows, writer: int) -> None:
        """Take rows that follow those of the same writer."""
        if len(rows.keys):
            self._waiting.setdefault(writer, []).append(rows)

    def take(self) -> list[EncodedRows]:
        """All rows in order, as at most one part."""
        found = [concatenated(self._waiting[writer]) for writer in sorted(self._waiting)]
        self._waiting.clear()
        if len(found) < 2:
            return found
        whole = concatenated(found)
        assert whole.partitions is not None, "collectors choose them"
        assert whole.stream_times is not None, "a topic that merges is told them"
        rows = pa.array(np.argsort(whole.stream_times.to_numpy(), kind="stable"))
        key, value, time = (column.take(rows) for column in (whole.keys, whole.values, whole.timestamps))
        headers = None if whole.headers is None else whole.headers.take(rows)
        partitions = whole.partitions[rows.to_numpy()]
        return [EncodedRows(key, value, time, headers, partitions, whole.stream_times.take(rows))]
