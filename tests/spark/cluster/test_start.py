"""`ks.spark.start` runs a topology beside a notebook's own session: in the background, with a handle."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, UnknownTopicError
from tests.spark.running import Application, Row
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


def words(folder: Path) -> Mapping[str, Any]:
    """The settings of an application whose lines are in their topic."""
    return Application(None, folder, word_count(), WORD_TYPES).create("lines").write(LINES).settings


def test_a_builder_runs_in_the_session_of_the_user_and_its_results_are_a_dataframe(spark: Any, tmp_path: Path) -> None:
    run = ks.spark.start(word_count(), spark, words(tmp_path), until_end=True)
    assert run.await_termination(120)
    assert (run.status, run.exception, run.progress.records_in) == ("NOT_RUNNING", None, 4)
    counts = run.to_dataframe("counts", last_of_each_key=True)
    assert {row.key: row.value for row in counts.select("key", "value").collect()} == COUNTS


def test_the_columns_of_a_result_are_typed(spark: Any, tmp_path: Path) -> None:
    run = ks.spark.start(word_count(), spark, words(tmp_path), until_end=True)
    assert run.await_termination(120)
    updates = run.to_dataframe("counts")
    assert updates.dtypes[:3] == [("key", "string"), ("value", "bigint"), ("timestamp", "timestamp")]
    assert updates.where("key = 'cat'").agg({"value": "max"}).first()[0] == COUNTS["cat"]
    assert updates.sparkSession is spark
    assert run.to_dataframe("lines").count() == len(LINES)


def test_a_run_without_an_end_goes_on_until_it_is_stopped(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, word_count(), WORD_TYPES).create("lines").write(LINES)
    with ks.spark.start(word_count(), spark, app.settings) as run:
        while run.progress.records_in < len(LINES):
            assert not run.await_termination(0.1)
        assert run.status == "RUNNING"
        app.write([Row("lines", "e", "cat", 5)])
        while run.progress.records_in <= len(LINES):
            assert not run.await_termination(0.1)
    assert run.status == "NOT_RUNNING"
    assert app.table("counts")["cat"] == COUNTS["cat"] + 1


def test_a_run_that_is_stopped_does_not_end_its_input(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=100, grace=0)
    counts = builder.stream("lines", key=str, value=str).group_by_key().windowed_by(windows).count()
    counts.to_stream().map(lambda key, n: (key.key, n), key=str, value=int).to("counts")
    app = Application(spark, tmp_path, builder, WORD_TYPES, **{"spark.kstreams.max.records": 1})
    app.create("lines", partitions=1).write(Row("lines", "a", "x", at) for at in range(5))
    stopped: list[Any] = []

    def stop(progress: Any) -> None:
        while not stopped:
            time.sleep(0.01)
        stopped[0].stop(wait=False)

    stopped.append(ks.spark.start(builder, spark, app.settings, until_end=True, on_progress=stop))
    assert stopped[0].await_termination(120)
    assert stopped[0].progress.records_in < 5
    with ks.spark.start(builder, spark, app.settings, until_end=True) as run:
        assert run.await_termination(120)
    assert [count for _, count, _ in app.rows("counts")] == [1, 2, 3, 4, 5]
    assert not run.progress.dropped


def fails_on_dogs(line: str) -> str:
    if "dog" in line:
        raise ValueError("a dog")
    return line


def test_what_ended_a_run_is_its_exception(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("lines", key=str, value=str).map_values(fails_on_dogs, value=str).to("counts")
    run = ks.spark.start(builder, spark, words(tmp_path), once=True)
    with pytest.raises(ProcessingError, match=r"test_start\.py:\d+.* failed on record lines-\d@\d+: ValueError: a dog"):
        run.await_termination(120)
    assert run.status == "ERROR"
    assert isinstance(run.exception, ProcessingError)


def test_what_cannot_run_is_said_before_anything_starts(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, word_count(), WORD_TYPES)
    with pytest.raises(UnknownTopicError, match="There is no topic 'lines'"):
        ks.spark.start(word_count(), spark, app.settings)


def test_a_result_that_is_none_names_those_that_are(spark: Any, tmp_path: Path) -> None:
    run = ks.spark.start(word_count(), spark, words(tmp_path), once=True)
    with pytest.raises(UnknownTopicError, match=r"'count'.*Did you mean 'counts'"):
        run.to_dataframe("count")
    assert run.await_termination(120)


def test_settings_of_the_users_session_change_no_result(spark: Any, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Pacific/Apia")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 1)
    session.conf.set("spark.sql.caseSensitive", "true")
    delta = {"spark.kstreams.delta": str(tmp_path / "delta"), "spark.kstreams.delta.partition.by": "date"}
    run = ks.spark.start(word_count(), session, {**words(tmp_path), **delta}, until_end=True)
    assert run.await_termination(120)
    table = session.read.format("delta").load(str(tmp_path / "delta" / "counts"))
    assert {str(row.date) for row in table.select("date").collect()} == {"1970-01-01"}
    assert session.conf.get("spark.sql.session.timeZone") == "Pacific/Apia"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["task", "relational"])
def test_an_interrupt_of_other_work_in_the_session_ends_no_run(spark: Any, tmp_path: Path, path: str) -> None:
    """PySpark cancels all jobs of the session when a cell is interrupted."""
    builder = ks.StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    lines.group_by(ks.value.str.upper(), key=str).count().to_stream().to("counts")
    settings = {"spark.kstreams.path": path, "spark.kstreams.max.records": 5}
    app = Application(spark, tmp_path, builder, WORD_TYPES, **settings).create("lines")
    app.write(Row("lines", "k", "ab"[n % 2], n) for n in range(60))
    run = ks.spark.start(builder, spark, app.settings, once=True)
    interrupts = 0
    while not run.await_termination(0.05):
        is_busy = bool(spark.sparkContext.statusTracker().getActiveJobsIds())
        if is_busy and interrupts < 3:
            spark.sparkContext.cancelAllJobs()
            interrupts += 1
            run.await_termination(1)
    assert interrupts == 3
    assert app.table("counts") == {"A": 30, "B": 30}


def test_the_progress_of_a_run_is_text_on_a_terminal(spark: Any, tmp_path: Path, capsys: Any) -> None:
    run = ks.spark.start(word_count(), spark, words(tmp_path), until_end=True)
    assert run.show(120)
    assert "app NOT_RUNNING: 4 records in, 10 out, 0 dropped" in capsys.readouterr().out.splitlines()[-1]
    assert repr(run).startswith("app NOT_RUNNING: 4 records in, 10 out")


WITHOUT_DELTA = """
import sys
import kstreams as ks
from pyspark.sql import SparkSession
from tests.spark.word_count import word_count
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
ks.spark.start(word_count(), session, {"application.id": "app", "log.dir": sys.argv[1]}, once=True)
"""


@pytest.mark.slow
def test_a_session_without_delta_is_told_of_the_cure(tmp_path: Path) -> None:
    said = in_new_process(WITHOUT_DELTA, tmp_path)
    assert "EngineUnavailableError: This Spark session has no Delta Lake" in said
    assert "kstreams.spark.session()" in said
    assert "spark.kstreams.delta=none" in said


OTHER_WORKERS = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.argv[2]
import kstreams as ks
from pyspark.sql import SparkSession
from tests.spark.word_count import word_count
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
settings = {"application.id": "app", "log.dir": sys.argv[1], "spark.kstreams.delta": "none"}
ks.spark.start(word_count(), session, settings, once=True)
"""


@pytest.mark.slow
def test_workers_that_lack_what_tasks_need_are_told_of_the_cure(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    said = in_new_process(OTHER_WORKERS, tmp_path, str(bare))
    assert "EngineUnavailableError: The Python workers of this Spark session cannot run tasks" in said
    assert "PYSPARK_PYTHON" in said


def in_new_process(code: str, folder: Path, *arguments: str) -> str:
    """What a program says that fails."""
    command = [sys.executable, "-c", code, str(folder / "log"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 1
    return ended.stderr
