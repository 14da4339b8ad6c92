"""Connect files for tests, and their topologies under `TopologyTestDriver`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kstreams.app import load_app
from kstreams.testing import TopologyTestDriver

TRADES = """
[sources.trades]
type = "csv"
location = "in/*.csv"
value = { symbol = "str", price = "float", size = "int | None" }
key = "symbol"
"""
"""A source with typed values, which never deletes."""

TOPIC = """
[sources.trades]
type = "topic"
topic = "all-trades"
key = "str"
value = { symbol = "str", price = "float", size = "int | None" }
"""
"""A topic with typed values, in which null values delete."""

DICTS = """
[sources.trades]
type = "topic"
topic = "all-trades"
key = "str"
"""
"""A topic with dicts."""

SINK = """
[sinks.out]
type = "topic"
topic = "out"
from = "trades"
"""


def written(folder: Path, *parts: str) -> Path:
    """Write the parts of a connect file."""
    file = folder / "trades.toml"
    file.write_text("".join(parts))
    return file


def transformed(folder: Path, source: str, transforms: str, rows: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return the keys and values of rows after the transforms. A row is a value, or a pair of key and value."""
    app = load_app(written(folder, source, SINK, f"transforms = [{transforms}]\n"))
    feed = "trades-feed" if "csv" in source else "all-trades"
    with TopologyTestDriver(app.topology, app.config) as driver:
        topic = driver.create_input_topic(feed, key=str, value=dict)
        for row in rows:
            key, value = row if isinstance(row, tuple) else (row["symbol"], row)
            topic.pipe_input(key, value, timestamp=3_600_000)
        read = driver.create_output_topic("out", key=bytes, value=dict)
        return [(record.key, record.value) for record in read.read_records()]


def values(folder: Path, source: str, transforms: str, rows: Iterable[Any]) -> list[Any]:
    """Return the values of rows after the transforms."""
    return [value for _, value in transformed(folder, source, transforms, rows)]
