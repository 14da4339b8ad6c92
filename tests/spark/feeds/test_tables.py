"""Delta tables and Parquet files as input: appends as a stream, a change feed as a table, each version once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import KStreamsError
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

CUSTOMERS = "id long, name string, city string"


class Customer(msgspec.Struct):
    id: int
    name: str
    city: str


def finished(builder: Any, spark: Any, folder: Path, **more: Any) -> Any:
    """A run to the end of its input."""
    settings = Application(None, folder, ks.StreamsBuilder(), {}, **more).settings
    run = ks.spark.start(builder, spark, settings, until_end=True)
    assert run.await_termination(200)
    return run


def changed(spark: Any, folder: Path) -> str:
    """A Delta table with a change feed and three customers."""
    path = str(folder / "customers")
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({CUSTOMERS}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'ann', 'Ulm'), (2, 'bob', 'Bonn'), (3, 'eve', 'Kiel')")
    return path


def customers(spark: Any, path: str, key: str = "id") -> ks.StreamsBuilder:
    """The customers of a change feed as a table, and its changes."""
    builder = ks.StreamsBuilder()
    frame = spark.readStream.format("delta").option("readChangeFeed", "true").load(path)
    table = builder.table_from_dataframe(frame, key=key, name="customers")
    table.map_values(lambda row: row.city, value=str).to_stream().to("cities")
    return builder


def cities(run: Any) -> dict[Any, str]:
    rows = run.to_dataframe("cities", last_of_each_key=True).collect()
    return {row.key: row.value for row in rows}


def test_the_change_feed_of_a_delta_table_is_a_table(spark: Any, tmp_path: Path) -> None:
    path = changed(spark, tmp_path)
    first = finished(customers(spark, path), spark, tmp_path)
    assert cities(first) == {1: "Ulm", 2: "Bonn", 3: "Kiel"}
    spark.sql(f"UPDATE delta.`{path}` SET city = 'Trier' WHERE id = 2")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (4, 'dan', 'Jena')")
    second = finished(customers(spark, path), spark, tmp_path)
    assert cities(second) == {1: "Ulm", 2: "Trier", 4: "Jena"}
    updates = Counter(row.key for row in second.to_dataframe("cities").collect())
    assert updates == {1: 1, 2: 2, 3: 2, 4: 1}
    assert second.progress.records_in == 3


@pytest.mark.slow
def test_a_row_that_changes_its_key_leaves_the_old_one(spark: Any, tmp_path: Path) -> None:
    path = changed(spark, tmp_path)
    spark.sql(f"UPDATE delta.`{path}` SET name = 'anna' WHERE id = 1")
    assert cities(finished(customers(spark, path, "name"), spark, tmp_path)) == {
        "anna": "Ulm",
        "bob": "Bonn",
        "eve": "Kiel",
    }
    spark.sql(f"UPDATE delta.`{path}` SET name = 'eva' WHERE id = 3")
    assert cities(finished(customers(spark, path, "name"), spark, tmp_path)) == {
        "anna": "Ulm",
        "bob": "Bonn",
        "eva": "Kiel",
    }


def test_a_topic_is_joined_with_the_change_feed_of_a_delta_table(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    table = builder.table_from_dataframe(ks.spark.delta(changed(spark, tmp_path), changes=True), key="id", row=Customer)
    visits = builder.stream("visits", key=int, value=str)
    visits.left_join(table, lambda page, row: f"{page}: {row and row.city}", value=str).to("from")
    later = 4_000_000_000_000  # later than the commits of the table
    app = Application(spark, tmp_path, builder, {"visits": (int, str)}).create("visits", partitions=2)
    app.write([Row("visits", 1, "home", later), Row("visits", 9, "help", later)])
    run = finished(builder, spark, tmp_path)
    assert {row.value for row in run.to_dataframe("from").collect()} == {"home: Ulm", "help: None"}


def counted(spark: Any, frame: Any) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    rows = builder.from_dataframe(frame, key="name", timestamp="at", name="rows")
    rows.group_by_key().count().to_stream().to("counts")
    return builder


def counts(run: Any) -> dict[str, list[int]]:
    """All updates of each key, in order."""
    rows = run.to_dataframe("counts").collect()
    return {name: sorted(row.value for row in rows if row.key == name) for name in {row.key for row in rows}}


def append(spark: Any, path: str, names: str, form: str) -> None:
    rows = [(name, at) for at, name in enumerate(names.split())]
    spark.createDataFrame(rows, "name string, at long").coalesce(1).write.format(form).mode("append").save(path)


@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_what_is_appended_to_a_table_is_read_once(spark: Any, tmp_path: Path, form: str) -> None:
    path, read = str(tmp_path / "rows"), {"delta": ks.spark.delta, "parquet": ks.spark.parquet}[form]
    append(spark, path, "a b a", form)
    append(spark, path, "b c", form)
    assert counts(finished(counted(spark, read(path)(spark)), spark, tmp_path)) == {"a": [1, 2], "b": [1, 2], "c": [1]}
    append(spark, path, "a d", form)
    again = finished(counted(spark, read(path, maxFilesPerTrigger=1)(spark)), spark, tmp_path)
    assert again.progress.records_in == 2
    assert counts(again) == {"a": [1, 2, 3], "b": [1, 2], "c": [1], "d": [1]}


def test_a_batch_that_spark_does_not_know_to_be_done_is_read_no_more(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    append(spark, path, "a b a", "delta")
    finished(counted(spark, ks.spark.delta(path)(spark)), spark, tmp_path)
    done = list((tmp_path / "checkpoint" / "app" / "feed-rows-feed" / "commits").glob("[0-9]*"))
    assert done
    for file in done:  # as when the driver dies between the commit of the log and that of Spark
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    append(spark, path, "c", "delta")
    assert counts(finished(counted(spark, ks.spark.delta(path)(spark)), spark, tmp_path)) == {
        "a": [1, 2],
        "b": [1],
        "c": [1],
    }


@pytest.mark.slow
def test_rows_that_are_deleted_from_a_table_of_appends_end_the_run_with_one_sentence(
    spark: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "rows")
    append(spark, path, "a b a", "delta")
    finished(counted(spark, ks.spark.delta(path)(spark)), spark, tmp_path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE name = 'a'")
    said = r"^rows \(from_dataframe\(\) at .*:\d+\) cannot read its DataFrame: \[DELTA_.*changes=True"
    with pytest.raises(KStreamsError, match=said) as raised:
        finished(counted(spark, ks.spark.delta(path)(spark)), spark, tmp_path)
    assert "\n" not in str(raised.value)


KILLED = """
import os, sys
import kstreams as ks
from tests.spark.feeds.test_tables import counted
from tests.spark.running import Application
from pathlib import Path
folder = Path(sys.argv[1])
spark = ks.spark.session({"spark.driver.memory": "1g"})
settings = Application(None, folder, ks.StreamsBuilder(), {}).settings
frame = ks.spark.delta(str(folder / "rows"), maxFilesPerTrigger=1)(spark)
def die(progress):
    if progress.commits == int(sys.argv[2]):
        os._exit(9)
ks.spark.start(counted(spark, frame), spark, settings, on_progress=die).await_termination(200)
"""


@pytest.mark.slow
def test_a_driver_that_dies_between_two_versions_of_a_table_loses_and_repeats_nothing(
    spark: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "rows")
    for names in ("a b", "a c c", "b", "a d", "d d"):
        append(spark, path, names, "delta")
    for steps in (1, 1, 2):
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(steps)]
        killed = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
        assert killed.returncode == 9, killed.stderr
        append(spark, path, "e", "delta")
    run = finished(counted(spark, ks.spark.delta(path)(spark)), spark, tmp_path)
    assert counts(run) == {"a": [1, 2, 3], "b": [1, 2], "c": [1, 2], "d": [1, 2, 3], "e": [1, 2, 3]}
