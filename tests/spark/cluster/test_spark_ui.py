"""What Spark shows of an application: its listeners, its UI and its REST API know names, steps, rates and stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming import StreamingQueryListener

import kstreams as ks
from tests.spark.running import Application, Row
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


class Heard(StreamingQueryListener):
    """Keeps what Spark tells."""

    def __init__(self) -> None:
        self.started, self.progress, self.ended = list[Any](), list[Any](), list[Any]()

    def onQueryStarted(self, event: Any) -> None:
        self.started.append(event)

    def onQueryProgress(self, event: Any) -> None:
        self.progress.append(event.progress)

    def onQueryTerminated(self, event: Any) -> None:
        self.ended.append(event)


def listened(spark: Any, topology: Any, app: Application, **settings: Any) -> Heard:
    """What the listeners of a session hear of a run to the end."""
    heard = Heard()
    spark.streams.addListener(heard)
    try:
        run = ks.spark.start(topology, spark, {**app.settings, **settings}, until_end=True)
        assert run.await_termination(200)
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(heard)
    return heard


def test_listeners_hear_of_every_step(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, word_count(), WORD_TYPES).create("lines").write(LINES)
    heard = listened(spark, word_count(), app, **{"spark.kstreams.max.records": 2})
    assert [event.name for event in heard.started] == ["app"]
    assert sum(progress.numInputRows for progress in heard.progress) == len(LINES)
    assert sum(progress.sink.numOutputRows for progress in heard.progress) == sum(COUNTS.values())
    assert {progress.name for progress in heard.progress} == {"app"}
    assert [progress.batchId for progress in heard.progress] == [0, 1, 1]  # the end of input is no batch of its own
    assert heard.progress[0].processedRowsPerSecond > 0
    assert len(heard.ended) == 1


def test_listeners_hear_of_stores_and_of_dropped_records(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=10, grace=0)
    words = builder.stream("lines", key=str, value=str).group_by_key().windowed_by(windows)
    words.count("per-window").to_stream().map(lambda key, n: (key.key, n), key=str, value=int).to("counts")
    app = Application(spark, tmp_path, builder, WORD_TYPES).create("lines", partitions=1)
    app.write([Row("lines", "a", "x", 5), Row("lines", "a", "x", 25), Row("lines", "a", "x", 6)])
    last = listened(spark, builder, app, **{"spark.kstreams.max.records": 2}).progress[-1]
    assert [store.operatorName for store in last.stateOperators] == ["per-window"]
    assert last.stateOperators[0].numRowsTotal > 0
    assert last.stateOperators[0].memoryUsedBytes > 0
    assert last.stateOperators[0].numRowsDroppedByWatermark == 1
    assert last.eventTime["watermark"] == "1970-01-01T00:00:00.025Z"
    assert "addBatch" in last.durationMs  # what the UI draws
    assert [count for name, count in last.sources[0].metrics.items() if "late" in name] == ["1"]


APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
orders = topology.stream("orders", key=str, value=int)
large = orders.filter(ks.value > 3, name="large")
large.group_by((ks.value % 2).cast(str), key=str).count().to_stream().to("counts")
"""
UI = """
import json, sys, urllib.request
from pathlib import Path
import kstreams as ks
from app import topology
from tests.spark.running import Application, Row
spark = ks.spark.session({"spark.driver.memory": "1g", "spark.ui.enabled": "true", "spark.ui.port": "0"})
settings = {"spark.kstreams.path": sys.argv[1]}
app = Application(spark, Path.cwd(), topology, {"orders": (str, int)}, **settings).create("orders")
app.write(Row("orders", "k", n, n) for n in range(10))
run = ks.spark.start(topology, spark, app.settings, until_end=True)
run.await_termination(200)
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
address = spark.sparkContext.uiWebUrl
read = lambda path: urllib.request.urlopen(address + path).read().decode()
rest = lambda name: json.loads(read(f"/api/v1/applications/{spark.sparkContext.applicationId}/{name}"))
print(json.dumps({
    "jobs": [job.get("description") for job in rest("jobs")],
    "stages": [stage.get("description") for stage in rest("stages")],
    "plans": [query["planDescription"] for query in rest("sql?details=true&planDescription=true&length=1000")],
    "page": " ".join(read("/StreamingQuery/").split()),
}))
"""


def shown(folder: Path, path: str) -> dict[str, Any]:
    """What the UI and the REST API of Spark show of a run to the end of its input."""
    (folder / "app.py").write_text(APP)
    command = [sys.executable, "-c", UI, path]
    roots = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": roots}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_ui_names_steps_of_tasks_by_operators_and_lines(tmp_path: Path) -> None:
    seen = shown(tmp_path, "task")
    title = "app, step 0 (10 offsets): stream() app.py:5, large app.py:6"
    assert [text for text in seen["jobs"] if text and text.startswith(title)]
    assert [text for text in seen["stages"] if text and text.startswith(title)]
    assert any(text and text.startswith("app, end of input") for text in seen["jobs"])
    operators = "sub-topology 1: count() app.py:7, to_stream() app.py:7, to() app.py:7"
    assert any(operators in plan for plan in seen["plans"])
    assert "<td>app</td>" in seen["page"]


@pytest.mark.slow
def test_the_ui_names_queries_of_spark_by_operators_and_lines(tmp_path: Path) -> None:
    seen = shown(tmp_path, "relational")
    title = "app, counts, step 0 (10 offsets): stream() app.py:5, large app.py:6, group_by() app.py:7, count() app.py:7"
    assert [text for text in seen["jobs"] if text and text.startswith(title)]
    assert [text for text in seen["stages"] if text and text.startswith(title)]
    assert any("write counts" in plan for plan in seen["plans"])
    assert "<td>app, counts: to() app.py:7</td>" in seen["page"]
