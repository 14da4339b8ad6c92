"""The systems: how each moves rows between a topic and files or PostgreSQL, in a process of its own."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.dataset

from benchmarks.connectors.measure import Spent, run_program
from benchmarks.connectors.servers import Servers
from benchmarks.connectors.trades import PARTITIONS
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log

PROGRAMS = Path(__file__).with_name("programs")
ROOT = Path(__file__).parents[2]
CLASS = "org.apache.kafka.connect.{}"
TEXTS = {f"{part}.converter": "org.apache.kafka.connect.storage.StringConverter" for part in ("key", "value")}
DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"

Settings = Mapping[str, object]


def check(actual: int, expected: int) -> None:
    """Raise an error if there are fewer rows than there must be."""
    if actual < expected:
        raise RuntimeError(f"only {actual:,} of {expected:,} rows have arrived")


class Program:
    """A program that finds in `BENCH` what to do.

    Parameters
    ----------
    servers : Servers
    command : list
    """

    def __init__(self, servers: Servers, command: list[str | Path]) -> None:
        self._servers = servers
        self._command = command

    def run(self, **bench: object) -> Spent:
        """Run it once."""
        folder = self._servers.folder
        settings = json.dumps({**bench, "begun": folder / "begun"}, default=str)
        environment = {"BENCH": settings, "PYTHONPATH": str(ROOT)}
        return run_program(self._command, environment, log=folder / "program.log", begun=folder / "begun")


class Kstreams:
    """This package: a connector with a topic of an embedded log or of Kafka, alone or in an application.

    Parameters
    ----------
    servers : Servers
    on_kafka : bool
    in_application : bool
        True for `kstreams run app.py --until-end`, where a task is between the topic and the sink.
    """

    def __init__(self, servers: Servers, *, on_kafka: bool = False, in_application: bool = False) -> None:
        self._servers = servers
        self._on_kafka = on_kafka
        self._in_application = in_application

    def fill_topic(self, work: str, rows: int, **bench: object) -> Spent:
        """Let a source fill a new topic."""
        topic = self._servers.new_name()
        folder = self._servers.new_folder()
        home = self._servers.kafka_home if self._on_kafka else str(folder / "log")
        with open_log(home) as log, log.admin() as admin:
            admin.create_topic(topic, PARTITIONS)
        spent = self._run(folder, home, work=work, topic=topic, **bench)
        with open_log(home) as log, log.admin() as admin:
            sources = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            check(sum(admin.end_offsets(sources).values()), rows)
        if self._on_kafka:
            self._servers.delete_topic(topic)
        shutil.rmtree(folder)
        return spent

    def empty_topic(self, work: str, rows: int, **bench: object) -> Spent:
        """Let a sink read a topic."""
        run_folder = self._servers.new_folder()
        home = self._servers.kafka_home
        if not self._on_kafka:
            shutil.copytree(self._servers.embedded_log(rows), run_folder / "log")
            home = str(run_folder / "log")
        spent = self._run(run_folder, home, work=work, topic=self._servers.topic(rows), **bench)
        shutil.rmtree(run_folder)
        return spent

    def _run(self, run_folder: Path, home: str, **bench: object) -> Spent:
        name = run_folder.name
        command: list[str | Path] = [sys.executable, PROGRAMS / "kstreams_connector.py"]
        if self._in_application:
            command = [sys.executable, "-m", "kstreams", "run", PROGRAMS / "kstreams_app.py", "--until-end"]
            command += ["--log-dir", home, "--state-dir", run_folder / "state", "-c", f"application.id={name}"]
            command += ["-c", "processing.guarantee=exactly_once_v2"]
        return Program(self._servers, command).run(home=home, id=name, **bench)


class ByHand:
    """A loop of pyarrow, psycopg and confluent-kafka.

    Parameters
    ----------
    servers : Servers
    work : str
        The function in by_hand.py.
    """

    def __init__(self, servers: Servers, work: str) -> None:
        self._servers = servers
        self._program = Program(servers, [sys.executable, PROGRAMS / "by_hand.py"])
        self._work = work

    def run(self, rows: int, **bench: object) -> Spent:
        """Run the loop."""
        folder = self._servers.new_folder()
        settings = {"bootstrap": self._servers.kafka.bootstrap_servers, "topic": self._servers.topic(rows), **bench}
        return self._program.run(work=self._work, rows=rows, id=folder.name, folder=folder, **settings)

    def run_into_topic(self, rows: int, **bench: object) -> Spent:
        """Run a loop that fills a new topic of Kafka."""
        return into_topic(self._servers, rows, lambda topic: self.run(rows, topic=topic, **bench))

    def run_into_embedded_log(self, rows: int, **bench: object) -> Spent:
        """Run a loop that fills a new topic of an embedded log."""
        folder = self._servers.new_folder()
        with open_log(folder / "log") as log, log.admin() as admin:
            admin.create_topic("trades", PARTITIONS)
        spent = self.run(rows, home=folder / "log", topic="trades", **bench)
        shutil.rmtree(folder)
        return spent


class OtherPython:
    """A program on Quix Streams or Bytewax, in a virtual environment of its own.

    Parameters
    ----------
    servers : Servers
    python : Path
        The interpreter.
    program : str
    """

    def __init__(self, servers: Servers, python: Path, program: str) -> None:
        self._servers = servers
        self._program = Program(servers, [python, PROGRAMS / program])

    def run(self, rows: int, **bench: object) -> Spent:
        """Run the program on the topic with so many rows."""
        folder = self._servers.new_folder()
        settings = {"topic": self._servers.topic(rows), "rows": rows, "folder": folder, "state": folder / "state"}
        return self._program.run(
            **{**settings, "bootstrap": self._servers.kafka.bootstrap_servers, "id": folder.name, **bench}
        )

    def run_into_topic(self, rows: int, **bench: object) -> Spent:
        """Run the program so that it fills a new topic."""
        return into_topic(self._servers, rows, lambda topic: self.run(rows, topic=topic, **bench))


class Connect:
    """Kafka Connect: its connectors for lines of files, and Debezium's for PostgreSQL.

    Parameters
    ----------
    servers : Servers
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def read_lines(self, rows: int) -> Spent:
        """Let the source of files fill a topic with lines."""
        source = {"connector.class": CLASS.format("file.FileStreamSourceConnector"), **TEXTS}
        file = self._servers.csv(rows)
        return into_topic(
            self._servers,
            rows,
            lambda topic: self._servers.run_connector(
                {**source, "file": file, "topic": topic}, lambda: self._servers.records(topic) >= rows
            ),
        )

    def write_lines(self, rows: int) -> Spent:
        """Let the sink of files write a topic as lines."""
        file = self._servers.new_folder() / "lines"
        size = self._servers.text_size(rows)
        sink = {"connector.class": CLASS.format("file.FileStreamSinkConnector"), **TEXTS, "file": file}
        spent = self._servers.run_connector(
            {**sink, "topics": self._servers.topic(rows), "consumer.override.auto.offset.reset": "earliest"},
            lambda: file.exists() and file.stat().st_size >= size,
        )
        file.unlink()
        return spent

    def snapshot(self, rows: int) -> Spent:
        """Let Debezium read a table."""
        name = self._servers.new_name()
        settings = {"snapshot.mode": "initial_only", "publication.autocreate.mode": "filtered"}
        return self._debezium(name, self._servers.table(rows), rows, settings)

    def changes(self, rows: int, table: str) -> Spent:
        """Let Debezium read the changes of a table."""
        settings = {"snapshot.mode": "no_data", "publication.autocreate.mode": "disabled"}
        return self._debezium(table, table, rows, settings)

    def _debezium(self, name: str, table: str, rows: int, settings: Settings) -> Spent:
        topic = f"{name}.public.{table}"
        self._servers.create_topic(topic)
        server = {
            "database.hostname": "127.0.0.1",
            "database.port": self._servers.postgres.port,
            "database.user": "postgres",
            "database.password": "postgres",
            "database.dbname": "postgres",
        }
        names = {"topic.prefix": name, "slot.name": name, "publication.name": name, "plugin.name": "pgoutput"}
        tables = {"connector.class": DEBEZIUM, "table.include.list": f"public.{table}", "poll.interval.ms": 50}
        spent = self._servers.run_connector(
            {**server, **names, **tables, **settings}, lambda: self._servers.records(topic) >= rows
        )
        self._servers.drop_replication(name)
        self._servers.delete_topic(topic)
        return spent


def into_topic(servers: Servers, rows: int, fill: Callable[[str], Spent]) -> Spent:
    """Create a topic of Kafka, and check that it has got the rows."""
    topic = servers.new_name()
    servers.create_topic(topic)
    spent = fill(topic)
    check(servers.records(topic), rows)
    servers.delete_topic(topic)
    return spent


def parquet_rows(folder: Path) -> int:
    """Return the rows of all Parquet files of a folder."""
    files = [str(file) for file in folder.rglob("*.parquet")]
    return int(pyarrow.dataset.dataset(files).count_rows()) if files else 0
