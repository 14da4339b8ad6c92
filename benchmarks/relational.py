"""The relational path beside the same queries by hand, from Kafka to Kafka over one broker, at both guarantees.

An application runs as a user starts it, with `spark.kstreams.path=relational`: its producers write records with their
times, exactly once and at least once. The queries by hand (`spark_by_hand.py`) read by Spark's own source; at least
once they write by its sink, without the times, and exactly once by transactional producers, with the times. All run in
one session over the same topics, in turn; a run of each that does not count comes before.

A figure is the median over the triggers of a run, without the first, and over the runs. CPU is that of Spark, its
Python workers and this process from the end of the first trigger to the end of the last, for a million records read.

`python -m benchmarks relational` runs all and appends to RESULTS.md; `python -m benchmarks.relational CASE...` runs
cases by name and appends nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import spark_by_hand as by_hand
from benchmarks.spark_by_hand import Reader, Written
from benchmarks.spark_steps import write_topic
from kstreams.config import Config
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.runtime.spark.cluster.session import session_of_run, spark_session
from kstreams.runtime.spark.runner import SparkRunner
from kstreams.runtime.spark.settings import SparkSettings
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
CASES: Mapping[str, Case] = {
    "filter": Case(_filter, by_hand.filtered),
    "windowed count, 1,000 keys, updates": Case(_windows(is_final=False), by_hand.windows("update")),
    "windowed count, 1,000 keys, final": Case(_windows(is_final=True), by_hand.windows("append")),
    "windowed count, 200,000 keys, updates": Case(_windows(is_final=False), by_hand.windows("update"), MANY),
    "windowed count, 200,000 keys, final": Case(_windows(is_final=True), by_hand.windows("append"), MANY),
    "sessions": Case(_sessions, by_hand.sessions),
    "stream with table": Case(_table, by_hand.with_table),
    "stream-stream join": Case(_pairs, by_hand.pairs, MANY),
    "word count": Case(_words, by_hand.words, "sentences"),
}


class Measure(NamedTuple):
    """Records a second within a trigger, and seconds of CPU for a million records."""

    rate: float
    cpu: float


def report() -> str:
    """Return a table of all cases."""
    return report_of(list(CASES))


def report_of(names: list[str]) -> str:
    """Return a table of some cases."""
    lines = [*_HEAD]
    with KafkaCluster(settings=KEEPS_TIMES) as kafka, tempfile.TemporaryDirectory() as folder:
        conf = {"spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "true"}
        session = session_of_run(spark_session(SparkSettings()), SparkSettings(conf=conf))
        _write_topics(kafka.bootstrap_servers)
        for name in names:
            line = _line(name, _measures(session, kafka.bootstrap_servers, CASES[name], Path(folder)))
            print(line, flush=True)
            lines.append(line)
    return "\n".join(lines) + "\n"


ONCE, LEAST = "exactly once", "at least once"
_HEAD = (
    "k records/s (CPU seconds for a million records).",
    "",
    "| case | ours, exactly once | by hand, exactly once | ratio | ours, at least once | by Spark's sink | ratio "
    "| exactly once to Spark's sink |",
    "|---|---|---|---|---|---|---|---|",
)


def _line(name: str, measures: Mapping[tuple[str, str], Measure]) -> str:
    cells = [name]
    for guarantee in (ONCE, LEAST):
        ours = measures["ours", guarantee]
        theirs = measures["by hand", guarantee]
        cells += [_shown(ours), _shown(theirs), _ratio(ours, theirs)]
    return f"| {' | '.join([*cells, _ratio(measures['ours', ONCE], measures['by hand', LEAST])])} |"


def _shown(measure: Measure) -> str:
    return f"{measure.rate / 1e3:,.0f} ({measure.cpu:.1f})"


def _ratio(ours: Measure, theirs: Measure) -> str:
    """Return the ratio of the rates, and of the CPU."""
    return f"{ours.rate / theirs.rate:.2f} ({ours.cpu / theirs.cpu:.2f})"


def _write_topics(servers: str) -> None:
    config = {"bootstrap.servers": servers}
    random = np.random.default_rng(3)
    with home_of(config).open(config) as log, log.admin() as admin, log.producer() as producer:
        for topic in (*{case.topic for case in CASES.values()}, "others", "users", "out"):
            admin.create_topic(topic, PARTITIONS)
        times = START_MS + np.arange(RECORDS) * STEP_MS
        for topic, keys in (("events-1000", 1_000), (MANY, 200_000), ("others", 200_000)):
            numbers = random.integers(0, keys, RECORDS)
            names = pa.array([f"user-{number}" for number in numbers])
            values = [f'{{"user":"u{n}","amount":{n % 100},"price":{n % 77}.5}}' for n in numbers.tolist()]
            raw = pa.array(values).cast(pa.binary())
            write_topic(producer, topic, PARTITIONS, names.cast(pa.binary()), raw, times)
        users = pa.array([f"user-{number}" for number in range(10_000)]).cast(pa.binary())
        cities = pa.array([json.dumps({"city": f"city {n % 50}"}) for n in range(10_000)]).cast(pa.binary())
        write_topic(producer, "users", PARTITIONS, users, cities, np.full(10_000, START_MS))
        ranks = np.minimum(random.zipf(1.3, (RECORDS, 8)), 10_000).tolist()
        sentences = pa.array([" ".join(f"word{rank}" for rank in ranks_of_words) for ranks_of_words in ranks])
        raw_sentences = sentences.cast(pa.binary())
        write_topic(producer, "sentences", PARTITIONS, raw_sentences, raw_sentences, times)
        producer.flush()


Run = Callable[[Any, str, Case, Path], None]


def _measures(session: Any, servers: str, case: Case, folder: Path) -> dict[tuple[str, str], Measure]:
    runs: dict[tuple[str, str], Run] = {
        ("ours", ONCE): partial(_run_ours, "exactly_once_v2"),
        ("by hand", ONCE): partial(_run_by_hand, by_hand.exactly_once),
        ("ours", LEAST): partial(_run_ours, "at_least_once"),
        ("by hand", LEAST): partial(_run_by_hand, by_hand.at_least_once),
    }
    measures: dict[tuple[str, str], list[Measure]] = {name: [] for name in runs}
    for turn in range(1 + RUNS):
        for name in list(runs)[:: 1 if turn % 2 else -1]:
            with _measured(session) as measure:
                runs[name](session, servers, case, Path(tempfile.mkdtemp(dir=folder)))
            measures[name].append(measure())
    return {name: _median(of_runs[1:]) for name, of_runs in measures.items()}


def _median(runs: list[Measure]) -> Measure:
    return Measure(statistics.median(run.rate for run in runs), statistics.median(run.cpu for run in runs))


def _run_ours(guarantee: str, session: Any, servers: str, case: Case, folder: Path) -> None:
    """Run the application in a session of a run, whose queries the benchmark can observe."""
    config = Config.of(
        {
            "application.id": folder.name,
            "bootstrap.servers": servers,
            "processing.guarantee": guarantee,
            "spark.kstreams.path": "relational",
            "spark.kstreams.max.records": BATCH,
            "spark.kstreams.checkpoint": str(folder),
            "spark.kstreams.prefix": "",
            "spark.kstreams.delta": "none",
        }
    )
    builder = ks.StreamsBuilder()
    case.topology(builder, case.topic)
    with home_of(config).open(config) as log:
        SparkRunner(builder.build(config), config, session, log, SystemClock()).run(once=True)


def _run_by_hand(
    write: Callable[[Written, str, str], Any], session: Any, servers: str, case: Case, folder: Path
) -> None:
    written = case.by_hand(Reader(session, servers, BATCH), case.topic)
    query = write(written, servers, str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()


class _Trigger(NamedTuple):
    """The rows and the seconds of a trigger, and the seconds of CPU until its end."""

    rows: int
    seconds: float
    cpu: float


@contextmanager
def _measured(session: Any) -> Iterator[Callable[[], Measure]]:
    """Observe the triggers of the query that runs within."""
    from pyspark.sql.streaming import StreamingQueryListener

    pid = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    triggers: list[_Trigger] = []
    ended: list[str] = []

    class Progress(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            """Ignore the start."""

        def onQueryProgress(self, event: Any) -> None:
            progress = event.progress
            if progress.numInputRows:
                triggers.append(_Trigger(progress.numInputRows, progress.batchDuration / 1000, _cpu_seconds(pid)))

        def onQueryIdle(self, event: Any) -> None:
            """Ignore idle queries."""

        def onQueryTerminated(self, event: Any) -> None:
            ended.append(str(event.id))

    listener = Progress()
    session.streams.addListener(listener)
    yield lambda: _measure(triggers)
    while not ended:
        time.sleep(0.05)
    session.streams.removeListener(listener)


def _measure(triggers: list[_Trigger]) -> Measure:
    steady = triggers[1:]
    cpu = triggers[-1].cpu - triggers[0].cpu
    rate = statistics.median(trigger.rows / trigger.seconds for trigger in steady)
    return Measure(rate, cpu / sum(trigger.rows for trigger in steady) * 1e6)


def _cpu_seconds(spark: int) -> float:
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


if __name__ == "__main__":
    print(report_of(sys.argv[1:] or list(CASES)))
