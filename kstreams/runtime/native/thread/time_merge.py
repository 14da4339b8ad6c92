"""`TimeMerge`: what several tasks wrote to one topic, in order of their stream times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.processor.context.encoded_rows import EncodedRows, PartitionedRows, merged_parts


class TimeMerge:
    """What several tasks wrote to one topic, in the order in which they would have written it had they kept step.

    The row goes first whose task had come less far in time when it wrote the row; of equal ones that of the lower
    partition. The rows of one task keep their order.

    Examples
    --------
    >>> merge, column = TimeMerge(), lambda *values: pa.array(values)
    >>> for writer, times, reached in ((0, (1, 5, 2), (1, 5, 5)), (1, (3, 4, 9), (3, 4, 9))):
    ...     rows = EncodedRows(column(*times), column(*times), column(*times), None, column(*reached))
    ...     merge.add(PartitionedRows(rows, np.zeros(3)), writer)
    >>> [part.rows.timestamps.to_pylist() for part in merge.take()]
    [[1, 3, 4, 5, 2, 9]]
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[PartitionedRows]] = {}

    def add(self, part: PartitionedRows, writer: int) -> None:
        """Take rows that follow those of the same writer."""
        if len(part.partitions):
            self._waiting.setdefault(writer, []).append(part)

    def take(self) -> list[PartitionedRows]:
        """Remove and return all rows, in order, as at most one part."""
        parts = [part for writer in sorted(self._waiting) for part in self._waiting[writer]]
        several_writers = len(self._waiting) > 1
        self._waiting.clear()
        if not parts:
            return []
        whole = merged_parts(parts)
        stream_times = whole.rows.stream_times
        if not several_writers or stream_times is None:
            return [whole]
        order = np.argsort(stream_times.to_numpy(), kind="stable")
        columns = (None if column is None else column.take(pa.array(order)) for column in whole.rows)
        return [PartitionedRows(EncodedRows._make(columns), whole.partitions[order])]
