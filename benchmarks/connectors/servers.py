"""`Servers`: a Kafka broker, a PostgreSQL server and a Connect worker with Debezium, with the inputs of all cases."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path

import psycopg

from benchmarks.connectors.inputs import change_table, execute, fill_table, fill_topic, write_changes, write_files
from benchmarks.connectors.measure import Spent, spent_by
from benchmarks.connectors.trades import COLUMNS, PARTITIONS
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from tests.support.debezium import PACKAGE
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_connect import ConnectWorker
from tests.support.postgres import Postgres

_LONGEST_WAIT_S = 120
_POLL_S = 0.05


class Servers:
    """Everything that runs during the measurements.

    Parameters
    ----------
    resources : ExitStack
        Ends it.
    """

    def __init__(self, resources: ExitStack) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kstreams_connectors_"))  # Quix allows no hyphens
        resources.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.postgres = resources.enter_context(Postgres({"shared_buffers": "256MB", "max_wal_size": "4GB"}))
        self.database = resources.enter_context(psycopg.connect(self.postgres.url, autocommit=True))
        self.kafka = resources.enter_context(KafkaCluster())
        fast = ["-Xmx1g", "-XX:+UseG1GC"]
        worker = ConnectWorker(self.kafka.bootstrap_servers, packages=[PACKAGE], java_options=fast)
        self.connect = resources.enter_context(worker)
        self.log = resources.enter_context(closing(open_log(self.kafka_home)))
        self._admin = resources.enter_context(self.log.admin())
        self._numbers = count(1)
        self._sizes: dict[int, int] = {}

    @property
    def kafka_home(self) -> str:
        return f"kafka:{self.kafka.bootstrap_servers}"

    def fill(self, counts: set[int]) -> None:
        """Write the inputs of as many rows as the cases need."""
        for rows in sorted(counts):
            print(f"writes inputs of {rows:,} rows", flush=True)
            write_files(self.csv(rows), self.arrow(rows), rows)
            write_changes(self.changed_csv(rows), rows)
            fill_table(self.database, self.table(rows), rows)
            self._sizes[rows] = fill_topic(self.log, self.topic(rows), rows)
            with open_log(self.embedded_log(rows)) as log:
                fill_topic(log, self.topic(rows), rows)

    def csv(self, rows: int) -> Path:
        return self.folder / f"trades-{rows}.csv"

    def changed_csv(self, rows: int) -> Path:
        """The rows of the topic: half of the ids come twice."""
        return self.folder / f"changes-{rows}.csv"

    def arrow(self, rows: int) -> Path:
        return self.folder / f"trades-{rows}.arrow"

    def embedded_log(self, rows: int) -> Path:
        return self.folder / f"log-{rows}"

    def topic(self, rows: int) -> str:
        return f"trades-{rows}"

    def table(self, rows: int) -> str:
        return f"trades_{rows}"

    def new_name(self) -> str:
        """Return a name that nothing has: of a run, a topic, a table or a slot."""
        return f"bench_{next(self._numbers)}"

    def new_folder(self) -> Path:
        folder = self.folder / self.new_name()
        folder.mkdir()
        return folder

    def create_topic(self, name: str, partitions: int = PARTITIONS) -> None:
        self._admin.create_topic(name, partitions)

    def delete_topic(self, name: str) -> None:
        with suppress(Exception):
            self._admin.delete_topic(name)

    def records(self, topic: str, partitions: int = PARTITIONS) -> int:
        """Return the number of records of a topic. Marks of transactions count."""
        sources = [TopicPartition(topic, number) for number in range(partitions)]
        return sum(self._admin.end_offsets(sources).values())

    def text_size(self, rows: int) -> int:
        """Return the bytes of the values of a topic, each with a newline."""
        return self._sizes[rows] + rows

    def changed_table(self, changes: int) -> str:
        """Return a new table whose changes a new slot with the same name has, as has a publication."""
        name = self.new_name()
        execute(self.database, f"CREATE TABLE {name} ({COLUMNS})")
        execute(self.database, f"CREATE PUBLICATION {name} FOR TABLE {name} WITH (publish_via_partition_root = true)")
        execute(self.database, f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        change_table(self.database, name, changes)
        return name

    def table_rows(self, table: str) -> int:
        return int(self.database.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0][0])

    def drop_table(self, table: str) -> None:
        execute(self.database, f"DROP TABLE {table}")

    def drop_replication(self, name: str) -> None:
        """Drop a slot and a publication, which may not exist."""
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while time.monotonic() < deadline:
            try:
                execute(
                    self.database,
                    f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{name}'",
                )
                break
            except psycopg.errors.ObjectInUse:  # its reader has just ended
                time.sleep(_POLL_S)
        execute(self.database, f"DROP PUBLICATION IF EXISTS {name}")

    def run_connector(self, config: Mapping[str, object], is_done: Callable[[], bool]) -> Spent:
        """Run a connector of Kafka Connect until something holds."""
        name = self.new_name()
        spent: list[Spent] = []
        with spent_by(self.connect.pid, spent):
            self.connect.put(name, {"tasks.max": 1, **config})
            self._await(name, is_done)
        self.connect.request(f"/connectors/{name}", "DELETE")
        return spent[0]

    def _await(self, connector: str, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while not is_done():
            if time.monotonic() > deadline:
                status = self.connect.request(f"/connectors/{connector}/status")
                raise RuntimeError(f"Connect does not come to the end: {status}")
            time.sleep(_POLL_S)
