"""What tasks give Spark: rows in the order in which their readers take them, and blocks apart from reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.kernel.batch import Batch, Integers, TopicPartition
from kstreams.runtime.spark.exchange.blocks import CONTROL_TOPIC, Block
from kstreams.runtime.spark.exchange.reports import TaskReport, reported
from kstreams.runtime.spark.exchange.rows import batch_of


def batches_of(rows: pa.Table) -> Iterator[Batch]:
    """Yield the rows of each topic partition as one batch, in reading order.

    Rows are in the order of the stream times of their writes. Of equal times, the writer with the lower origin
    goes first, and the rows of one writer stay in order of their offsets.

    Parameters
    ----------
    rows : pyarrow Table
        Columns as in `ARROW_OUT_SCHEMA`, rows in any order, since a shuffle returns blocks as they arrive.
    """
    for topic in sorted(pc.unique(rows["topic"]).to_pylist()):
        of_topic = rows.filter(pc.equal(rows["topic"], topic))
        for partition in sorted(pc.unique(of_topic["partition"]).to_pylist()):
            of_partition = of_topic.filter(pc.equal(of_topic["partition"], partition))
            yield batch_of(TopicPartition(topic, partition), *_sorted(of_partition))


def _sorted(rows: pa.Table) -> tuple[pa.Table, Integers]:
    by_origin = np.lexsort((rows["offset"].to_numpy(), rows["origin"].to_numpy()))
    origins = rows["origin"].to_numpy()[by_origin]
    starts = np.flatnonzero(np.diff(origins, prepend=origins[:1] - 1))
    writer_times = running_stream_times(starts, rows["stream_time"].to_numpy()[by_origin])
    order = np.argsort(writer_times, kind="stable")
    return rows.take(pa.array(by_origin[order])), writer_times[order]


def running_stream_times(starts: Integers, stream_times: Integers) -> Integers:
    """Return the times by which the rows of all writers are sorted: the highest stream time of each writer so far.

    A task of a cycle of sub-topologies writes in several rounds, and the rows at the end of a round may be older than
    the rows before them.

    Parameters
    ----------
    starts : numpy int64 array
        The index of the first row of each writer.
    stream_times : numpy int64 array

    Examples
    --------
    >>> running_stream_times(np.array([0, 2]), np.array([5, 9, 7, 1])).tolist()
    [5, 9, 7, 7]
    """
    times = stream_times.copy()
    for start, stop in pairwise([*starts.tolist(), len(times)]):
        np.maximum.accumulate(times[start:stop], out=times[start:stop])
    return times


def split_reports(blocks: Iterable[Block]) -> tuple[list[Block], list[TaskReport]]:
    """Return the blocks with records, and the reports."""
    all_blocks = list(blocks)
    reports = [reported(block.rows) for block in all_blocks if block.topic == CONTROL_TOPIC and block.rows is not None]
    return [block for block in all_blocks if block.topic != CONTROL_TOPIC], reports
