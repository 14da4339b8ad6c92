"""The scene of the kills: the shop's input, its undisturbed results, and what differs from them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.log.partitioning import partitions_of
from kstreams.package_folder import PACKAGE
from kstreams.serdes import serde_of
from tests.spark.draws.large_results import changelog, difference, rows_of, table

APP = Path(__file__).with_name("shop.py")
NAME, PREFIX = "shop", "spark-"
RESULTS = ("minutes", "sums", "paid")
PARTITIONS, CUSTOMERS, SPAN_MS = 4, 5_000, 2_000_000
SKEW_MS = np.array([0, 0, 60_000, 1_500])
"""How far each partition is ahead: a step that takes the same share of all would make others late."""


class Difference(NamedTuple):
    """One topic of results, beside the undisturbed one.

    Parameters
    ----------
    records : int
        Of the undisturbed run.
    in_table : int
        Rows of the final tables that differ.
    in_records : int
        Records that differ, those of a key in their order.
    """

    topic: str
    records: int
    in_table: int
    in_records: int


def write(address: str, rows: int, seed: int) -> None:
    """Orders and payments, three to two, with jittered times, and partitions that are ahead of others."""
    random = np.random.default_rng(seed)
    with open_log(address) as log, log.admin() as admin, log.producer() as producer:
        for topic, count in (("orders", rows * 3 // 5), ("payments", rows * 2 // 5)):
            admin.create_topic(topic, PARTITIONS)
            for batch in _batches(random, topic, count):
                producer.send_batch(batch)


def _batches(random: np.random.Generator, topic: str, count: int) -> list[Batch]:
    customers = pa.array([f"c{n}".encode() for n in range(CUSTOMERS)]).take(
        pa.array(random.integers(0, CUSTOMERS, count))
    )
    amounts = serde_of(int).encode_column(pa.array(random.integers(0, 10_000, count)))
    chosen = partitions_of(customers, PARTITIONS)
    jitter = random.integers(0, 600, count)
    times = pa.array(10_000_000 + np.arange(count) * SPAN_MS // count + SKEW_MS[chosen] - jitter)
    found = []
    for partition in range(PARTITIONS):
        mine = pa.array(np.flatnonzero(chosen == partition))
        offsets = np.arange(len(mine), dtype=np.int64)
        columns = customers.take(mine), amounts.take(mine), times.take(mine)
        whole = Batch(TopicPartition(topic, partition), offsets, *columns)
        found += [whole.slice(start, min(start + 20_000, len(whole))) for start in range(0, len(whole), 20_000)]
    return found


def command(arguments: list[str], settings: Mapping[str, Any]) -> list[str]:
    """A call of kstreams with settings."""
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    return [sys.executable, "-m", "kstreams", *arguments, "--until-end", *options]


def environment(**more: str) -> dict[str, str]:
    """What a process of kstreams needs to be found by, and to find us."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def run_natively(folder: Path, settings: Mapping[str, Any], **more: str) -> None:
    """The undisturbed run: its results lie in the same log as those of Spark, without a prefix."""
    given = {**settings, "state.dir": folder / "native"}
    subprocess.run(command(["run", str(APP)], given), env=environment(**more), check=True)


def compare(address: str) -> list[Difference]:
    """The results of Spark beside those of the undisturbed run, topic by topic."""
    found = []
    for topic in RESULTS:
        natively, on_spark = (rows_of(address, prefix + topic) for prefix in ("", PREFIX))
        in_table, in_records = (difference(kind, natively, on_spark) for kind in (table, changelog))
        found.append(Difference(topic, len(natively), in_table, in_records))
    return found
