"""`Cases`: which system does which work, with how many rows and which guarantee."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.connectors.measure import Case, Spent
from benchmarks.connectors.servers import Servers
from benchmarks.connectors.systems import ByHand, Connect, Kstreams, OtherPython, check, parquet_rows

CSV = "CSV to topic"
PARQUET = "topic to Parquet"
FILES = "topic to other files"
UPSERT = "topic to Postgres, upsert"
INSERT = "topic to Postgres, insert"
SNAPSHOT = "Postgres snapshot to topic"
QUERIES = "Postgres by queries to topic"
CHANGES = "Postgres changes to topic"

ONCE = "exactly once"
AT_LEAST = "at least once"
NONE = "none"
PART = "a part of the work"


class Cases:
    """All measurements.

    Parameters
    ----------
    servers : Servers
    quix, bytewax : Path
        The interpreters of their virtual environments.
    scale : float
        Multiplies the numbers of rows.
    """

    def __init__(self, servers: Servers, quix: Path, bytewax: Path, scale: float) -> None:
        self._servers = servers
        self._many = int(500_000 * scale)
        self._some = int(250_000 * scale)
        self._few = int(80_000 * scale)
        self._embedded = Kstreams(servers)
        self._on_kafka = Kstreams(servers, on_kafka=True)
        self._application = Kstreams(servers, in_application=True)
        self._connect = Connect(servers)
        self._quix = OtherPython(servers, quix, "quix.py")
        self._bytewax = OtherPython(servers, bytewax, "bytewax_flow.py")

    def all(self) -> Iterator[Case]:
        """Yield them, work by work."""
        yield from self._csv()
        yield from self._parquet()
        yield from self._files()
        yield from self._upsert()
        yield from self._insert()
        yield from self._snapshot()
        yield from self._queries()
        yield from self._changes()

    def _csv(self) -> Iterator[Case]:
        def ours(system: Kstreams) -> Callable[[int], Spent]:
            return lambda rows: system.fill_topic("csv", rows, csv=self._servers.csv(rows))

        def by_hand(rows: int) -> Spent:
            return ByHand(self._servers, "csv to kafka").run_into_topic(rows, csv=self._servers.csv(rows))

        def by_hand_embedded(rows: int) -> Spent:
            loop = ByHand(self._servers, "csv to embedded log")
            return loop.run_into_embedded_log(rows, csv=self._servers.csv(rows))

        def read(rows: int) -> Spent:
            return ByHand(self._servers, "csv read").run(rows, csv=self._servers.csv(rows))

        def other(system: OtherPython) -> Callable[[int], Spent]:
            return lambda rows: system.run_into_topic(rows, work="csv", csv=self._servers.csv(rows))

        yield Case(CSV, "kstreams, embedded log", ONCE, self._many, ours(self._embedded))
        yield Case(CSV, "kstreams run, embedded log, a task reads the topic", ONCE, self._many, ours(self._application))
        yield Case(CSV, "kstreams, Kafka", ONCE, self._many, ours(self._on_kafka))
        yield Case(CSV, "by hand: pyarrow.csv, confluent-kafka", NONE, self._some, by_hand, is_reference=True)
        yield Case(CSV, "by hand: pyarrow.csv, embedded log", NONE, self._some, by_hand_embedded)
        yield Case(CSV, "Kafka Connect: FileStreamSource, lines", AT_LEAST, self._many, self._connect.read_lines)
        yield Case(CSV, "Quix: CSVSource, texts", NONE, self._few, other(self._quix))
        yield Case(CSV, "Bytewax: CSVSource, texts", NONE, self._few, other(self._bytewax))
        yield Case(CSV, "pyarrow.csv reads only", PART, self._many, read)

    def _parquet(self) -> Iterator[Case]:
        def by_hand(rows: int) -> Spent:
            return ByHand(self._servers, "kafka to parquet").run(rows)

        def write(rows: int) -> Spent:
            return ByHand(self._servers, "parquet write").run(rows, arrow=self._servers.arrow(rows))

        def quix(rows: int) -> Spent:
            folder = self._servers.new_folder()
            spent = self._quix.run(rows, work="parquet", folder=folder)
            check(parquet_rows(folder), rows)
            return spent

        def bytewax(rows: int) -> Spent:
            folder = self._servers.new_folder()
            spent = self._bytewax.run(rows, work="lines", folder=folder)
            check((folder / "lines").stat().st_size, self._servers.text_size(rows))
            return spent

        yield Case(PARQUET, "kstreams, embedded log", ONCE, self._many, self._to_files(self._embedded))
        yield Case(
            PARQUET,
            "kstreams run, embedded log, through a task",
            ONCE,
            self._many,
            self._to_files(self._application),
        )
        yield Case(PARQUET, "kstreams, Kafka", ONCE, self._many, self._to_files(self._on_kafka))
        yield Case(PARQUET, "by hand: confluent-kafka, pyarrow.parquet", NONE, self._some, by_hand, is_reference=True)
        yield Case(PARQUET, "Kafka Connect: FileStreamSink, lines", AT_LEAST, self._many, self._connect.write_lines)
        yield Case(PARQUET, "Quix: LocalFileSink, Parquet", AT_LEAST, self._few, quix)
        yield Case(PARQUET, "Bytewax: FileSink, lines", NONE, self._few, bytewax)
        yield Case(PARQUET, "pyarrow.parquet writes only", PART, self._many, write)

    def _to_files(
        self, system: Kstreams, work: str = "files", format: str = "parquet", **settings: object
    ) -> Callable[[int], Spent]:
        def run(rows: int) -> Spent:
            folder = self._servers.new_folder() / "out"
            spent = system.empty_topic(work, rows, folder=folder, format=format, **settings)
            if format == "parquet":
                check(parquet_rows(folder), rows)
            shutil.rmtree(folder)
            return spent

        return run

    def _files(self) -> Iterator[Case]:
        by_symbol = self._to_files(self._embedded, partition_by="symbol")
        json = self._to_files(self._embedded, format="json")
        delta = self._to_files(self._embedded, work="delta")
        yield Case(FILES, "kstreams, embedded log: Parquet in 50 folders", ONCE, self._some, by_symbol)
        yield Case(FILES, "kstreams, embedded log: JSON lines", ONCE, self._some, json)
        yield Case(FILES, "kstreams, embedded log: Delta", ONCE, self._some, delta)

    def _upsert(self) -> Iterator[Case]:
        def by_hand(rows: int) -> Spent:
            return self._checked(rows // 2, lambda table: self._to_table("kafka to postgres", rows, table))

        def texts(rows: int) -> Spent:
            return self._checked(rows // 2, lambda table: self._to_table("texts to postgres", rows, table))

        def quix(rows: int) -> Spent:
            port = self._servers.postgres.port
            run = self._quix.run
            return self._checked(rows // 2, lambda table: run(rows, work="upsert", port=port, table=table))

        yield Case(UPSERT, "kstreams, embedded log", ONCE, self._some, self._to_postgres(self._embedded, "upsert", 2))
        yield Case(
            UPSERT,
            "kstreams run, embedded log, through a task",
            ONCE,
            self._some,
            self._to_postgres(self._application, "upsert", 2),
        )
        yield Case(UPSERT, "kstreams, Kafka", ONCE, self._some, self._to_postgres(self._on_kafka, "upsert", 2))
        yield Case(UPSERT, "by hand: confluent-kafka, COPY, ON CONFLICT", NONE, self._some, by_hand, is_reference=True)
        yield Case(UPSERT, "Quix: PostgreSQLSink", AT_LEAST, self._few, quix)
        yield Case(UPSERT, "COPY of texts that exist, ON CONFLICT", PART, self._some, texts)

    def _insert(self) -> Iterator[Case]:
        yield Case(INSERT, "kstreams, embedded log", ONCE, self._some, self._to_postgres(self._embedded, "insert", 1))

    def _to_postgres(self, system: Kstreams, work: str, changes_of_a_row: int) -> Callable[[int], Spent]:
        url = self._servers.postgres.url

        def run(rows: int) -> Spent:
            return self._checked(
                rows // changes_of_a_row, lambda table: system.empty_topic(work, rows, url=url, table=table)
            )

        return run

    def _to_table(self, work: str, rows: int, table: str) -> Spent:
        texts = self._servers.changed_csv(rows)
        return ByHand(self._servers, work).run(rows, url=self._servers.postgres.url, table=table, csv=texts)

    def _checked(self, rows: int, run: Callable[[str], Spent]) -> Spent:
        """Let a system fill a new table, and count its rows."""
        table = self._servers.new_name()
        spent = run(table)
        check(self._servers.table_rows(table), rows)
        self._servers.drop_table(table)
        return spent

    def _snapshot(self) -> Iterator[Case]:
        def ours(system: Kstreams) -> Callable[[int], Spent]:
            def run(rows: int) -> Spent:
                slot = self._servers.new_name()
                spent = self._from_postgres(system, "snapshot", rows, slot)
                self._servers.drop_replication(slot)
                return spent

            return run

        def by_hand(rows: int) -> Spent:
            return ByHand(self._servers, "postgres to kafka").run_into_topic(rows, **self._table(rows))

        def read(rows: int) -> Spent:
            return ByHand(self._servers, "postgres read").run(rows, **self._table(rows))

        yield Case(SNAPSHOT, "kstreams, embedded log", ONCE, self._some, ours(self._embedded))
        yield Case(SNAPSHOT, "kstreams run, embedded log", ONCE, self._some, ours(self._application))
        yield Case(SNAPSHOT, "kstreams, Kafka", ONCE, self._some, ours(self._on_kafka))
        yield Case(SNAPSHOT, "by hand: COPY, confluent-kafka", NONE, self._some, by_hand, is_reference=True)
        yield Case(SNAPSHOT, "Debezium in Kafka Connect", AT_LEAST, self._few, self._connect.snapshot)
        yield Case(SNAPSHOT, "COPY reads only", PART, self._some, read)

    def _queries(self) -> Iterator[Case]:
        def ours(work: str) -> Callable[[int], Spent]:
            return lambda rows: self._from_postgres(self._embedded, work, rows, "")

        def read(rows: int) -> Spent:
            return ByHand(self._servers, "sql read").run(rows, **self._table(rows))

        yield Case(QUERIES, "kstreams, embedded log: incrementing", ONCE, self._some, ours("sql incrementing"))
        yield Case(QUERIES, "kstreams, embedded log: timestamp+incrementing", ONCE, self._some, ours("sql timestamp"))
        yield Case(QUERIES, "a cursor reads columns only", PART, self._some, read)

    def _from_postgres(self, system: Kstreams, work: str, rows: int, slot: str) -> Spent:
        return system.fill_topic(work, rows, slot=slot, **self._table(rows))

    def _table(self, rows: int) -> dict[str, str]:
        return {"url": self._servers.postgres.url, "table": self._servers.table(rows)}

    def _changes(self) -> Iterator[Case]:
        url = self._servers.postgres.url

        def ours(system: Kstreams) -> Callable[[int], Spent]:
            return self._changed(
                lambda rows, table: system.fill_topic("changes", rows, url=url, table=table, slot=table)
            )

        def hand(rows: int, table: str) -> Spent:
            return ByHand(self._servers, "changes to kafka").run_into_topic(rows, url=url, slot=table)

        def read(rows: int, table: str) -> Spent:
            return ByHand(self._servers, "changes read").run(rows, url=url, slot=table)

        yield Case(CHANGES, "kstreams, embedded log", ONCE, self._some, ours(self._embedded))
        yield Case(CHANGES, "kstreams run, embedded log", ONCE, self._some, ours(self._application))
        yield Case(CHANGES, "kstreams, Kafka", ONCE, self._some, ours(self._on_kafka))
        yield Case(
            CHANGES, "by hand: pgoutput, confluent-kafka", NONE, self._some, self._changed(hand), is_reference=True
        )
        yield Case(CHANGES, "Debezium in Kafka Connect", AT_LEAST, self._few, self._changed(self._connect.changes))
        yield Case(CHANGES, "a loop reads pgoutput only", PART, self._some, self._changed(read))

    def _changed(self, read: Callable[[int, str], Spent]) -> Callable[[int], Spent]:
        """Return a run that makes the changes of a new table before the clock starts."""

        def run(rows: int) -> Spent:
            table = self._servers.changed_table(rows)
            spent = read(rows, table)
            self._servers.drop_replication(table)
            self._servers.drop_table(table)
            return spent

        return run
