"""The systems that run queries of Nexmark, each as a program of its own over one Kafka broker."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmarks.nexmark.queries import QUERIES
from kstreams.runtime.spark.cluster.jars import DELTA_AND_KAFKA, spark_jars
from tests.support.java_programs import RECORDER, jars_of

PROGRAMS = Path(__file__).with_name("programs")
ON_TOPICS = tuple(query for query in QUERIES if query != "q10")  # the files of query 10 are tested, not measured
SESSION = {"session.timeout.ms": 6_000}  # a successor waits so long for a member that was killed; the default is 45 s
AT_LEAST_ONCE = {"commit.interval.ms": 1_000}  # the default is 30 s: results wait in the cache for a commit
EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


@dataclass(frozen=True)
class System:
    """A system with one configuration.

    Parameters
    ----------
    name, guarantee : str
    command : sequence
    queries : sequence of str
        The queries that are written for it.
    settings : mapping
        For its program.
    form : str
        For kstreams: `functions` or `expressions`.
    """

    name: str
    guarantee: str
    command: Sequence[str | Path]
    queries: Sequence[str] = ON_TOPICS
    settings: Mapping[str, object] = field(default_factory=dict)
    form: str = ""


def systems() -> list[System]:
    """Return all systems."""
    both_forms = tuple(query for query in ON_TOPICS if len(QUERIES[query]) > 1)
    ours = [*_kstreams("expressions", ON_TOPICS), *_kstreams("functions", both_forms)]
    return [*ours, *_kafka_streams(), _spark()]


def _kstreams(form: str, queries: Sequence[str]) -> list[System]:
    command = [sys.executable, PROGRAMS / "kstreams_program.py"]
    settings = {f"consumer.{name}": value for name, value in SESSION.items()}
    return [
        System(f"kstreams, {form}", guarantee, command, queries, {**settings, **more}, form)
        for guarantee, more in (("at least once", AT_LEAST_ONCE), ("exactly once", EXACTLY_ONCE))
    ]


def _kafka_streams() -> list[System]:
    command = ["java", "-Xmx2g", "-cp", _classes(), "Nexmark"]
    return [
        System("Kafka Streams in Java", guarantee, command, ON_TOPICS[:6] + ON_TOPICS[7:], {**SESSION, **more})
        for guarantee, more in (("at least once", AT_LEAST_ONCE), ("exactly once", EXACTLY_ONCE))
    ]


def _spark() -> System:
    queries = [f"q{number}" for number in (0, 1, 2, 3, 8, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)]
    jars = ",".join(map(str, spark_jars(DELTA_AND_KAFKA)))
    return System(
        "PySpark by hand", "at least once", [sys.executable, PROGRAMS / "spark_program.py"], queries, {"jars": jars}
    )


@cache
def _classes() -> str:
    """Compile the program for Kafka Streams, and return its class path."""
    jars = jars_of(RECORDER)
    target = Path(tempfile.gettempdir()) / "kstreams-nexmark"
    target.mkdir(exist_ok=True)
    source = PROGRAMS / "kafka_streams" / "Nexmark.java"
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", target, source], check=True)
    return f"{target}:{jars}"
