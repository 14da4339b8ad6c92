"""Connectors around a topic of an embedded log, run by workers as an application runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from time import sleep

from kstreams.connectors import Sink, Source
from kstreams.connectors.connector import ConnectorTopic, SinkConnector, SourceConnector
from kstreams.connectors.worker import Worker
from kstreams.connectors.workers import sink_worker, source_worker
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.log import Log, open_log
from kstreams.serdes import serde_of
from kstreams.testing.connectors import Order

TOPIC = ConnectorTopic("orders", serde_of(int), serde_of(Order))
LETTERS = "letters"
SYSTEM_CLOCK = SystemClock()


@contextmanager
def log_with_topics(folder: Path, partitions: int = 3) -> Iterator[Log]:
    """Open an embedded log with the topic of orders and a dead-letter topic."""
    with open_log(folder / "log") as log, log.admin() as admin:
        existing = admin.topics()
        for name, count in ((TOPIC.name, partitions), (LETTERS, 1)):
            if name not in existing:
                admin.create_topic(name, count)
        yield log


def copy_in(log: Log, source: Source) -> None:
    """Write everything that a source has to the topic."""
    worker_of(log, source).run_to_end(Event())


def copy_out(log: Log, sink: Sink, letters: str = "") -> None:
    """Write the topic to a sink."""
    with ExitStack() as resources:
        worker_to(log, sink, resources, letters).run_to_end(Event())


def worker_of(log: Log, source: Source) -> Worker:
    return source_worker(SourceConnector("app", "in", TOPIC, source), log, SystemClock())


def worker_to(log: Log, sink: Sink, resources: ExitStack, letters: str = "", clock: Clock = SYSTEM_CLOCK) -> Worker:
    return sink_worker(SinkConnector("app", "out", TOPIC, sink), log, clock, resources, letters)


@contextmanager
def running(*workers: Worker) -> Iterator[None]:
    """Run workers as members of their groups."""
    stop = Event()
    threads = [Thread(target=worker.run, args=[stop]) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def topic_rows(log: Log, topic: str = TOPIC.name) -> list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]]:
    """Return key, value and headers of all records of a topic, partition by partition."""
    with log.admin() as admin, log.consumer() as consumer:
        sources = [TopicPartition(topic, number) for number in range(admin.describe_topic(topic).partitions)]
        consumer.assign(sources)
        ends = consumer.end_offsets(sources)
        rows: dict[TopicPartition, list[tuple[bytes | None, bytes | None, dict[str, bytes | None]]]]
        rows = {source: [] for source in sources}
        while any(consumer.position(source) < ends[source] for source in sources):
            for batch in consumer.poll(0.1):
                rows[batch.source] += [(row.key, row.value, dict(row.headers)) for row in batch.rows()]
        return [row for of_partition in rows.values() for row in of_partition]


def ids_in(log: Log) -> list[int]:
    """Return the ids of the orders in the topic, ascending."""
    return sorted(TOPIC.value.deserialize(value).id for _, value, _ in topic_rows(log) if value is not None)


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if holds():
            return
        sleep(0.01)
    raise AssertionError("it never came there")
