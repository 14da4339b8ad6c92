"""Tasks on Spark beside the same work by hand with Spark's own Kafka source and sink, over one real broker.

Ours is the application as a user runs it, once under each guarantee; Spark's sink writes at least once. All run in one
session over the same topics, in turn. A rate is the median over the steps of a run without the first, and over the
runs; CPU is that of the driver, the JVM and the Python workers. Latency is the time from sending a record to reading
its result, at 1,000 records a second. A step that does nothing reads ten records, which an expression drops.

`python -m benchmarks.spark WHAT...` runs cases by name, `latency` and `idle`; `python -m benchmarks spark` runs all.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from pyspark.sql import functions as F

import kstreams as ks
from benchmarks import spark_by_hand as by_hand
from benchmarks.spark_by_hand import Reader, Written
from benchmarks.spark_cases import (
    CASES,
    KEEPS_TIMES,
    PARTITIONS,
    WORDS,
    Case,
    Measure,
    cpu_seconds,
    median_of,
    write_topics,
)
from kstreams.config import Config
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from tests.support.kafka_cluster import KafkaCluster

RECORDS, SENTENCES, BATCH, RUNS = 1_200_000, 300_000, 200_000, 3
GUARANTEES = ("exactly_once_v2", "at_least_once")
SENTENCE_BATCH = 50_000


TASK_CASES: Mapping[str, Case] = {
    "table join": CASES["stream with table"]._replace(by_hand=by_hand.with_cached_table),
    "stream join": CASES["stream-stream join"],
    "windows of 200,000 keys": CASES["windowed count, 200,000 keys, updates"],
    WORDS: CASES[WORDS],
}


def run() -> dict[str, float]:
    """Records a second, CPU seconds for a million records, milliseconds, and ratios to the work by hand."""
    return figures_of([*TASK_CASES, "latency", "idle"])


def figures_of(names: list[str]) -> dict[str, float]:
    """Return the figures of some cases."""
    figures: dict[str, float] = {}
    with KafkaCluster(settings=KEEPS_TIMES) as kafka, tempfile.TemporaryDirectory() as folder:
        bench = Bench(kafka.bootstrap_servers, Path(folder))
        bench.write_topics()
        for name in names:
            if name == "latency":
                figures |= bench.latencies()
            elif name == "idle":
                figures |= bench.idle_steps()
            else:
                figures |= bench.rates(name)
    return figures


class Event(msgspec.Struct):
    sent: float


class Bench:
    """The broker, the session, and the topics of the comparison.

    Parameters
    ----------
    servers : str
    folder : Path
    """

    def __init__(self, servers: str, folder: Path) -> None:
        from benchmarks.spark_paths import session_of_benchmarks

        self.servers = servers
        self._folder = folder
        self._session = session_of_benchmarks().newSession()
        self._session.conf.set("spark.sql.shuffle.partitions", "2")
        self._number = 0

    def write_topics(self) -> None:
        """Write the input of all cases."""
        write_topics(self.servers, RECORDS, SENTENCES)
        config = {"bootstrap.servers": self.servers}
        with home_of(config).open(config) as log, log.admin() as admin:
            admin.create_topic("live", PARTITIONS)

    # rates

    def rates(self, name: str) -> dict[str, float]:
        """Return the figures of one case."""
        case = TASK_CASES[name]
        measures: dict[str, list[Measure]] = {who: [] for who in (*GUARANTEES, "by hand")}
        for turn in range(1 + RUNS):
            for who in list(measures)[:: 1 if turn % 2 else -1]:
                measure = self._by_hand(case) if who == "by hand" else self._by_tasks(case, who)
                print(f"  {name}, {who}: {measure.rate:,.0f} records/s, {measure.cpu:.2f} CPU s/M", flush=True)
                measures[who] += [measure] if turn else []
        medians = {who: median_of(runs) for who, runs in measures.items()}
        by_hand = medians["by hand"]
        figures = {f"{name}: {who}": measure.rate for who, measure in medians.items()}
        for who in GUARANTEES:
            figures[f"{name}: {who} to by hand (ratio)"] = medians[who].rate / by_hand.rate
        for who, measure in medians.items():
            figures[f"{name}: {who}, CPU of a million records (s)"] = measure.cpu
        return figures

    def _by_tasks(self, case: Case, guarantee: str) -> Measure:
        builder = ks.StreamsBuilder()
        case.topology(builder, case.topic)
        cpu = self._cpu_seconds()
        steps = self._run_once(builder, guarantee, SENTENCE_BATCH if case is TASK_CASES[WORDS] else BATCH)
        rows = sum(count for count, _ in steps)
        return Measure(_rate(steps), (self._cpu_seconds() - cpu) / rows * 1e6)

    def _run_once(
        self, builder: ks.StreamsBuilder, guarantee: str, batch: int, **settings: object
    ) -> list[tuple[int, float]]:
        from kstreams.runtime.spark.runner import SparkRunner

        config = self._config(guarantee, batch, **settings)
        seen = [(0, time.perf_counter())]
        with home_of(config).open(config) as log:
            runner = SparkRunner(
                builder.build(config),
                config,
                self._session,
                log,
                SystemClock(),
                lambda progress: seen.append((progress.records_in, time.perf_counter())),
            )
            runner.run(once=True)
        return [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(seen)]

    def _by_hand(self, case: Case) -> Measure:
        reader = Reader(self._session, self.servers, SENTENCE_BATCH if case is TASK_CASES[WORDS] else BATCH)
        written = case.by_hand(reader, case.topic)
        cpu = self._cpu_seconds()
        query = self._written(written).trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [(p["numInputRows"], p["durationMs"]["triggerExecution"] / 1000) for p in query.recentProgress]
        steps = [step for step in progress if step[0]]
        return Measure(_rate(steps), (self._cpu_seconds() - cpu) / sum(count for count, _ in steps) * 1e6)

    def _cpu_seconds(self) -> float:
        return cpu_seconds(self._session.sparkContext._jvm.java.lang.ProcessHandle.current().pid())

    def _written(self, written: Written) -> Any:
        return by_hand.at_least_once(written, self.servers, tempfile.mkdtemp(dir=self._folder))

    def _config(self, guarantee: str, batch: int = BATCH, **settings: object) -> Config:
        self._number += 1
        return Config.of(
            {
                "application.id": f"bench-{self._number}",
                "bootstrap.servers": self.servers,
                "processing.guarantee": guarantee,
                "spark.kstreams.path": "task",
                "spark.kstreams.max.records": batch,
                "spark.kstreams.checkpoint": tempfile.mkdtemp(dir=self._folder),
                "spark.kstreams.delta": "none",
                "spark.kstreams.prefix": "",
                **settings,
            }
        )

    # latency

    def latencies(self) -> dict[str, float]:
        """Return median and 99th percentile, in milliseconds."""
        figures: dict[str, float] = {}
        by_percentile: dict[str, list[float]] = {}
        for kind, work in {"filter": _live_filter, "windowed count": _live_count}.items():
            for who in (*GUARANTEES, "by hand"):
                with self._running(kind, work, who):
                    by_percentile[who] = self._measured_latency()
                p50, p99 = by_percentile[who]
                print(f"  {kind}, {who}: p50 {p50:.0f} ms, p99 {p99:.0f} ms", flush=True)
            for who, percentiles in by_percentile.items():
                for percentile, ms in zip(("p50", "p99"), percentiles, strict=True):
                    figures[f"latency of a {kind}: {who}, {percentile} (ms)"] = ms
            for who in GUARANTEES:
                for index, percentile in enumerate(("p50", "p99")):
                    ratio = by_percentile[who][index] / by_percentile["by hand"][index]
                    figures[f"latency of a {kind}: {who} to by hand, {percentile} (ratio)"] = ratio
        return figures

    @contextmanager
    def _running(self, kind: str, work: Callable[[ks.StreamsBuilder], None], who: str) -> Iterator[None]:
        if who == "by hand":
            live_by_hand = _live_filter_by_hand if kind == "filter" else _live_count_by_hand
            query = self._written(live_by_hand(Reader(self._session, self.servers, BATCH, "latest"))).start()
            try:
                yield
            finally:
                query.stop()
            return
        from kstreams import spark

        builder = ks.StreamsBuilder()
        work(builder)
        config = self._config(who, **{"auto.offset.reset": "latest"})
        with spark.start(builder, self._session, config):
            yield

    def _measured_latency(self) -> list[float]:
        """Send records for a while, and return percentiles of the times until their results are read.

        Sender and reader are processes of their own, since the driver of tasks is this one.
        """
        context = get_context("spawn")
        with ProcessPoolExecutor(2, context) as processes:
            reading = processes.submit(_read_latencies, self.servers)
            processes.submit(_send, self.servers).result()
            latencies = reading.result()
        return [float(np.percentile(latencies, percentile)) for percentile in (50, 99)]

    # steps without work

    def idle_steps(self) -> dict[str, float]:
        """Return the seconds of a step that reads ten records and writes none."""
        figures = {}
        for delta in (False, True):
            for guarantee in GUARANTEES:
                builder = ks.StreamsBuilder()
                stream = builder.stream("events-1000", key=str, value=bytes)
                stream.filter(ks.value.is_null()).to("out") if not delta else None
                stream.filter_not(ks.value.is_null()).to("out") if delta else None
                folder = {"spark.kstreams.delta": str(self._folder / f"delta-{self._number}")} if delta else {}
                steps = self._steps_of_ten(builder, guarantee, folder)
                name = "ten records to Delta too" if delta else "nothing"
                figures[f"a step, {name}, {guarantee} (s)"] = statistics.median(steps)
                print(f"  {name}, {guarantee}: {statistics.median(steps):.3f} s", flush=True)
        return figures

    def _steps_of_ten(self, builder: ks.StreamsBuilder, guarantee: str, settings: Mapping[str, object]) -> list[float]:
        from kstreams.runtime.spark.runner import SparkRunner

        config = self._config(guarantee, 10, **settings)
        times: list[float] = []
        stop = threading.Event()

        def on_progress(progress: object) -> None:
            times.append(time.perf_counter())
            if len(times) > IDLE_STEPS:
                stop.set()

        with home_of(config).open(config) as log:
            SparkRunner(builder.build(config), config, self._session, log, SystemClock(), on_progress).run(stop=stop)
        return [after - before for before, after in pairwise(times)][5:]


WARM_UP_S, MEASURED_S, IDLE_STEPS = 12.0, 15.0, 40


def _send(servers: str) -> None:
    """Send 1,000 records a second that hold the time of sending."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
    started = time.time()
    number = 0
    while time.time() < started + WARM_UP_S + MEASURED_S + 2:
        while number < (time.time() - started) * 1_000:
            producer.produce("live", b'{"sent":%.6f}' % time.time(), b"user-%d" % (number % 1_000))
            number += 1
        producer.poll(0)
        time.sleep(0.002)
    producer.flush()


