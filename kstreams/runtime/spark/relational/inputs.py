"""The functions by which a program reads when the engine runs it, from Kafka or from another home of topics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.config import Config
from kstreams.errors import EngineUnavailableError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.cluster.jars import SPARK_VERSION
from kstreams.runtime.spark.code.execution import Functions, RowFilter
from kstreams.runtime.spark.code.kafka_options import SecretValues, kafka_options
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.exchange.rows import FAR_FUTURE_MS, Offsets
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import read_stream, register, rows_until_now
from kstreams.runtime.spark.relational.partition_clocks import PartitionClocks, is_record

_COLUMNS = ("key", "value", "timestamp", "topic", "partition", "offset")


class TopicStreams(Protocol):
    """Topics, by their names in the log, as DataFrames with the columns `_COLUMNS`."""

    def stream(self, topics: Sequence[str]) -> DataFrame:
        """Return the records of some topics as a stream."""
        ...

    def partitions(self, sources: Sequence[TopicPartition]) -> list[DataFrame]:
        """Return the records of each of some partitions as a stream."""
        ...

    def records(self, topic: str) -> DataFrame:
        """Return all records of a topic each time a plan runs, with the columns partition and offset."""
        ...


class KafkaFrames:
    """Topics of Kafka, read by Spark's own source.

    Parameters
    ----------
    session : SparkSession
    config : Config
    partitions : mapping of str to int
        The number of partitions of each topic.
    starts : mapping
        The first offsets of partitions that are not read from their beginning.
    max_records : int
        The maximum number of records of a batch from one source of topics.
    skippable : collection of str
        The topics whose records may have been deleted since.
    """

    def __init__(
        self,
        session: SparkSession,
        config: Config,
        partitions: Mapping[str, int],
        starts: Offsets,
        max_records: int,
        skippable: Collection[str] = (),
    ) -> None:
        require_connector(session)
        self._session = session
        self._partitions = partitions
        self._starts = starts
        self._max_records = max_records
        self._options = {
            **kafka_options(config, SecretValues.of(config)),
            "kafka.isolation.level": "read_committed",
        }
        self._skippable = frozenset(skippable)

    def stream(self, topics: Sequence[str]) -> DataFrame:
        """Return the records of some topics from one source."""
        assigned = {topic: list(range(self._partitions[topic])) for topic in topics}
        return self._stream("subscribe", ",".join(topics), assigned, self._max_records)

    def partitions(self, sources: Sequence[TopicPartition]) -> list[DataFrame]:
        """Return a source for each partition, with an equal share of a batch."""
        share = max(1, self._max_records // len(sources))
        assignments = [{source.topic: [source.partition]} for source in sources]
        return [self._stream("assign", json.dumps(assigned), assigned, share) for assigned in assignments]

    def records(self, topic: str) -> DataFrame:
        """Read the topic by a batch, which Spark plans anew in each micro-batch."""
        return self._session.read.format("kafka").options(**self._options).option("subscribe", topic).load()

    def _stream(self, option: str, value: str, assigned: Mapping[str, Sequence[int]], share: int) -> DataFrame:
        reader = self._session.readStream.format("kafka").options(**self._options).option(option, value)
        reader = reader.option("startingOffsets", self._starting_offsets(assigned))
        reader = reader.option("failOnDataLoss", str(not self._skippable.issuperset(assigned)).lower())
        return reader.option("maxOffsetsPerTrigger", share).load().select(*_COLUMNS)

    def _starting_offsets(self, assigned: Mapping[str, Sequence[int]]) -> str:
        if not self._starts:
            return "earliest"
        starts = {
            topic: {str(number): self._starts.get(topic, {}).get(str(number), _EARLIEST) for number in numbers}
            for topic, numbers in assigned.items()
        }
        return json.dumps(starts)


def require_connector(session: SparkSession) -> None:
    """Raise EngineUnavailableError if the session has no source for Kafka."""
    try:
        session.read.format("kafka").option("subscribe", "none").option("kafka.bootstrap.servers", "none").load()
    except AnalysisException as error:
        if "Failed to find data source" in str(error):
            raise EngineUnavailableError(_NO_CONNECTOR) from error
        raise


_NO_CONNECTOR = (
    "This Spark session has no connector for Kafka, with which queries of Spark read topics. Create the session with "
    "`kstreams.spark.session({'bootstrap.servers': ...})`; submit with `-c bootstrap.servers=...`, or with "
    f"`-- --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}`; or run as tasks with "
    "spark.kstreams.path=task."
)
_EARLIEST = -2
"""The offset that stands for the first record in Spark's source."""


