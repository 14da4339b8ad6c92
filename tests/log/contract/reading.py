"""What a test wants to say about a topic, in one call each."""

from kstreams.batch import Row, TopicPartition
from kstreams.log import Consumer, Log


def sources(topic: str, partitions: int = 1) -> list[TopicPartition]:
    """All partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(partitions)]


def drain(consumer: Consumer, max_records: int = 10_000) -> list[Row]:
    """Everything there is to poll."""
    rows: list[Row] = []
    while batches := consumer.poll(max_records=max_records):
        for batch in batches:
            rows += batch.rows()
    return rows


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
