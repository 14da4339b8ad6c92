"""Three steps without state from topic to topic: Python functions, and the same as expressions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job
from kstreams.serdes import serde_of

ROWS = 2_000_000


def run() -> dict[str, float]:
    """Records a second; "loop only" is the record path without topics."""
    values = np.arange(ROWS)
    keys = pa.array(np.char.add("key-", (values % 1_000).astype(str)))
    figures = {"plain loop": _plain(list(zip(keys.to_pylist(), values.tolist(), values.tolist(), strict=True)))}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        job.write(log, "in", keys.cast(pa.binary()), serde_of(int).encode_column(pa.array(values)), values)
        figures["topic to topic, three lambdas"] = job.rate(_of_lambdas(), log, ROWS)
        figures["topic to topic, expressions"] = job.rate(_of_expressions(), log, ROWS)
        figures["topic to topic, expressions record by record"] = job.rate(
            _of_expressions(), log, ROWS, columns_min_rows=10**9
        )
    return figures


def _plain(rows: list[tuple[str, int, int]]) -> float:
    return baseline.rate(ROWS, lambda: baseline.three_lambdas(rows))


def _of_lambdas() -> ks.Topology:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=int)
    stream = stream.map_values(lambda value: value * 2).filter(lambda key, value: value % 3 != 0)
    stream.map_values(lambda value: value + 1).to("out", key=str, value=int)
    return builder.build()


def _of_expressions() -> ks.Topology:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=int)
    stream.map_values(ks.value * 2).filter(ks.value % 3 != 0).map_values(ks.value + 1).to("out", key=str, value=int)
    return builder.build()
