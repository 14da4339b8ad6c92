"""A standalone Spark cluster on loopback: a master, and workers on addresses of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")


@contextmanager
def standalone(folder: Path, workers: int = 1, cores: int = 2, **environment: str) -> Iterator[str]:
    """The address of a cluster that lasts as long as the block; each worker is a host of its own to Spark.

    What is given by name stands in the environment of all its processes.
    """
    port, started = free_port(), list[subprocess.Popen[bytes]]()

    def start(name: str, host: str, *arguments: str) -> Path:
        output = folder / f"{name}-{host}.log"
        of_process = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "512m", **environment}
        of_process["PYSPARK_PYTHON"] = sys.executable
        command = [SPARK_CLASS, f"org.apache.spark.deploy.{name.lower()}.{name}", "--host", host, *arguments]
        with output.open("wb") as file:
            started.append(subprocess.Popen(command, env=of_process, stdout=file, stderr=subprocess.STDOUT))
        return output

    try:
        master = start("Master", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()))
        await_text(master, "I have been elected leader")
        url = f"spark://127.0.0.1:{port}"
        for number in range(workers):
            folders = "--work-dir", str(folder / f"work-{number}"), "--webui-port", "0"
            size = "--cores", str(cores), "--memory", "1g"
            await_text(start("Worker", f"127.0.0.{number + 1}", *folders, *size, url), "Successfully registered")
        yield url
    finally:
        for process in started:
            process.terminate()
        for process in started:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was asked to go; one that does not is killed."""
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_text(file: Path, text: str, seconds: float = 120) -> None:
    """Wait until a process has written some text."""
    deadline = time.monotonic() + seconds
    while text not in file.read_text():
        assert time.monotonic() < deadline, f"{text!r} never came: {file.read_text()[-2000:]}"
        time.sleep(0.1)
