"""Interceptors of an application: its configuration names them, and its clients call them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import kstreams as ks
from kstreams.kernel.batch import Batch
from kstreams.log.interceptors import ConsumerInterceptor, ProducerInterceptor, SentRecord
from tests.native.world import World


class Tracing(ProducerInterceptor):
    """Notes where records go."""

    topics: ClassVar[list[str]] = []

    def on_send(self, record: SentRecord) -> SentRecord:
        self.topics.append(record.topic)
        return record._replace(headers=(*record.headers, ("trace", b"1")))


class Reading(ConsumerInterceptor):
    """Notes what is read."""

    rows = 0

    def on_consume(self, batches: list[Batch]) -> list[Batch]:
        self.rows += sum(map(len, batches))
        return batches


def test_what_an_application_reads_and_writes_passes_through_them(tmp_path: Path) -> None:
    world, reading = World(tmp_path), Reading()
    world.create("in")
    world.create("out")
    world.write("in", [("a", "x", 1), ("b", "y", 2), ("a", "z", 3)])
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", key=str, value=str).group_by_key().count("counts")
    counts.to_stream().to("out", key=str, value=int)
    Tracing.topics.clear()
    path = f"{__name__}:Tracing"
    settings = {"producer.interceptors": path, "main.consumer.interceptors": [reading]}
    with world.streams(builder.build(), **{"statestore.cache.max.bytes": 0, **settings}) as streams:
        streams.start(until_end=True)
        streams.wait()
    assert world.table("out", value=int) == {"a": 2, "b": 1}
    assert set(Tracing.topics) == {"app-counts-changelog", "out"}
    assert Tracing.topics.count("out") == 3
    assert reading.rows == 3
