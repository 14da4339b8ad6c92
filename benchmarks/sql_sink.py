"""Rows into Postgres by `ks.sinks.postgres`, beside COPY by hand: a temporary table, then INSERT ... ON CONFLICT.

By hand, the text for COPY is made before the clock starts ("of texts"), or row by row by psycopg's `write_row`. Half of
the rows are new, half change a row. Needs a PostgreSQL server: see tests/support/postgres.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

import kstreams as ks
from kstreams.connectors.api import Sink, SinkBatch, SinkTask
from tests.support.postgres import Postgres

ROWS = 400_000
BATCH = 20_000
KEYS = 200_000
VALUE = pa.struct([("amount", pa.float64()), ("count", pa.int64()), ("page", pa.string())])
_CREATE = 'CREATE TABLE {} (id text PRIMARY KEY, amount float8, "count" int8, page text)'
_STAGE = "CREATE TEMPORARY TABLE staged AS SELECT * FROM by_hand WITH NO DATA"
_MERGE = (
    "INSERT INTO by_hand SELECT * FROM staged ON CONFLICT (id) DO UPDATE SET "
    'amount = excluded.amount, "count" = excluded."count", page = excluded.page'
)


def run() -> dict[str, float]:
    """Rows a second. The plain loop is COPY by hand of texts that exist."""
    figures: dict[str, float] = {}
    with Postgres() as server:
        figures["upsert: plain loop"] = _by_hand(server.url, _copy_texts)
        figures["upsert: by hand, psycopg's write_row"] = _by_hand(server.url, _copy_rows)
        figures["upsert: ks.sinks.postgres"] = _by_sink(
            server.url, ks.sinks.postgres(server.url, "prices", upsert="id")
        )
        figures["insert: ks.sinks.postgres"] = _by_sink(server.url, ks.sinks.postgres(server.url, "log"), "log")
    return figures


def _rows(start: int) -> list[tuple[str, float, int, str]]:
    return [
        (f"k{number % KEYS}", number % 100 + 0.5, number, f"/page/{number % 77}")
        for number in range(start, start + BATCH)
    ]


def _text(rows: list[tuple[str, float, int, str]]) -> bytes:
    return "".join(f"{key}\t{amount}\t{count}\t{page}\n" for key, amount, count, page in rows).encode()


def _copy_texts(copy: Any, batch: Any) -> None:
    copy.write(batch)


def _copy_rows(copy: Any, batch: Any) -> None:
    for row in batch:
        copy.write_row(row)


def _by_hand(url: str, write: Callable[[Any, Any], None]) -> float:
    batches: list[Any] = [_rows(start) for start in range(0, ROWS, BATCH)]
    if write is _copy_texts:
        batches = [_text(rows) for rows in batches]
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS by_hand")
        connection.execute(_CREATE.format("by_hand"))
        connection.execute(_STAGE)
        connection.commit()
        began = perf_counter()
        for batch in batches:
            connection.execute("TRUNCATE staged")
            with connection.cursor() as cursor, cursor.copy("COPY staged FROM STDIN") as copy:
                write(copy, batch)
            connection.execute(_MERGE)
            connection.commit()
        return ROWS / (perf_counter() - began)


def _batches() -> Iterator[SinkBatch]:
    for start in range(0, ROWS, BATCH):
        keys, amounts, counts, pages = zip(*_rows(start), strict=True)
        values = pa.StructArray.from_arrays([pa.array(amounts), pa.array(counts), pa.array(pages)], fields=list(VALUE))
        offsets = np.arange(start, start + BATCH, dtype=np.int64)
        yield SinkBatch(0, offsets, pa.array(keys), values, pa.array(offsets))


def _by_sink(url: str, sink: Sink, connector: str = "prices") -> float:
    batches = list(_batches())
    with psycopg.connect(url) as connection:
        connection.execute(_CREATE.format("prices") if connector == "prices" else "SELECT 1")
    writer = sink.open(SinkTask(connector, "prices", 0, VALUE))
    began = perf_counter()
    for batch in batches:
        writer.write(batch)
        assert not writer.flush()
        writer.commit(int(batch.offsets[-1]) + 1)
    rate = ROWS / (perf_counter() - began)
    writer.close()
    return rate
