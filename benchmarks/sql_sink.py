"""Rows into Postgres by `ks.sinks.postgres`, beside COPY by hand: a temporary table, then INSERT ... ON CONFLICT.

By hand, the text for COPY is made before the clock starts (the plain loop), or by psycopg's `write_row`. Half
of the rows are new, half change a row. Of three rounds, the best figures count. Needs a PostgreSQL server: see
tests/support/postgres.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

import kstreams as ks
from kstreams.connectors.api import Sink, SinkBatch, SinkTask
from tests.connectors.running import copy_in, copy_out, log_with_topics
from tests.connectors.systems import Numbered
from tests.support.postgres import Postgres

ROWS = 200_000
BATCH = 20_000
KEYS = 100_000
ROUNDS = 3
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
        for number in range(ROUNDS):
            for name, figure in _round(server.url, number).items():
                figures[name] = max(figure, figures.get(name, 0.0))
    return figures


def _round(url: str, number: int) -> dict[str, float]:
    """Measure everything once, in tables of its own."""
    upserts = ks.sinks.postgres(url, f"prices_{number}", upsert="id")
    inserts = ks.sinks.postgres(url, f"log_{number}")
    return {
        "upsert: plain loop": _by_hand(url, _copy_texts),
        "upsert: ks.sinks.postgres": _by_sink(upserts, f"prices_{number}"),
        "upsert: by hand, psycopg's write_row": _by_hand(url, _copy_rows),
        "upsert: from a topic, by a worker": _from_topic(ks.sinks.postgres(url, f"orders_{number}", upsert="id")),
        "insert: ks.sinks.postgres": _by_sink(inserts, f"log_{number}"),
    }


def _from_topic(sink: Sink) -> float:
    with tempfile.TemporaryDirectory() as folder, log_with_topics(Path(folder), partitions=1) as log:
        copy_in(log, Numbered(ROWS, ["a"], batch=BATCH))
        began = perf_counter()
        copy_out(log, sink)
        return ROWS / (perf_counter() - began)


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


def _by_sink(sink: Sink, connector: str) -> float:
    batches = list(_batches())
    writer = sink.open(SinkTask(connector, "prices", 0, VALUE))
    began = perf_counter()
    for batch in batches:
        writer.write(batch)
        assert not writer.flush()
        writer.commit(int(batch.offsets[-1]) + 1)
    rate = ROWS / (perf_counter() - began)
    writer.close()
    return rate
