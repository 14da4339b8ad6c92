"""How fast a store of a million rows is restored over a real Kafka, beside a bare consume loop into a dict.

    python -m benchmarks.kafka_restore HOST:PORT

The changelog is made the first time; its rows are in no order. Rows a second by wall clock, the best of three.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as Place

from benchmarks.state import TABLE
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.log.api import Log
from kstreams.os.garbage_collection import infrequent_garbage_collection
from kstreams.state import open_task_state

ROWS = 1_000_000
CHANGELOG = TopicPartition("benchmark-restore-changelog", 0)
_POLL_ROWS = 500_000  # as `StoreRestorer`


def write(log: Log) -> None:
    """Make the changelog, unless it is there."""
    with log.admin() as admin:
        if CHANGELOG.topic in admin.topics():
            return
        admin.create_topic(CHANGELOG.topic, 1)
    order = np.random.default_rng(7).permutation(ROWS)
    keys = pa.array([f"key-{n}".encode() for n in order], pa.binary())
    values = pa.array([int(n).to_bytes(8, "big") for n in order], pa.binary())
    with log.producer() as producer:
        producer.send_batch(Batch(CHANGELOG, np.arange(ROWS), keys, values, pa.array(order + 1)))


def bare(servers: str) -> None:
    """Read all rows into a dict."""
    settings = {"queued.min.messages": 100_000, "fetch.queue.backoff.ms": 5, "enable.auto.commit": False}
    client = Consumer({"bootstrap.servers": servers, "group.id": "benchmark", **settings})
    client.assign([Place(*CHANGELOG, 0)])
    found: dict[bytes, bytes] = {}
    while len(found) < ROWS:
        batch = client.consume(1_000, 0.1)
        found.update(zip(map(Message.key, batch), map(Message.value, batch), strict=True))
    client.close()


def restore(log: Log) -> None:
    """Restore a store in RocksDB, and close it."""
    with log.consumer() as consumer, tempfile.TemporaryDirectory(prefix="kstreams-bench-") as directory:
        state = open_task_state([TABLE], Path(directory))
        consumer.assign([CHANGELOG])
        while consumer.position(CHANGELOG) < ROWS:
            for batch in consumer.poll(0.05, _POLL_ROWS):
                state.restore("table", batch)
        state.close()


def rate(work: Callable[[], None]) -> float:
    """Rows a second of wall clock."""
    clock, best = SystemClock(), 0.0
    for _ in range(3):
        start = clock.uptime_ms()
        work()
        best = max(best, ROWS / (clock.uptime_ms() - start) * 1_000)
    return best


def main(servers: str) -> None:
    """Print both figures and their ratio."""
    with infrequent_garbage_collection(), home_of({"bootstrap.servers": servers}).open() as log:
        write(log)
        loop, restored = rate(lambda: bare(servers)), rate(lambda: restore(log))
    print(f"bare loop {loop:,.0f}/s, restore {restored:,.0f}/s: {restored / loop:.2f}")


if __name__ == "__main__":
    main(sys.argv[1])
