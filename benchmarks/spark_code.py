"""Programs of `explain --code` beside the same queries by hand, from Kafka to Kafka by Spark's own source and sink.

Both run in one session over the same topics, in turn, each first as often as the other; a run of each that does not
count comes before. A figure is the median over the triggers of a run, without the first, and over the runs. CPU is that
of the process of Spark for each record.

`python -m benchmarks.spark_code CASE...` runs cases by name, without names all.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import kstreams as ks
from benchmarks.spark_paths import session_of_benchmarks
from benchmarks.spark_steps import write_topic
from kstreams.config import Config
from kstreams.log import home_of
from kstreams.runtime.spark.code.program import program_of
from tests.support.kafka_cluster import KafkaCluster

RECORDS, BATCH, PARTITIONS, RUNS = 800_000, 200_000, 4, 3
START_MS, STEP_MS = 1_600_000_000_000, 10
KEEPS_TIMES = {"log.message.timestamp.after.max.ms": 2**63 - 1}


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
    """A query: as a topology that writes `out`, and by hand as keys and values with the output mode."""

    topology: Callable[[ks.StreamsBuilder, str], None]
    by_hand: Callable[[Reader, str], tuple[Any, str]]
    topic: str = "events-1000"


class Reader:
    """Spark's Kafka source, as it is written by hand."""

    def __init__(self, session: Any, servers: str, batch: int = BATCH, starts: str = "earliest") -> None:
        self._session = session
        self.servers = servers
        self._options = {"startingOffsets": starts, "maxOffsetsPerTrigger": str(batch)}

    def stream(self, topic: str) -> Any:
        """Return the records of a topic."""
        stream = self._session.readStream.format("kafka").options(**self._options)
        return stream.option("kafka.bootstrap.servers", self.servers).option("subscribe", topic).load()

    def table(self, topic: str) -> Any:
        """Return the last value of each key, read anew in each batch."""
        batch = self._session.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        records = batch.option("subscribe", topic).load()
        return records.groupBy("key").agg(F.max_by("value", F.struct("partition", "offset")).alias("value"))

    def events(self, topic: str) -> Any:
        """Return the events of a topic, decoded."""
        event = F.from_json(F.col("value").cast("string"), "user string, amount bigint, price double")
        return self.stream(topic).select("key", event.alias("event"), "timestamp")


def _filter(builder: ks.StreamsBuilder, topic: str) -> None:
    builder.stream(topic, key=str, value=Event).filter(ks.col("amount") > 50).to("out")


def _filter_by_hand(read: Reader, topic: str) -> tuple[Any, str]:
    return read.events(topic).where("event.amount > 50").select("key", F.to_json("event").alias("value")), "append"


def _windows(*, is_final: bool) -> Callable[[ks.StreamsBuilder, str], None]:
    def declare(builder: ks.StreamsBuilder, topic: str) -> None:
        grouped = builder.stream(topic, key=str, value=Event).group_by_key()
        counts = grouped.windowed_by(ks.TimeWindows(size=60_000, grace=10_000)).count()
        closed = counts.suppress(ks.Suppressed.until_window_closes()) if is_final else counts
        closed.to_stream().to("out")

    return declare


def _windows_by_hand(mode: str) -> Callable[[Reader, str], tuple[Any, str]]:
    def query(read: Reader, topic: str) -> tuple[Any, str]:
        timed = read.stream(topic).withWatermark("timestamp", "10 seconds")
        counts = timed.groupBy(F.window("timestamp", "60 seconds"), "key").count()
        start = F.unhex(F.lpad(F.hex(F.unix_millis("window.start")), 16, "0"))
        return counts.select(F.concat("key", start).alias("key"), F.col("count").cast("string").alias("value")), mode

    return query


def _sessions(builder: ks.StreamsBuilder, topic: str) -> None:
    grouped = builder.stream(topic, key=str, value=Event).group_by_key()
    counts = grouped.windowed_by(ks.SessionWindows(gap=5_000, grace=10_000)).count()
    counts.suppress(ks.Suppressed.until_window_closes()).to_stream().to("out")


def _sessions_by_hand(read: Reader, topic: str) -> tuple[Any, str]:
    timed = read.stream(topic).withWatermark("timestamp", "10 seconds")
    counts = timed.groupBy(F.session_window("timestamp", "5 seconds"), "key").count()
    return counts.select("key", F.col("count").cast("string").alias("value")), "append"


