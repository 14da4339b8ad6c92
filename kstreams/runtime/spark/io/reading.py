"""`read_up_to`: reads a partition up to an offset that exists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Consumer

_POLL_ROWS = 100_000
"""The maximum number of rows of one poll."""

POLL_SECONDS = 0.1
"""The timeout of a poll. It is short, since a range may end with a transaction marker, which is not a record."""

MAX_EMPTY_POLLS = 300
"""The number of empty polls in a row after which reading fails."""


def read_up_to(consumer: Consumer, source: TopicPartition, start: int, end: int) -> Iterator[Batch]:
    """Yield the records [start, end) of a partition, to which this assigns the consumer.

    Raises
    ------
    LogError
        If the partition ends before `end`.
    """
    consumer.assign([source])
    consumer.seek(source, start)
    empty_polls = 0
    while consumer.position(source) < end:
        # Offsets are at least one apart, so the consumer does not go beyond the end unless offsets are missing.
        batches = consumer.poll(POLL_SECONDS, min(end - consumer.position(source), _POLL_ROWS))
        has_progress = bool(batches) or consumer.throttling().remaining_ms > 0
        empty_polls = 0 if has_progress else empty_polls + 1
        if empty_polls == MAX_EMPTY_POLLS and consumer.position(source) < end:
            raise LogError(
                f"{source} ends before offset {end}, although its home reported this end: the topic may have been "
                "replaced. Start the application again."
            )
        yield from (part for batch in batches if len(part := _before(batch, end)))


def _before(batch: Batch, end: int) -> Batch:
    if not len(batch) or batch.offsets[-1] < end:
        return batch
    return batch.slice(0, int(np.searchsorted(batch.offsets, end)))
