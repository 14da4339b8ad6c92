"""Batches of trades, and a writer that is driven as a worker drives it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa

from kstreams.connectors import Sink, SinkBatch, SinkTask, SinkWriter
from kstreams.errors import ConnectorUnavailableError, FencedError

HOUR_MS = 3_600_000
TASK = SinkTask("trades", "trades", 0)


def trades(
    first: int,
    last: int,
    *,
    deleted: Sequence[int] = (),
    keys: int = 1 << 40,
    partition: int = 0,
    composite: bool = False,
) -> SinkBatch:
    """The trades of these offsets, an hour apart. The key repeats after `keys` offsets.

    A composite key has the fields `id`, `part` (the partition) and `key`, which is made of both.
    """
    offsets = np.arange(first, last, dtype=np.int64)
    values = [
        None if number in deleted else {"sym": f"S{number % 3}", "price": number * 0.5, "number": number}
        for number in offsets.tolist()
    ]
    kind = pa.struct([("sym", pa.string()), ("price", pa.float64()), ("number", pa.int64())])
    ids = offsets % keys
    key_column = pa.array(ids)
    if composite:
        fields = [ids, np.full(len(ids), partition), ids + 1_000_000 * partition]
        key_column = pa.StructArray.from_arrays([pa.array(field) for field in fields], ["id", "part", "key"])
    return SinkBatch(partition, offsets, key_column, pa.array(values, kind), pa.array(offsets * HOUR_MS, pa.int64()))


def batch_of(rows: Sequence[object], *, keys: Sequence[object] | None = None, first: int = 0) -> SinkBatch:
    """A batch of any values; offsets and times count from `first`."""
    offsets = np.arange(first, first + len(rows), dtype=np.int64)
    key_column = pa.array(offsets) if keys is None else pa.array(keys)
    return SinkBatch(0, offsets, key_column, pa.array(rows), pa.array(offsets * HOUR_MS, pa.int64()))


def commit(writer: SinkWriter, batch: SinkBatch) -> None:
    """Write a batch and commit it. No row is refused."""
    writer.write(batch)
    assert list(writer.flush()) == []
    writer.commit(int(batch.offsets[-1]) + 1)


def commit_all(sink: Sink, *batches: SinkBatch, task: SinkTask = TASK) -> None:
    """Open a writer and commit batch by batch."""
    with closing(sink.open(task)) as writer:
        writer.next_offset()
        for batch in batches:
            commit(writer, batch)


def fill(sink: Sink, rows: int, step: int, *, keys: int, partition: int = 0) -> int:
    """Commit `rows` trades in steps, from where the target is. Return how often the target did not answer.

    Every seventh trade is a deletion of its key.
    """
    failures = 0
    while True:
        try:
            with closing(sink.open(SinkTask("trades", "trades", partition))) as writer:
                for first in range(writer.next_offset() or 0, rows, step):
                    last = min(first + step, rows)
                    deleted = [number for number in range(first, last) if number % 7 == 0]
                    batch = trades(first, last, deleted=deleted, keys=keys, partition=partition, composite=True)
                    commit(writer, batch)
                return failures
        except (ConnectorUnavailableError, OSError, FencedError):
            failures += 1


def appended(rows: int) -> list[int]:
    """The numbers that `fill` leaves in a target that appends."""
    return [number for number in range(rows) if number % 7]


def upserted(rows: int, keys: int) -> dict[int, int]:
    """The number of each key that `fill` leaves in a target that upserts."""
    last = {number % keys: number for number in range(rows)}
    return {key: number for key, number in last.items() if number % 7}
