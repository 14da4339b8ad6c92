"""`readable_ends`: the offsets after the last records that consumers can read.

A partition may end with offsets that consumers never see: transaction markers on Kafka, and records of aborted
transactions on every home. A consumer that has read all records may have committed a position before them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from time import monotonic

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Consumer, Log
from kstreams.log.settings import QUOTA_DELAYS

_GROWTH_FACTOR = 8
"""The factor by which each attempt reads further back than the one before."""
_TIMEOUT_S = 30.0
_POLL_S = 0.1


def readable_ends(
    log: Log, after: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the offsets after the last records that can be read.

    Parameters
    ----------
    log : Log
    after : mapping of TopicPartition to int
        The positions of readers. Records before them are not read.
    ends : mapping of TopicPartition to int
        The ends of the partitions.

    Returns
    -------
    dict of TopicPartition to int
        The position in `after` for partitions without a readable record from there on.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.log import open_log
    >>> words = TopicPartition("words", 0)
    >>> with open_log(tempfile.mkdtemp()) as log, log.admin() as admin:
    ...     admin.create_topic("words")
    ...     with log.producer({"transactional.id": "writer"}) as producer:
    ...         producer.begin_transaction()
    ...         producer.send("words", None, b"a")
    ...         producer.commit_transaction()
    ...         producer.begin_transaction()
    ...         producer.send("words", None, b"b")
    ...         producer.flush()
    ...         producer.abort_transaction()
    ...     admin.end_offsets([words])[words], readable_ends(log, {words: 0}, {words: 2})[words]
    (2, 1)
    """
    readable = {source: min(offset, ends[source]) for source, offset in after.items()}
    unfinished = [source for source, offset in readable.items() if offset < ends[source]]
    if not unfinished:
        return readable
    offsets_to_read = 1
    with log.consumer({QUOTA_DELAYS: False}) as consumer:
        while unfinished:
            starts = {source: max(readable[source], ends[source] - offsets_to_read) for source in unfinished}
            last = _last_records(consumer, starts, ends)
            unfinished = [source for source, start in starts.items() if source not in last and start > readable[source]]
            readable |= {source: offset + 1 for source, offset in last.items()}
            offsets_to_read *= _GROWTH_FACTOR
    return readable


def _last_records(
    consumer: Consumer, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the offsets of the last records between `starts` and `ends`. Partitions without records are missing."""
    consumer.assign(list(starts))
    for source, offset in starts.items():
        consumer.seek(source, offset)
    last: dict[TopicPartition, int] = {}
    deadline = monotonic() + _TIMEOUT_S
    while (unread := _unread(consumer, starts, ends)) and monotonic() < deadline:
        for batch in consumer.poll(_POLL_S):
            if count := int(batch.offsets.searchsorted(ends[batch.source])):
                last[batch.source] = int(batch.offsets[count - 1])
    return last | {source: ends[source] - 1 for source in unread}


def _unread(
    consumer: Consumer, sources: Collection[TopicPartition], ends: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    return [source for source in sources if consumer.position(source) < ends[source]]
