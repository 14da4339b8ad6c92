"""The jars that PySpark lacks for Delta Lake and Kafka: resolved once by Maven into a cache folder.

Spark's own resolver (Ivy) is not used: it fails on one artefact that is not published for this version, while Maven
lets us name its stand-in.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kstreams.errors import EngineUnavailableError

SPARK_VERSION = "4.2.0"
CACHE = Path("~/.cache/kstreams/spark").expanduser()


class Coordinate(NamedTuple):
    """A Maven artefact, and what it must not bring along."""

    group: str
    artifact: str
    version: str
    exclusion: tuple[str, str] | None = None

    def xml(self) -> str:
        """The artefact as a dependency of a pom."""
        without = ""
        if self.exclusion:
            group, artifact = self.exclusion
            without = (
                "<exclusions><exclusion>"
                f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
                "</exclusion></exclusions>"
            )
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.artifact}</artifactId>"
            f"<version>{self.version}</version>{without}</dependency>"
        )


# The Kafka token provider of 4.2.0 is not published; the nearest published one serves (delegation tokens aside).
_TOKENS = ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13")
COORDINATES = (
    Coordinate("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
    Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION, exclusion=_TOKENS),
    Coordinate(*_TOKENS, "4.1.0-preview1"),
)
# Of what Maven resolves, only these are missing in PySpark; Spark's own copies of the rest are used.
MISSING = (
    "delta-spark_4.2_2.13",
    "delta-storage",
    "delta-kernel-api",
    "delta-kernel-defaults",
    "delta-kernel-unitycatalog",
    "unitycatalog-client",
    "unitycatalog-hadoop",
    "spark-sql-kafka-0-10_2.13",
    "spark-token-provider-kafka-0-10_2.13",
    "kafka-clients",
    "commons-pool2",
)


def pom() -> str:
    """The Maven project whose only purpose is to depend on `COORDINATES`."""
    dependencies = "".join(coordinate.xml() for coordinate in COORDINATES)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kstreams</groupId><artifactId>spark-jars</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )


def spark_jars(cache: Path = CACHE, say: Callable[[str], None] = lambda line: None) -> list[Path]:
    """The jars, fetched by Maven when they are not in the cache yet.

    Parameters
    ----------
    cache : Path
        Folder that holds one folder of jars per Spark version.
    say : callable
        Gets a line when something takes its time.

    Raises
    ------
    EngineUnavailableError
        When Maven is missing or cannot resolve the jars.
    """
    home = cache / SPARK_VERSION
    if not home.is_dir():
        say("fetching the Delta and Kafka jars for Spark (once, about half a minute)")
        _fetch(home)
    return sorted(home.glob("*.jar"))


def _fetch(home: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise _unavailable("Maven (`mvn`) is not installed")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        project = Path(scratch, "pom.xml")
        project.write_text(pom())
        _copy_dependencies(maven, project, Path(scratch, "jars"))
        _publish(Path(scratch, "jars"), home)


def _copy_dependencies(maven: str, project: Path, target: Path) -> None:
    command = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-DincludeArtifactIds={','.join(MISSING)}", f"-DoutputDirectory={target}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    absent = [name for name in MISSING if not list(target.glob(f"{name}-*.jar"))]
    if result.returncode or absent:
        lines = (result.stdout + result.stderr).strip().splitlines()
        why = lines[0] if lines else f"it did not bring {', '.join(absent)}"
        raise _unavailable(f"Maven could not resolve them: {why}")


def _publish(jars: Path, home: Path) -> None:
    """Rename into place; another process may have been faster, with the same jars."""
    try:
        jars.rename(home)
    except OSError:
        if not home.is_dir():
            raise


def _unavailable(why: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"The jars for Delta Lake and Kafka on Spark {SPARK_VERSION} cannot be had: {why}. Set `spark.jars` "
        "to a comma-separated list of jars, or `spark.kstreams.delta=none` to run without Delta tables."
    )
