"""One Spark session for all tests: starting one takes five seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.runtime.spark.session import spark_session
from kstreams.runtime.spark.settings import SparkSettings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The session, with Delta."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = spark_session(SparkSettings(conf={"spark.sql.warehouse.dir": str(warehouse)}))
    yield session
    session.stop()


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """The folder of an embedded log."""
    return tmp_path / "log"
