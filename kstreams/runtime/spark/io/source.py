"""`format("kstreams")`: the topics of a home as a data source of Spark, for batches and for streams.

Invariant: offsets are a pure function of the log, and reading [start, end) twice returns the same rows. So a batch of a
stream that runs again has the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kstreams.errors import ConfigError, LogError, ProcessingError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.kernel.timestamps import LATEST_MS, InvalidTimestampError
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.exchange.rows import (
    SCHEMA,
    Offsets,
    offsets_of,
    positions_of,
    ranges,
    record_batch,
)
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.reading import read_up_to
from kstreams.runtime.spark.io.step_ends import StepEnds

ROWS_PER_TASK = 1_000_000
"""The number of rows above which the range of a partition is split among Spark tasks."""

_REMEDY = "set spark.kstreams.path=task, with a timestamp_extractor or a deserialization.exception.handler if need be"


def read_stream(
    session: SparkSession,
    home: HomeAddress,
    topics: Sequence[str],
    max_records: int,
    starts: Offsets,
    *,
    admissions: Sequence[Admission],
    latest_ms: int = LATEST_MS,
    skippable: Collection[str] = (),
    partitions: Sequence[int] = (),
) -> DataFrame:
    """Return the records of some topics as a stream, from `starts` or their beginning. Call `register` before.

    `partitions` are the numbers of the partitions that are read; by default all that the topics have at each batch.
    """
    reader = session.readStream.format("kstreams").option("path", home.address).option("topics", ",".join(topics))
    reader = reader.option("secretSettings", json.dumps(home.settings))
    reader = reader.option("startingOffsets", json.dumps(starts)).option("latestTime", latest_ms)
    # A partition is not split among Spark tasks, so that one task writes its rows in order.
    reader = reader.option("mayBeMissing", ",".join(skippable)).option("rowsPerTask", 1 << 60)
    reader = reader.option("partitions", ",".join(map(str, partitions)))
    reader = reader.option("admissions", msgspec.json.encode(admissions).decode())
    return reader.option("maxRecordsPerTrigger", max_records).load()


def rows_until_now(session: SparkSession, home: HomeAddress, topic: str) -> DataFrame:
    """Return all records that a topic holds each time the plan runs; columns as in `SCHEMA`."""
    topics = TopicReader(home, [topic], ROWS_PER_TASK)
    count = len(topics.partitions())

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch["id"].to_pylist()):
            ends = {source: end for source, end in topics.end().items() if source.partition % count == number}
            for part in topics.partitions_between(topics.beginning(), ends):
                yield from map(record_batch, topics.read(part))

    return session.range(0, count, 1, count).mapInArrow(read, SCHEMA)


def register(session: SparkSession) -> None:
    """Register `format("kstreams")` in a session."""
    session.dataSource.register(KStreamsSource)


class KStreamsSource(DataSource):  # type: ignore[misc]
    """Topics of an embedded log, or of another home.

    Required options:

    - `path`: the folder of the log, or the address of a home;
    - `topics`: the names of the topics, separated by commas.

    Optional:

    - `secretSettings`: the settings of the home as a list of pairs in JSON, which Spark does not show;
    - `partitions`: the numbers of the partitions that are read, separated by commas; by default all;
    - `rowsPerTask` (1,000,000): the number of rows above which the range of a partition is split among Spark tasks;
    - `mayBeMissing`: topics, separated by commas, whose deleted records are skipped. Deleted records of other topics
      end the query;
    - `startingOffsets`: the first offsets of a stream as JSON, for partitions that are not read from their beginning;
    - `maxRecordsPerTrigger`: the maximum number of rows of a micro-batch, which takes the earliest rows of all topics;
    - `admissions`: groups of topics as JSON, each of which is cut into micro-batches separately;
    - `latestTime` (2^62 - 1): the latest valid time in ms. A record with a later or a negative time ends a stream.

    Examples
    --------
    `spark.readStream.format("kstreams").option("path", ".kstreams/log").option("topics", "flights").load()`
    """

    @classmethod
    def name(cls) -> str:
        return "kstreams"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: object) -> DataSourceReader:
        return BoundedReader(TopicReader.of(self.options))

    def streamReader(self, schema: object) -> DataSourceStreamReader:
        max_records = self.options.get("maxRecordsPerTrigger")
        limit = None if max_records is None else int(max_records)
        starts = positions_of(json.loads(self.options.get("startingOffsets", "{}")))
        latest_ms = int(self.options.get("latestTime", LATEST_MS))
        topics = TopicReader.of(self.options)
        encoded = self.options.get("admissions")
        admissions = [Admission(topics.names)] if encoded is None else decode_json(encoded, list[Admission])
        return StreamReader(topics, limit, starts, admissions=admissions, latest_ms=latest_ms)


class LogInputPartition(InputPartition):  # type: ignore[misc]
    """Rows [start, end) of one topic partition."""

    def __init__(self, source: TopicPartition, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end


class TopicReader:
    """The topics that a source reads: their offsets, and their rows between two offsets.

    Parameters
    ----------
    home : HomeAddress
    names : sequence of str
        The names of the topics.
    rows_per_task : int
        The number of rows above which the range of a partition is split.
    skippable : collection of str
        The topics whose records may have been deleted since.
    partitions : sequence of TopicPartition
        The partitions that are read. Default: all that the topics have at each call.
    """

    def __init__(
        self,
        home: HomeAddress,
        names: Sequence[str],
        rows_per_task: int,
        skippable: Collection[str] = (),
        partitions: Sequence[TopicPartition] = (),
    ) -> None:
        self.home = home
        self._partitions = tuple(partitions)
        self.names = tuple(names)
        self.rows_per_task = rows_per_task
        self._skippable = frozenset(skippable)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> TopicReader:
        """Read the options. Raises ConfigError if a required option is missing."""
        if not options.get("path") or not options.get("topics"):
            raise ConfigError('format("kstreams") needs the options "path" (folder of the log) and "topics"')
        skippable = options.get("mayBeMissing", "").split(",")
        settings = json.loads(options.get("secretSettings", "[]"))
        home = HomeAddress(options["path"], tuple((key, value) for key, value in settings))
        names = options["topics"].split(",")
        numbers = [int(number) for number in filter(None, options.get("partitions", "").split(","))]
        partitions = [TopicPartition(name, number) for name in names for number in numbers]
        return cls(home, names, int(options.get("rowsPerTask", ROWS_PER_TASK)), skippable, partitions)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that are read."""
        if self._partitions:
            return list(self._partitions)
        with self.home.opened() as log, log.admin() as admin:
            counts = {name: admin.describe_topic(name).partitions for name in self.names}
        return [TopicPartition(name, p) for name, count in counts.items() for p in range(count)]

    def beginning(self) -> dict[TopicPartition, int]:
        with self.home.opened() as log, log.admin() as admin:
            return admin.beginning_offsets(self.partitions())

    def end(self) -> dict[TopicPartition, int]:
        """Return the offsets up to which a read_committed consumer can read now."""
        with self.home.opened() as log, log.admin() as admin:
            return admin.end_offsets(self.partitions())

    def partitions_between(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> list[LogInputPartition]:
        """Return one range per partition with records between two offsets; a large range is split."""
        return [
            LogInputPartition(source, low, high)
            for source, stop in end.items()
            for low, high in ranges(start.get(source, 0), stop, self.rows_per_task)
        ]

    def read(self, rows: LogInputPartition) -> Iterator[Batch]:
        """Yield the rows of a range.

        Raises
        ------
        LogError
            If rows were deleted since the range was planned, and the topic is not in `skippable`.
        """
        source = rows.source
        with self.home.reader(source) as consumer:
            goes_on = source in consumer.assignment() and consumer.position(source) == rows.start
            start = rows.start if goes_on else min(self._present_from(rows), rows.end)
            try:
                yield from read_up_to(consumer, source, start, rows.end)
            except LogError:
                position = consumer.position(source)
                present_from = self._present_from(rows)
                if present_from <= position:
                    raise
                yield from read_up_to(consumer, source, min(present_from, rows.end), rows.end)

    def _present_from(self, rows: LogInputPartition) -> int:
        """Return the first offset of a range that is not deleted."""
        with self.home.opened() as log, log.admin() as admin:
            begin = admin.beginning_offsets([rows.source])[rows.source]
        if begin > rows.start and rows.source.topic not in self._skippable:
            raise LogError(
                f"{rows.source} was deleted up to offset {begin}, but rows from {rows.start} on are still to be read: "
                "keep topics longer (`retention.ms`), or start anew with another checkpoint"
            )
        return max(begin, rows.start)


class BoundedReader(DataSourceReader):  # type: ignore[misc]
    """The reader of all records that the topics hold when Spark plans a query."""

    def __init__(self, topics: TopicReader) -> None:
        self._topics = topics

    def partitions(self) -> Sequence[InputPartition]:
        return self._topics.partitions_between(self._topics.beginning(), self._topics.end()) or [EMPTY]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(()) if partition.start == partition.end else map(record_batch, self._topics.read(partition))


EMPTY = LogInputPartition(TopicPartition("", 0), 0, 0)
"""An empty range: Spark requires at least one partition in a batch."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """The reader of the topics as a stream, with a limit per trigger.

    Parameters
    ----------
    topics : TopicReader
    limit : int or None
        The maximum number of rows of a batch; None for no limit.
    starts : mapping of TopicPartition to int, optional
        The first offsets of partitions that are not read from their beginning.
    admissions : sequence of Admission
        By default all topics are cut into batches together.
    latest_ms : int
        The latest valid time of a record.
    """

    def __init__(
        self,
        topics: TopicReader,
        limit: int | None,
        starts: Mapping[TopicPartition, int] | None = None,
        *,
        admissions: Sequence[Admission] = (),
        latest_ms: int = LATEST_MS,
    ) -> None:
        self._topics = topics
        self._limit = limit
        self._starts = starts or {}
        self._steps = StepEnds(admissions or [Admission(topics.names)], self._starts)
        self._latest_ms = latest_ms
        self._target: dict[TopicPartition, int] | None = None

    def initialOffset(self) -> Offsets:
        beginning = self._topics.beginning()
        return offsets_of({source: max(offset, self._starts.get(source, 0)) for source, offset in beginning.items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._limit is None else ReadMaxRows(self._limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._topics.end()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Return the end of the next batch, which takes rows in the order of native tasks up to the limit."""
        begin = positions_of(start)
        end = self._target or self._topics.end()
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        bounded = self._target is not None
        with self._topics.home.opened() as log:
            end_offsets = self._steps.next(log, begin, end, max_rows, bounded=bounded)
        return offsets_of(end_offsets)

    def reportLatestOffset(self) -> Offsets:
        return offsets_of(self._topics.end())

    def stop(self) -> None:
        """Close the clients that plan steps."""
        self._steps.close()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        return self._topics.partitions_between(positions_of(start), positions_of(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.start == partition.end:
            return iter(())
        return (record_batch(self._timed(batch)) for batch in self._topics.read(partition))

    def _timed(self, batch: Batch) -> Batch:
        """Return the batch. Raises ProcessingError if a timestamp is out of range."""
        times = batch.timestamps.to_numpy()
        bad = np.flatnonzero((times < 0) | (times > self._latest_ms))
        if len(bad):
            error = InvalidTimestampError.out_of_range(int(times[bad[0]]), _REMEDY, str(self._latest_ms))
            record = f"{batch.source}@{batch.offsets[bad[0]]}"
            raise ProcessingError(f"the source of {batch.source.topic}", None, record, error)
        return batch
