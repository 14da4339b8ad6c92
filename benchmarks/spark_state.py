"""What a step of Spark costs over few and over many keys: 10,000 records over 1,000 and 1,000,000, snapshots included.

First one task alone, driven as a Spark worker does it: by one worker, then each step by a new one. Then on Spark.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks.spark_steps import steps_of, worker_memory, write_topic
from kstreams.config import Config
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log

FEW, MANY, PER_STEP, STEPS, NEW_WORKERS, PARTITIONS = 1_000, 1_000_000, 10_000, 60, 5, 2


def run() -> dict[str, float]:
    """Milliseconds of a step, how those over many keys compare with those over few (ratios)."""
    figures: dict[str, float] = {}
    for where, measure in (("task", _task_alone), ("Spark", _on_spark)):
        few, many = measure(FEW), measure(MANY)
        figures |= {f"{where}: {name}, {FEW:,} keys": took for name, took in few.items()}
        figures |= {f"{where}: {name}, {MANY:,} keys": took for name, took in many.items()}
        figures |= {f"{where}: {name}, many keys to few (ratio)": many[name] / took for name, took in few.items()}
    return figures


def _topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=bytes).group_by_key().count().to_stream().to("out")
    return builder.build()


def _keys(numbers: Any) -> pa.Array:
    return pa.array([b"key-%07d" % number for number in numbers], pa.binary())


def _every_key_then_steps(count: int, steps: int) -> list[pa.Array]:
    """The keys of the records of each step: all of them once, then some of them at random."""
    random = np.random.default_rng(7)
    return [_keys(range(count)), *(_keys(random.integers(0, count, PER_STEP)) for _ in range(steps))]


def _task_alone(count: int) -> dict[str, float]:
    given = _every_key_then_steps(count, STEPS + NEW_WORKERS)
    with tempfile.TemporaryDirectory() as folder:
        steps = _Steps(Path(folder))
        steps.take(given[0])
        start = time.perf_counter()
        for keys in given[1 : STEPS + 1]:
            steps.take(keys)
        steps.wait_for_snapshots()
        mean = (time.perf_counter() - start) / STEPS
        new = [_taken_by_new_worker(Path(folder), steps, keys) for keys in given[STEPS + 1 :]]
    return {"step (ms)": 1000 * mean, "step of a new worker (ms)": 1000 * statistics.median(new)}


class _Steps:
    """A task whose steps are made one by one.

    Parameters
    ----------
    folder : Path
        Of the checkpoint, and for what workers keep.
    """

    def __init__(self, folder: Path) -> None:
        from kstreams.processor.topology.layout import lay_out
        from kstreams.runtime.spark.program import program_of
        from kstreams.runtime.spark.settings import SparkSettings
        from kstreams.state import rocksdb  # noqa: F401  # what imports take does not count

        config, topology = Config.of({"application.id": "bench"}), _topology()
        layout, settings = lay_out(topology, "bench", {"in": 1}), SparkSettings(state_dir=str(folder / "local"))
        self._program = program_of(topology, config, settings, layout, {"in": 1}, str(folder))
        self.at: tuple[int, int, Any] = 0, 0, {}

    def take(self, keys: pa.Array) -> float:
        """Make the step that reads one record of each key; the seconds that it took."""
        from kstreams.runtime.spark.exchange.reports import split_reports
        from kstreams.runtime.spark.steps import Step
        from kstreams.runtime.spark.tasks.task_run import run_task

        number, first, states = self.at
        offsets = np.arange(first, first + len(keys), dtype=np.int64)
        batch = Batch(TopicPartition("in", 0), offsets, keys, keys, pa.array(offsets))
        start = time.perf_counter()
        step = Step(number, states=states)
        made = list(run_task(self._program, self._program.sub_topologies[0], 0, step, {batch.source: [batch]}))
        took = time.perf_counter() - start
        _, (report,) = split_reports(made)
        self.at = number + 2, first + len(keys), report.states
        return took

    def wait_for_snapshots(self) -> None:
        """Wait for what is made aside."""
        from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS

        SNAPSHOTS.wait()


def _taken_by_new_worker(folder: Path, steps: _Steps, keys: pa.Array) -> float:
    with ProcessPoolExecutor(1, get_context("spawn")) as worker:
        took, steps.at = worker.submit(_take_in_worker, folder, steps.at, keys).result()
    return took


def _take_in_worker(folder: Path, at: tuple[int, int, Any], keys: pa.Array) -> tuple[float, tuple[int, int, Any]]:
    with tempfile.TemporaryDirectory() as other:
        _Steps(Path(other)).take(keys[:1])  # what the first call of all loads does not count
    steps = _Steps(folder)
    steps.at = at
    return steps.take(keys), steps.at


def _on_spark(count: int) -> dict[str, float]:
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings(delta=None))
    with tempfile.TemporaryDirectory() as folder:
        every, *some = _every_key_then_steps(count, STEPS)
        with open_log(Path(folder, "log")) as log, log.admin() as admin:
            admin.create_topic("in", PARTITIONS)
        for given, most in ((every, count), (pa.concat_arrays(some), PER_STEP)):
            _write(Path(folder, "log"), given)
            steps = steps_of(session, _topology(), Path(folder), "state", spark_kstreams_max_records=most)
        taken = [seconds for _, seconds in steps[1:]]
        memory = worker_memory()
    return {
        "step (ms)": 1000 * statistics.mean(taken),
        "median step (ms)": 1000 * statistics.median(taken),
        "memory of a worker (MB)": memory,
    }


def _write(folder: Path, keys: pa.Array) -> None:
    with open_log(folder) as log, log.producer() as producer:
        write_topic(producer, "in", PARTITIONS, keys, keys, np.zeros(len(keys), np.int64))


if __name__ == "__main__":
    for name, figure in run().items():
        print(f"{name:60} {figure:10.2f}")
