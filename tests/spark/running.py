"""What the tests of the Spark engine share: an application on a log, run by Spark and by the test driver."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.log import Log, home_of
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.progress import Progress as NativeProgress
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.runtime.spark.progress import SparkProgress
from kstreams.runtime.spark.runner import SparkRunner
from kstreams.serdes import serde_of
from kstreams.testing import TopologyTestDriver


class Row(NamedTuple):
    """One input record; `partition` None is by key."""

    topic: str
    key: Any
    value: Any
    timestamp: int
    partition: int | None = None
    headers: list[tuple[str, bytes]] = []


IN_ONE_STEP = pytest.param(1_000, marks=pytest.mark.slow)
"""As many records in a trigger as there are; that several steps give the same is the harder case."""

Types = Mapping[str, tuple[Any, Any]]
"""Key and value type by topic."""


class Application:
    """A topology with its topics in an embedded log under one folder, or where `bootstrap.servers` says.

    The record cache is off unless a test says otherwise, so that every engine forwards every update.
    """

    def __init__(self, spark: Any, folder: Path, topology: Any, types: Types, **settings: Any) -> None:
        self.spark, self.folder, self.types = spark, folder, types
        self.topology = topology if isinstance(topology, Topology) else topology.build()
        self.settings = {
            "application.id": "app",
            "log.dir": str(folder / "log"),
            "statestore.cache.max.bytes": 0,
            "spark.kstreams.checkpoint": str(folder / "checkpoint"),
            "spark.kstreams.delta": "none",
            **settings,
        }

    def opened(self) -> Log:
        """The home of its topics."""
        return home_of(self.settings).open(self.settings)

    def create(self, *topics: str, partitions: int = 2) -> Application:
        with self.opened() as log, log.admin() as admin:
            for topic in topics:
                admin.create_topic(topic, partitions)
        return self

    def write(self, rows: Iterable[Row], **settings: Any) -> Application:
        """Write records, in one transaction if the settings have a `transactional.id`."""
        with self.opened() as log, log.producer(settings) as producer:
            if "transactional.id" in settings:
                producer.begin_transaction()
            for row in rows:
                key, value = (
                    None if item is None else serde_of(kind).serialize(item)
                    for item, kind in zip((row.key, row.value), self.types[row.topic], strict=True)
                )
                time_ms = row.timestamp
                producer.send(row.topic, key, value, headers=row.headers, timestamp=time_ms, partition=row.partition)
            if "transactional.id" in settings:
                producer.commit_transaction()
        return self

    def run(
        self, *, clock: Clock | None = None, until_end: bool = True, stop_after: int | None = None, **settings: Any
    ) -> SparkProgress:
        """Run to the end of the input, or stop after so many steps (`until_end=False` leaves the input open)."""
        stop = threading.Event()

        def note(progress: SparkProgress) -> None:
            if progress.commits == stop_after:
                stop.set()

        with self.opened() as log:
            config = Config.of(self.settings | settings)
            runner = SparkRunner(self.topology, config, self.spark, log, clock or SystemClock(), note)
            return runner.run(once=not until_end, until_end=until_end, stop=stop)

    def run_natively(self, *, until_end: bool = True, **settings: Any) -> NativeProgress:
        """The same application on the native engine, to the end of its input; its topics have no prefix."""
        given = {**self.settings, "state.dir": str(self.folder / "state"), **settings}
        with KafkaStreams(self.topology, given) as streams:
            streams.start(once=not until_end, until_end=until_end)
            assert streams.wait(600.0)
            return streams.progress()

    def topics(self) -> list[str]:
        """The names of all topics in the log."""
        with self.opened() as log, log.admin() as admin:
            return sorted(admin.topics())

    def rows(self, topic: str, prefix: str = "spark-", *, headers: bool = False) -> list[tuple[Any, ...]]:
        """Key, value and timestamp (and headers) of all records of a topic, partition after partition."""
        return [row for rows in self.partitions(topic, prefix, headers=headers) for row in rows]

    def partitions(self, topic: str, prefix: str = "spark-", *, headers: bool = False) -> list[list[tuple[Any, ...]]]:
        """The same, by partition."""
        key, value = (serde_of(kind) for kind in self.types[topic])
        found: list[list[tuple[Any, ...]]] = []
        with self.opened() as log, log.admin() as admin, log.consumer() as consumer:
            count = admin.describe_topic(prefix + topic).partitions
            sources = [TopicPartition(prefix + topic, partition) for partition in range(count)]
            ends = admin.end_offsets(sources)
            for source in sources:
                found.append([])
                consumer.assign([source])
                while consumer.position(source) < ends[source]:
                    for batch in consumer.poll(1.0):
                        for row in batch.rows():
                            decoded = (
                                None if raw is None else serde.deserialize(raw)
                                for raw, serde in ((row.key, key), (row.value, value))
                            )
                            named = ([[name, text and text.decode()] for name, text in row.headers],) if headers else ()
                            found[-1].append((*decoded, row.timestamp, *named))
        return found

    def table(self, topic: str, prefix: str = "spark-") -> dict[Any, Any]:
        """The last value of every key."""
        table = {key: value for key, value, _ in self.rows(topic, prefix)}
        return {key: value for key, value in table.items() if value is not None}

    def driver_rows(self, topic: str, rows: Iterable[Row]) -> list[tuple[Any, Any, int]]:
        """What the test driver puts out for the same input, taken in this order."""
        driver = TopologyTestDriver(
            self.topology, Config.of({"statestore.cache.max.bytes": 0, "application.id": "app"})
        )
        inputs: dict[str, Any] = {}
        for row in rows:
            if row.topic not in inputs:
                key, value = self.types[row.topic]
                inputs[row.topic] = driver.create_input_topic(row.topic, key=key, value=value)
            inputs[row.topic].pipe_record(ks.Record(key=row.key, value=row.value, timestamp=row.timestamp))
        key, value = self.types[topic]
        records = driver.create_output_topic(topic, key=key, value=value).read_records()
        return [(record.key, record.value, record.timestamp) for record in records]


def changelog(rows: Iterable[tuple[Any, Any, int]]) -> dict[Any, list[tuple[Any, int]]]:
    """The updates of every key in order: what partitioning must not change."""
    found: dict[Any, list[tuple[Any, int]]] = {}
    for key, value, timestamp in rows:
        found.setdefault(key, []).append((value, timestamp))
    return found
