"""A process takes no more memory than `memory.max.bytes` says, half as much again at most, however much comes in."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.serdes import serde_of

MIB = 1024 * 1024
MOST = 64 * MIB
LOAD, PARTITIONS = 30_000, 2
ROWS = 5_000
SPAN_MS = 30_000  # of event time: all in one window, so that nothing leaves before the end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def key_of(number: int) -> bytes:
    return b"key-%08d" % number


def write(folder: Path, records: int) -> None:
    """Records with a key of their own each, in two topics that have no key in common."""
    with open_log(folder) as log, log.admin() as admin, log.producer() as producer:
        for topic, first in (("in", 0), ("other", 50_000_000)):
            admin.create_topic(topic, PARTITIONS)
            for start in range(0, records, ROWS):
                numbers = range(start, min(start + ROWS, records))
                keys = pa.array([key_of(first + number) for number in numbers], pa.binary())
                values = pa.array([b"value-%08d" % number for number in numbers], pa.binary())
                times = pa.array([number * SPAN_MS // records for number in numbers], pa.int64())
                source = TopicPartition(topic, start // ROWS % PARTITIONS)
                producer.send_batch(Batch(source, np.arange(len(keys)), keys, values, times))


def append(folder: Path, key: bytes) -> None:
    """One record more, of a key that was there, in its partition."""
    with open_log(folder) as log, log.producer() as producer:
        producer.send("in", key, b"again", timestamp=SPAN_MS, partition=0)


def taken(case: str, folder: Path, most: int = MOST) -> int:
    """The memory that a case takes above a small run before it, in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("app.py")), case, str(folder), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def output(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """What was written, partition by partition."""
    with open_log(folder) as log, log.consumer() as consumer, log.admin() as admin:
        count = admin.describe_topic("out").partitions
        consumer.assign([TopicPartition("out", partition) for partition in range(count)])
        while batches := consumer.poll():
            for batch in batches:
                yield from zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True)


def check(case: str, folder: Path, records: int) -> None:
    """What plain Python makes of the same records."""
    found = list(output(folder))
    read = serde_of(str if case == "left_join" else int).deserialize
    start = b"new-" if case == "repartitioned" else b""
    numbers = range(records)
    if case == "left_join":
        expected = {key_of(n): f"value-{n:08d}/None" for n in numbers}
    else:
        expected = {start + key_of(n): 1 for n in numbers}
    assert len(found) == records
    assert {key: read(value) for key, value in found} == expected


def run(case: str, folder: Path, records: int, most: int = MOST) -> None:
    write(folder / "small", 100)
    write(folder / "large", records)
    assert taken(case, folder, most) < 1.5 * most
    check(case, folder / "large", records)
    shutil.rmtree(folder)


def test_more_keys_than_the_budget_holds(tmp_path: Path) -> None:
    run("count", tmp_path / "run", 300_000)


def test_records_that_are_suddenly_large(tmp_path: Path) -> None:
    write(tmp_path / "small", 100)
    write(tmp_path / "large", 100)
    with open_log(tmp_path / "large") as log, log.producer() as producer:
        for number in range(300):
            producer.send("in", b"large", b"X" * 900_000, timestamp=SPAN_MS, partition=number % PARTITIONS)
    assert taken("mapped", tmp_path) < 1.5 * MOST
    found = [value for key, value in output(tmp_path / "large") if key == b"large"]
    assert found == [b"x" * 900_000] * 300


@pytest.mark.slow
def test_a_restore_of_ten_times_the_load_stays_within_the_budget(tmp_path: Path) -> None:
    write(tmp_path / "small", 100)
    write(tmp_path / "large", 10 * LOAD)
    assert taken("count", tmp_path) < 1.5 * MOST
    shutil.rmtree(tmp_path / "large-state")
    append(tmp_path / "large", key_of(7))
    assert taken("count", tmp_path) < 1.5 * MOST
    [*_, (key, value)] = (row for row in output(tmp_path / "large") if row[0] == key_of(7))
    assert (key, serde_of(int).deserialize(value)) == (key_of(7), 2)


@pytest.mark.slow
@pytest.mark.parametrize("load", [LOAD, 10 * LOAD])
@pytest.mark.parametrize("case", ["aggregate", "count", "repartitioned", "suppress", "left_join"])
def test_memory_stays_within_its_budget_at_ten_times_the_load(case: str, load: int, tmp_path: Path) -> None:
    run(case, tmp_path / "run", load)
