"""What a test wants to say about a topic, in one call each."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Consumer, Log
from kstreams.log.api import Ability

LOOKS = 40  # at what is visible, until a transaction is taken for open


_SLOW: list[Log] = []  # homes under test in which a commit is not visible at once, the one under test last


@contextmanager
def commits_are_awaited(home: Log) -> Iterator[None]:
    """Inside, whoever reads waits for what was just committed, where a home does not show it at once."""
    if Ability.COMMITS_AT_ONCE in home.abilities:
        yield
        return
    _SLOW.append(home)
    try:
        yield
    finally:
        _SLOW.remove(home)


def sources(topic: str, partitions: int = 1) -> list[TopicPartition]:
    """All partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(partitions)]


def drain(consumer: Consumer, max_records: int = 10_000, paused: Collection[TopicPartition] = ()) -> list[Row]:
    """Everything there is to poll now."""
    rows: list[Row] = []
    for batch in polls(consumer, max_records, paused):
        rows += batch.rows()
    return rows


def polls(consumer: Consumer, max_records: int = 10_000, paused: Collection[TopicPartition] = ()) -> Iterator[Batch]:
    """The batches of everything there is to poll now."""
    reading = consumer.assignment() - set(paused)
    ends = _ends(consumer, reading)
    while any(consumer.position(source) < ends[source] for source in reading):
        yield from consumer.poll(0.1, max_records)


def _ends(consumer: Consumer, reading: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end; what was just committed may need a moment to be visible."""
    looks = LOOKS if _SLOW else 0
    while looks and consumer.end_offsets(reading) != _written(reading):
        looks -= 1  # a transaction that stays open never comes to that
        time.sleep(0.05)
    return consumer.end_offsets(reading)


def _written(reading: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    with _SLOW[-1].admin() as admin:
        return admin.end_offsets(reading, committed_only=False)


def rows_of(log: Log, topic: str, partitions: int = 1, **settings: str) -> list[Row]:
    """All rows of a topic, partition after partition."""
    found: list[Row] = []
    for source in sources(topic, partitions):
        with log.consumer({key.replace("_", "."): value for key, value in settings.items()}) as consumer:
            consumer.assign([source])
            consumer.seek_to_beginning()
            found += drain(consumer)
    return found


def values_of(log: Log, topic: str, partitions: int = 1, **settings: str) -> list[bytes | None]:
    """All values of a topic, partition after partition."""
    return [row.value for row in rows_of(log, topic, partitions, **settings)]
