"""An application submitted to a standalone cluster gives what it gives on this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.runtime.spark.cluster.submit import package_kstreams, submit
from tests.spark.running import Application, Row
from tests.spark.standalone import standalone
from tests.spark.word_count import LINES, WORD_TYPES, word_count

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

APP = """
import kstreams as ks

class Upper:
    def __call__(self, word):
        return word.upper()

topology = ks.StreamsBuilder()
words = topology.stream("lines", key=str, value=str).flat_map_values(str.split, value=str)
words = words.map_values(Upper(), value=str)
words.group_by(lambda key, word: word, key=str).count().to_stream().to("counts")
config = {"application.id": "app"}
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A master and one worker on loopback."""
    with standalone(tmp_path) as url:
        yield url


def test_a_submitted_application_counts_on_the_cluster(master: str, tmp_path: Path, capfd) -> None:
    app = Application(None, tmp_path, word_count(), WORD_TYPES).create("lines").write(LINES)
    file = tmp_path / "app.py"
    file.write_text(APP)
    settings = {**app.settings, "spark.driver.memory": "1g", "spark.executor.memory": "512m"}
    assert submit(file, master, settings, until_end=True) == 0
    assert app.table("counts") == {"THE": 3, "CAT": 3, "DOG": 2, "AND": 1, "A": 1}
    said = "".join(capfd.readouterr())
    assert "4 records in, 10 out" in said
    assert not [line for line in said.splitlines() if " INFO " in line or " WARN " in line or "BrokenPipe" in line]


PACKED = """
import kstreams as ks
from rules import MARK


def marked(line):
    from only_in_the_archive import shout

    return shout(line) + MARK


topology = ks.StreamsBuilder()
topology.stream("lines", key=str, value=str).map_values(marked, value=str).to("marks")
config = {"application.id": "app"}
"""


def packed_environment(folder: Path) -> str:
    """Pack a virtual environment as venv-pack does: the packages of this one, and one that is nowhere else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    packages = next((folder / "env" / "lib").glob("python*")) / "site-packages"
    (packages / "these.pth").write_text(sysconfig.get_path("purelib"))
    (packages / "only_in_the_archive").mkdir()
    (packages / "only_in_the_archive" / "__init__.py").write_text("from .texts import shout\n")
    (packages / "only_in_the_archive" / "texts.py").write_text("def shout(text):\n    return text.upper()\n")
    return shutil.make_archive(str(folder / "environment"), "gztar", folder / "env")


def test_workers_have_the_packages_of_an_archive_and_modules_of_the_user(master: str, tmp_path: Path) -> None:
    archive = packed_environment(tmp_path)
    app = Application(None, tmp_path, word_count(), {**WORD_TYPES, "marks": (str, str)}).create("lines").write(LINES)
    file, rules = tmp_path / "application" / "app.py", tmp_path / "elsewhere" / "rules.py"
    for path, text in ((file, PACKED), (rules, "MARK = '!'\n")):
        path.parent.mkdir()
        path.write_text(text)
    settings = {**app.settings, "spark.driver.memory": "1g", "spark.executor.memory": "512m"}
    arguments = ["--py-files", str(rules)]
    assert submit(file, master, settings, until_end=True, archive=archive, arguments=arguments) == 0
    assert {mark for _, mark, _ in app.rows("marks")} == {line.value.upper() + "!" for line in LINES}


def test_an_application_that_fails_has_a_failing_exit_status(master: str, tmp_path: Path, capfd) -> None:
    app = Application(None, tmp_path, word_count(), WORD_TYPES)
    file = tmp_path / "app.py"
    file.write_text(APP)
    assert submit(file, master, app.settings, until_end=True) == 1
    assert "kstreams: There is no topic 'lines'" in "".join(capfd.readouterr())


def test_the_package_holds_kstreams_and_nothing_else(tmp_path: Path) -> None:
    import zipfile

    names = zipfile.ZipFile(package_kstreams(tmp_path / "k.zip")).namelist()
    assert "kstreams/runtime/spark/tasks/task_run.py" in names
    assert all(name.startswith("kstreams/") and name.endswith(".py") for name in names)


SLOW = """
import os
import time
import kstreams as ks

def executor_of(line):
    time.sleep(2)
    return str(os.getppid())  # workers of one executor are forked from one process

topology = ks.StreamsBuilder()
topology.stream("lines", key=str, value=str).map_values(executor_of, value=str).to("marks")
config = {"application.id": "app"}
"""


def test_tasks_spread_over_the_executors_that_dynamic_allocation_adds(tmp_path: Path) -> None:
    app = Application(None, tmp_path, word_count(), WORD_TYPES | {"marks": (str, str)})
    app.create("lines", partitions=6).write(Row("lines", "k", "text", n, n % 6) for n in range(30))
    file = tmp_path / "app.py"
    file.write_text(SLOW)
    grows = {"enabled": "true", "shuffleTracking.enabled": "true", "initialExecutors": "1", "maxExecutors": "3"}
    allocation = {f"spark.dynamicAllocation.{key}": value for key, value in grows.items()}
    settings = {**app.settings, "spark.driver.memory": "1g", "spark.executor.memory": "512m", "spark.executor.cores": 1}
    with standalone(tmp_path, workers=3, cores=1) as master:
        assert submit(file, master, settings | allocation, until_end=True) == 0
    executors = [value for _, value, _ in app.rows("marks")]
    assert len(executors) == 30
    assert len(set(executors)) == 3
