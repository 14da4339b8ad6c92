"""What metrics cost: an application that records them, and the same one without, in turn."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from unittest import mock

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks.job import rate, write
from kstreams.runtime.metrics.activity import Activity
from kstreams.runtime.native.metrics.record_ages import RecordAges

RECORDS, KEYS, TURNS = 1_000_000, 1_000, 7


def run() -> dict[str, float]:
    """Records a second of CPU, of a filter and of a windowed count; and the part that metrics take."""
    folder = Path(tempfile.mkdtemp())
    try:
        _write(folder / "log")
        figures = {}
        for name, topology in (("filter", _filter()), ("windowed count", _count())):
            found: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(2 * TURNS):
                with _recorded(recorded := turn % 2 == 0):
                    found[recorded].append(rate(topology, folder / "log", RECORDS))
            with_metrics, without = (median(found[recorded]) for recorded in (True, False))
            figures |= {f"{name}: without metrics": without, f"{name}: with metrics": with_metrics}
            figures[f"{name}: metrics take (percent)"] = 100 * (1 - with_metrics / without)
        return figures
    finally:
        shutil.rmtree(folder)


@contextmanager
def _recorded(recorded: bool) -> Iterator[None]:
    """Inside, threads record what they measure, or do not."""
    if recorded:
        yield
        return
    nothing = {"took": lambda *_: None}
    with mock.patch.multiple(Activity, **nothing), mock.patch.multiple(RecordAges, seen=lambda *_: None):
        yield


def _write(folder: Path) -> None:
    chance = np.random.default_rng(1)
    keys = pa.array([f"k{n}".encode() for n in range(KEYS)]).take(pa.array(chance.integers(0, KEYS, RECORDS)))
    values = pa.array([b"v" * 20]).take(pa.array(np.zeros(RECORDS, np.int64)))
    write(folder, "in", keys, values, 1_700_000_000_000 + np.arange(RECORDS))


def _filter() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).filter(ks.value != "w").to("out")
    return builder.build()


def _count() -> ks.Topology:
    builder = ks.StreamsBuilder()
    counts = (
        builder.stream("in", key=str, value=str)
        .group_by_key()
        .windowed_by(ks.TimeWindows(size=timedelta(minutes=1)))
        .count()
    )
    counts.to_stream().to("out")
    return builder.build()
