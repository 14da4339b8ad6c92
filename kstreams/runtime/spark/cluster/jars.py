"""`JarSet`: the jars that PySpark lacks for Delta Lake, Kafka and S3, which Maven resolves once into a cache folder.

Spark's own resolver (Ivy) is not used: it fails on an artefact that is not published for this version, whereas Maven
accepts a replacement.
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
    """A Maven artefact, and the dependency (group, artefact) that it excludes."""

    group: str
    artifact: str
    version: str
    exclusion: tuple[str, str] | None = None

    def xml(self) -> str:
        """Return the artefact as a dependency of a pom."""
        exclusions = ""
        if self.exclusion:
            group, artifact = self.exclusion
            exclusions = (
                "<exclusions><exclusion>"
                f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
                "</exclusion></exclusions>"
            )
        return (
            f"<dependency><groupId>{self.group}</groupId><artifactId>{self.artifact}</artifactId>"
            f"<version>{self.version}</version>{exclusions}</dependency>"
        )


class JarSet(NamedTuple):
    """The jars for one purpose.

    Parameters
    ----------
    folder : str
        Its folder in the cache.
    purpose : str
        The purpose of the jars, for messages.
    without : str
        How to run without the jars, for messages.
    coordinates : tuple of Coordinate
    artifact_ids : tuple of str
        The artefacts that PySpark lacks. PySpark has its own copies of the others that Maven resolves.
    """

    folder: str
    purpose: str
    without: str
    coordinates: tuple[Coordinate, ...]
    artifact_ids: tuple[str, ...]


# The Kafka token provider of 4.2.0 is not published. An earlier one works, except for delegation tokens.
_TOKENS = ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13")
DELTA_AND_KAFKA = JarSet(
    folder=SPARK_VERSION,
    purpose="Delta Lake and Kafka",
    without="`spark.kstreams.delta=none` to run without Delta tables",
    coordinates=(
        Coordinate("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
        Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION, exclusion=_TOKENS),
        Coordinate(*_TOKENS, "4.1.0-preview1"),
    ),
    artifact_ids=(
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
    ),
)
# The bundle of the AWS SDK has 600 MB; the modules that S3A uses have 10 MB. Hadoop in Spark uses these versions.
_BUNDLE = ("software.amazon.awssdk", "bundle")
_AWS_SDK = "annotations apache-client arns auth aws-core aws-query-protocol aws-xml-protocol checksums checksums-spi"
_AWS_SDK += " crt-core endpoints-spi eventstream http-auth http-auth-aws http-auth-aws-eventstream http-auth-spi"
_AWS_SDK += " http-client-spi identity-spi json-utils metrics-spi netty-nio-client profiles protocol-core"
_AWS_SDK += " reactive-streams regions retries retries-spi s3 s3-transfer-manager sdk-core sts"
_AWS_SDK += " third-party-jackson-core utils utils-lite"
S3 = JarSet(
    folder=f"{SPARK_VERSION}-s3",
    purpose="S3",
    without="`spark.kstreams.checkpoint` and `spark.kstreams.delta` to other locations",
    coordinates=(
        Coordinate("org.apache.hadoop", "hadoop-aws", "3.5.0", exclusion=_BUNDLE),
        Coordinate(_BUNDLE[0], "s3-transfer-manager", "2.35.4"),
        Coordinate(_BUNDLE[0], "sts", "2.35.4"),
    ),
    artifact_ids=("hadoop-aws", "analyticsaccelerator-s3", "wildfly-openssl", *_AWS_SDK.split()),
)


def pom(jars: JarSet) -> str:
    """Return the Maven project that depends on the coordinates of a set."""
    dependencies = "".join(coordinate.xml() for coordinate in jars.coordinates)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kstreams</groupId><artifactId>spark-jars</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )


def spark_jars(jars: JarSet, cache: Path = CACHE, say: Callable[[str], None] = lambda line: None) -> list[Path]:
    """Return the jars of a set; Maven fetches them if they are not in the cache.

    Parameters
    ----------
    jars : JarSet
    cache : Path
        The folder that contains one folder for each set of a Spark version.
    say : callable
        Called with a line of text before Maven runs.

    Raises
    ------
    EngineUnavailableError
        If Maven is missing or cannot resolve the jars.
    """
    home = cache / jars.folder
    if not home.is_dir():
        say(f"fetching the jars of {jars.purpose} for Spark (once, about half a minute)")
        _fetch(jars, home)
    return sorted(home.glob("*.jar"))


def _fetch(jars: JarSet, home: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise _unavailable(jars, "Maven (`mvn`) is not installed")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        project = Path(scratch, "pom.xml")
        project.write_text(pom(jars))
        _copy_dependencies(jars, maven, project, Path(scratch, "jars"))
        _publish(Path(scratch, "jars"), home)


def _copy_dependencies(jars: JarSet, maven: str, project: Path, target: Path) -> None:
    command = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-DincludeArtifactIds={','.join(jars.artifact_ids)}", f"-DoutputDirectory={target}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    absent = [name for name in jars.artifact_ids if not list(target.glob(f"{name}-*.jar"))]
    if result.returncode or absent:
        lines = (result.stdout + result.stderr).strip().splitlines()
        reason = lines[0] if lines else f"it did not fetch {', '.join(absent)}"
        raise _unavailable(jars, f"Maven could not resolve them: {reason}")


def _publish(jars: Path, home: Path) -> None:
    """Rename a folder into place, unless another process has done this with the same jars."""
    try:
        jars.rename(home)
    except OSError:
        if not home.is_dir():
            raise


def _unavailable(jars: JarSet, reason: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"The jars for {jars.purpose} on Spark {SPARK_VERSION} are not available: {reason}. Set `spark.jars` to a "
        f"comma-separated list of jars, or {jars.without}."
    )
