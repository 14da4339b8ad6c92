"""Topologies beside the same queries by hand (`spark_by_hand.py`), and the topics that both read.

`relational.py` runs the topologies as queries of PySpark, `spark.py` in tasks.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import spark_by_hand as by_hand
from benchmarks.spark_by_hand import Reader, Written
from benchmarks.spark_steps import write_topic
from kstreams.log import home_of

PARTITIONS = 4
START_MS, STEP_MS = 1_600_000_000_000, 10
KEEPS_TIMES = {"log.message.timestamp.after.max.ms": 2**63 - 1}
"""The setting of a broker that takes records of the year 2020."""


class Event(msgspec.Struct):
    user: str
    amount: int
    price: float


class User(msgspec.Struct):
    city: str


class Placed(msgspec.Struct):
    amount: int
    city: str


class Pair(msgspec.Struct):
    left: int
    right: int


class Case(NamedTuple):
    """A query: as a topology that writes `out`, and by hand."""

    topology: Callable[[ks.StreamsBuilder, str], None]
    by_hand: Callable[[Reader, str], Written]
    topic: str = "events-1000"


def _filter(builder: ks.StreamsBuilder, topic: str) -> None:
    builder.stream(topic, key=str, value=Event).filter(ks.col("amount") > 50).to("out")


def _windows(*, is_final: bool) -> Callable[[ks.StreamsBuilder, str], None]:
    def declare(builder: ks.StreamsBuilder, topic: str) -> None:
        grouped = builder.stream(topic, key=str, value=Event).group_by_key()
        counts = grouped.windowed_by(ks.TimeWindows(size=60_000, grace=10_000)).count()
        closed = counts.suppress(ks.Suppressed.until_window_closes()) if is_final else counts
        closed.to_stream().to("out")

    return declare


def _sessions(builder: ks.StreamsBuilder, topic: str) -> None:
    grouped = builder.stream(topic, key=str, value=Event).group_by_key()
    counts = grouped.windowed_by(ks.SessionWindows(gap=5_000, grace=10_000)).count()
    counts.suppress(ks.Suppressed.until_window_closes()).to_stream().to("out")


def _table(builder: ks.StreamsBuilder, topic: str) -> None:
    users = builder.table("users", key=str, value=User)
    placed = ks.struct(amount=ks.left.col("amount"), city=ks.right.col("city"))
    builder.stream(topic, key=str, value=Event).join(users, placed, value=Placed).to("out")


def _pairs(builder: ks.StreamsBuilder, topic: str) -> None:
    left = builder.stream(topic, key=str, value=Event)
    right = builder.stream("others", key=str, value=Event)
    pair = ks.struct(left=ks.left.col("amount"), right=ks.right.col("amount"))
    left.join(right, pair, windows=ks.JoinWindows.of(1_000, grace=10_000), value=Pair).to("out")


def _words(builder: ks.StreamsBuilder, topic: str) -> None:
    words = builder.stream(topic, key=str, value=str).flat_map_values(ks.value.str.split(" "), value=str)
    words.group_by(ks.value, key=str).count().to_stream().to("out")


MANY = "events-200000"
WORDS = "word count"
CASES: Mapping[str, Case] = {
    "filter": Case(_filter, by_hand.filtered),
    "windowed count, 1,000 keys, updates": Case(_windows(is_final=False), by_hand.windows("update")),
    "windowed count, 1,000 keys, final": Case(_windows(is_final=True), by_hand.windows("append")),
    "windowed count, 200,000 keys, updates": Case(_windows(is_final=False), by_hand.windows("update"), MANY),
    "windowed count, 200,000 keys, final": Case(_windows(is_final=True), by_hand.windows("append"), MANY),
    "sessions": Case(_sessions, by_hand.sessions),
    "stream with table": Case(_table, by_hand.with_table),
    "stream-stream join": Case(_pairs, by_hand.pairs, MANY),
    WORDS: Case(_words, by_hand.words, "sentences"),
}


def write_topics(servers: str, records: int, sentences: int) -> None:
    """Write the input of all cases, and create the topic of their results."""
    config = {"bootstrap.servers": servers}
    random = np.random.default_rng(3)
    with home_of(config).open(config) as log, log.admin() as admin, log.producer() as producer:
        for topic in (*{case.topic for case in CASES.values()}, "others", "users", "out"):
            admin.create_topic(topic, PARTITIONS)
        times = START_MS + np.arange(records) * STEP_MS
        for topic, keys in (("events-1000", 1_000), (MANY, 200_000), ("others", 200_000)):
            numbers = random.integers(0, keys, records)
            names = pa.array([f"user-{number}" for number in numbers])
            values = [f'{{"user":"u{n}","amount":{n % 100},"price":{n % 77}.5}}' for n in numbers.tolist()]
            raw = pa.array(values).cast(pa.binary())
            write_topic(producer, topic, PARTITIONS, names.cast(pa.binary()), raw, times)
        users = pa.array([f"user-{number}" for number in range(10_000)]).cast(pa.binary())
        cities = pa.array([json.dumps({"city": f"city {n % 50}"}) for n in range(10_000)]).cast(pa.binary())
        write_topic(producer, "users", PARTITIONS, users, cities, np.full(10_000, START_MS))
        ranks = np.minimum(random.zipf(1.3, (sentences, 8)), 10_000).tolist()
        lines = pa.array([" ".join(f"word{rank}" for rank in of_line) for of_line in ranks]).cast(pa.binary())
        write_topic(producer, "sentences", PARTITIONS, lines, lines, times[:sentences])
        producer.flush()


class Measure(NamedTuple):
    """Records a second within a batch, and seconds of CPU for a million records."""

    rate: float
    cpu: float


def median_of(runs: Sequence[Measure]) -> Measure:
    """Return the median of the rates, and that of the CPU."""
    return Measure(statistics.median(run.rate for run in runs), statistics.median(run.cpu for run in runs))


def cpu_seconds(spark: int) -> float:
    """Return the CPU time of this process, and of Spark's process and all processes that it has started."""
    times: dict[int, int] = {}
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # the process has ended
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        times[pid] = sum(map(int, fields[11:15]))
    ticks = times[spark] + sum(spent for pid, spent in times.items() if _is_below(pid, spark, parents))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _is_below(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    """Return True if a process was started by another, or by one that this has started."""
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False
