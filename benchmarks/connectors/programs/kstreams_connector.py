"""One connector around one topic, until its end, as its worker runs in an application: exactly once.

`BENCH` is a JSON object: `work`, the `home` of the topic, the `topic`, and what the connector needs.
"""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event
from typing import Any

import kstreams as ks
from benchmarks.connectors.programs.begun import begun
from benchmarks.connectors.trades import Trade
from kstreams.connectors import Sink, Source
from kstreams.connectors.connector import ConnectorTopic, SinkConnector, SourceConnector
from kstreams.connectors.workers import sink_worker, source_worker
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from kstreams.os.garbage_collection import infrequent_garbage_collection
from kstreams.serdes import serde_of


def source(work: str, bench: dict[str, Any]) -> Source:
    """Return the source of a work."""
    if work == "csv":
        return ks.sources.csv(bench["csv"], Trade, key="id", key_type=str)
    if work.startswith("sql"):
        return ks.sources.sql(
            bench["url"],
            table=bench["table"],
            value=Trade,
            key="id",
            mode="timestamp+incrementing" if work == "sql timestamp" else "incrementing",
            incrementing_column="id",
            timestamp_column="at",
        )
    has_snapshot = work == "snapshot"
    return ks.sources.postgres(
        bench["url"],
        bench["table"],
        Trade,
        key="id",
        slot=bench["slot"],
        publication=bench["slot"],
        snapshot=has_snapshot,
    )


def sink(work: str, bench: dict[str, Any]) -> Sink:
    """Return the sink of a work."""
    if work == "upsert":
        return ks.sinks.postgres(bench["url"], bench["table"], upsert="id", pk_mode="record_value")
    if work == "insert":
        return ks.sinks.postgres(bench["url"], bench["table"])
    if work == "delta":
        return ks.sinks.delta(bench["folder"])
    return ks.sinks.files(bench["folder"], format=bench["format"], partition_by=bench.get("partition_by"))


SOURCES = ("csv", "snapshot", "changes", "sql incrementing", "sql timestamp")


def main() -> None:
    """Run the connector that the environment describes."""
    bench = begun()
    work = bench["work"]
    with infrequent_garbage_collection(), open_log(bench["home"]) as log, ExitStack() as resources:
        if work in SOURCES:
            declared = source(work, bench)
            topic = ConnectorTopic(bench["topic"], serde_of(declared.key), serde_of(Trade))
            worker = source_worker(SourceConnector(bench["id"], "in", topic, declared), log, SystemClock())
        else:
            topic = ConnectorTopic(bench["topic"], serde_of(str), serde_of(Trade))
            connector = SinkConnector(bench["id"], "out", topic, sink(work, bench))
            worker = sink_worker(connector, log, SystemClock(), resources)
        worker.run_to_end(Event())


if __name__ == "__main__":
    main()
