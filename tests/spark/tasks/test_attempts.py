"""Each attempt of a task writes in a transaction of its own; the driver commits those that its reports name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import FencedError, KStreamsError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Log, TransactionCoordinator, open_log
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.exchange.reports import TaskReport, raise_first
from kstreams.runtime.spark.io.coordinated import CoordinatedOutput
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.output_topics import OutputTopics
from kstreams.runtime.spark.program import Program, program_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import Step
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from kstreams.runtime.spark.tasks.task_run import run_task
from tests.log.contract.reading import values_of
from tests.spark.written_blocks import split_reports

pytestmark = pytest.mark.spark


SOURCE = TopicPartition("in", 0)


@dataclass
class Executor:
    """Runs attempts of the only task of a copying application, as workers of Spark do."""

    log: Log
    coordinator: TransactionCoordinator
    program: Program
    topics: OutputTopics

    def attempt(self, *words: str, step: int = 0, token: str | None = None) -> Iterator[pa.RecordBatch]:
        """What an attempt yields; the log has its rows when it is taken to its end."""
        records = [Row(word.encode(), word.encode(), time, ()) for time, word in enumerate(words)]
        given = Batch.of_rows(SOURCE, records)
        output = CoordinatedOutput(self.topics, 60_000, token or self.coordinator.token)
        return run_task(self.program, self.program.sub_topologies[0], 0, Step(step), {SOURCE: [given]}, output.writer)

    def report(self, *words: str, step: int = 0, token: str | None = None) -> TaskReport:
        """The report of an attempt that was taken to its end."""
        (report,) = split_reports(self.attempt(*words, step=step, token=token))[1]
        return report

    def commit(self, *reports: TaskReport) -> None:
        self.coordinator.commit([name for report in reports for name in report.outputs])

    def seen(self, topic: str = "spark-out") -> list[bytes | None]:
        return values_of(self.log, topic)


def executor(folder: Path, log: Log, use: Any = lambda stream: stream.to("out"), **settings: Any) -> Executor:
    builder = ks.StreamsBuilder()
    use(builder.stream("in", key=str, value=str))
    config = Config.of({"application.id": "app", "spark.kstreams.delta": "none", **settings})
    topology, existing = builder.build(), {"in": 1}
    layout = lay_out(topology, "app", existing)
    program = program_of(topology, config, SparkSettings.of(config), layout, existing, str(folder / "checkpoint"))
    topics = OutputTopics(HomeAddress(f"log:{folder / 'log'}"), "spark-", {}, 1)
    return Executor(log, log.coordinator("app-spark"), program, topics)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    STATE_CACHE.clear()
    with open_log(tmp_path / "log") as log, log.admin() as admin:
        admin.create_topic("spark-out")
        yield log


@pytest.fixture
def copying(tmp_path: Path, log: Log) -> Executor:
    return executor(tmp_path, log)


def test_what_an_attempt_writes_is_seen_when_the_step_is_committed(copying: Executor) -> None:
    report = copying.report("a", "b")
    assert report.written == {"out": 2}
    assert copying.seen() == []
    copying.commit(report)
    assert copying.seen() == [b"a", b"b"]


def test_rows_are_in_the_log_and_not_in_what_a_task_yields(copying: Executor) -> None:
    blocks, _ = split_reports(copying.attempt("a", "b"))
    assert blocks == []


def test_of_two_attempts_the_one_counts_whose_report_spark_took(copying: Executor) -> None:
    copying.report("a", "b")
    report = copying.report("a", "b")
    copying.report("a", "b")
    copying.commit(report)
    assert copying.seen() == [b"a", b"b"]


def test_an_attempt_that_spark_ends_in_the_middle_leaves_nothing_and_holds_up_no_reader(
    tmp_path: Path, log: Log
) -> None:
    both = executor(
        tmp_path, log, lambda stream: [stream.to("out"), stream.to("more")], **{"spark.kstreams.delta": "x"}
    )
    attempt = both.attempt(*"abc")
    next(attempt)
    attempt.close()
    with log.producer() as producer:
        producer.send("spark-out", b"k", b"of another application")
    assert both.seen() == [b"of another application"]


def test_an_attempt_that_fails_leaves_nothing_and_holds_up_no_reader(tmp_path: Path, log: Log) -> None:
    def fragile(word: str) -> str:
        if word == "c":
            raise ValueError(word)
        return word

    failing = executor(tmp_path, log, lambda stream: stream.map_values(fragile, value=str).to("out"))
    report = failing.report(*"ab" * 5_000, "c")
    assert report.error is not None
    assert report.outputs == []
    with log.producer() as producer:
        producer.send("spark-out", b"k", b"of another application")
    assert failing.seen() == [b"of another application"]
    failing.commit(failing.report("a"))
    assert failing.seen() == [b"of another application", b"a"]


def test_an_attempt_that_comes_after_the_commit_is_fenced(copying: Executor) -> None:
    before = copying.coordinator.token
    copying.commit(copying.report("a"))
    late = copying.report("late", token=before)
    with pytest.raises(FencedError):
        raise_first([late])
    assert copying.seen() == [b"a"]


def test_the_executors_of_an_older_driver_are_fenced(copying: Executor, log: Log) -> None:
    in_time = copying.report("in time")
    with log.coordinator("app-spark") as newer:
        for action in (lambda: raise_first([copying.report("zombie")]), lambda: copying.commit(in_time)):
            with pytest.raises(FencedError):
                action()
        newer.commit([])
    assert copying.seen() == []


def test_topics_chosen_per_record_are_made_by_whichever_attempt_comes_first(tmp_path: Path, log: Log) -> None:
    sorting = executor(tmp_path, log, lambda stream: stream.to(lambda key, value, context: f"of-{value}"))
    for _ in range(2):
        report = sorting.report("a", "b")
    assert report.written == {"of-a": 1, "of-b": 1}
    sorting.commit(report)
    assert (sorting.seen("spark-of-a"), sorting.seen("spark-of-b")) == ([b"a"], [b"b"])


def test_a_record_that_its_topic_never_takes_ends_the_step_with_its_reason(tmp_path: Path, log: Log) -> None:
    log.admin().create_topic("spark-small", config={"max.message.bytes": "1024"})
    copying = executor(tmp_path, log, lambda stream: stream.to("small"))
    with pytest.raises(KStreamsError, match=r"too large.*max\.message\.bytes"):
        raise_first([copying.report("x" * 2_000)])
