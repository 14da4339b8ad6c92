"""What Spark shows of an application: its listeners, its UI and its REST API know names, steps, rates and stores."""

from __future__ import annotations

import json
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


UI = """
import json, sys, urllib.request
from pathlib import Path
import kstreams as ks
from tests.spark.running import Application
from tests.spark.word_count import LINES, WORD_TYPES, word_count
spark = ks.spark.session({"spark.driver.memory": "1g", "spark.ui.enabled": "true", "spark.ui.port": "0"})
app = Application(spark, Path(sys.argv[1]), word_count(), WORD_TYPES).create("lines").write(LINES)
run = ks.spark.start(word_count(), spark, app.settings, until_end=True)
run.await_termination(200)
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
address = spark.sparkContext.uiWebUrl
read = lambda path: urllib.request.urlopen(address + path).read().decode()
jobs = json.loads(read(f"/api/v1/applications/{spark.sparkContext.applicationId}/jobs"))
print(json.dumps({"jobs": [job.get("description") for job in jobs], "page": read("/StreamingQuery/")}))
"""


@pytest.mark.slow
def test_the_ui_names_the_application_its_steps_and_their_operators(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UI, str(tmp_path)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    described = [text for text in seen["jobs"] if text and text.startswith("app, step 0 (4 offsets)")]
    assert described
    assert "sub-topology 0: KSTREAM-SOURCE-0000000000" in described[0]
    assert any(text and text.startswith("app, end of input") for text in seen["jobs"])
    assert ">app<" in seen["page"].replace("\n", "").replace(" ", "")
