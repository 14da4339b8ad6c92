"""Reads records of a partition again: those at some offsets, or between two offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Log

_POLL_S = 0.5


def read_records_at(log: Log, source: TopicPartition, offsets: Collection[int]) -> Iterator[Batch]:
    """Yield the records of a partition at some offsets.

    Raises
    ------
    LogError
        If one of them was deleted meanwhile.
    """
    if not offsets:
        return
    wanted = np.unique(np.fromiter(offsets, np.int64))
    with log.consumer() as consumer:
        consumer.assign([source])
        consumer.seek(source, int(wanted[0]))
        while len(wanted):
            for batch in consumer.poll(_POLL_S):
                records = batch.filter(np.isin(batch.offsets, wanted))
                if len(records):
                    yield records
                next_offset = int(batch.offsets[-1]) + 1
                if len(records) < np.searchsorted(wanted, next_offset):
                    raise LogError(f"records of {source} that the target has refused were deleted: read it again")
                wanted = wanted[wanted >= next_offset]


def read_records_between(log: Log, source: TopicPartition, first: int, end: int) -> Iterator[Batch]:
    """Yield the records from an offset up to another one, which is not after the end of the partition."""
    with log.consumer() as consumer:
        consumer.assign([source])
        consumer.seek(source, first)
        while consumer.position(source) < end:
            for batch in consumer.poll(_POLL_S):
                records = batch.slice(0, int(np.searchsorted(batch.offsets, end)))
                if len(records):
                    yield records
