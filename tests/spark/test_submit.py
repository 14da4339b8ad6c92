"""An application submitted to a standalone cluster gives what it gives on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from kstreams.runtime.spark.cluster.submit import package_kstreams, submit
from tests.spark.running import Application
from tests.spark.test_task_path import LINES, WORD_TYPES, word_count

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_text(file: Path, text: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while text not in file.read_text():
        assert time.monotonic() < deadline, f"{text!r} never came: {file.read_text()[-2000:]}"
        time.sleep(0.1)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A master and one worker on loopback."""
    port = free_port()
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    environment["PYSPARK_PYTHON"] = sys.executable
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        output = tmp_path / f"{name}.log"
        command = [SPARK_CLASS, f"org.apache.spark.deploy.{name.lower()}.{name}", "--host", "127.0.0.1", *arguments]
        with output.open("wb") as file:
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT))
        return output

    try:
        await_text(start("Master", "--port", str(port), "--webui-port", str(free_port())), "I have been elected leader")
        url = f"spark://127.0.0.1:{port}"
        folders = ("--work-dir", str(tmp_path / "work"), "--webui-port", "0")
        await_text(start("Worker", *folders, "--cores", "2", "--memory", "1g", url), "Successfully registered")
        yield url
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def test_a_submitted_application_counts_on_the_cluster(master: str, tmp_path: Path, capfd) -> None:
    app = Application(None, tmp_path, word_count(), WORD_TYPES).create("lines").write(LINES)
    file = tmp_path / "app.py"
    file.write_text(APP)
    settings = {**app.settings, "spark.driver.memory": "1g", "spark.executor.memory": "512m"}
    assert submit(file, master, settings, until_end=True) == 0
    assert app.table("counts") == {"THE": 3, "CAT": 3, "DOG": 2, "AND": 1, "A": 1}
    assert "4 records in, 10 out" in "".join(capfd.readouterr())


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
