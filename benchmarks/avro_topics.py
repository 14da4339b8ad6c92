"""W1, a filter and a projection by expressions, from topic to topic: as JSON, and as Avro in and out."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import job
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.serdes import serde_of
from kstreams.serdes.base import SerdeUse

ROWS = 1_000_000


class Event(msgspec.Struct):
    """What comes in."""

    user: str
    amount: float
    page: str
    count: int


class SavedState(msgspec.Struct):
    """What goes out."""

    user: str
    amount: float


def run() -> dict[str, float]:
    """Records a second."""
    numbers = np.arange(ROWS)
    keys = pa.array([f"u{n % 1000}".encode() for n in range(ROWS)])
    events = [Event(f"u{n % 1000}", n % 100 + 0.5, f"/page/{n % 77}", n) for n in range(ROWS)]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        settings = {"schema.registry.url": "local:", "log.dir": log}
        config = Config.of(settings)
        job.write(log, "json", keys, serde_of(Event).encode_rows(events), numbers)
        with closing(registry_of(config)) as registry:
            use = SerdeUse("avro", False, config, lambda: registry)
            job.write(log, "avro", keys, ks.Avro(Event).of_topic(use).encode_rows(events), numbers)
        for name, value, kept in (("json", Event, SavedState), ("avro", ks.Avro(Event), ks.Avro(SavedState))):
            topology = _topology(name, value, kept)
            figures[f"{name}, expressions"] = job.rate(topology, log, ROWS, schema_registry_url="local:")
            figures[f"{name}, record by record"] = job.rate(
                topology, log, ROWS, columns_min_rows=10**9, schema_registry_url="local:"
            )
    return figures


def _topology(source: str, value: object, kept: object) -> ks.Topology:
    builder = ks.StreamsBuilder()
    events = builder.stream(source, key=str, value=value).filter(ks.col("amount") > 50)
    projected = events.map_values(ks.struct(user=ks.col("user"), amount=ks.col("amount")), value=kept)
    projected.to(f"{source}-out")
    return builder.build()
