"""A process that writes numbered records to a table, until all are written or it is killed.

python -m tests.connectors.sql.writer_process URL MODE RECORDS
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import kstreams as ks
from kstreams.connectors.api import SinkBatch, SinkTask
from kstreams.errors import ConnectorUnavailableError

KEYS = 5_000
BATCH = 1_000
VALUE = pa.struct([("number", pa.int64()), ("name", pa.string())])


def records(first: int, end: int) -> SinkBatch:
    """Records by their offsets: each eleventh deletes its key."""
    offsets = np.arange(first, end, dtype=np.int64)
    values = [None if n % 11 == 0 else {"number": n, "name": f"name {n}"} for n in range(first, end)]
    keys = pa.array([f"k{n * 7 % KEYS}" for n in range(first, end)])
    return SinkBatch(0, offsets, keys, pa.array(values, VALUE), pa.array(offsets))


def expected(mode: str, end: int) -> set[tuple[object, ...]]:
    """The rows of the table in the end."""
    rows = [(f"k{n * 7 % KEYS}", None if n % 11 == 0 else n) for n in range(end)]
    if mode == "upsert":
        return {(key, number, f"name {number}") for key, number in dict(rows).items() if number is not None}
    return {(number, f"name {number}") for _, number in rows if number is not None}


def write_all(url: str, mode: str, end: int, committed: Callable[[int], None] = lambda offset: None) -> None:
    """Write the records that the target does not have, and go on after outages, as a worker does."""
    sink = ks.sinks.sql(url, "target", mode=mode, key="key" if mode == "upsert" else ())  # type: ignore[arg-type]
    offset = 0
    while offset < end:
        try:
            writer = sink.open(SinkTask("kills", "records", 0, VALUE))
        except ConnectorUnavailableError:
            time.sleep(0.02)
            continue
        try:
            offset = writer.next_offset() or 0
            while offset < end:
                batch_end = min(offset + BATCH, end)
                writer.write(records(offset, batch_end))
                assert writer.flush() == []
                writer.commit(batch_end)
                offset = batch_end
                committed(offset)
        except ConnectorUnavailableError:
            time.sleep(0.02)
        finally:
            writer.close()


if __name__ == "__main__":
    write_all(sys.argv[1], sys.argv[2], int(sys.argv[3]), committed=lambda offset: print(offset, flush=True))
