"""How fast a mirror copies a million records of 100 bytes, beside MirrorMaker 2 and a bare loop of Kafka's client.

Records a second by wall clock, from the start of the copy to its last record; brokers run on the same machine.
MirrorMaker 2 runs with its defaults, thus at least once; the bare loop has no transactions and drops headers and times.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import TopicHome, home_at
from kstreams.mirror import Mirror, MirrorSettings, NameFilter, ReplicationPolicy
from tests.support.kafka_cluster import KafkaCluster
from tests.support.mirror_maker import MirrorMaker

RECORDS = 1_000_000
PARTITIONS = 4
BATCH = 10_000


def fill(home: TopicHome) -> None:
    with home.open() as log:
        log.admin().create_topic("words", PARTITIONS)
        with log.producer() as producer:
            numbers = np.arange(BATCH)
            keys = pa.array([f"key-{number}".encode() for number in numbers], pa.binary())
            values = pa.array([b"x" * 100] * BATCH, pa.binary())
            for batch in range(RECORDS // BATCH):
                source = TopicPartition("words", batch % PARTITIONS)
                producer.send_batch(Batch(source, numbers, keys, values, pa.array(numbers + 1_700_000_000_000)))


def copied(home: TopicHome, topic: str) -> int:
    with home.open() as log, log.admin() as admin:
        if topic not in admin.topics():
            return 0
        return sum(admin.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)]).values())


def rate(copy: Callable[[], object]) -> float:
    start = time.perf_counter()
    copy()
    return RECORDS / (time.perf_counter() - start)


def mirror(source: TopicHome, target: TopicHome, alias: str) -> float:
    settings = MirrorSettings(ReplicationPolicy(alias, "target"), topics=NameFilter(("words",)))
    return rate(lambda: Mirror(source, target, settings).run(until_end=True))


def mirror_maker(source: str, target: str) -> float:
    with ExitStack() as stack:
        home = home_at(f"kafka:{target}")

        def copy() -> None:
            while copied(home, "A.words") < RECORDS:
                time.sleep(0.2)

        worker = MirrorMaker(source, target, topics="words", groups="none")
        stack.enter_context(worker)
        return rate(copy)


def plain_loop(source: str, target: str) -> None:
    with home_at(f"kafka:{target}").open() as log:
        log.admin().create_topic("plain", PARTITIONS)
    settings = {"queued.min.messages": 100_000, "fetch.queue.backoff.ms": 5, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": source, "group.id": "plain", **settings})
    consumer.assign([Place("words", number, 0) for number in range(PARTITIONS)])
    producer = Producer({"bootstrap.servers": target, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    count = 0
    while count < RECORDS:
        messages = consumer.consume(5_000, 0.1)
        for message in messages:
            producer.produce("plain", message.value(), message.key(), message.partition())
        count += len(messages)
        producer.poll(0)
    producer.flush()
    consumer.close()


def run() -> dict[str, float]:
    with ExitStack() as stack:
        logs = [home_at(stack.enter_context(tempfile.TemporaryDirectory(prefix="kstreams-bench-"))) for _ in range(3)]
        fill(logs[0])
        embedded = mirror(logs[0], logs[1], "log")
        clusters = [stack.enter_context(KafkaCluster()) for _ in range(2)]
        source, target = (home_at(f"kafka:{cluster.bootstrap_servers}") for cluster in clusters)
        servers = [cluster.bootstrap_servers for cluster in clusters]
        fill(source)
        return {
            "embedded log to embedded log": embedded,
            "embedded log to Kafka": mirror(logs[0], target, "log"),
            "Kafka to embedded log": mirror(source, logs[2], "kafka"),
            "Kafka to Kafka: plain loop": rate(lambda: plain_loop(*servers)),
            "Kafka to Kafka: kstreams mirror": mirror(source, target, "kafka"),
            "Kafka to Kafka: MirrorMaker 2": mirror_maker(*servers),
        }
