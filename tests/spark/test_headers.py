"""Headers in a Spark session: what expressions read on the relational path, and what tasks behind it change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark import engine
from tests.headers.test_on_spark import marked
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

TYPES: dict[str, tuple[Any, Any]] = {"a": (str, str), "plain": (str, str), "read": (str, int), "out": (str, str)}
HEADERS: list[list[tuple[str, bytes]]] = [
    [("h", b"a0"), ("n", b"1")],
    [("h", b"a1"), ("n", b"7"), ("n", b"41")],
    [("trace.id", b"t1"), ("n", b"many")],
    [("trace.id", b"\xff"), ("n", b"9223372036854775808")],
    [],
    [("h", b""), ("trace.id", b"t2"), ("n", b"-3")],
]


def both(builder: ks.StreamsBuilder) -> None:
    """Expressions on the relational path; functions and new headers in tasks, behind a repartition topic."""
    stream = builder.stream("a", key=str, value=str)
    some = stream.filter(ks.header("h").is_null() | (ks.header("h") != "a1"))
    some.map_values(ks.value + "!" + ks.header("h").fill_null("-")).to("plain", value=str, name="plain")
    read = ks.header("trace.id").fill_null("none"), ks.header("n", type=int) + 1
    stream.filter(ks.value != "v9").map(read).to("read", key=str, value=int, name="read")
    marked(stream.select_key(ks.key + "!").repartition(name="again")).to("out", name="out")


def paths_of(topology: ks.Topology, settings: dict[str, Any]) -> dict[str, str]:
    rows = engine.explain(topology, Config.of({"application.id": "app", **settings}))
    return {row.operator: row.path for row in rows if row.operator in TYPES}


def test_a_session_gives_what_the_native_engine_gives(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    both(builder)
    topology, path = builder.build(), {"spark.kstreams.path": "relational"}
    assert paths_of(topology, path) == {"plain": "relational", "read": "relational", "out": "task"}
    application = Application(spark, tmp_path, topology, TYPES, **path).create(*TYPES, partitions=1)
    application.write(Row("a", f"k{at}", f"v{at}", at, None, headers) for at, headers in enumerate(HEADERS))
    application.run()
    application.run_natively()
    for topic in ("plain", "read", "out"):
        found = records(application, f"spark-{topic}")
        assert found == records(application, topic)
        assert len(found) >= len(HEADERS) - 1


def records(application: Application, topic: str) -> list[tuple[Any, ...]]:
    """Key, value, timestamp and headers, as bytes."""
    with application.opened() as log, log.consumer() as consumer:
        source = TopicPartition(topic, 0)
        consumer.assign([source])
        end = consumer.end_offsets([source])[source]
        found: list[tuple[Any, ...]] = []
        while consumer.position(source) < end:
            for batch in consumer.poll(1.0):
                found += [(row.key, row.value, row.timestamp, tuple(row.headers)) for row in batch.rows()]
    return found
