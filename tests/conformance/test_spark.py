"""The recorded cases of the real Kafka Streams, on Spark: record for record where only one order is possible."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS
from kstreams.runtime.spark.tasks.state_files import StateFiles
from tests.conformance import on_spark_engine, recorded
from tests.conformance.on_spark import WHOLE, Prepared, application, differing, prepare, run_case
from tests.conformance.test_driver import FAMILIES
from tests.spark.conftest import spark

__all__ = ["spark"]  # the fixture: one session for all tests

pytestmark = [recorded.needed, pytest.mark.spark]


@pytest.mark.parametrize(("most", "every"), [(WHOLE, 29), (7, 43)], ids=["whole", "sevens"])
def test_a_sample_of_all_families(spark, most: int, every: int) -> None:
    cases = [case for family in FAMILIES for case in recorded.cases(family)[1::every]]
    assert differing(spark, cases, most) == []


def test_nothing_is_written_to_the_folder_of_a_case_after_its_end(tmp_path: Path, monkeypatch) -> None:
    """A snapshot that a thread still wrote would bring back a folder that the driver is just deleting."""
    write_snapshot = StateFiles.write_snapshot
    written: list[StateFiles] = []

    def write_slowly(files: StateFiles, *rows: Any) -> None:
        time.sleep(0.5)
        write_snapshot(files, *rows)
        written.append(files)

    monkeypatch.setattr(StateFiles, "write_snapshot", write_slowly)
    folder = tmp_path / "case"
    case = next(prepared for prepared in _prepared(folder) if len(prepared.cuts) % 3 == 1)
    assert list(run_case(case, 0))
    assert written
    shutil.rmtree(folder)
    SNAPSHOTS.wait()
    assert not folder.exists()


def _prepared(folder: Path) -> Iterator[Prepared]:
    """Aggregations with one record in each step; a snapshot is due after every third step."""
    for case in recorded.cases("aggregate"):
        yield prepare(case, application(case), folder, 1)


@pytest.mark.parametrize("path", ["task", "relational"])
def test_a_sample_through_log_query_and_sink(spark, tmp_path: Path, path: str) -> None:
    families = FAMILIES[::2] if path == "task" else FAMILIES
    cases = [case for family in families for case in on_spark_engine.suitable(recorded.cases(family), path)[:1]]
    assert on_spark_engine.differing(spark, cases, path, tmp_path) == []


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(1800)
def test_a_sample_from_kafka_to_kafka(spark, kafka, tmp_path: Path) -> None:
    found = [on_spark_engine.suitable(recorded.cases(family), "task") for family in FAMILIES]
    cases = [case for suitable in found for case in on_spark_engine.after_time_zero(suitable)[:2]]
    assert len(cases) > 30
    servers = {"bootstrap.servers": kafka.bootstrap_servers}
    assert on_spark_engine.differing(spark, cases, "task", tmp_path, **servers) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["task", "relational"])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_that_can_go_through_log_query_and_sink(spark, tmp_path: Path, family: str, path: str) -> None:
    cases = on_spark_engine.suitable(recorded.cases(family), path)
    assert on_spark_engine.differing(spark, cases, path, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("most", [WHOLE, 7, 1], ids=["whole", "sevens", "one by one"])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_of_each_family(spark, family: str, most: int) -> None:
    assert differing(spark, recorded.cases(family), most) == []
