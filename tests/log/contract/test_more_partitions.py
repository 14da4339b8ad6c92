"""Partitions that a topic gets later: where they are seen, and what stays as it was."""

import pytest

from kstreams.errors import ConfigError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.murmur2 import partition_of
from kstreams.log import Consumer, Log
from tests.log.contract.members import Started, numbers, settle
from tests.log.contract.reading import drain, sources, values_of

KEYS = [b"k%d" % number for number in range(50)]


def test_a_topic_gets_more_partitions_and_keeps_its_records(log: Log) -> None:
    with log.admin() as admin, log.producer() as producer:
        admin.create_topic("words", partitions=2, config={"retention.ms": "600000"})
        producer.send("words", b"k", b"before", partition=1)
        producer.flush()
        admin.add_partitions("words", 4)
        topic = admin.describe_topic("words")
        assert (topic.partitions, topic.config["retention.ms"]) == (4, "600000")
        assert admin.topics()["words"].partitions == 4
        assert list(admin.end_offsets(sources("words", 4)).values()) == [0, 1, 0, 0]
    assert values_of(log, "words", 4) == [b"before"]


@pytest.mark.parametrize("total", [0, 1, 2])
def test_partitions_are_never_taken_away(log: Log, total: int) -> None:
    log.admin().create_topic("words", partitions=2)
    with pytest.raises(ConfigError, match="2 partitions"):
        log.admin().add_partitions("words", total)
    assert log.admin().describe_topic("words").partitions == 2


def test_an_unknown_topic_is_named_with_the_nearest_known(log: Log) -> None:
    log.admin().create_topic("flights")
    with pytest.raises(UnknownTopicError, match="'flights'"):
        log.admin().add_partitions("flight", 3)


def test_a_producer_and_a_consumer_that_were_open_before_reach_the_new_partition(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer, log.consumer() as consumer:
        producer.send("words", b"k", b"old", partition=0)
        producer.flush()
        consumer.assign(sources("words"))
        consumer.seek_to_beginning()
        assert values(consumer) == [b"old"]
        log.admin().add_partitions("words", 3)
        producer.send("words", b"k", b"new", partition=2)
        producer.flush()
        consumer.assign(sources("words", 3))
        assert values(consumer) == [b"new"]


def test_keys_go_to_all_partitions_when_the_producer_looks_again(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer({"metadata.max.age.ms": 0}) as producer:
        for count in (1, 5):
            for key in KEYS:
                producer.send("words", key, b"%d" % count)
            producer.flush()
            if count == 1:
                log.admin().add_partitions("words", 5)
    for number, source in enumerate(sources("words", 5)):
        with log.consumer() as consumer:
            consumer.assign([source])
            consumer.seek_to_beginning()
            rows = [row.key for row in drain(consumer) if row.value == b"5"]
        assert rows == [key for key in KEYS if partition_of(key, 5) == number]


def test_a_group_takes_the_new_partitions_and_goes_on_with_the_others(log: Log, started: Started) -> None:
    consumers = [started.member(name, metadata_max_age_ms=0) for name in "ab"]
    settle(*consumers, until=lambda: owned(consumers) == [0, 1, 2, 3])
    log.admin().add_partitions("words", 6)
    settle(*consumers, until=lambda: owned(consumers) == [0, 1, 2, 3, 4, 5])
    with log.producer() as producer:
        producer.send("words", b"k", b"new", partition=5, timestamp=1)
    read = settle(*consumers, until=lambda: any(reads_to(consumer, 5, 1) for consumer in consumers))
    assert b"new" in [row.value for batch in read for row in batch.rows()]


def reads_to(consumer: Consumer, partition: int, offset: int) -> bool:
    source = TopicPartition("words", partition)
    return source in consumer.assignment() and consumer.position(source) == offset


def owned(consumers: list[Consumer]) -> list[int]:
    return sorted(number for consumer in consumers for number in numbers(consumer))


def values(consumer: Consumer) -> list[bytes | None]:
    return [row.value for row in drain(consumer)]
