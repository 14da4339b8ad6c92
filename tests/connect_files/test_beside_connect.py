"""The transforms of a connect file make the records that a real Kafka Connect worker makes by its own transforms."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.cli import main
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from tests.support.kafka_cluster import KafkaCluster, can_run
from tests.support.kafka_connect import ConnectWorker

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

LINES = [f"line {number}" for number in range(1_000)]
PACKAGE = "org.apache.kafka.connect.transforms"
CONNECT = {
    "hoist": {"type": f"{PACKAGE}.HoistField$Value", "field": "line"},
    "card": {"type": f"{PACKAGE}.InsertField$Value", "static.field": "card", "static.value": "1234"},
    "size": {"type": f"{PACKAGE}.InsertField$Value", "static.field": "size", "static.value": "17"},
    "note": {"type": f"{PACKAGE}.InsertField$Value", "static.field": "note", "static.value": "x"},
    "cast": {"type": f"{PACKAGE}.Cast$Value", "spec": "size:int64"},
    "mask": {"type": f"{PACKAGE}.MaskField$Value", "fields": "card"},
    "rename": {"type": f"{PACKAGE}.ReplaceField$Value", "renames": "line:text", "exclude": "note"},
    "key": {"type": f"{PACKAGE}.ValueToKey", "fields": "text,size"},
}
OURS = """
[application]
bootstrap.servers = "{servers}"
state.dir = "{folder}/state"

[sources.lines]
type = "text"
location = "{folder}/lines.txt"

[sinks.rows]
from = "lines"
type = "topic"
topic = "ours"
transforms = [
  {{ set = {{ line = "ks.value" }} }},
  {{ set = {{ card = "'1234'", size = "'17'", note = "'x'" }} }},
  {{ cast = {{ size = "int" }} }},
  {{ mask = ["card"] }},
  {{ rename = {{ line = "text" }} }},
  {{ drop = ["note"] }},
  {{ key = ["text", "size"] }},
]
"""


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    if not can_run():
        pytest.skip("needs Java, and Maven once")
    with KafkaCluster(1, {"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


def records(kafka: KafkaCluster, topic: str, count: int) -> list[tuple[object, object]]:
    """Return the keys and values of a topic once it has a number of records, parsed."""
    rows: list[tuple[object, object]] = []
    with open_log(f"kafka:{kafka.bootstrap_servers}") as log, log.admin() as admin, log.consumer() as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(admin.describe_topic(topic).partitions)])
        deadline = time.monotonic() + 60
        while len(rows) < count and time.monotonic() < deadline:
            rows += [
                (json.loads(row.key or b"null"), json.loads(row.value or b"null"))
                for batch in consumer.poll(0.2)
                for row in batch.rows()
            ]
    return rows


def test_the_same_file_becomes_the_same_records(kafka: KafkaCluster, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    (tmp_path / "lines.toml").write_text(OURS.format(servers=kafka.bootstrap_servers, folder=tmp_path))
    transforms = {f"transforms.{name}.{key}": text for name, item in CONNECT.items() for key, text in item.items()}
    source = {"connector.class": "FileStreamSource", "tasks.max": 1, "file": tmp_path / "lines.txt", "topic": "theirs"}
    with ConnectWorker(kafka.bootstrap_servers) as connect:
        connect.put("lines", {**source, **transforms, "transforms": ",".join(CONNECT)})
        connect.wait_running("lines")
        theirs = records(kafka, "theirs", len(LINES))
    assert main(["connect", str(tmp_path / "lines.toml"), "--until-end"]) == 0
    ours = records(kafka, "ours", len(LINES))
    assert ({"text": "line 7", "size": 17}, {"text": "line 7", "card": "", "size": 17}) in ours
    assert sorted(ours, key=str) == sorted(theirs, key=str)  # lines have no key, and so no order among partitions
