"""What a test wants to say about a topic, in one call each."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kstreams.batch import Batch, Row, TopicPartition
from kstreams.log import Consumer, Log


@dataclass
class Commits:
    """What is to be known of the commits of the home under test."""

    take_a_moment: bool = False


commits = Commits()


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
        yield from consumer.poll(10, max_records)


def _ends(consumer: Consumer, reading: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions end; what was just committed may need a moment to be visible."""
    ends = consumer.end_offsets(reading)
    while commits.take_a_moment:
        time.sleep(0.05)
        before, ends = ends, consumer.end_offsets(reading)
        if before == ends:
            break
    return ends


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
