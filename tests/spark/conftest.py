"""One Spark session for all tests: starting one takes five seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.runtime.spark.cluster.session import QUIET, spark_session
from kstreams.runtime.spark.settings import SparkSettings

# Small data: compiling plans, and compiling what is compiled, takes longer than running them.
LITTLE_CPU = {
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {QUIET}",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
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
