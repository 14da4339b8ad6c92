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

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import kstreams as ks
from benchmarks import spark_by_hand as by_hand
from benchmarks.spark_by_hand import Reader, Written
from benchmarks.spark_cases import CASES, KEEPS_TIMES, Case, Measure, cpu_seconds, median_of, write_topics
from kstreams.config import Config
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.runtime.spark.cluster.session import session_of_run, spark_session
from kstreams.runtime.spark.runner import SparkRunner
from kstreams.runtime.spark.settings import SparkSettings
from tests.support.kafka_cluster import KafkaCluster

RECORDS, BATCH, RUNS = 800_000, 200_000, 3


def report() -> str:
    """Return a table of all cases."""
    return report_of(list(CASES))


def report_of(names: list[str]) -> str:
    """Return a table of some cases."""
    lines = [*_HEAD]
    with KafkaCluster(settings=KEEPS_TIMES) as kafka, tempfile.TemporaryDirectory() as folder:
        conf = {"spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "true"}
        session = session_of_run(spark_session(SparkSettings()), SparkSettings(conf=conf))
        write_topics(kafka.bootstrap_servers, RECORDS, RECORDS)
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
    return {name: median_of(of_runs[1:]) for name, of_runs in measures.items()}


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
                triggers.append(_Trigger(progress.numInputRows, progress.batchDuration / 1000, cpu_seconds(pid)))

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


if __name__ == "__main__":
    print(report_of(sys.argv[1:] or list(CASES)))
