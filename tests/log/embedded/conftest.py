"""The logs that tests of several files damage, each in a copy of its own."""

from pathlib import Path

import pytest

from tests.log.embedded.killed_log import write_killed_log


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose writer was killed."""
    return write_killed_log(tmp_path_factory.mktemp("killed"), "schemas")


@pytest.fixture(scope="module")
def killed_before_schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose writer was killed, and registered no schema."""
    return write_killed_log(tmp_path_factory.mktemp("before"))