def _table(builder: ks.StreamsBuilder, topic: str) -> None:
    users = builder.table("users", key=str, value=User)
    placed = ks.struct(amount=ks.left.col("amount"), city=ks.right.col("city"))
    builder.stream(topic, key=str, value=Event).join(users, placed, value=Placed).to("out")


def _table_by_hand(read: Reader, topic: str) -> tuple[Any, str]:
    user = F.from_json(F.col("value").cast("string"), "city string")
    users = F.broadcast(read.table("users").select("key", user.alias("user")))
    placed = F.to_json(F.struct("event.amount", "user.city"))
    return read.events(topic).join(users, "key").select("key", placed.alias("value")), "append"


def _pairs(builder: ks.StreamsBuilder, topic: str) -> None:
    left = builder.stream(topic, key=str, value=Event)
    right = builder.stream("others", key=str, value=Event)
    pair = ks.struct(left=ks.left.col("amount"), right=ks.right.col("amount"))
    left.join(right, pair, windows=ks.JoinWindows.of(1_000, grace=10_000), value=Pair).to("out")


def _pairs_by_hand(read: Reader, topic: str) -> tuple[Any, str]:
    left = read.events(topic).withWatermark("timestamp", "10 seconds").alias("left")
    right = read.events("others").withWatermark("timestamp", "10 seconds").alias("right")
    times = "right.timestamp BETWEEN left.timestamp - INTERVAL 1 SECOND AND left.timestamp + INTERVAL 1 SECOND"
    joined = left.join(right, F.expr(f"left.key = right.key AND {times}"))
    pair = F.struct(F.col("left.event.amount").alias("left"), F.col("right.event.amount").alias("right"))
    return joined.select(F.col("left.key").alias("key"), F.to_json(pair).alias("value")), "append"


CASES: Mapping[str, Case] = {
    "filter": Case(_filter, _filter_by_hand),
    "windowed count, 1,000 keys, updates": Case(_windows(is_final=False), _windows_by_hand("update")),
    "windowed count, 1,000 keys, final": Case(_windows(is_final=True), _windows_by_hand("append")),
    "windowed count, 200,000 keys, updates": Case(
        _windows(is_final=False), _windows_by_hand("update"), "events-200000"
    ),
    "windowed count, 200,000 keys, final": Case(_windows(is_final=True), _windows_by_hand("append"), "events-200000"),
    "sessions": Case(_sessions, _sessions_by_hand),
    "stream with table": Case(_table, _table_by_hand),
    "stream-stream join": Case(_pairs, _pairs_by_hand, "events-200000"),
}


class Measure(NamedTuple):
    """Records a second within a trigger, and microseconds of CPU for a record."""

    rate: float
    cpu: float


def figures_of(names: list[str]) -> dict[str, float]:
    """Return the figures of some cases."""
    figures: dict[str, float] = {}
    with KafkaCluster(settings=KEEPS_TIMES) as kafka, tempfile.TemporaryDirectory() as folder:
        session = session_of_benchmarks().newSession()
        session.conf.set("spark.sql.shuffle.partitions", "2")
        _write_topics(kafka.bootstrap_servers)
        for name in names:
            measures = _in_turn(session, kafka.bootstrap_servers, CASES[name], Path(folder))
            ours, by_hand = (_median(runs) for runs in measures)
            figures[f"{name}, Kafka to Kafka: explain --code"] = ours.rate
            figures[f"{name}, Kafka to Kafka: by hand"] = by_hand.rate
            figures[f"{name}, Kafka to Kafka: explain --code to by hand (ratio)"] = ours.rate / by_hand.rate
            figures[f"{name}, Kafka to Kafka: CPU of explain --code to by hand (ratio)"] = ours.cpu / by_hand.cpu
    return figures


def _median(runs: list[Measure]) -> Measure:
    return Measure(statistics.median(run.rate for run in runs), statistics.median(run.cpu for run in runs))


def _write_topics(servers: str) -> None:
    config = {"bootstrap.servers": servers}
    with home_of(config).open(config) as log, log.admin() as admin, log.producer() as producer:
        for topic in (*{case.topic for case in CASES.values()}, "others", "users", "out"):
            admin.create_topic(topic, PARTITIONS)
        write_events(producer, RECORDS)
        producer.flush()


