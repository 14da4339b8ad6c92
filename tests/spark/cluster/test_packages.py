"""Packages of the user's own on Spark: what functions import when they are called comes along, also to a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kstreams.modules.app_module import place_of
from kstreams.runtime.spark.cluster.submit import driver_script
from tests.spark.running import Application
from tests.spark.word_count import LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark

APP = """
import kstreams as ks
from .rules import NAME


def shout(line):
    from . import rules
    from .deep.words import upper

    return upper(line) + rules.MARK


topology = ks.StreamsBuilder()
topology.stream("lines", key=str, value=str).map_values(shout, value=str).to("marks")
config = {"application.id": NAME}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a package; `deep` has no `__init__.py`."""
    (tmp_path / "shop/deep").mkdir(parents=True)
    (tmp_path / "shop/__init__.py").touch()
    (tmp_path / "shop/app.py").write_text(APP)
    (tmp_path / "shop/rules.py").write_text("NAME = 'shop'\nMARK = '!'\n")
    (tmp_path / "shop/deep/words.py").write_text("from .more import upper\n")
    (tmp_path / "shop/deep/more.py").write_text("upper = str.upper\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=280)


PACKED = """
import sys
from kstreams.app import load_app
from kstreams.runtime.spark.cluster.shipping import pack

load_app(sys.argv[1])
sys.stdout.buffer.write(pack(sys.modules["shop.app"].shout))
"""
CALLED = "from kstreams.runtime.spark.cluster.shipping import unpack; print(unpack(open('packed', 'rb').read())('a'))"


@pytest.mark.parametrize("name", ["shop/app.py", "shop.app"])
def test_what_a_function_imports_when_it_is_called_comes_along(shop: Path, tmp_path_factory, name: str) -> None:
    packing = subprocess.run([sys.executable, "-c", PACKED, name], cwd=shop, capture_output=True, check=True)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "packed").write_bytes(packing.stdout)
    called = run(elsewhere, sys.executable, "-c", CALLED)
    assert called.stdout == "A!\n", called.stderr


def test_a_driver_on_a_cluster_has_the_whole_application(shop: Path, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "driver.py").write_text(driver_script(place_of("shop.app"), "topology"))
    shown = run(elsewhere, sys.executable, "driver.py", "topology", "--json")
    assert '"marks"' in shown.stdout, shown.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shop/app.py", "shop.app"])
def test_a_package_runs_on_spark(shop: Path, tmp_path: Path, name: str) -> None:
    app = Application(None, tmp_path, word_count(), {**WORD_TYPES, "marks": (str, str)}).create("lines").write(LINES)
    settings = [
        part for key in ("log.dir", "state.dir") if key in app.settings for part in ("-c", f"{key}={app.settings[key]}")
    ]
    done = run(shop, sys.executable, "-m", "kstreams", "run", name, "--engine", "spark", "--until-end", *settings)
    assert done.returncode == 0, done.stderr
    assert {value for _, value, _ in app.rows("marks")} == {line.value.upper() + "!" for line in LINES}
