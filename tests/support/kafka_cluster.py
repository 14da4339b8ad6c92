"""A real Apache Kafka for tests: brokers on loopback, from the jars of Maven Central.

    with KafkaCluster() as cluster:
        open_log(f"kafka:{cluster.bootstrap_servers}")

`python -m tests.support.kafka_cluster` runs one until Ctrl-C. The jars are fetched once (`~/.cache/kstreams-kafka`).
"""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.support.tcp_proxy import TcpProxy

VERSION = "4.4.0"
CACHE = Path(os.environ.get("KSTREAMS_KAFKA_CACHE", Path.home() / ".cache" / "kstreams-kafka"))
ARTIFACTS = {
    "kafka_2.13": ("org.apache.kafka", VERSION),
    "log4j-slf4j-impl": ("org.apache.logging.log4j", "2.25.4"),
}
LOG4J = (
    '<Configuration><Appenders><Console name="out"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console></Appenders>'
    '<Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers></Configuration>'
)


def can_run() -> bool:
    """Whether this machine has what a broker needs: Java, and the jars or Maven to fetch them."""
    return shutil.which("java") is not None and ((CACHE / VERSION).exists() or shutil.which("mvn") is not None)


class KafkaCluster:
    """Brokers 1 to `nodes`, each a controller too. Processes are ended by their ids, the data is deleted.

    With `proxied`, clients reach them through `proxy`, which may lose what they answer. With `users`, names with their
    passwords, clients have to log in; with a `certificate`, a file with it and its private key, over TLS.
    """

    def __init__(
        self,
        nodes: int = 1,
        settings: Mapping[str, object] | None = None,
        *,
        proxied: bool = False,
        users: Mapping[str, str] | None = None,
        certificate: Path | None = None,
    ) -> None:
        self._settings, self._users = dict(settings or {}), dict(users or {})
        self._certificate = certificate
        self._folder = Path(tempfile.mkdtemp(prefix="kstreams-kafka-"))
        ports = free_ports(3 * nodes)
        self._ports = dict(enumerate(ports[:nodes], 1))
        self._controllers = dict(enumerate(ports[nodes : 2 * nodes], 1))
        self._further = dict(enumerate(ports[2 * nodes :], 1))  # of the proxy, or of who logs in
        self.proxy = TcpProxy(self._further.values() if proxied else ())
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._told_ports())

    def __enter__(self) -> KafkaCluster:
        try:
            self._format()
            for node in self._ports:
                self.start(node, wait=False)
            for node in self._ports:
                self._wait(node)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self, node: int = 1, *, wait: bool = True) -> None:
        """Start a broker, on the data that it has."""
        self._processes[node] = self._java(node, "kafka.Kafka", str(self._properties(node)))
        if wait:
            self._wait(node)

    def kill(self, node: int = 1) -> None:
        self._processes[node].kill()
        self._processes[node].wait()

    def process_id(self, node: int = 1) -> int:
        return self._processes[node].pid

    def shut_down(self, node: int = 1) -> None:
        """Stop a broker in order: it hands its partitions to others first."""
        self._processes[node].terminate()
        self._processes[node].wait()

    def pause(self, node: int = 1) -> None:
        self._processes[node].send_signal(signal.SIGSTOP)

    def go_on(self, node: int = 1) -> None:
        self._processes[node].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for node, process in self._processes.items():
            if process.poll() is None:
                self.kill(node)
        self.proxy.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _format(self) -> None:
        (self._folder / "log4j2.xml").write_text(LOG4J)
        cluster = _cluster_id()
        for node in self._ports:
            path = self._folder / f"{node}.properties"
            path.write_text("".join(f"{name}={value}\n" for name, value in self._node_settings(node).items()))
            command = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(path))
            if self._java(node, *command).wait():
                raise RuntimeError(f"The storage of broker {node} was not made:\n{self._output(node)}")

    def _properties(self, node: int) -> Path:
        return self._folder / f"{node}.properties"

    def _node_settings(self, node: int) -> dict[str, object]:
        copies = min(3, len(self._ports))
        return {
            "node.id": node,
            "process.roles": "broker,controller",
            **self._listeners(node),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,"
            f"LOGIN:{'SASL_PLAINTEXT' if self._certificate is None else 'SASL_SSL'}",
            "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{port}" for n, port in self._controllers.items()),
            "log.dirs": self._folder / f"data-{node}",
            "default.replication.factor": copies,
            "min.insync.replicas": max(1, copies - 1),
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 5,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": max(1, copies - 1),
            "transaction.state.log.num.partitions": 5,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": max(1, copies - 1),
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 100,
            "auto.create.topics.enable": "false",
            "log.retention.ms": -1,  # tests write event times of long ago
            **self._settings,
        }

    def _listeners(self, node: int) -> dict[str, str]:
        """Where a broker listens, and which of it clients are told."""
        listens = {"PLAINTEXT": self._ports[node], "CONTROLLER": self._controllers[node]}
        told = {"PLAINTEXT": self._ports[node]}
        if self.proxy.ports:
            listens["PROXIED"], told["PROXIED"] = self._further[node], self.proxy.ports[node - 1]
        if self._users:
            listens["LOGIN"] = told["LOGIN"] = self._further[node]
        return (
            self._logins()
            | self._encryption()
            | {
                name: ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in each.items())
                for name, each in (("listeners", listens), ("advertised.listeners", told))
            }
        )

    def _logins(self) -> dict[str, str]:
        users = " ".join(f'user_{name}="{password}"' for name, password in self._users.items())
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.login.plain.sasl.jaas.config": f"{module} {users};",
            }
            if self._users
            else {}
        )

    def _encryption(self) -> dict[str, str]:
        ssl = "listener.name.login.ssl."
        if self._certificate is None:
            return {}
        return {f"{ssl}keystore.type": "PEM", f"{ssl}keystore.location": str(self._certificate)}

    def _told_ports(self) -> list[int]:
        """The ports of which clients know."""
        return self.proxy.ports or list((self._further if self._users else self._ports).values())

    def _java(self, node: int, *arguments: str) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        command += [f"-Dlog4j2.configurationFile={self._folder / 'log4j2.xml'}", "-cp", f"{_jars()}/*", *arguments]
        with (self._folder / f"{node}.log").open("ab") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def _output(self, node: int) -> str:
        return (self._folder / f"{node}.log").read_text()[-3000:]

    def _wait(self, node: int, seconds: float = 120) -> None:
        """Wait until the broker serves; one that ends meanwhile is an error."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        quiet = {"log_level": 0, "bootstrap.servers": f"127.0.0.1:{self._ports[node]}"}
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (code := self._processes[node].poll()) is not None:
                raise RuntimeError(f"Broker {node} ended with {code}:\n{self._output(node)}")
            if _listens(self._ports[node]):
                with suppress(KafkaException):
                    if node in AdminClient(quiet).list_topics(timeout=5).brokers:
                        return
            time.sleep(0.1)
        raise TimeoutError(f"Broker {node} does not serve after {seconds} s:\n{self._output(node)}")


def _jars() -> Path:
    """The folder of the jars; Maven fetches them the first time, for one process while others wait."""
    folder = CACHE / VERSION
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for name, (group, version) in ARTIFACTS.items()
    )
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        project = Path(scratch, "pom.xml")
        project.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>kstreams</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>"
            f"<packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
        )
        jars = Path(scratch, "jars")
        command = ["mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        subprocess.run([*command, f"-DoutputDirectory={jars}"], check=True)
        jars.rename(folder)


def _cluster_id() -> str:
    """A random id. Kafka's storage tool takes a `-` at its beginning for an option."""
    return "k" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(nodes: int) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with KafkaCluster(nodes) as cluster:
        print(cluster.bootstrap_servers, flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
