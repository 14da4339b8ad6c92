"""An application submitted to a standalone cluster gives what it gives on this machine."""

from __future__ import annotations

import shutil
import sys
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


MARKED = """
import os
import kstreams as ks

def mark(line):
    return os.environ.get("PACKED", "not packed")

topology = ks.StreamsBuilder()
topology.stream("lines", key=str, value=str).map_values(mark, value=str).to("marks")
config = {"application.id": "app"}
"""


def test_workers_run_the_python_of_a_packed_environment(master: str, tmp_path: Path) -> None:
    packed = tmp_path / "packed" / "bin" / "python"
    packed.parent.mkdir(parents=True)
    packed.write_text(f'#!/bin/sh\nPACKED=yes exec {sys.executable} "$@"\n')
    packed.chmod(0o755)
    archive = shutil.make_archive(str(tmp_path / "environment"), "gztar", tmp_path / "packed")
    app = Application(None, tmp_path, word_count(), {**WORD_TYPES, "marks": (str, str)}).create("lines").write(LINES)
    file = tmp_path / "app.py"
    file.write_text(MARKED)
    settings = {**app.settings, "spark.driver.memory": "1g", "spark.executor.memory": "512m"}
    assert submit(file, master, settings, until_end=True, archive=archive) == 0
    assert {mark for _, mark, _ in app.rows("marks")} == {"yes"}


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
