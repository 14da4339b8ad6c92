"""One Spark session for all tests: starting one takes five seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.runtime.spark.cluster.session import QUIET, spark_session
from kstreams.runtime.spark.settings import SparkSettings

# Small data: compiling plans, and compiling what is compiled, takes longer than running them. At this level of
# compilation the JVM has room for 48 MB of code, of which Spark needs more: what it drops is interpreted again.
JVM = "-XX:+UseSerialGC -Xmn600m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
LITTLE_CPU = {
    "spark.driver.extraJavaOptions": f"{JVM} {QUIET}",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # For a page that nobody sees: the fewer are kept, the less is copied at each collection of garbage.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.ui.explainMode": "simple",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The session, with Delta; what its tasks keep lies where tests write, mostly in memory: a disk is waited for."""
    folders = {"spark.sql.warehouse.dir": "warehouse", "spark.local.dir": "local"}
    conf = LITTLE_CPU | {key: str(tmp_path_factory.mktemp(name)) for key, name in folders.items()}
    session = spark_session(SparkSettings(conf=conf))
    yield session
    session.stop()


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """The folder of an embedded log."""
    return tmp_path / "log"
