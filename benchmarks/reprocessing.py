"""A running application reads history from four partitions, which keep in step in time or each go on their own."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pyarrow as pa

import kstreams as ks
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log

RECORDS, KEYS, BATCH = 1_000_000, 977, 50_000
HOUR_MS = 3_600_000


def run() -> dict[str, float]:
    """Records a second, and how many are late: windows of an hour, with ten minutes of grace."""
    logging.getLogger("kstreams").setLevel(logging.ERROR)
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for partitions, idle_ms, threads in ((1, 0, 1), (4, -1, 1), (4, 0, 1), (4, -1, 4), (4, 0, 4)):
            case = f"{partitions} partitions, {threads} threads" if partitions > 1 else "one partition"
            how = "" if partitions == 1 else ", in step" if idle_ms == 0 else ", each on its own"
            home = Path(folder) / f"{case}{how}"
            _write(home / "log", partitions)
            rate, late = _read(home, {"max.task.idle.ms": idle_ms, "num.stream.threads": threads})
            figures |= {case + how: rate, f"{case}{how}: late (records)": late}
    return figures


def _write(folder: Path, partitions: int) -> None:
    with open_log(folder) as log, log.admin() as admin, log.producer() as producer:
        admin.create_topic("in", partitions)
        admin.create_topic("out", 1)
        for partition in range(partitions):
            numbers = np.arange(partition, RECORDS, partitions)
            for start in range(0, len(numbers), BATCH):
                part = numbers[start : start + BATCH]
                values = pa.array([b"sensor %d" % (number % KEYS) for number in part.tolist()], pa.binary())
                columns = pa.nulls(len(part), pa.binary()), values, pa.array(part * 50)
                producer.send_batch(Batch(TopicPartition("in", partition), part, *columns))


def _read(home: Path, settings: dict[str, int]) -> tuple[float, float]:
    given = {"application.id": "bench", "log.dir": home / "log", "state.dir": home / "state", "commit.interval.ms": 100}
    with ks.KafkaStreams(_topology(), {**given, **settings}) as streams:
        streams.start()
        start = perf_counter()
        while streams.progress().lag or streams.progress().records_in < RECORDS:
            sleep(0.01)
        took = perf_counter() - start
        return RECORDS / took, sum(streams.progress().dropped.values())


def _topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    sensors = builder.stream("in", key=str, value=str).select_key(ks.value, key=str).group_by_key()
    counts = sensors.windowed_by(ks.TimeWindows(size=HOUR_MS, grace=HOUR_MS // 6)).count()
    counts.to_stream(lambda window, _: window.key, key=str).to("out", key=str, value=int)
    return builder.build()
