"""The Java side: Kafka's clients with Apache Avro, protobuf-java and Jackson, which write records and check ours."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.java_programs import compiled

SOURCES = Path(__file__).with_name("java")


class Version(NamedTuple):
    """A version of a schema: the id that a registry gave it, and the text, or for Protobuf a file of descriptors."""

    id: int
    schema: str


class Job(NamedTuple):
    """What Java writes, or what it expects to read; `keys`: how many there are of them."""

    servers: str
    topic: str
    format: str
    count: int
    keys: int
    key: Version
    values: list[Version]


def write(job: Job, folder: Path) -> None:
    """Let Java fill the topic of a job."""
    _run("write", job, folder)


def differences(job: Job, folder: Path) -> int:
    """How many records of the topic are not those that Java wrote for the job, with their notes marked."""
    return int(_run("read", job, folder))


def _run(command: str, job: Job, folder: Path) -> str:
    path = folder / f"{command}-{job.topic}.json"
    versions = [version._asdict() for version in job.values]
    path.write_text(json.dumps({**job._asdict(), "key": job.key._asdict(), "values": versions}))
    java = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", compiled(SOURCES, SOURCES), "Interop", command, str(path)]
    done = subprocess.run(java, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stderr[:3000])
    return done.stdout
