"""Topics and partitions that were made a moment ago: brokers that do not know them yet are asked again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import Log, home_at
from kstreams.log.api import OffsetAndMetadata
from kstreams.log.kafka.connection import METADATA_LAG_S
from tests.native.world import World, counted, lines, word_count
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_topics import delete_everything

pytestmark = pytest.mark.kafka

LATE_S = 0.6
SECOND = TopicPartition("words", 1)


@pytest.fixture
def log(kafka: KafkaCluster) -> Iterator[Log]:
    delete_everything(kafka.bootstrap_servers)
    with home_at(f"kafka:{kafka.bootstrap_servers}").open() as opened:
        yield opened


@contextmanager
def told_late(act: Callable[[], object]) -> Iterator[None]:
    """What brokers tell a while after they were asked first: it happens then."""

    def later() -> None:
        sleep(LATE_S)
        act()

    thread = threading.Thread(target=later)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def creation(kafka: KafkaCluster, topic: str = "words", partitions: int = 2) -> Callable[[], None]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def create() -> None:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()

    return create


def growth(kafka: KafkaCluster) -> Callable[[], None]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def grow() -> None:
        admin.create_partitions([NewPartitions("words", 2)])["words"].result()

    return grow


def sent(log: Log, partition: int | None = None) -> None:
    with log.producer() as producer:
        producer.send("words", b"k", b"v", partition=partition)


def sent_as_batch(log: Log) -> None:
    columns: Any = (pa.array([b"k"]), pa.array([b"v"]), pa.array([1]))
    with log.producer() as producer:
        producer.send_batch(Batch(SECOND, np.arange(1), *columns))


def read(log: Log) -> None:
    with log.consumer() as consumer:
        consumer.assign([SECOND])
        consumer.poll(0.1)


def of_admin(method: str, *arguments: Any) -> Callable[[Log], object]:
    return lambda log: getattr(log.admin(), method)(*arguments)


OF_TOPICS: dict[str, Callable[[Log], object]] = {
    "send": sent,
    "send_batch": sent_as_batch,
    "assign": read,
    "describe_topic": of_admin("describe_topic", "words"),
    "alter_topic": of_admin("alter_topic", "words", {"retention.ms": "1000"}),
    "add_partitions": of_admin("add_partitions", "words", 3),
    "delete_topic": of_admin("delete_topic", "words"),
    "end_offsets": of_admin("end_offsets", [SECOND]),
    "beginning_offsets": of_admin("beginning_offsets", [SECOND]),
    "delete_records": of_admin("delete_records", {SECOND: 0}),
    "commit": of_admin("commit", "group", {SECOND: OffsetAndMetadata(0)}),
}
OF_PARTITIONS = {name: OF_TOPICS[name] for name in ("send_batch", "assign", "end_offsets", "commit")} | {
    "send": lambda log: sent(log, 1)
}


@pytest.mark.parametrize("name", OF_TOPICS)
def test_a_topic_that_brokers_tell_late_is_waited_for(kafka: KafkaCluster, log: Log, name: str) -> None:
    with told_late(creation(kafka)):
        OF_TOPICS[name](log)


@pytest.mark.parametrize("name", OF_PARTITIONS)
def test_a_partition_that_brokers_tell_late_is_waited_for(kafka: KafkaCluster, log: Log, name: str) -> None:
    log.admin().create_topic("words")
    sent(log)  # its producer, and the connection, have learnt of one
    with told_late(growth(kafka)):
        OF_PARTITIONS[name](log)


def test_a_producer_that_has_written_waits_for_a_further_partition(kafka: KafkaCluster, log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer, told_late(growth(kafka)):
        producer.send("words", b"k", b"v")
        producer.flush()
        producer.send("words", b"k", b"v", partition=1)
        producer.flush()
    assert log.admin().end_offsets([SECOND]) == {SECOND: 1}


@pytest.mark.slow
def test_what_is_not_there_is_told_of_with_the_wait_and_waited_for_once(log: Log) -> None:
    log.admin().create_topic("words")
    for topic, partition in (("word", 0), ("words", 1)):
        begun = monotonic()
        for _ in range(3):
            with pytest.raises(UnknownTopicError, match=f"asked for {METADATA_LAG_S:g} s"):
                log.admin().end_offsets([TopicPartition(topic, partition)])
        assert METADATA_LAG_S <= monotonic() - begun < 2 * METADATA_LAG_S


@pytest.mark.slow
def test_an_application_starts_on_topics_that_are_told_late(kafka: KafkaCluster, log: Log, tmp_path: Any) -> None:
    world = World(tmp_path, **{"bootstrap.servers": kafka.bootstrap_servers})

    def arrive() -> None:
        creation(kafka, "lines", 3)()
        world.write("lines", [(key, line, at + 1) for key, line, at in lines(100)])

    with told_late(arrive), world.streams(word_count()) as streams:
        streams.start()
        while world.table("counts", value=int) != counted(100):
            assert not streams.wait(0.2)
