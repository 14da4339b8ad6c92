"""Control rows: what the driver hands to tasks instead of records, so that each runs: the offset ranges it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.runtime.spark.io.from_log import from_log
from kstreams.runtime.spark.io.offset_ranges import OffsetRange, OffsetRanges, decode_ranges, encode_ranges
from kstreams.runtime.spark.io.reports import CONTROL_TOPIC, TaskReport, report
from kstreams.runtime.spark.io.rows import OUT_SCHEMA, table_of


def control_rows(session: SparkSession, ranges: Sequence[Iterable[OffsetRange]], slots: int) -> DataFrame:
    """A control row for every task of a sub-topology, in as many Spark partitions as there are slots.

    Parameters
    ----------
    ranges : sequence of iterable of OffsetRange
        What each task reads from the log.
    """
    encoded = [F.lit(bytearray(encode_ranges(each))) for each in ranges]
    nothing, zero = F.lit(None).cast("binary"), F.lit(0).cast("bigint")
    columns = {
        "topic": F.lit(CONTROL_TOPIC),
        "partition": F.col("id").cast("int"),
        "offset": zero,
        "timestamp": zero,
        "key": nothing,
        "value": F.element_at(F.array(*encoded), F.col("id").cast("int") + 1),
        "headers": F.lit(None).cast("array<struct<name: string, value: binary>>"),
        "origin": zero,
        "stream_time": zero,
    }
    rows = session.range(0, len(encoded), 1, min(slots, len(encoded)))
    return rows.select(*(column.alias(name) for name, column in columns.items()))


def reports_of_reading(
    session: SparkSession, home: str, topics: Collection[str], ranges: OffsetRanges, missing: Collection[str] = ()
) -> list[DataFrame]:
    """Reports of how many records of some topics a step reads: offsets do not tell, as what is aborted leaves gaps.

    Parameters
    ----------
    topics : collection of str
        A topic that is named twice is read twice.
    missing : collection of str
        Topics of which records may have been deleted since.
    """
    grown = [OffsetRange(*source, *read) for source, read in ranges.items() if read[1] > read[0]]
    wanted = [[each] for topic in topics for each in grown if each.topic == topic]
    if not wanted:
        return []
    rows = control_rows(session, wanted, session.sparkContext.defaultParallelism)
    return [rows.mapInArrow(_counted_in_arrow(home, frozenset(missing)), OUT_SCHEMA)]


def _counted_in_arrow(
    home: str, missing: Collection[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in table_of(batches).to_pylist():
            found = from_log(home, decode_ranges(row["value"]), missing)
            yield report(row["partition"], TaskReport(records_in=sum(map(len, found))))

    return count
