"""Reading a partition up to an offset that is known to be there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Consumer

ROWS_AT_ONCE = 100_000
"""Read of a partition before more is asked for."""

_POLL_SECONDS = 0.1
"""How long a poll waits: a range may end with what is no record, such as the mark of a transaction."""

_MOST_SILENT_POLLS = 300
"""How often rows are waited for that are known to be there."""


def read_up_to(consumer: Consumer, source: TopicPartition, start: int, end: int) -> Iterator[Batch]:
    """The records [start, end) of a partition, the only one that the consumer reads.

    Raises
    ------
    LogError
        When the partition ends before.
    """
    consumer.assign([source])
    consumer.seek(source, start)
    silent_polls = 0
    while consumer.position(source) < end:
        batches = consumer.poll(_POLL_SECONDS, min(end - start, ROWS_AT_ONCE))
        silent_polls = 0 if batches else silent_polls + 1
        if silent_polls == _MOST_SILENT_POLLS and consumer.position(source) < end:
            raise LogError(f"{source} ends before offset {end}, which Spark was told it has")
        yield from (part for batch in batches if len(part := _before(batch, end)))


def _before(batch: Batch, end: int) -> Batch:
    if not len(batch) or batch.offsets[-1] < end:
        return batch
    return batch.slice(0, int(np.searchsorted(batch.offsets, end)))
