"""On a cluster, attempts die in the middle, are tried again, and run beside each other: every record counts once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log, verify
from kstreams.runtime.spark.cluster.submit import submit
from tests.spark.running import Application, Row
from tests.spark.standalone import standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

APP = """
import os
import signal
import time
from pathlib import Path

import kstreams as ks

folder = Path(__file__).parent


def first(name):
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def disturbed(text):
    if text.strip() == "23000" and first("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if text.strip() == "23001" and first("slow"):
        time.sleep(15)
    return text


topology = ks.StreamsBuilder()
stream = topology.stream("in", key=str, value=str)
stream.map_values(disturbed, value=str).to("out")
stream.map_values(str.strip, value=str).group_by(lambda key, text: text[-2:], key=str).count().to_stream().to("counts")
config = {"application.id": "app"}
"""
ROWS = [Row("in", f"k{i}", f"{i}".rjust(400), i, i % 4) for i in range(24_000)]
TYPES = {"in": (str, str), "out": (str, str), "counts": (str, int)}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
}


def written(app: Application, topic: str) -> int:
    """How many records lie in a topic, those that nobody sees among them."""
    with open_log(app.folder / "log") as log, log.admin() as admin:
        sources = [TopicPartition(topic, p) for p in range(admin.describe_topic(topic).partitions)]
        return sum(admin.end_offsets(sources, committed_only=False).values())


def test_every_record_counts_once_though_attempts_die_and_run_twice(tmp_path: Path) -> None:
    app = Application(None, tmp_path, ks.StreamsBuilder(), TYPES).create("in", partitions=4).write(ROWS)
    file = tmp_path / "app.py"
    file.write_text(APP)
    memory = {"spark.driver.memory": "1g", "spark.executor.memory": "512m"}
    settings = {**app.settings, **SPECULATION, **memory, "spark.kstreams.path": "task"}
    with standalone(tmp_path, workers=2, cores=2) as master:
        assert submit(file, master, settings, until_end=True) == 0
    assert (tmp_path / "killed").exists()
    assert (tmp_path / "slow").exists()
    counts = Counter(row.value.strip()[-2:] for row in ROWS)
    assert sorted(app.rows("out")) == sorted((row.key, row.value, row.timestamp) for row in ROWS)
    assert app.table("counts") == counts
    assert written(app, "spark-out") > len(ROWS), "no attempt has written anything that is not seen"
    assert list(verify(tmp_path / "log")) == []
