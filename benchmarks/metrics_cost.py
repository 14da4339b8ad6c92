"""What metrics cost at INFO: an application that records them against the same one that records nothing, in pairs.

The machine is shared, so the two runs of a pair follow each other, in turn the one or the other first, and only ratios
within pairs count: their median. Runs without metrics against each other tell how exact that is: within some percent.
So there is a third figure, of which other processes take nothing: the CPU time of threads inside of all that records.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks.job import Spent, spent, write
from kstreams.metrics.samples import Activity
from kstreams.metrics.sensors import RecordAges, TaskSensors

RECORDS, KEYS, PAIRS = 2_000_000, 1_000, 15
RECORDING = ((Activity, "record"), (TaskSensors, "record_run"), (TaskSensors, "record_commit"), (RecordAges, "record"))


def run() -> dict[str, float]:
    """By topology: how much more CPU and time a run with metrics takes, in percent."""
    folder = Path(tempfile.mkdtemp())
    figures: dict[str, float] = {}
    try:
        _write(folder / "log")
        for name, topology in (("columns", _filter()), ("lambdas", _lambdas()), ("windowed count", _count())):
            spent(topology, folder / "log")  # what is done once in a process
            figures |= _compared(name, topology, folder / "log")
        return figures
    finally:
        shutil.rmtree(folder)


def _compared(name: str, topology: ks.Topology, log: Path) -> dict[str, float]:
    pairs = [_pair(topology, log, with_first=turn % 2 == 0) for turn in range(PAIRS)]
    same = [_spent(topology, log, recorded=False) for _ in range(2 * (PAIRS // 3))]
    debug = [(spent(topology, log, metrics_recording_level="DEBUG"), spent(topology, log)) for _ in range(PAIRS // 3)]
    found = {
        "CPU": [(recorded.cpu, plain.cpu) for recorded, plain in pairs],
        "wall": [(recorded.wall, plain.wall) for recorded, plain in pairs],
        "CPU, DEBUG against INFO": [(one.cpu, other.cpu) for one, other in debug],
        "CPU, without against without": [
            (one.cpu, other.cpu) for one, other in zip(same[::2], same[1::2], strict=True)
        ],
    }
    inside = [_inside(topology, log) for _ in range(3)]
    more = {f"{name}: {what} (percent)": _percent(of_pairs) for what, of_pairs in found.items()}
    more[f"{name}: CPU inside of what records (percent)"] = 100 * median(inside)
    return {f"{name}: records a second of CPU": RECORDS / median(plain.cpu for _, plain in pairs), **more}


def _inside(topology: ks.Topology, log: Path) -> float:
    """The part of the CPU time of a run that is spent in recording, with what looking at the clock for it takes."""
    seconds = [0.0]

    def timed(record: Callable[..., None]) -> Callable[..., None]:
        def timed_record(*given: Any, **named: Any) -> None:
            begun = thread_time()
            record(*given, **named)
            seconds[0] += thread_time() - begun

        return timed_record

    with ExitStack() as patches:
        for kind, name in RECORDING:
            patches.enter_context(mock.patch.object(kind, name, timed(getattr(kind, name))))
        took = spent(topology, log)
    return seconds[0] / took.cpu


def _percent(pairs: list[tuple[float, float]]) -> float:
    return 100 * (median(one / other for one, other in pairs) - 1)


def _pair(topology: ks.Topology, log: Path, *, with_first: bool) -> tuple[Spent, Spent]:
    """What a run with metrics takes, and one without."""
    one = _spent(topology, log, recorded=with_first)
    other = _spent(topology, log, recorded=not with_first)
    return (one, other) if with_first else (other, one)


def _spent(topology: ks.Topology, log: Path, *, recorded: bool) -> Spent:
    with nullcontext() if recorded else _nothing_recorded():
        return spent(topology, log)


@contextmanager
def _nothing_recorded() -> Iterator[None]:
    """Inside, threads and tasks record nothing of what they measure."""
    with ExitStack() as patches:
        for kind, name in RECORDING:
            patches.enter_context(mock.patch.object(kind, name, _nothing))  # a mock takes longer
        yield


def _nothing(*given: Any, **named: Any) -> None:
    """In place of what records."""


def _write(folder: Path) -> None:
    chance = np.random.default_rng(1)
    keys = pa.array([f"k{n}".encode() for n in range(KEYS)]).take(pa.array(chance.integers(0, KEYS, RECORDS)))
    values = pa.array([b"v" * 20]).take(pa.array(np.zeros(RECORDS, np.int64)))
    write(folder, "in", keys, values, 1_700_000_000_000 + np.arange(RECORDS))


def _filter() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).filter(ks.value != "w").to("out")
    return builder.build()


def _lambdas() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str).filter(lambda _, value: value != "w")
    words.map_values(lambda value: value + "!", value=str).to("out")
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
