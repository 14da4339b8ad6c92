"""The topics of a Kafka cluster, read and written by a plain client."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.faults.judge.records import Partition, Record, Row


class KafkaTopics:
    """The topics of a cluster.

    Parameters
    ----------
    servers : str
    """

    def __init__(self, servers: str) -> None:
        quiet = {"bootstrap.servers": servers, "log_level": 0}
        self._quiet = quiet
        self._producer = Producer(
            quiet | {"enable.idempotence": True, "partitioner": "murmur2_random", "message.timeout.ms": 600_000}
        )
        self._consumers: dict[str, Consumer] = {}

    def write(self, rows: Iterable[Row]) -> None:
        """Write rows, and wait until all are acknowledged."""
        for row in rows:
            while True:
                try:
                    self._producer.produce(row.topic, row.value, row.key, timestamp=row.timestamp)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.flush()

    def poll(self, topic: str) -> list[Record]:
        """Return the committed records that were not returned before."""
        if topic not in self._consumers and not self._open(topic):
            return []
        records: list[Record] = []
        while messages := self._consumers[topic].consume(10_000, 0.05):
            for message in messages:
                if message.error() is None:
                    partition = Partition(topic, message.partition())
                    records.append(Record(partition, message.offset(), message.key(), message.value()))
        return records

    def _open(self, topic: str) -> bool:
        settings = {"group.id": "judge", "isolation.level": "read_committed", "enable.auto.commit": False}
        consumer = Consumer(self._quiet | settings)
        try:
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        except KafkaException:
            partitions = {}
        if not partitions:
            consumer.close()
            return False
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        self._consumers[topic] = consumer
        return True
