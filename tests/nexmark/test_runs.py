"""The queries of Nexmark in real applications: threads, processes, Spark, and kills under exactly once."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.nexmark.answers import Verifier
from benchmarks.nexmark.generator import Settings, all_events, write_topic
from benchmarks.nexmark.queries import QUERIES
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
APP = ROOT / "benchmarks" / "nexmark" / "app.py"
SETTINGS = Settings(events=20_000, rate=500, out_of_order=10)
PARTITIONS = 4
FORMS = [(query, form) for query, forms in QUERIES.items() for form in forms]
STATEFUL = ["q3", "q4", "q5", "q6", "q7", "q8", "q9", "q11", "q15", "q18", "q19", "q20", "q23"]


@cache
def verifier() -> Verifier:
    return Verifier(all_events(SETTINGS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the input, `log`, and a topic for the results of each query."""
    with open_log(tmp_path / "log") as log:
        write_topic(log, SETTINGS, PARTITIONS)
        with log.admin() as admin:
            for query in QUERIES:
                admin.create_topic(query, PARTITIONS)
    return tmp_path


def start(folder: Path, query: str, form: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {"NEXMARK_QUERY": query, "NEXMARK_FORM": form, "NEXMARK_FOLDER": str(folder / "files")}
    command = [sys.executable, "-m", "kstreams", "run", str(APP), *arguments]
    command += ["--log-dir", str(folder / "log"), "--state-dir", str(folder / "state")]
    with (folder / "output").open("w") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=output,
            stderr=output,
        )


def finish(process: subprocess.Popen[bytes], folder: Path) -> None:
    assert process.wait(600) == 0, (folder / "output").read_text()


def records_of(folder: Path, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    with open_log(folder / "log") as log, log.consumer({"isolation.level": "read_committed"}) as consumer:
        sources = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(sources)
        while not all(map(consumer.is_at_end, sources)):
            for batch in consumer.poll(0.1, 100_000):
                yield from zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True)


def differences(folder: Path, query: str, topic: str | None = None) -> list[str]:
    return verifier().differences(query, records_of(folder, topic or query))


WITH_TOPICS = [(query, form) for query, form in FORMS if query != "q10"]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("query", "form"), WITH_TOPICS, ids=lambda name: name)
def test_natively_with_threads(folder: Path, query: str, form: str, threads: int) -> None:
    finish(start(folder, query, form, "--until-end", "--threads", str(threads)), folder)
    assert differences(folder, query) == []


def test_the_files_of_query_10_hold_every_bid_once_by_day_and_minute(folder: Path) -> None:
    finish(start(folder, "q10", "functions", "--until-end"), folder)
    files = list((folder / "files").rglob("*.csv"))
    assert {file.parent.parent.name for file in files} == {"dt=2026-01-01"}
    rows = []
    for file in files:
        minute = file.parent.name.removeprefix("hm=")
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                assert time.strftime("%H-%M", time.gmtime(int(row["dateTime"]) // 1000)) == minute
                rows.append(tuple(row.values()))
    bids = all_events(SETTINGS).bid.to_pylist()
    assert sorted(rows) == sorted(tuple(map(str, bid.values())) for bid in bids)


@pytest.mark.parametrize("query", STATEFUL)
def test_in_two_processes(folder: Path, query: str) -> None:
    process = start(folder, query, "expressions", "--workers", "2", "-c", "commit.interval.ms=200")
    try:
        deadline = time.monotonic() + 300
        while (wrong := differences(folder, query)) and time.monotonic() < deadline:
            assert process.poll() is None, (folder / "output").read_text()
            time.sleep(1)
    finally:
        process.send_signal(signal.SIGTERM)
    finish(process, folder)
    assert wrong == []


@pytest.mark.parametrize("query", STATEFUL)
def test_killed_five_times_under_exactly_once(folder: Path, query: str) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time.time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments = random.Random(seed)
    arguments = ["--until-end", "--threads", "2", "-c", "processing.guarantee=exactly_once_v2"]
    arguments += [
        "-c",
        "commit.interval.ms=50",
        "-c",
        "max.poll.records=500",
        "-c",
        "buffered.records.per.partition=500",
    ]
    for _ in range(5):
        process = start(folder, query, "expressions", *arguments)
        try:
            process.wait(moments.uniform(1.0, 4.0))
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
    finish(start(folder, query, "expressions", *arguments), folder)
    assert differences(folder, query) == []


@pytest.mark.spark
@pytest.mark.parametrize(("query", "form"), WITH_TOPICS, ids=lambda name: name)
def test_on_spark(folder: Path, query: str, form: str) -> None:
    arguments = ["--engine", "spark", "--until-end", "-c", "spark.master=local[2]", "-c", "spark.driver.memory=1g"]
    arguments += ["-c", "spark.kstreams.delta=none", "-c", "spark.kstreams.max.records=8000"]
    with open_log(folder / "log") as log, log.admin() as admin:
        admin.create_topic(f"spark-{query}", PARTITIONS)
    finish(start(folder, query, form, *arguments), folder)
    assert differences(folder, query, f"spark-{query}") == []
