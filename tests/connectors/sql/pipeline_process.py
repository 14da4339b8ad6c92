"""A process that copies the table `orders` to a topic, and the topic to the table `copies`, until it is done or killed.

python -m tests.connectors.sql.pipeline_process FOLDER URL
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import kstreams as ks
from kstreams.connectors import Sink, Source
from kstreams.testing.connectors import Order
from tests.connectors.running import log_with_topics, running, worker_of, worker_to


def source(url: str) -> Source:
    return ks.sources.sql(
        url,
        table="orders",
        value=Order,
        key="id",
        mode="timestamp+incrementing",
        timestamp_column="changed",
        incrementing_column="id",
        poll_interval=100,
        batch_max_rows=500,
    )


def sink(url: str) -> Sink:
    return ks.sinks.postgres(url, "copies", upsert="id")


def run(folder: Path, url: str) -> None:
    with ExitStack() as resources:
        log = resources.enter_context(log_with_topics(folder, partitions=2))
        resources.enter_context(running(worker_of(log, source(url)), worker_to(log, sink(url), resources)))
        print("runs", flush=True)
        Event().wait()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
