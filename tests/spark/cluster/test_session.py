"""The session starts lean, knows Delta, and says what is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kstreams.errors import ConfigError, EngineUnavailableError
from kstreams.runtime.spark.cluster import jars
from kstreams.runtime.spark.cluster.session import session_conf
from kstreams.runtime.spark.settings import SparkSettings

pytestmark = pytest.mark.spark


def test_a_local_session_listens_on_loopback_only() -> None:
    conf = session_conf(SparkSettings(delta=None))
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"


def test_python_functions_behind_one_another_end_over_parquet(spark: Any, tmp_path: Path) -> None:
    """With Spark's default they wait for each other for ever."""
    from pyspark.sql import functions as F

    spark.range(100).selectExpr("id", "CAST(id AS STRING) AS key").write.parquet(f"{tmp_path}/rows")
    add, twice = (F.udf(function, "bigint", useArrow=True) for function in (lambda n: n + 1, lambda n: n * 2))
    keep = F.udf(lambda key, n: n % 3 != 0, "boolean", useArrow=True)
    rows = spark.read.parquet(f"{tmp_path}/rows").select("key", add("id").alias("n"))
    assert rows.where(keep("key", "n")).select(twice("n")).count() == 67


def test_spark_logs_as_a_file_says_that_is_there() -> None:
    _, _, path = session_conf(SparkSettings(delta=None))["spark.driver.extraJavaOptions"].partition(
        "configurationFile="
    )
    assert "rootLogger.level = fatal" in Path(path).read_text()


def test_settings_of_the_configuration_win_over_the_profile() -> None:
    settings = SparkSettings.of({"spark.driver.memory": "1g", "spark.kstreams.delta": "none"})
    assert session_conf(settings)["spark.driver.memory"] == "1g"


def test_under_spark_submit_master_and_memory_are_left_to_its_command_line() -> None:
    conf = session_conf(SparkSettings(), submitted=True)
    assert "spark.master" not in conf
    assert "spark.jars" not in conf


def test_named_jars_are_taken_instead_of_resolved_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java" if name.endswith("java") else None)
    conf = session_conf(SparkSettings.of({"spark.jars": "/opt/delta.jar"}))
    assert conf["spark.jars"] == "/opt/delta.jar"


def test_without_maven_the_error_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EngineUnavailableError, match=r"Maven.*not installed.*`spark\.jars`"):
        jars.spark_jars(jars.S3, tmp_path)


def test_without_java_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EngineUnavailableError, match="Spark needs Java 17"):
        session_conf(SparkSettings())


def test_an_unknown_setting_of_ours_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"spark\.kstreams\.prefx; the nearest is spark\.kstreams\.prefix"):
        SparkSettings.of({"spark.kstreams.prefx": "x"})


@pytest.mark.parametrize(("key", "value"), [("path", "fast"), ("max.records", "0"), ("snapshot.every", "often")])
def test_a_bad_value_names_its_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"spark\.kstreams\.{key} cannot be '{value}'"):
        SparkSettings.of({f"spark.kstreams.{key}": value})


def test_delta_tables_can_be_written_and_read(spark, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 3


def test_a_new_worker_has_imported_what_every_task_needs(spark: Any) -> None:
    def imported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = "kstreams.runtime.spark.tasks.task_run" in sys.modules
        yield from (pa.RecordBatch.from_pydict({"before": [before] * len(batch)}) for batch in batches)

    assert spark.range(1).mapInArrow(imported, "before boolean").collect()[0].before


MANY_FILES = """
import sys, kstreams.runtime.spark.cluster.session as sessions
from kstreams.runtime.spark.settings import SparkSettings
files = []
def open_many():
    files.extend(open("/dev/null") for _ in range(1_100))
if sys.argv[1] == "before":
    open_many()
session = sessions.spark_session(SparkSettings(delta=None))
open_many()
rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
seen = []
query = rate.writeStream.foreachBatch(lambda rows, number: seen.append(number)).trigger(once=True).start()
assert query.awaitTermination(60), "Spark never called"
print(seen)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("when", "status", "said"), [("before", 1, "Spark cannot call it back"), ("after", 0, "")])
def test_spark_calls_back_however_many_files_are_open_or_says_at_once_that_it_cannot(
    when: str, status: int, said: str
) -> None:
    command = [sys.executable, "-c", MANY_FILES, when]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == status, ended.stderr
    assert said in ended.stderr


def test_a_session_for_topics_in_kafka_has_sparks_connector_also_without_delta() -> None:
    kafka = {"spark.kstreams.delta": "none", "bootstrap.servers": "127.0.0.1:9092"}
    assert "spark-sql-kafka" in session_conf(SparkSettings.of(kafka))["spark.jars"]
    assert "spark.jars" not in session_conf(SparkSettings.of({**kafka, "spark.kstreams.path": "task"}))


WITHOUT_CONNECTOR = """
import kstreams as ks
from kstreams.runtime.spark.relational.inputs import require_connector
session = ks.spark.session({"spark.kstreams.delta": "none", "spark.master": "local[1]", "spark.driver.memory": "1g"})
require_connector(session)
"""


@pytest.mark.slow
def test_a_session_without_sparks_connector_for_kafka_is_told_of_the_cure() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_CONNECTOR], capture_output=True, text=True, check=False)
    assert "EngineUnavailableError: This Spark session has no connector for Kafka" in done.stderr
    assert "-c bootstrap.servers=" in done.stderr
