"""A session of Spark Connect is refused at once, with what to do instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
import kstreams as ks
from pyspark.sql import SparkSession

def refused(what):
    try:
        what()
    except ks.KStreamsError as error:
        print(type(error).__name__, error)

spark = SparkSession.builder.remote("local[1]").getOrCreate()
builder = ks.StreamsBuilder()
builder.stream("lines", key=str, value=str).to("out")
refused(lambda: ks.spark.start(builder, spark, {"application.id": "a", "log.dir": "log"}))
refused(lambda: ks.StreamsBuilder().from_dataframe(spark.range(3), key="id"))
spark.stop()
"""


def test_a_session_and_a_dataframe_of_spark_connect_are_refused(tmp_path: Path) -> None:
    given = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    session, frame = (line for line in given.stdout.splitlines() if "Error" in line)
    assert session.startswith("EngineUnavailableError kstreams cannot run in a pyspark.sql.connect")
    assert "kstreams submit" in session
    assert frame.startswith("TopologyError the source at <string>:15 reads a DataFrame of Spark Connect")
    assert "ks.spark.delta(path)" in frame
    assert not (tmp_path / "log").exists()
