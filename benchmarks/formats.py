"""W1 of the comparison of stream processors with other formats than JSON, in and out: `python benchmarks/formats.py`.

Decode, keep the half with `amount > 50`, keep two fields, encode, write: records a second of CPU time of the process.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

import kstreams as ks
from kstreams.batch import Batch, Row, TopicPartition
from kstreams.config import Config
from kstreams.log import open_log
from kstreams.log.schema_registries import registry_of
from kstreams.serdes import JsonSerde
from kstreams.serdes.base import SerdeUse

BATCH = 10_000


class Event(msgspec.Struct):
    """A record of the input."""

    user: str
    amount: float
    country: str
    at: int


class Payment(msgspec.Struct):
    """A record of the output."""

    user: str
    amount: float


FORMATS: dict[str, tuple[ks.Serde[Any], ks.Serde[Any]]] = {
    "JSON": (JsonSerde(Event), JsonSerde(Payment)),
    "Avro": (ks.Avro(Event), ks.Avro(Payment)),
    "Protobuf": (ks.Protobuf(Event), ks.Protobuf(Payment)),
    "JSON Schema": (ks.JsonSchema(Event), ks.JsonSchema(Payment)),
}


def run(folder: str | None = None, rows: int = 500_000) -> dict[str, float]:
    """Records a second of W1 in each format.

    Parameters
    ----------
    folder : str, optional
        Where the log and the stores lie; default: the temporary directory.
    rows : int
        Input records.
    """
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        return {f"W1, {name}": rows / min(_seconds(root, name, rows) for _ in range(3)) for name in FORMATS}
    finally:
        shutil.rmtree(root)


def _seconds(root: Path, name: str, rows: int) -> float:
    folder, (event, payment) = root / name, FORMATS[name]
    settings = {"application.id": "bench", "log.dir": folder / "log", "state.dir": folder / "state"}
    settings["schema.registry.url"] = "local:"
    shutil.rmtree(folder, ignore_errors=True)
    _write(settings, event, rows)
    builder = ks.StreamsBuilder()
    events = builder.stream("events", key=str, value=event).filter(ks.col("amount") > 50)
    events.map_values(ks.struct(user=ks.col("user"), amount=ks.col("amount")), value=payment).to("out")
    streams = ks.KafkaStreams(builder, settings)
    start = time.process_time()
    streams.start(once=True)
    streams.wait()
    return time.process_time() - start


def _write(settings: dict[str, Any], event: ks.Serde[Any], rows: int) -> None:
    chance = random.Random(1)
    with open_log(settings["log.dir"]) as log, log.producer() as producer:
        log.admin().create_topic("events", 1)
        log.admin().create_topic("out", 1)
        registry = registry_of(Config.of(settings))
        serde = event.of_topic(SerdeUse("events", False, Config.of(settings), lambda: registry))
        for first in range(0, rows, BATCH):
            values = [Event(f"user {n % 1000}", chance.uniform(0, 100), "CH", n) for n in range(first, first + BATCH)]
            column = serde.encode_rows(values).to_pylist()
            records = [Row(value.user.encode(), data, value.at, ()) for value, data in zip(values, column, strict=True)]
            producer.send_batch(Batch.of_rows(TopicPartition("events", 0), records))
        registry.close()


if __name__ == "__main__":
    for what, rate in run(*sys.argv[1:2]).items():
        print(f"{what:40} {rate:12,.0f} / s")
