"""Runs a topology from topic "in" (and others) to topic "out" on the test driver, all records in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import kstreams as ks
from kstreams.testing import TopologyTestDriver

WHOLE_BATCHES = {"statestore.cache.max.bytes": 0}  # then the driver runs all records before it commits

Row = tuple[str, Any, int]


def run(builder: ks.StreamsBuilder, rows: Sequence[Row], value: Any = str, **config: Any) -> list[Row]:
    """What comes out of rows (key, value, timestamp) that go in together."""
    return run_topics(builder, [("in", *row) for row in rows], value, **config)


def run_topics(builder: ks.StreamsBuilder, rows: Sequence[Any], value: Any = str, **config: Any) -> list[Row]:
    """The same for rows with their topic in front; those of one topic that follow each other go in together."""
    settings = {**WHOLE_BATCHES, **{key.replace("_", "."): setting for key, setting in config.items()}}
    with TopologyTestDriver(builder.build(), settings) as driver:
        for name, some in groupby(rows, lambda row: row[0]):
            topic = driver.create_input_topic(name, key=str, value=str)
            driver.pipe_batch([(topic, ks.Record(key=k, value=v, timestamp=t)) for _, k, v, t in some])
        out = driver.create_output_topic("out", key=str, value=value)
        return [(record.key, record.value, record.timestamp) for record in out.read_records()]
