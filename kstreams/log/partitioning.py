"""Partitions of rows: murmur2 over whole key columns, and the split of columns by partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition

_M = np.uint32(0x5BD1E995)
_SEED = 0x9747B28C

Ints = np.ndarray[Any, np.dtype[Any]]


def partitions_of(keys: pa.Array, partitions: int) -> Ints:
    """Return the partition of every key by Kafka's default partitioner. -1 for a null key.

    Parameters
    ----------
    keys : pyarrow binary array, length n
    partitions : int
        Number of partitions of the topic.

    Returns
    -------
    numpy int64 array, shape (n,)

    Examples
    --------
    >>> partitions_of(pa.array([b"kafka", None], pa.binary()), 6).tolist()
    [4, -1]
    """
    if partitions == 1:
        numbers = np.zeros(len(keys), dtype=np.int64)
    else:
        numbers = (_murmur2_column(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions
    if keys.null_count:
        numbers[keys.is_null().to_numpy(zero_copy_only=False)] = -1
    return numbers


def split_by_partition(
    topic: str, partitions: Ints, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
) -> list[tuple[Batch, Ints]]:
    """Split columns into one batch per partition, with the row numbers of each batch in the columns.

    Examples
    --------
    >>> column = pa.array([b"a", b"b", b"c"], pa.binary())
    >>> split = split_by_partition("t", np.array([1, 0, 1]), column, column, pa.array([1, 2, 3]), None)
    >>> [(str(batch.source), len(batch), rows.tolist()) for batch, rows in split]
    [('t-0', 1, [1]), ('t-1', 2, [0, 2])]
    """
    columns = [keys, values, timestamps] + ([] if headers is None else [headers])
    batches = []
    for partition, rows in rows_by_partition(partitions):
        part = columns if len(rows) == len(keys) else [column.take(pa.array(rows)) for column in columns]
        offsets = np.arange(len(rows), dtype=np.int64)
        part_headers = None if headers is None else part[3]
        batch = Batch(TopicPartition(topic, partition), offsets, part[0], part[1], part[2], part_headers)
        batches.append((batch, rows))
    return batches


def rows_by_partition(partitions: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each partition that occurs, with the numbers of its rows.

    Examples
    --------
    >>> [(partition, rows.tolist()) for partition, rows in rows_by_partition(np.array([1, 0, 1]))]
    [(0, [1]), (1, [0, 2])]
    """
    for partition in np.flatnonzero(np.bincount(partitions)).tolist():
        yield partition, np.flatnonzero(partitions == partition)


def _murmur2_column(keys: pa.Array) -> Ints:
    # Keys are hashed by length, so that each step of the hash is one operation on a whole column of words.
    if not len(keys):
        return np.zeros(0, dtype=np.uint32)
    data = keys.buffers()[2]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    ends = np.frombuffer(keys.buffers()[1], dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1]
    starts = ends[:-1].astype(np.int64)
    lengths = np.diff(ends)
    hashes = np.zeros(len(keys), dtype=np.uint32)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        positions = starts[rows][:, None] + np.arange(length, dtype=np.int64)
        hashes[rows] = _murmur2_rows(raw[positions])
    return hashes


def _murmur2_rows(rows: Ints) -> Ints:
    count, length = rows.shape
    tail = length & ~3
    words = np.ascontiguousarray(rows[:, :tail]).view("<u4")
    h = np.full(count, _SEED ^ length, dtype=np.uint32)
    for i in range(words.shape[1]):
        k = words[:, i] * _M
        h = (h * _M) ^ ((k ^ (k >> np.uint32(24))) * _M)
    if tail < length:
        for i in range(tail, length):
            h ^= rows[:, i].astype(np.uint32) << np.uint32(8 * (i - tail))
        h = h * _M
    h = (h ^ (h >> np.uint32(13))) * _M
    hashes: Ints = h ^ (h >> np.uint32(15))
    return hashes
