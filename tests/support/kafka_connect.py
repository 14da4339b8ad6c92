"""A real Kafka Connect worker for tests, on loopback, from the jars of Maven Central.

    with KafkaCluster() as kafka, ConnectWorker(kafka.bootstrap_servers) as connect:
        connect.put("lines", {"connector.class": "FileStreamSource", "tasks.max": 1, "topic": "t", "file": path})
        connect.wait_running("lines")

`packages` names further connectors by their Maven coordinates. The jars are fetched once, beside those of Kafka.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.kafka_cluster import CACHE, LOG4J, free_ports

VERSION = "4.3.1"
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
RUNTIME = (
    *(f"org.apache.kafka:connect-{part}:{VERSION}" for part in ("runtime", "file", "json", "transforms", "mirror")),
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)

QUICK_START = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def jars(packages: Sequence[str]) -> Path:
    """The folder of the jars of packages and of what they need. Maven fetches them the first time."""
    folder = CACHE / ("connect-" + hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12])
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(packages, folder)
    return folder


def _fetch(packages: Sequence[str], folder: Path) -> None:
    dependency = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
    dependencies = "".join(dependency.format(*package.split(":")) for package in packages)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        project = Path(scratch, "pom.xml")
        project.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>kstreams</groupId><artifactId>connect-for-tests</artifactId><version>1</version>"
            f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
        )
        fetched = Path(scratch, "jars")
        command = ["mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        subprocess.run([*command, f"-DoutputDirectory={fetched}"], check=True)
        fetched.rename(folder)


class ConnectWorker:
    """A distributed worker. Its process is ended by its id, its folder is deleted."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        packages: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        java_options: Sequence[str] = QUICK_START,
    ) -> None:
        self._java_options = java_options
        self._folder = Path(tempfile.mkdtemp(prefix="kstreams-connect-"))
        [port] = free_ports(1)
        self._url = f"http://127.0.0.1:{port}"
        self._packages = packages
        replication = {f"{kind}.storage.replication.factor": 1 for kind in ("offset", "config", "status")}
        converters = {f"{part}.converter": JSON_CONVERTER for part in ("key", "value")}
        self._settings: dict[str, object] = {
            "bootstrap.servers": bootstrap_servers,
            "listeners": self._url,
            "plugin.discovery": "service_load",
            "group.id": "connect",
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": 5,
            "config.storage.topic": "connect-configs",
            "status.storage.topic": "connect-status",
            "status.storage.partitions": 1,
            "scheduled.rebalance.max.delay.ms": 0,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
            "offset.flush.interval.ms": 1_000,
            **replication,
            **converters,
            **{f"{name}.schemas.enable": "false" for name in converters},
            **(settings or {}),
        }
        self._process = subprocess.Popen[bytes](["true"])

    def __enter__(self) -> ConnectWorker:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the worker, also after `kill`, and wait until it answers."""
        plugins = self._folder / "plugins"
        plugins.mkdir(exist_ok=True)
        for package in self._packages:  # one folder, and so one class loader, for each
            link = plugins / package.split(":")[1]
            if not link.exists():
                link.symlink_to(jars([package]))
        if self._packages:
            self._settings["plugin.path"] = plugins
        log4j = self._folder / "log4j2.xml"
        log4j.write_text(LOG4J)
        properties = self._folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()))
        command = ["java", *self._java_options, "-Xshare:auto", f"-Dlog4j2.configurationFile={log4j}"]
        command += ["-cp", f"{jars(RUNTIME)}/*"]
        command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(properties)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait(lambda: self.request("/connectors") is not None, 120)

    @property
    def pid(self) -> int:
        """The id of the worker's process."""
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)  # lets the tasks commit their offsets
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def request(self, path: str, method: str = "GET", body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or "null")

    def put(self, name: str, config: Mapping[str, object]) -> None:
        """Create or change a connector."""
        self.request(f"/connectors/{name}/config", "PUT", {key: str(value) for key, value in config.items()})

    def wait_running(self, name: str, seconds: float = 90) -> None:
        """Wait until the connector and its tasks run. A failed one raises with its trace."""

        def runs() -> bool:
            status = self.request(f"/connectors/{name}/status")
            parts = [status["connector"], *status["tasks"]]
            failed = [part["trace"] for part in parts if part["state"] == "FAILED"]
            if failed:
                raise RuntimeError(failed[0])
            # The type is unknown until the worker has read its configuration: the states are those of a killed worker.
            return (
                status["type"] != "unknown"
                and bool(status["tasks"])
                and all(part["state"] == "RUNNING" for part in parts)
            )

        self._wait(runs, seconds)

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def _wait(self, is_done: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if is_done():
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass  # it does not listen yet, or answers 404 or 409 while it rebalances
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Connect is not ready:\n{self.log()[-3000:]}")
            time.sleep(0.1)