def write_events(producer: Any, count: int) -> None:
    """Write `count` records to each topic of events, and the table of users."""
    random = np.random.default_rng(3)
    for topic, keys in [("events-1000", 1_000), *((topic, 200_000) for topic in _MANY)]:
        numbers = random.integers(0, keys, count)
        names = pa.array([f"user-{number}" for number in numbers])
        values = [f'{{"user":"u{n}","amount":{n % 100},"price":{n % 77}.5}}' for n in numbers.tolist()]
        times = START_MS + np.arange(count) * STEP_MS
        raw = pa.array(values).cast(pa.binary())
        write_topic(producer, topic, PARTITIONS, names.cast(pa.binary()), raw, times)
    users = pa.array([f"user-{number}" for number in range(10_000)]).cast(pa.binary())
    cities = pa.array([json.dumps({"city": f"city {n % 50}"}) for n in range(10_000)]).cast(pa.binary())
    write_topic(producer, "users", PARTITIONS, users, cities, np.full(10_000, START_MS))


_MANY = ("events-200000", "others")


def _in_turn(session: Any, servers: str, case: Case, folder: Path) -> tuple[list[Measure], list[Measure]]:
    ours: list[Measure] = []
    by_hand: list[Measure] = []
    for turn in range(1 + RUNS):
        runs = [(ours, _run_program), (by_hand, _run_by_hand)]
        for measures, run in runs[:: 1 if turn % 2 else -1]:
            with _measured(session) as measure:
                run(session, servers, case, Path(tempfile.mkdtemp(dir=folder)))
            measures.append(measure())
    return ours[1:], by_hand[1:]


def _run_program(session: Any, servers: str, case: Case, folder: Path) -> None:
    config = Config.of(
        {
            "application.id": "bench",
            "bootstrap.servers": servers,
            "spark.kstreams.max.records": BATCH,
            "spark.kstreams.checkpoint": str(folder),
            "spark.kstreams.prefix": "",
        }
    )
    builder = ks.StreamsBuilder()
    case.topology(builder, case.topic)
    text = program_of(builder.build(config), config, {}.fromkeys([*_MANY, "events-1000"], PARTITIONS).get)
    text = text.replace("SparkSession.builder.getOrCreate()", "session_of_benchmark")
    text = text.replace('ONCE = "--once" in sys.argv', "ONCE = True")
    exec(compile(text, "program", "exec"), {"session_of_benchmark": session, "__name__": "__main__"})


def _run_by_hand(session: Any, servers: str, case: Case, folder: Path) -> None:
    rows, mode = case.by_hand(Reader(session, servers), case.topic)
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "out")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).outputMode(mode)
    query.trigger(availableNow=True).start().awaitTermination()


@contextmanager
def _measured(session: Any) -> Iterator[Callable[[], Measure]]:
    """Collect the progress of the queries that run within, and the CPU of the JVM."""
    from pyspark.sql.streaming import StreamingQueryListener

    triggers: list[tuple[int, float]] = []
    ended: list[str] = []

    class Progress(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            """Ignore the start."""

        def onQueryProgress(self, event: Any) -> None:
            triggers.append((event.progress.numInputRows, event.progress.batchDuration / 1000))

        def onQueryIdle(self, event: Any) -> None:
            """Ignore idle queries."""

        def onQueryTerminated(self, event: Any) -> None:
            ended.append(str(event.id))

    listener = Progress()
    session.streams.addListener(listener)
    before = _cpu_seconds(session)
    yield lambda: _measure(triggers, _cpu_seconds(session) - before)
    while not ended:
        session.sparkContext._jvm.java.lang.Thread.sleep(50)
    session.streams.removeListener(listener)


def _measure(triggers: list[tuple[int, float]], cpu: float) -> Measure:
    full = [(rows, seconds) for rows, seconds in triggers if rows][1:]
    rows = sum(rows for rows, _ in triggers)
    return Measure(statistics.median(count / seconds for count, seconds in full), cpu / rows * 1e6)


def _cpu_seconds(session: Any) -> float:
    """Return the CPU time of the JVM."""
    pid = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    for what, figure in figures_of(sys.argv[1:] or list(CASES)).items():
        print(f"{what:<95} {figure:>14,.3f}", flush=True)
