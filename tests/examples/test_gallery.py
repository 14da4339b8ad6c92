"""The examples of the gallery: their tests pass, what their READMEs show can be typed, and both engines agree."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.app import load_app
from kstreams.cli import main
from kstreams.config import Config
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from tests.examples.conftest import EXAMPLES, Terminal
from tests.spark.conftest import spark

__all__ = ["spark"]  # the fixture: one session for all tests

GALLERY = EXAMPLES / "gallery"
NAMES = sorted(path.parent.name for path in GALLERY.glob("*/app.py"))
MODULES = ("app", "data", "service", "test_app")
TABLES = {"word-counts", "quotes", "funnels", "leaders", "parcels", "customers-by-city", "features"}
"""The results of which the last row of each key counts. All rows of the others count."""

every_example = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def own_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All examples, and others, have modules of the same names: each imports its own."""
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    yield
    for module in MODULES:
        sys.modules.pop(module, None)


def test_there_are_fifteen() -> None:
    assert len(NAMES) == 15


@every_example
@pytest.mark.usefixtures("own_modules")
def test_its_tests_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--example", name]) == 0
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.syspath_prepend(tmp_path / name)
    assert pytest.main(["-q", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:timeout"]) == 0


@every_example
@pytest.mark.usefixtures("own_modules")
def test_its_picture_shows_its_topology(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "topology.svg"
    assert main(["topology", str(GALLERY / name / "app.py"), "--format", "svg", "-o", str(picture)]) == 0
    assert picture.read_text() == (GALLERY / name / "topology.svg").read_text()


def test_an_unknown_example_is_refused_with_the_names_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--example", "frauds"]) == 1
    assert "there is no example 'frauds': did you mean fraud? the gallery has alerting, anomaly," in (
        capsys.readouterr().err
    )


@pytest.mark.slow
@every_example
def test_what_init_prints_can_be_typed(name: str, terminal: Terminal) -> None:
    printed = terminal.run("kstreams", "init", "--example", name)
    typed = printed.partition("Next:\n")[2]
    assert "passed" in terminal.run("bash", "-euo", "pipefail", "-c", typed)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"async-enrichment", "cdc-lakehouse"}])
def test_both_engines_have_the_same_results(name: str, terminal: Terminal, spark: Any) -> None:
    from kstreams.runtime.spark.runner import SparkRunner

    printed = terminal.run("kstreams", "init", "--example", name)
    typed = printed.partition("Next:\n")[2].replace("  pytest\n", "")
    terminal.run("bash", "-euo", "pipefail", "-c", typed)
    folder = terminal.folder / name
    application = load_app(folder / "app.py")
    config = application.config | {
        "log.dir": str(folder / ".kstreams" / "log"),
        "spark.kstreams.checkpoint": str(folder / "checkpoint"),
        "spark.kstreams.delta": "none",
    }
    with open_log(config["log.dir"]) as log:
        SparkRunner(application.topology, Config.of(config), spark, log, SystemClock()).run(until_end=True)
    topics = re.findall(r"kstreams consume (\S+)", typed)
    of_folder = Terminal(folder)
    for topic in topics:
        natively = results(of_folder, topic, topic)
        assert natively
        assert results(of_folder, f"spark-{topic}", topic) == natively


def results(terminal: Terminal, name: str, topic: str) -> dict[str, str] | Counter[tuple[str, str]]:
    rows = [(str(row["key"]), str(row["value"])) for row in terminal.rows(name, "--key-type", "hex")]
    return dict(rows) if topic in TABLES else Counter(rows)
