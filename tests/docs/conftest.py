"""The environments in which the pages say that a reader types, made by the commands of the README."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Reader


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make demo` installs first, in a folder of its own: all that pages without Spark may need.

    Its packages are linked from the environment of the tests, where pip would take half a minute.
    """
    venv = tmp_path_factory.mktemp("newcomer") / "venv"
    linking = f"{sys.executable} {Path(__file__).with_name('linked_install.py')} {venv}"
    _make(ROOT, str(venv / ".demo"), f"VENV={venv}", f"PIP={linking}")
    subprocess.run(
        [*linking.split(), "--editable", ".[metrics,server,sql,registry,protobuf,postgres,sqldb,http,delta,iceberg]"],
        cwd=ROOT,
        check=True,
    )  # as pages say
    return venv / "bin"


@pytest.fixture(scope="session")
def commands_with_spark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make demo` leaves in a fresh clone, the Spark half included."""
    clone = tmp_path_factory.mktemp("newcomer") / "kstreams"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, clone / name)
    _make(clone, "demo")
    return clone / ".venv" / "bin"


@pytest.fixture
def reader(tmp_path: Path, commands: Path) -> Reader:
    return _reader(tmp_path, commands)


@pytest.fixture
def reader_with_spark(tmp_path: Path, commands_with_spark: Path) -> Reader:
    return _reader(tmp_path, commands_with_spark)


def _reader(folder: Path, commands: Path) -> Reader:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return Reader(folder, commands, {**kept, "PATH": f"{commands}{os.pathsep}{kept['PATH']}", "NO_COLOR": "1"})


def _make(folder: Path, target: str, *variables: str) -> None:
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", *variables, target],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"make {target} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
