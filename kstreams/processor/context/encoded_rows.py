"""`EncodedRows`: encoded rows of one topic as columns, as a task hands them over."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.log.partitioning import partitions_of

BY_KEY = -1
"""In `EncodedRows.partitions`: leave the choice to the key."""


class EncodedRows(NamedTuple):
    """Encoded rows of one topic, in order.

    Parameters
    ----------
    keys, values : pyarrow binary array, length n
    timestamps : pyarrow int64 array, length n
        Milliseconds since the epoch.
    headers : pyarrow list<struct<name, value>> array, length n, or None
    partitions : numpy int64 array, shape (n,), or None
        None: all by murmur2 of the key; in an array, `BY_KEY` (-1) says so for one row.
    stream_times : pyarrow int64 array, length n, or None
        Where the topic merges: by what the rows are put in order among those of other tasks (`written_times.py`).
    """

    keys: pa.Array
    values: pa.Array
    timestamps: pa.Array
    headers: pa.Array | None = None
    partitions: np.ndarray[Any, Any] | None = None
    stream_times: pa.Array | None = None

    def as_batch(self, topic: str, first: int = 0) -> Batch:
        """The rows as if they were all in the first partition, at the offsets from `first` on."""
        offsets = np.arange(first, first + len(self.keys), dtype=np.int64)
        return Batch(TopicPartition(topic, 0), offsets, self.keys, self.values, self.timestamps, self.headers)

    def chosen(self, count: int, own: int) -> np.ndarray[Any, Any]:
        """The partition of every row, of a topic that has `count`; `own` is the one of rows that have no key."""
        by_key = partitions_of(self.keys, count)
        chosen = by_key if self.partitions is None else np.where(self.partitions == BY_KEY, by_key, self.partitions)
        return np.where(chosen < 0, own % count, chosen)


def concatenated(parts: list[EncodedRows]) -> EncodedRows:
    """All rows, part after part; all have partitions or none, and so for stream times."""
    if len(parts) == 1:
        return parts[0]
    keys, values, timestamps, headers, partitions, stream_times = zip(*parts, strict=True)
    all_headers = None
    if any(column is not None for column in headers):
        filled = [
            pa.nulls(len(key), HEADERS_TYPE) if column is None else column
            for key, column in zip(keys, headers, strict=True)
        ]
        all_headers = pa.concat_arrays(filled)
    key, value, time = (pa.concat_arrays(column) for column in (keys, values, timestamps))
    chosen = None if partitions[0] is None else np.concatenate(partitions)
    times = None if stream_times[0] is None else pa.concat_arrays(stream_times)
    return EncodedRows(key, value, time, all_headers, chosen, times)
