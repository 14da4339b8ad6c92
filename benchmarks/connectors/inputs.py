"""The inputs of the measurements: files, topics and tables of many trades."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from benchmarks.connectors.trades import COLUMNS, PARTITIONS, Trade, trades
from kstreams.connectors.columns import ValueColumns
from kstreams.log import Log
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.serdes import serde_of

BATCH = 20_000
_SELECT = (
    "SELECT n, 'S' || n % 50, n * 0.25, n % 1000, timestamptz '2023-11-14 22:13:20+00' + n * interval '1 ms' "
    "FROM generate_series({first}, {last}) AS n"
)


def write_files(csv: Path, arrow: Path, rows: int) -> None:
    """Write the rows as CSV with a header, and as an Arrow file, which is read without work."""
    batches = [
        pa.RecordBatch.from_struct_array(trades(first, min(BATCH, rows - first), rows))
        for first in range(0, rows, BATCH)
    ]
    table = pa.Table.from_batches(batches)
    pyarrow.csv.write_csv(table, csv)
    with pa.OSFile(str(arrow), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_changes(csv: Path, rows: int) -> None:
    """Write rows of which half change an earlier one, as CSV with a header."""
    pyarrow.csv.write_csv(pa.Table.from_struct_array(trades(0, rows, max(1, rows // 2))), csv)


def fill_topic(log: Log, topic: str, rows: int) -> int:
    """Write a topic of JSON values with the id as key. Half of the ids come twice. Return the bytes of all values."""
    values = ValueColumns(serde_of(Trade))
    size = 0
    with log.admin() as admin, log.producer() as producer:
        admin.create_topic(topic, PARTITIONS)
        for first in range(0, rows, BATCH):
            batch = trades(first, min(BATCH, rows - first), max(1, rows // 2))
            encoded = values.encode(batch)
            size += pc.sum(pc.binary_length(encoded)).as_py()
            keys = batch.field("id").cast(pa.string()).cast(pa.binary())
            times = pc.cast(batch.field("at").cast(pa.timestamp("ms", "UTC")), pa.int64())
            partitions = partitions_of(keys, PARTITIONS)
            for part, _ in split_by_partition(topic, partitions, keys, encoded, times, None):
                producer.send_batch(part)
        producer.flush()
    return size


def fill_table(database: psycopg.Connection, table: str, rows: int) -> None:
    """Create a table of rows."""
    execute(database, f"CREATE TABLE {table} ({COLUMNS})")
    execute(database, f"INSERT INTO {table} {_SELECT.format(first=1, last=rows)}")
    execute(database, f"CREATE INDEX ON {table} (at, id)")
    execute(database, f"ANALYZE {table}")


def change_table(database: psycopg.Connection, table: str, changes: int, in_transaction: int = 10_000) -> None:
    """Insert half as many rows, and update each of them."""
    count = changes // 2
    for first in range(1, count + 1, in_transaction):
        last = min(first + in_transaction - 1, count)
        execute(database, f"INSERT INTO {table} {_SELECT.format(first=first, last=last)}")
    for first in range(1, count + 1, in_transaction):
        last = min(first + in_transaction - 1, count)
        execute(database, f"UPDATE {table} SET price = price + 0.5 WHERE id BETWEEN {first} AND {last}")


def execute(database: psycopg.Connection, statement: str) -> None:
    database.execute(statement.encode())
