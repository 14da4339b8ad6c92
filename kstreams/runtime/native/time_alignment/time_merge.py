"""`TimeMerge`: sorts the rows that several tasks of one thread write to a topic, by stream time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.processor.context.encoded_rows import EncodedRows, PartitionedRows, merged_parts


class TimeMerge:
    """The rows that several tasks wrote to one topic, sorted by the stream time of each task when it wrote the row.

    Rows with equal stream times are in the order of their tasks' partitions. The rows of one task keep their order.

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
        self._parts_by_writer: dict[int, list[PartitionedRows]] = {}

    def add(self, part: PartitionedRows, writer: int) -> None:
        """Add rows after those of the same writer."""
        if len(part.partitions):
            self._parts_by_writer.setdefault(writer, []).append(part)

    def take(self) -> list[PartitionedRows]:
        """Remove and return all rows, in order, as at most one part."""
        parts = [part for writer in sorted(self._parts_by_writer) for part in self._parts_by_writer[writer]]
        several_writers = len(self._parts_by_writer) > 1
        self._parts_by_writer.clear()
        if not parts:
            return []
        whole = merged_parts(parts)
        stream_times = whole.rows.stream_times
        if not several_writers or stream_times is None:
            return [whole]
        order = np.argsort(stream_times.to_numpy(), kind="stable")
        columns = (None if column is None else column.take(pa.array(order)) for column in whole.rows)
        return [PartitionedRows(EncodedRows._make(columns), whole.partitions[order])]
