"""Java programs of tests: compiled once for a process, with the jars that a `pom.xml` names."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

RECORDER = Path(__file__).parents[1] / "conformance" / "recorder"


@cache
def jars_of(folder: Path) -> str:
    """The class path of what the `pom.xml` in a folder names; Maven fetches it."""
    jars = _target(folder) / "class-path"
    maven = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(folder / "pom.xml"),
        "dependency:build-classpath",
        f"-Dmdep.outputFile={jars}",
    ]
    subprocess.run(maven, check=True, stdout=subprocess.DEVNULL)
    return jars.read_text()


@cache
def compiled(folder: Path, project: Path = RECORDER) -> str:
    """The class path of the Java programs in a folder, with the jars of a project: those of Kafka Streams."""
    target, jars = _target(folder), jars_of(project)
    sources = map(str, folder.glob("*.java"))
    subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", str(target), *sources], check=True)
    return f"{target}:{jars}"


def _target(folder: Path) -> Path:
    """Where classes go that were compiled of a folder: its whole path tells it from others."""
    names = folder.relative_to(Path(__file__).parents[1]).parts
    target = Path(tempfile.gettempdir()) / "-".join(("kstreams", *names))
    target.mkdir(exist_ok=True)
    return target
