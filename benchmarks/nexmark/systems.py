"""The systems that run queries of Nexmark, each as a program of its own over one Kafka broker."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from benchmarks.connectors import ENVIRONMENTS
from benchmarks.connectors.measure import environment_with
from benchmarks.nexmark.queries import QUERIES
from kstreams.runtime.spark.cluster.jars import DELTA_AND_KAFKA, spark_jars
from tests.support.java_programs import RECORDER, jars_of

PROGRAMS = Path(__file__).with_name("programs")
ON_TOPICS = tuple(query for query in QUERIES if query != "q10")  # the files of query 10 are tested, not measured
SESSION = {"session.timeout.ms": 6_000}  # Kafka Streams waits so long for a member that was killed; the default is 45 s
AT_LEAST_ONCE = {"commit.interval.ms": 1_000}  # the default is 30 s: results wait in the cache for a commit
EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}
_NO_UPDATES = "Spark has no aggregation of results that change"
_NO_SESSIONS = "sessions are emitted when they have closed, and a merged one is not retracted"
_NOT_WRITTEN = "not written"
NOT_IN_JAVA = {"q6": "a table has no list of the last ten rows of a group"}
NOT_IN_SPARK = {
    "q4": _NO_UPDATES,
    "q5": _NO_UPDATES,
    "q6": _NO_UPDATES,
    "q7": "a maximum with all its rows is a join of a stream with its own aggregate, which Spark does not update",
    "q9": "Spark aggregates joins of streams only after a watermark",
    "q11": "sessions in update mode need a stateful function",
    "q23": "two joins of streams in a row need watermarks",
}
NOT_BY_STEPS = {
    "q11": _NO_SESSIONS,
    **dict.fromkeys(("q6", "q9", "q14", "q16", "q17", "q21", "q22", "q23"), _NOT_WRITTEN),
}
"""Quix and Bytewax, whose programs are functions by key."""
QUIX = ["quixstreams==3.23.1"]
BYTEWAX = ["bytewax[kafka]==0.21.1", "orjson==3.13.0"]

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
    missing : mapping of str to str
        Why it lacks queries.
    """

    name: str
    guarantee: str
    command: Command
    queries: Sequence[str] = ON_TOPICS
    settings: Mapping[str, object] = field(default_factory=dict)
    form: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)


def systems() -> list[System]:
    """Return all systems."""
    both_forms = tuple(query for query in ON_TOPICS if len(QUERIES[query]) > 1)
    return [
        *_twice(System("kstreams, expressions", "", _kstreams, form="expressions")),
        *_twice(System("kstreams, functions", "", _kstreams, both_forms, form="functions")),
        *_twice(_lacking("Kafka Streams in Java", "", _kafka_streams, NOT_IN_JAVA, SESSION)),
        _lacking("PySpark by hand", "at least once", _spark, NOT_IN_SPARK),
        _lacking("Quix", "at least once", partial(_other_python, "quix", QUIX), NOT_BY_STEPS),
        _lacking("Bytewax", "at most once", partial(_other_python, "bytewax", BYTEWAX), NOT_BY_STEPS),
    ]


def _lacking(
    name: str,
    guarantee: str,
    command: Command,
    missing: Mapping[str, str],
    settings: Mapping[str, object] | None = None,
) -> System:
    """Return a system that lacks some queries, each for a reason."""
    queries = [query for query in ON_TOPICS if query not in missing]
    return System(name, guarantee, command, queries, settings or {}, missing=missing)


def _twice(system: System) -> Iterator[System]:
    """Return a system at least once and exactly once."""
    for guarantee, settings in (("at least once", AT_LEAST_ONCE), ("exactly once", EXACTLY_ONCE)):
        yield replace(system, guarantee=guarantee, settings={**system.settings, **settings})


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


def _other_python(name: str, requirements: Sequence[str]) -> Sequence[str | Path]:
    return [environment_with(f"nexmark-{name}", requirements, ENVIRONMENTS), PROGRAMS / f"{name}_program.py"]


def _spark() -> Sequence[str | Path]:
    return [sys.executable, PROGRAMS / "spark_program.py", ",".join(map(str, spark_jars(DELTA_AND_KAFKA)))]
