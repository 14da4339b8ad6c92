"""Control blocks, which tasks receive next to records: the driver's command to run, and reports of upstream tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kstreams.runtime.spark.cluster.session import task_slots
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, CONTROL_TOPIC, Block, blocks_in, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, report
from kstreams.runtime.spark.exchange.rows import ArrowFunction
from kstreams.runtime.spark.io.from_log import LogRecords
from kstreams.runtime.spark.io.offset_ranges import OffsetRange, OffsetRanges
from kstreams.runtime.spark.io.open_homes import HomeAddress

_COLUMNS = (
    f"'{CONTROL_TOPIC}' AS topic",
    "CAST(id AS INT) AS partition",
    "0L AS origin",
    "0L AS number",
    f"{-(2**62)}L AS stream_time",  # sorts before all records of the task
    "CAST(NULL AS BINARY) AS rows",
)


def control_blocks(session: SparkSession, count: int, slots: int) -> DataFrame:
    """Return one control block for every task of a sub-topology, in at most `slots` Spark partitions."""
    return session.range(0, count, 1, min(slots, count)).selectExpr(*_COLUMNS)


class TaskBlocks(NamedTuple):
    """The blocks of one partition number: whether its task runs, its records, and reports to pass on."""

    runs: bool
    records: list[Block]
    reports: list[Block]

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> TaskBlocks:
        """Sort blocks by purpose. No task runs for a partition number that only an upstream sub-topology has."""
        runs = False
        records = list[Block]()
        reports = list[Block]()
        for block in blocks:
            if block.topic != CONTROL_TOPIC:
                records.append(block)
            elif block.rows is not None:
                reports.append(block)
            else:
                runs = True
        return cls(runs, records, reports)


def reports_of_reading(
    session: SparkSession,
    home: HomeAddress,
    topics: Collection[str],
    ranges: OffsetRanges,
    skippable: Collection[str] = (),
) -> list[DataFrame]:
    """Return reports of the number of records that a step reads. Offsets have gaps, for example of aborted records.

    Parameters
    ----------
    topics : collection of str
        The topics. A topic that occurs twice is counted twice.
    skippable : collection of str
        The topics whose records may have been deleted since.
    """
    non_empty = [OffsetRange(*source, start, end) for source, (start, end) in ranges.items() if end > start]
    of_topics = [offset_range for topic in topics for offset_range in non_empty if offset_range.topic == topic]
    if not of_topics:
        return []
    blocks = control_blocks(session, len(of_topics), task_slots(session))
    return [blocks.mapInArrow(_count_in_arrow(home, of_topics, frozenset(skippable)), BLOCK_SCHEMA)]


def _count_in_arrow(home: HomeAddress, ranges: Sequence[OffsetRange], skippable: Collection[str]) -> ArrowFunction:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        for control in blocks_in(batches):
            records = LogRecords(home, ranges[control.partition], skippable)
            yield report(control.partition, TaskReport(records_in=sum(map(len, records))))

    return lambda batches: in_arrow(count(batches))
