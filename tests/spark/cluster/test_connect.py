"""Spark Connect: streams as DataFrames run in it; an application is refused at once, with what to do instead."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SESSION = """
import json
import kstreams as ks
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
spark.conf.set("spark.sql.session.timeZone", "UTC")
"""
REFUSED = """
def refused(what):
    try:
        what()
    except ks.KStreamsError as error:
        print(type(error).__name__, error)

builder = ks.StreamsBuilder()
builder.stream("lines", key=str, value=str).to("out")
refused(lambda: ks.spark.start(builder, spark, {"application.id": "a", "log.dir": "log"}))

builder = ks.StreamsBuilder()
builder.from_dataframe(spark.range(3), key="id", name="numbers").to("out")
spark.stop()
classic = ks.spark.session({"spark.driver.memory": "1g"})
refused(lambda: ks.spark.start(builder, classic, {"application.id": "a", "log.dir": "log"}))
"""
FRAMES = """
numbers = ks.StreamsBuilder().stream("in", key=str, value=int)
windows = numbers.group_by_key().windowed_by(ks.TimeWindows(size=5_000, grace=0))
final = windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
near = ks.JoinWindows(before=1_000, after=1_000, grace=0)
streams = {
    "expressions": numbers.filter(ks.value > 3).map_values(ks.value * 2, value=int),
    "final": final.count().to_stream(),
    "joined": numbers.join(numbers, ks.left.value * 100 + ks.right.value, windows=near, value=int),
    "first": numbers.deduplicate(20_000),
}
for name, stream in streams.items():
    frame = stream.to_dataframe(spark, {"log.dir": "log"})
    writer = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", f"checkpoint/{name}")
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = [[row.key if isinstance(row.key, str) else row.key.key, row.value] for row in spark.table(name).collect()]
    print("FOUND", json.dumps([name, sorted(rows)]))
"""


def said_by(script: str, folder: Path) -> list[str]:
    given = subprocess.run(
        [sys.executable, "-c", SESSION + script], cwd=folder, capture_output=True, text=True, timeout=300, check=True
    )
    return given.stdout.splitlines()


def test_an_application_is_refused_in_a_session_and_over_a_dataframe_of_spark_connect(tmp_path: Path) -> None:
    session, frame = (line for line in said_by(REFUSED, tmp_path) if "Error" in line)
    assert session.startswith("EngineUnavailableError kstreams cannot run in a pyspark.sql.connect")
    assert "kstreams submit" in session
    assert frame.startswith("EngineUnavailableError numbers")
    assert "ks.spark.delta(path)" in frame
    assert not (tmp_path / "log").exists()


def test_streams_are_dataframes_of_spark_connect(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, ks.StreamsBuilder(), {"in": (str, int)}).create("in", partitions=1)
    app.write([Row("in", "ab"[i % 2], i, 1_000 * i + 1) for i in range(10)])
    lines = [line.partition("FOUND ")[2] for line in said_by(FRAMES, tmp_path) if "FOUND " in line]
    assert dict(map(json.loads, lines)) == {
        "expressions": sorted(["ab"[i % 2], i * 2] for i in range(4, 10)),
        "final": [["a", 3], ["b", 2]],
        "first": [["a", 0], ["b", 1]],
        "joined": sorted(["ab"[i % 2], i * 101] for i in range(10)),
    }
