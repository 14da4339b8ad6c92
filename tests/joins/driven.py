"""Runs a topology of joins on the test driver: rows of several topics in, rows of `out` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kstreams as ks
from kstreams.testing import TopologyTestDriver

CACHED, UNCACHED = {}, {"statestore.cache.max.bytes": 0}

Row = tuple[str, Any, Any, int]
"""Topic, key, value, timestamp; all texts."""


def run(
    builder: ks.StreamsBuilder, rows: Sequence[Row], config: dict[str, Any] = UNCACHED, *, end: bool = False
) -> list[tuple[Any, Any, int]]:
    """The rows (key, value, timestamp) of topic `out`."""
    with TopologyTestDriver(builder.build(), config, start_ms=0) as driver:
        topics = {name: driver.create_input_topic(name, key=str, value=str) for name in {row[0] for row in rows}}
        for topic, *record in rows:
            topics[topic].pipe_input(*record)
        if end:
            driver.end_of_input()
        out = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in out]


def table_of(rows: list[tuple[Any, Any, int]]) -> dict[Any, Any]:
    """What remains of rows that are the changes of a table."""
    last = {key: value for key, value, _ in rows}
    return {key: value for key, value in last.items() if value is not None}
