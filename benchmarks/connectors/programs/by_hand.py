"""What a good engineer writes by hand, without a framework: a loop for each work, and ceilings that do a part of it.

`BENCH` is a JSON object: `work`, and what it needs. No loop remembers where it was, so none survives a crash.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.connectors.programs.begun import begun
from benchmarks.connectors.trades import COLUMNS, PARTITIONS, Trade

BLOCK_ROWS = 50_000
ROWS_OF_CSV = pa.schema(
    {
        "id": pa.int64(),
        "symbol": pa.string(),
        "price": pa.float64(),
        "quantity": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
    }
)
MERGE = (
    "INSERT INTO {table} SELECT DISTINCT ON (id) id, symbol, price, quantity, at FROM staged ORDER BY id, n DESC "
    "ON CONFLICT (id) DO UPDATE SET symbol = excluded.symbol, price = excluded.price, quantity = excluded.quantity, "
    "at = excluded.at"
)
DATA = ord("w")
INSERT = ord("I")
UPDATE = ord("U")
COMMIT = ord("C")

Bench = dict[str, Any]


def csv_to_kafka(bench: Bench) -> None:
    produce(bench, (row for batch in csv_batches(bench["csv"]) for row in batch.to_pylist()))


def csv_to_embedded_log(bench: Bench) -> None:
    from kstreams.log import open_log

    encode = msgspec.json.Encoder().encode
    with open_log(bench["home"]) as log, log.producer() as producer:
        for batch in csv_batches(bench["csv"]):
            for row in batch.to_pylist():
                producer.send(bench["topic"], b"%d" % row["id"], encode(row))
        producer.flush()


def csv_read(bench: Bench) -> None:
    for _ in csv_batches(bench["csv"]):
        pass


def csv_batches(path: str) -> Iterator[pa.RecordBatch]:
    options = pyarrow.csv.ConvertOptions(column_types=ROWS_OF_CSV)
    yield from pyarrow.csv.open_csv(path, pyarrow.csv.ReadOptions(block_size=4 << 20), convert_options=options)


def produce(bench: Bench, rows: Iterable[dict[str, Any]]) -> None:
    settings = {"linger.ms": 20, "compression.type": "lz4", "queue.buffering.max.messages": 1_000_000}
    producer = Producer({"bootstrap.servers": bench["bootstrap"], **settings})
    topic = bench["topic"]
    encode = msgspec.json.Encoder().encode
    for row in rows:
        value, key = encode(row), b"%d" % row["id"]
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()


def kafka_batches(bench: Bench) -> Iterator[list[Trade]]:
    settings = {"group.id": bench["id"], "enable.auto.commit": False, "queued.min.messages": 200_000}
    consumer = Consumer({"bootstrap.servers": bench["bootstrap"], "fetch.queue.backoff.ms": 5, **settings})
    consumer.assign([TopicPartition(bench["topic"], number, 0) for number in range(PARTITIONS)])
    decode = msgspec.json.Decoder(Trade).decode
    rows: list[Trade] = []
    remaining = bench["rows"]
    while remaining:
        messages = consumer.consume(10_000, 0.5)
        rows += [decode(message.value()) for message in messages]
        remaining -= len(messages)
        if len(rows) >= BLOCK_ROWS or not remaining:
            yield rows
            rows = []
    consumer.close()


def table_of(rows: list[Trade]) -> pa.Table:
    columns = [[getattr(row, name) for row in rows] for name in ROWS_OF_CSV.names]
    return pa.table(columns, schema=ROWS_OF_CSV)


def kafka_to_parquet(bench: Bench) -> None:
    with pyarrow.parquet.ParquetWriter(f"{bench['folder']}/x.parquet", ROWS_OF_CSV, compression="zstd") as writer:
        for rows in kafka_batches(bench):
            writer.write_table(table_of(rows))


def parquet_write(bench: Bench) -> None:
    with pa.memory_map(bench["arrow"]) as file:
        table = pa.ipc.open_file(file).read_all()
        pyarrow.parquet.write_table(table, f"{bench['folder']}/x.parquet", compression="zstd")


def kafka_to_postgres(bench: Bench) -> None:
    merge_blocks(bench, (csv_of(table_of(rows)) for rows in kafka_batches(bench)))


def csv_of(table: pa.Table) -> bytes:
    text = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, text, pyarrow.csv.WriteOptions(include_header=False))
    content: bytes = text.getvalue().to_pybytes()
    return content


def texts_to_postgres(bench: Bench) -> None:
    merge_blocks(bench, line_blocks(bench["csv"]))


def line_blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.readline()
        while lines := file.readlines(3 << 20):
            yield b"".join(lines)


def merge_blocks(bench: Bench, blocks: Iterable[bytes]) -> None:
    """Let a database take blocks of CSV: each into a temporary table, whose rows then change those of the target."""
    table = bench["table"]
    with psycopg.connect(bench["url"]) as database:
        database.execute(f"CREATE TABLE {table} ({COLUMNS})")
        database.execute(f"CREATE TEMPORARY TABLE staged ({COLUMNS.replace(' PRIMARY KEY', '')}, n serial)")
        for block in blocks:
            database.execute("TRUNCATE staged")
            copy_in = "COPY staged (id, symbol, price, quantity, at) FROM STDIN (FORMAT csv)"
            with database.cursor() as cursor, cursor.copy(copy_in) as copy:
                copy.write(block)
            database.execute(MERGE.format(table=table))
            database.commit()


def postgres_to_kafka(bench: Bench) -> None:
    options = pyarrow.csv.ReadOptions(column_names=ROWS_OF_CSV.names)
    types = pyarrow.csv.ConvertOptions(column_types=ROWS_OF_CSV)

    def rows() -> Iterator[dict[str, Any]]:
        for block in copied_blocks(bench):
            yield from pyarrow.csv.read_csv(pa.BufferReader(block), options, convert_options=types).to_pylist()

    produce(bench, rows())


def postgres_read(bench: Bench) -> None:
    for _ in copied_blocks(bench):
        pass


def copied_blocks(bench: Bench) -> Iterator[bytes]:
    statement = f"COPY (SELECT * FROM {bench['table']} ORDER BY id) TO STDOUT (FORMAT csv)"
    with psycopg.connect(bench["url"]) as database, database.cursor() as cursor:
        database.execute("SET timezone = 'UTC'")
        lines: list[bytes] = []
        with cursor.copy(statement) as copy:
            for line in copy:
                lines.append(bytes(line))
                if len(lines) >= BLOCK_ROWS:
                    yield b"".join(lines)
                    lines = []
        if lines:
            yield b"".join(lines)


def sql_read(bench: Bench) -> None:
    """Read rows by a cursor as columns."""
    with psycopg.connect(bench["url"]) as database, database.cursor("rows") as cursor:
        cursor.itersize = 10_000
        cursor.execute(f"SELECT * FROM {bench['table']} ORDER BY id")
        while rows := cursor.fetchmany(10_000):
            for values in zip(*rows, strict=True):
                pa.array(values)


def changes_to_kafka(bench: Bench) -> None:
    produce(bench, map(changed_row, changes(bench)))


def changes_read(bench: Bench) -> None:
    for _ in changes(bench):
        pass


def changes(bench: Bench) -> Iterator[memoryview]:
    """Yield the messages of changed rows, until there are as many as there must be."""
    connection = psycopg.connect(bench["url"], replication="database", autocommit=True).pgconn
    slot = bench["slot"]
    options = f"(proto_version '1', publication_names '{slot}')"
    connection.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 {options}".encode())
    remaining = bench["rows"]
    while remaining:
        length, message = connection.get_copy_data(1)
        if length > 0:
            if message[0] == DATA and message[25] in (INSERT, UPDATE):
                remaining -= 1
                yield message
        else:
            select.select([connection.socket], [], [], 0.1)
            connection.consume_input()
    connection.finish()


def changed_row(message: memoryview) -> dict[str, Any]:
    """Parse the row after an insert, or after an update that does not change the key."""
    content = bytes(message)
    at = 33
    texts = []
    for _ in ROWS_OF_CSV:
        (length,) = struct.unpack_from(">I", content, at + 1)
        texts.append(content[at + 5 : at + 5 + length].decode())
        at += 5 + length
    number, symbol, price, quantity, time = texts
    return {"id": int(number), "symbol": symbol, "price": float(price), "quantity": int(quantity), "at": time}


WORKS: dict[str, Callable[[Bench], None]] = {
    function.__name__.replace("_", " "): function
    for function in (
        csv_to_kafka,
        csv_to_embedded_log,
        csv_read,
        kafka_to_parquet,
        parquet_write,
        kafka_to_postgres,
        texts_to_postgres,
        postgres_to_kafka,
        postgres_read,
        sql_read,
        changes_to_kafka,
        changes_read,
    )
}

if __name__ == "__main__":
    bench = begun()
    WORKS[bench["work"]](bench)
