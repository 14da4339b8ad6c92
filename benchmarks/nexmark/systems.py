"""The systems that run queries of Nexmark, each as a program of its own over one Kafka broker."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
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
IN_SPARK = tuple(f"q{number}" for number in (0, 1, 2, 3, 8, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22))

Command = Callable[[], Sequence[str | Path]]


@dataclass(frozen=True)
class System:
    """A system with one configuration.

    Parameters
    ----------
    name, guarantee : str
    command : callable
        Builds what is missing, and returns the command.
    queries : sequence of str
        The queries that are written for it.
    settings : mapping
        For its program.
    form : str
        For kstreams: `functions` or `expressions`.
    """

    name: str
    guarantee: str
    command: Command
    queries: Sequence[str] = ON_TOPICS
    settings: Mapping[str, object] = field(default_factory=dict)
    form: str = ""


def systems() -> list[System]:
    """Return all systems."""
    both_forms = tuple(query for query in ON_TOPICS if len(QUERIES[query]) > 1)
    return [
        *_twice("kstreams, expressions", _kstreams, ON_TOPICS, form="expressions", prefix="consumer."),
        *_twice("kstreams, functions", _kstreams, both_forms, form="functions", prefix="consumer."),
        *_twice("Kafka Streams in Java", _kafka_streams, [query for query in ON_TOPICS if query != "q6"]),
        System("PySpark by hand", "at least once", _spark, IN_SPARK),
    ]


def _twice(
    name: str, command: Command, queries: Sequence[str], *, form: str = "", prefix: str = ""
) -> Iterator[System]:
    """Return a system at least once and exactly once; the prefix is that of a consumer's settings."""
    session = {f"{prefix}{setting}": value for setting, value in SESSION.items()}
    yield System(name, "at least once", command, queries, {**session, **AT_LEAST_ONCE}, form)
    yield System(name, "exactly once", command, queries, {**session, **EXACTLY_ONCE}, form)


def _kstreams() -> Sequence[str | Path]:
    return [sys.executable, PROGRAMS / "kstreams_program.py"]


@cache
def _kafka_streams() -> Sequence[str | Path]:
    jars = jars_of(RECORDER)
    target = Path(tempfile.gettempdir()) / "kstreams-nexmark"
    target.mkdir(exist_ok=True)
    source = PROGRAMS / "kafka_streams" / "Nexmark.java"
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", target, source], check=True)
    return ["java", "-Xmx2g", "-cp", f"{target}:{jars}", "Nexmark"]


def _spark() -> Sequence[str | Path]:
    return [sys.executable, PROGRAMS / "spark_program.py", ",".join(map(str, spark_jars(DELTA_AND_KAFKA)))]
