"""Another distribution has a package `kstreams`: whoever has installed both reads which one to keep, and how."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kstreams.modules.installed import PACKAGE

THEIRS = {"__init__.py": "from .record import ConsumerRecord\n", "record.py": "ConsumerRecord = int\n"}
SENTENCE = "another distribution, kstreams 0.34.6, was installed over kstreams-dsl: both have a package kstreams"
CURE = "pip uninstall -y kstreams kstreams-dsl, then pip install --force-reinstall kstreams-dsl"


def install_theirs(site: Path) -> None:
    (site / "kstreams-0.34.6.dist-info").mkdir()
    (site / "kstreams-0.34.6.dist-info/METADATA").write_text("Metadata-Version: 2.4\nName: kstreams\nVersion: 0.34.6\n")
    for name, text in THEIRS.items():
        (site / "kstreams" / name).write_text(text)


def uninstall_theirs(site: Path) -> None:
    shutil.rmtree(site / "kstreams-0.34.6.dist-info")
    for name in THEIRS:
        (site / "kstreams" / name).unlink()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with a copy of ours."""
    shutil.copytree(PACKAGE, tmp_path / "site/kstreams", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


@pytest.fixture
def python(site: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python where these packages come first."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        others = [path for path in sys.path if path and Path(path).resolve() != PACKAGE.parent.resolve()]
        begin = f"import sys; sys.path[:] = {[str(site), *others]!r}; "
        command = [sys.executable, "-c", begin + arguments[0], *arguments[1:]]
        return subprocess.run(command, cwd=site.parent, check=False, capture_output=True, text=True, timeout=60)

    return run


COMMAND = "from kstreams.cli import main; sys.exit(main())"
AS_MODULE = "import runpy; runpy.run_module('kstreams', run_name='__main__', alter_sys=True)"


@pytest.mark.parametrize("start", [COMMAND, AS_MODULE], ids=["kstreams", "python -m kstreams"])
def test_every_command_says_it_in_one_sentence(site: Path, python, start: str) -> None:
    install_theirs(site)
    for arguments in (["--version"], ["topics", "list"], ["run", "app.py"]):
        refused = python(start, *arguments)
        assert refused.returncode == 1
        assert refused.stderr == f"kstreams: {SENTENCE}, and only one of them can be there. For this one: {CURE}\n"


@pytest.mark.parametrize(
    "line",
    [
        "from kstreams.testing import TopologyTestDriver",
        "from kstreams.log import open_log",
        "import kstreams.errors",
        "import kstreams.app",
        "import kstreams.config",
        "import kstreams.serdes",
        "import kstreams.state",
        "import kstreams.spark",
        "from kstreams.dsl.builder import StreamsBuilder",
    ],
)
def test_an_import_of_ours_says_it(site: Path, python, line: str) -> None:
    install_theirs(site)
    refused = python(line)
    assert refused.stderr.splitlines()[-1].startswith(f"ImportError: {SENTENCE}")


def test_a_plugin_of_pytest_stays_quiet(site: Path, python) -> None:
    install_theirs(site)
    assert python("import kstreams.testing.fixtures").stderr == ""


def test_their_modules_among_ours(site: Path, python) -> None:
    ours = (site / "kstreams/__init__.py").read_text()
    install_theirs(site)
    (site / "kstreams/__init__.py").write_text(ours)
    [*_, last] = python("import kstreams; kstreams.StreamsBuilder").stderr.splitlines()
    assert last.startswith(f"ImportError: {SENTENCE}")
    refused = python(COMMAND, "topics", "list")
    assert (refused.returncode, SENTENCE in refused.stderr) == (1, True)
    assert "unexpected" not in refused.stderr


def test_theirs_uninstalled_takes_ours_along(site: Path, python) -> None:
    install_theirs(site)
    uninstall_theirs(site)
    refused = python(COMMAND, "--version")
    assert refused.returncode == 1
    lost = "which went with another distribution that has a package kstreams"
    assert refused.stderr == f"kstreams: files of kstreams-dsl are missing, {lost}: {CURE}\n"


def test_ours_over_theirs_works(site: Path, python) -> None:
    install_theirs(site)
    for name in THEIRS:
        shutil.copy(PACKAGE / name, site / "kstreams" / name)
    assert python(COMMAND, "topics", "list", "--help").returncode == 0
    assert python("import kstreams; kstreams.StreamsBuilder").stderr == ""
