"""A topic of JSON values into files by `ks.sinks.files`, decoding included, beside pyarrow alone.

The plain loop is pyarrow that writes the decoded columns, without a topic. `without decoding` drives the writer of the
sink with columns.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event
from time import perf_counter, perf_counter_ns

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import kstreams as ks
from kstreams.connectors.api import Sink, SinkBatch, SinkTask
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.connector import ConnectorTopic, SinkConnector
from kstreams.connectors.workers import sink_worker
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from kstreams.serdes import serde_of

ROWS, BATCH = 1_000_000, 50_000


class Trade(msgspec.Struct):
    """A row of five fields."""

    id: int
    symbol: str
    price: float
    quantity: int
    buys: bool


KEY, VALUE = serde_of(str), serde_of(Trade)


def run() -> dict[str, float]:
    """Rows a second."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _fill_topic(root / "log")
        batch = pa.RecordBatch.from_struct_array(_values(0))
        rows = pa.Table.from_batches([batch] * (ROWS // BATCH))
        figures["parquet: plain loop"] = _rate(lambda: pa.parquet.write_table(rows, root / "x", compression="zstd"))
        figures["csv: plain loop"] = _rate(lambda: pa.csv.write_csv(rows, root / "x"))
        for name in ("parquet", "json", "csv"):
            sink = ks.sinks.files(root / "out", format=name)
            figures[f"{name}: without decoding"] = _drive(sink, root / "out")
            figures[f"{name}: topic to files"] = _copy(root / "log", sink, root / "out")
        by_symbol = ks.sinks.files(root / "out", partition_by="symbol")
        figures["parquet: topic to 50 partitions"] = _copy(root / "log", by_symbol, root / "out")
        delta = ks.sinks.delta(root / "out")
        figures["parquet: topic to Delta"] = _copy(root / "log", delta, root / "out")
    return figures


def _values(first: int) -> pa.Array:
    numbers = np.arange(first, first + BATCH)
    fields = [
        pa.array(numbers),
        pa.array(np.char.add("S", (numbers % 50).astype(str))),
        pa.array(numbers * 0.01),
        pa.array(numbers % 7),
        pa.array(numbers % 2 == 0),
    ]
    return pa.StructArray.from_arrays(fields, ["id", "symbol", "price", "quantity", "buys"])


def _fill_topic(folder: Path) -> None:
    source = TopicPartition("trades", 0)
    keys = KEY.encode_column(pa.array(["key"] * BATCH)).cast(pa.binary())
    with open_log(folder) as log, log.admin() as admin, log.producer() as producer:
        admin.create_topic("trades", 1)
        for first in range(0, ROWS, BATCH):
            values = ValueColumns(VALUE).encode(_values(first))
            producer.send_batch(Batch(source, np.arange(BATCH), keys, values, pa.array(np.arange(BATCH))))
        producer.flush()


def _copy(folder: Path, sink: Sink, out: Path) -> float:
    connector = SinkConnector("bench", f"out-{perf_counter_ns()}", ConnectorTopic("trades", KEY, VALUE), sink)
    with open_log(folder) as log, ExitStack() as resources:
        worker = sink_worker(connector, log, SystemClock(), resources)
        return _rate(lambda: worker.run_to_end(Event()), out)


def _drive(sink: Sink, out: Path) -> float:
    keys = pa.array(["key"] * BATCH)
    times = pa.array(np.arange(BATCH))
    batches = [
        SinkBatch(0, np.arange(first, first + BATCH), keys, _values(first), times) for first in range(0, ROWS, BATCH)
    ]

    def write() -> None:
        with closing(sink.open(SinkTask("bench", "trades", 0))) as writer:
            for batch in batches:
                writer.write(batch)
            writer.flush()
            writer.commit(ROWS)

    return _rate(write, out)


def _rate(work: Callable[[], object], out: Path | None = None) -> float:
    start = perf_counter()
    work()
    rate = ROWS / (perf_counter() - start)
    if out is not None:
        shutil.rmtree(out)
    return rate
