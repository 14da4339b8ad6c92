"""The results of large runs as Arrow tables, and in how many rows two of them differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log

Kind = Callable[[pa.Table], pa.Table]
"""What is compared of a topic: takes its records in order of partitions and offsets."""

SCHEMA = pa.schema([("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])


def rows_of(address: Path | str, topic: str) -> pa.Table:
    """All records of a topic, in order of partitions and offsets."""
    found = []
    with open_log(address) as log, log.admin() as admin, log.consumer() as consumer:
        for partition in range(admin.describe_topic(topic).partitions):
            source = TopicPartition(topic, partition)
            consumer.assign([source])
            while not consumer.is_at_end(source):
                for batch in consumer.poll(0.1, 100_000):
                    where = pa.repeat(pa.scalar(partition, pa.int32()), len(batch))
                    found.append(pa.table([where, batch.keys, batch.values, batch.timestamps], schema=SCHEMA))
    return pa.concat_tables([SCHEMA.empty_table(), *found]).combine_chunks()


def changelog(rows: pa.Table) -> pa.Table:
    """Every record, those of a key in their order."""
    return rows.append_column("turn", pa.array(turns(rows["key"])))


def table(rows: pa.Table) -> pa.Table:
    """The last value of every key, without what was deleted."""
    last = rows.append_column("at", pa.array(np.arange(len(rows)))).group_by("key").aggregate([("at", "max")])["at_max"]
    kept = rows.take(last)
    return kept.filter(pc.is_valid(kept["value"])).select(["key", "value"])


def turns(keys: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For every row: how many rows of its key come before it.

    Examples
    --------
    >>> turns(pa.chunked_array([["a", "b", "a", "a"]])).tolist()
    [0, 0, 1, 2]
    """
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    found = np.empty(len(codes), np.int64)
    found[order] = np.arange(len(codes)) - np.repeat(starts, np.diff([*starts, len(codes)]))
    return found


def difference(kind: Kind, expected: pa.Table, found: pa.Table) -> int:
    """How many rows are only in one of two results.

    Examples
    --------
    >>> one = pa.table([[0, 0], [b"a", b"a"], [b"1", b"2"], [5, 6]], schema=SCHEMA)
    >>> other = one.take([1, 0])
    >>> difference(changelog, one, other), difference(table, one, other), difference(table, one, one)
    (4, 2, 0)
    """
    marked = [
        rows.append_column("side", pa.repeat(pa.scalar(side), len(rows)))
        for side, rows in ((1, kind(expected)), (-1, kind(found)))
    ]
    whole = pa.concat_tables(marked)
    sums = whole.group_by([name for name in whole.column_names if name != "side"]).aggregate([("side", "sum")])
    return int(pc.sum(pc.abs(sums["side_sum"])).as_py() or 0)
