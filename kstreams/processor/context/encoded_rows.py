"""`EncodedRows`: encoded rows of one topic as columns, which a task hands over to its `Collector`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import LogError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.log.partitioning import partitions_of

BY_KEY = -1
"""An entry in an array of partitions: the row goes to the partition of its key."""

Partitions: TypeAlias = "np.typing.NDArray[np.int64]"
"""The partition of each row."""


class EncodedRows(NamedTuple):
    """Encoded rows of one topic, in order.

    Parameters
    ----------
    keys, values : pyarrow binary array, length n
    timestamps : pyarrow int64 array, length n
        Milliseconds since the epoch.
    headers : pyarrow list<struct<name, value>> array, length n, or None
    stream_times : pyarrow int64 array, length n, or None
        Stream times by which rows of several tasks are sorted, for topics that merge (`WrittenTimes`).
    ranks : pyarrow int64 array, length n, or None
        The order of rows with equal stream times, for topics whose rows have ranks.
    """

    keys: pa.Array
    values: pa.Array
    timestamps: pa.Array
    headers: pa.Array | None = None
    stream_times: pa.Array | None = None
    ranks: pa.Array | None = None

    def as_batch(self, topic: str, first: int = 0) -> Batch:
        """Return the rows as a batch of the first partition, at the offsets from `first` on."""
        offsets = np.arange(first, first + len(self.keys), dtype=np.int64)
        return Batch(TopicPartition(topic, 0), offsets, self.keys, self.values, self.timestamps, self.headers)

    def partitions_in(self, count: int, chosen: Partitions | None, default: int) -> Partitions:
        """Return the partition of every row, in a topic with `count` partitions.

        Parameters
        ----------
        count : int
        chosen : numpy int64 array, shape (n,), or None
            The partitions that a partitioner chose, `BY_KEY` (-1) where it left the choice to the key; None: all rows
            go by murmur2 of the key.
        default : int
            The partition of rows that have no key and for which none was chosen; modulo `count`.
        """
        if count == 1:
            return np.zeros(len(self.keys), dtype=np.int64)
        by_key = partitions_of(self.keys, count)
        partitions = by_key if chosen is None else np.where(chosen == BY_KEY, by_key, chosen)
        return np.where(partitions < 0, default % count, partitions)


class PartitionedRows(NamedTuple):
    """Encoded rows, and the partition of each."""

    rows: EncodedRows
    partitions: Partitions


def concatenated(parts: Sequence[EncodedRows]) -> EncodedRows:
    """Concatenate parts; either all or none of them have stream times, and either all or none have ranks."""
    if len(parts) == 1:
        return parts[0]
    keys, values, timestamps, headers, stream_times, ranks = zip(*parts, strict=True)
    all_headers = None
    if any(column is not None for column in headers):
        filled = [
            pa.nulls(len(key), HEADERS_TYPE) if column is None else column
            for key, column in zip(keys, headers, strict=True)
        ]
        all_headers = pa.concat_arrays(filled)
    key, value, time = (pa.concat_arrays(column) for column in (keys, values, timestamps))
    of_order = (None if columns[0] is None else pa.concat_arrays(columns) for columns in (stream_times, ranks))
    return EncodedRows(key, value, time, all_headers, *of_order)


def merged_parts(parts: Sequence[PartitionedRows]) -> PartitionedRows:
    """Concatenate parts, with their partitions."""
    if len(parts) == 1:
        return parts[0]
    rows = concatenated([part.rows for part in parts])
    return PartitionedRows(rows, np.concatenate([part.partitions for part in parts]))


class Collector(Protocol):
    """Takes the encoded rows of a task's sinks: a stream thread, a step of Spark, or the test driver."""

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Take rows of one topic, with the partition of each row.

        `topic` is the real name: internal topics have the application's id as a prefix.
        """
        ...

    def merges(self, topic: str) -> bool:
        """Return whether the rows that several tasks write to a topic are sorted by stream time."""
        ...

    def has_ranks(self, topic: str) -> bool:
        """Return whether rows of a topic that merges carry the ranks of their source records (`RecordOrder`)."""
        ...

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        ...

    def refused(self, topic: str, rows: EncodedRows) -> Mapping[int, LogError]:
        """Return the rows that the topic never takes, with the reason; called only if a handler decides about them."""
        ...


def send_partitioned(
    collector: Collector, topic: str, rows: EncodedRows, task_partition: int, chosen: Partitions | None = None
) -> None:
    """Choose the partitions of rows, and hand the rows to the collector.

    A row without a key for which no partition was chosen goes to the partition of the task. This keeps the order of
    such rows, and sends them to the same place when a run is repeated (Kafka's producer would scatter them).
    """
    collector.send(topic, rows, rows.partitions_in(collector.partitions(topic), chosen, task_partition))