def _read_latencies(servers: str) -> list[float]:
    """Return the milliseconds from sending a record to reading its result, without those of the warm-up."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"group.id": "latency", "enable.auto.commit": False, "fetch.wait.max.ms": 5}
    consumer = Consumer({"bootstrap.servers": servers, "isolation.level": "read_committed", **settings})
    ends = {
        partition: consumer.get_watermark_offsets(TopicPartition("out", partition))[1]
        for partition in range(PARTITIONS)
    }
    consumer.assign([TopicPartition("out", partition, end) for partition, end in ends.items()])
    latencies = []
    began = time.time()
    while time.time() < began + WARM_UP_S + MEASURED_S:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None and time.time() > began + WARM_UP_S:
            latencies.append((time.time() - msgspec.json.decode(message.value(), type=Event).sent) * 1000)
    consumer.close()
    return latencies


def _live(builder: ks.StreamsBuilder) -> ks.KStream:
    return builder.stream("live", key=str, value=Event)


def _live_filter(builder: ks.StreamsBuilder) -> None:
    _live(builder).filter(ks.col("sent") > 0).to("out")


def _live_count(builder: ks.StreamsBuilder) -> None:
    grouped = _live(builder).map_values(ks.col("sent"), value=float).group_by_key()
    windows = grouped.windowed_by(ks.TimeWindows(size=60_000, grace=10_000))
    latest = windows.aggregate(last=ks.value.max()).to_stream()
    latest.map_values(ks.struct(sent=ks.col("last")), value=Event).to("out")


def _live_by_hand(read: Reader) -> Any:
    sent = F.from_json(F.col("value").cast("string"), "sent double")["sent"]
    return read.stream("live").select("key", "timestamp", sent.alias("sent"))


def _live_filter_by_hand(read: Reader) -> Written:
    return Written(_live_by_hand(read).where("sent > 0").select("key", F.to_json(F.struct("sent")).alias("value")))


def _live_count_by_hand(read: Reader) -> Written:
    timed = _live_by_hand(read).withWatermark("timestamp", "10 seconds")
    last = timed.groupBy(F.window("timestamp", "60 seconds"), "key").agg(F.max("sent").alias("sent"))
    return Written(last.select("key", F.to_json(F.struct("sent")).alias("value")), "update")


def _rate(steps: list[tuple[int, float]]) -> float:
    full = [count / seconds for count, seconds in steps[1:] if count]
    return statistics.median(full)


if __name__ == "__main__":
    for what, figure in figures_of(sys.argv[1:] or [*TASK_CASES, "latency", "idle"]).items():
        print(f"{what:<95} {figure:>14,.3f}", flush=True)