class LogFrames:
    """Topics of another home, read by the source of kstreams.

    Parameters
    ----------
    session : SparkSession
    home : HomeAddress
    starts : mapping
        The first offsets of partitions that are not read from their beginning.
    max_records : int
        The maximum number of records of a batch from one source of topics.
    skippable : collection of str
        The topics whose records may have been deleted since.
    """

    def __init__(
        self,
        session: SparkSession,
        home: HomeAddress,
        starts: Offsets,
        max_records: int,
        skippable: Collection[str] = (),
    ) -> None:
        register(session)
        self._session = session
        self._home = home
        self._starts = starts
        self._max_records = max_records
        self._skippable = skippable

    def stream(self, topics: Sequence[str]) -> DataFrame:
        """Return the records of some topics from one source, which cuts them into batches at one time."""
        return self._stream(topics, self._max_records)

    def partitions(self, sources: Sequence[TopicPartition]) -> list[DataFrame]:
        """Return a source for each partition, with an equal share of a batch."""
        share = max(1, self._max_records // len(sources))
        return [self._stream([source.topic], share, [source.partition]) for source in sources]

    def _stream(self, topics: Sequence[str], max_records: int, partitions: Sequence[int] = ()) -> DataFrame:
        rows = read_stream(
            self._session,
            self._home,
            topics,
            max_records,
            self._starts,
            admissions=[Admission(tuple(topics))],
            latest_ms=FAR_FUTURE_MS - 1,
            skippable=self._skippable,
            partitions=partitions,
        )
        return rows.withColumn("timestamp", F.timestamp_millis("timestamp")).select(*_COLUMNS)

    def records(self, topic: str) -> DataFrame:
        """Let executors read the topic each time."""
        return rows_until_now(self._session, self._home, topic)


def topic_streams(
    session: SparkSession,
    config: Config,
    partitions: Mapping[str, int],
    starts: Offsets,
    max_records: int,
    skippable: Collection[str] = (),
) -> TopicStreams:
    """Return how programs read topics: from Kafka by Spark's own source, else by the source of kstreams.

    The parameters are those of `KafkaFrames`.
    """
    if config.get("bootstrap.servers") is not None:
        return KafkaFrames(session, config, partitions, starts, max_records, skippable)
    return LogFrames(session, HomeAddress.of(config), starts, max_records, skippable)


class ProgramInputs:
    """The functions `read`, `read_by_partition` and `records_of` of a program.

    Parameters
    ----------
    frames : TopicStreams
    names : mapping of str to str
        The names in the log of the topics that have another name in the topology.
    clocks : PartitionClocks or None
        Their rows move the watermarks of partitions without records. None: no operator waits for such a row.
    observes_times : bool
        Whether each batch reports the greatest time of the records of each partition, by its name.
    """

    def __init__(
        self, frames: TopicStreams, names: Mapping[str, str], clocks: PartitionClocks | None, *, observes_times: bool
    ) -> None:
        self._frames = frames
        self._names = names
        self._clocks = clocks
        self._observes_times = observes_times
        self._reads = Counter[str]()

    @property
    def functions(self) -> Functions:
        """The functions by their names in programs."""
        return {"read": self.read, "read_by_partition": self.read_by_partition, "records_of": self.records_of}

    def read(self, topics: str) -> DataFrame:
        """Read topics, whose names are separated by commas."""
        return self._frames.stream(self._in_log(topics.split(",")))

    def read_by_partition(self, topics: Mapping[str, int], delay: str, skip: RowFilter | None = None) -> DataFrame:
        """Read topics with a watermark for each partition, of which the least counts."""
        counts = dict(zip(self._in_log(topics), topics.values(), strict=True))
        sources = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        partitions = dict(zip(sources, self._frames.partitions(sources), strict=True))
        if self._clocks is not None:
            partitions = {source: self._clocks.rows(source).union(rows) for source, rows in partitions.items()}
        if skip is not None:
            partitions = {source: skip(rows) for source, rows in partitions.items()}
        if self._observes_times:
            partitions = {source: self._observed(source, rows) for source, rows in partitions.items()}
        united = reduce(DataFrame.union, (rows.withWatermark("timestamp", delay) for rows in partitions.values()))
        return united if self._clocks is None else united.where(is_record())

    def _observed(self, source: TopicPartition, rows: DataFrame) -> DataFrame:
        """Return the rows of a partition, whose greatest time each batch reports; names must differ in a query."""
        name = str(source)
        self._reads[name] += 1
        latest = F.max(F.when(is_record(), F.unix_millis("timestamp")))
        return rows.observe(f"{name}#{self._reads[name]}", latest.alias("ms"))

    def records_of(self, topic: str) -> DataFrame:
        """Return the records of a topic, which are read anew in every batch."""
        [name] = self._in_log([topic])
        return self._frames.records(name)

    def _in_log(self, topics: Iterable[str]) -> list[str]:
        return [self._names.get(topic, topic) for topic in topics]
