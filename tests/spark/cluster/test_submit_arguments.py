"""What `spark-submit` is called with: the user's files beside ours, and an error before it is called in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from kstreams.errors import ConfigError, EngineUnavailableError
from kstreams.runtime.spark.cluster.submit import Submission, submit_command

pytestmark = pytest.mark.spark


def option(command: list[str], name: str) -> str:
    """The value of an option that is there once."""
    assert command.count(name) == 1
    return command[command.index(name) + 1]


def test_files_and_jars_of_the_user_come_beside_our_own(tmp_path: Path) -> None:
    for name in ("kstreams.zip", "more.py", "ours.jar", "theirs.jar"):
        (tmp_path / name).touch()
    names = "--py-files", str(tmp_path / "more.py"), f"--jars={tmp_path / 'theirs.jar'}", "--executor-memory", "2g"
    settings = {"spark.jars": str(tmp_path / "ours.jar")}
    command = submit_command(Submission("yarn", arguments=names), settings, tmp_path / "kstreams.zip")
    assert option(command, "--py-files") == f"{tmp_path / 'kstreams.zip'},{tmp_path / 'more.py'}"
    assert option(command, "--jars") == f"{tmp_path / 'ours.jar'},{tmp_path / 'theirs.jar'}"
    assert option(command, "--executor-memory") == "2g"


def test_a_jar_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "kstreams.zip").touch()
    with pytest.raises(ConfigError, match=r"there is no file /nowhere/delta\.jar"):
        submit_command(Submission("yarn"), {"spark.jars": "/nowhere/delta.jar"}, tmp_path / "kstreams.zip")


def test_a_standalone_cluster_is_said_to_run_no_driver_in_python(tmp_path: Path) -> None:
    how = Submission("spark://127.0.0.1:7077", "cluster")
    with pytest.raises(EngineUnavailableError, match="leave out --deploy-mode cluster"):
        submit_command(how, {}, tmp_path / "kstreams.zip")


def test_without_delta_no_jars_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "kstreams.zip").touch()
    command = submit_command(Submission("yarn"), {"spark.kstreams.delta": "none"}, tmp_path / "kstreams.zip")
    assert "--jars" not in command
