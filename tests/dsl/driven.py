"""Runs a small topology on the test driver: rows in, rows out."""

from __future__ import annotations

from typing import Any

import kstreams as ks
from kstreams.testing import TopologyTestDriver

UNCACHED = {"statestore.cache.max.bytes": 0}


def run(builder: ks.StreamsBuilder, rows: list[tuple[Any, ...]], config: dict[str, Any] | None = None, **types: Any):
    """Pipe rows (key, value, time) into topic "in"; the rows (key, value, time) of topic "out".

    Rows of four have their topic in front. `types` are those of the output, and `key_in`, `value_in` of the input.
    """
    key_in, value_in = types.pop("key_in", str), types.pop("value_in", str)
    settings = {"application.id": "app", **(config or {})}
    with TopologyTestDriver(builder.build(), settings) as driver:
        topics = {
            name: driver.create_input_topic(name, key=key_in, value=value_in)
            for name in {row[0] if len(row) == 4 else "in" for row in rows}
        }
        for row in rows:
            *topic, key, value, time = row
            topics[topic[0] if topic else "in"].pipe_input(key, value, time)
        driver.end_of_input()
        out = driver.create_output_topic("out", **{"key": str, "value": str, **types})
        return [(record.key, record.value, record.timestamp) for record in out.read_records()]
