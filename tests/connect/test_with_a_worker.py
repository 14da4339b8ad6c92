"""A real Kafka Connect worker before and behind an application: its file source, our records, its file sink."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from tests.support.kafka_cluster import KafkaCluster, can_run
from tests.support.kafka_connect import JSON_CONVERTER, ConnectWorker

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

LINES = [f"line {number}" for number in range(2_000)]
SCHEMAS = pytest.mark.parametrize("schemas", [True, False], ids=["schemas", "plain"])


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    if not can_run():
        pytest.skip("needs Java, and Maven once")
    with KafkaCluster(1, {"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def connect(kafka: KafkaCluster) -> Iterator[ConnectWorker]:
    with ConnectWorker(kafka.bootstrap_servers) as worker:
        yield worker


@dataclass
class Counted:
    line: str
    length: int


def converter(schemas: bool) -> dict[str, object]:
    return {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": str(schemas).lower()}


def config(kafka: KafkaCluster, folder: Path, name: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "application.id": name,
        "state.dir": str(folder / "state"),
        "commit.interval.ms": 100,
        "processing.guarantee": "exactly_once_v2",
    }


def create(kafka: KafkaCluster, *topics: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for created in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        created.result()


def eventually(is_true: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.2)
    return is_true()


@SCHEMAS
def test_lines_of_a_file_go_through_an_application_into_a_file(
    kafka: KafkaCluster, connect: ConnectWorker, tmp_path: Path, schemas: bool
) -> None:
    name = f"lines-{schemas}".lower()
    source = tmp_path / "in"
    sink = tmp_path / "out"
    source.write_text("".join(f"{line}\n" for line in LINES))
    create(kafka, name, f"{name}-counted")
    topology = ks.StreamsBuilder()
    lines = topology.stream(name, key=bytes, value=ks.ConnectJson(str, schemas=schemas))
    counted = lines.map_values(lambda line: Counted(line, len(line)), value=Counted)
    counted.to(f"{name}-counted", value=ks.ConnectJson(Counted, schemas=schemas))
    connect.put(
        f"{name}-source",
        {"connector.class": "FileStreamSource", "tasks.max": 1, "file": source, "topic": name, **converter(schemas)},
    )
    connect.put(
        f"{name}-sink",
        {
            "connector.class": "FileStreamSink",
            "tasks.max": 1,
            "file": sink,
            "topics": f"{name}-counted",
            **converter(schemas),
        },
    )
    connect.wait_running(f"{name}-source")
    connect.wait_running(f"{name}-sink")
    with ks.KafkaStreams(topology.build(), config(kafka, tmp_path, name)) as streams:
        streams.start()
        assert eventually(lambda: sink.exists() and len(sink.read_text().splitlines()) >= len(LINES)), connect.log()
    written = sink.read_text().splitlines()
    form = "Struct{{line={},length={}}}" if schemas else "{{line={}, length={}}}"
    expected = [form.format(line, len(line)) for line in LINES]
    assert sorted(written) == sorted(expected)


def test_every_logical_type_is_one_of_connect(kafka: KafkaCluster, connect: ConnectWorker, tmp_path: Path) -> None:
    """Connect reads our bytes, casts one field by its own transform, and writes them again; we read the same value."""
    from tests.connect.test_connect_json import FORMS, ORDER

    name = "logical"
    sink = tmp_path / "out"
    create(kafka, name)
    produce(kafka, name, FORMS[0].serialize(ORDER))
    transform = {"transforms": "none", "transforms.none.type": "org.apache.kafka.connect.transforms.HoistField$Value"}
    connect.put(
        "logical-sink",
        {
            "connector.class": "FileStreamSink",
            "tasks.max": 1,
            "file": sink,
            "topics": name,
            **converter(True),
            **transform,
            "transforms.none.field": "order",
        },
    )
    connect.wait_running("logical-sink")
    assert eventually(lambda: sink.exists() and bool(sink.read_text())), connect.log()
    text = sink.read_text()
    for part in ("id=1", "price=1.50", "Fri Jan 02", "sku=b,count=2", "tags={x=1}", "names={7=seven}", "ratio=1.0"):
        assert part in text, text


def test_dead_letters_of_a_connector_are_read(kafka: KafkaCluster, connect: ConnectWorker, tmp_path: Path) -> None:
    create(kafka, "numbers", "failures")
    produce(kafka, "numbers", b'{"n":1}', b"not JSON", b'{"n":2}')
    connect.put(
        "numbers-sink",
        {
            "connector.class": "FileStreamSink",
            "tasks.max": 1,
            "file": tmp_path / "out",
            "topics": "numbers",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "failures",
            "errors.deadletterqueue.topic.replication.factor": 1,
            "errors.deadletterqueue.context.headers.enable": "true",
            **converter(False),
        },
    )
    connect.wait_running("numbers-sink")
    with open_log(f"kafka:{kafka.bootstrap_servers}") as log, log.consumer() as consumer:
        consumer.assign([TopicPartition("failures", 0)])
        consumer.seek_to_beginning([TopicPartition("failures", 0)])
        letters: list[Any] = []

        def has_come() -> bool:
            letters.extend(row for batch in consumer.poll(0.5) for row in batch.rows())
            return bool(letters)

        assert eventually(has_come), connect.log()
    failure = ks.DeadLetter.of(letters[0].headers)
    assert failure is not None
    assert letters[0].value == b"not JSON"
    assert (failure.topic, failure.partition, failure.offset) == ("numbers", 0, 1)
    assert failure.place == "numbers-sink 0 VALUE_CONVERTER"
    assert failure.exception == "org.apache.kafka.connect.errors.DataException"
    assert "failed due to serialization error" in failure.message


def produce(kafka: KafkaCluster, topic: str, *values: bytes) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    producer.flush(10)
