"""Streaming queries as a Spark engineer writes them: from Spark's own Kafka source to its own sink, or exactly once.

Spark's sink writes at least once, and gives records the time at which it writes them. What writes exactly once, with
the times of the records, is a function for `foreachBatch` with one transactional producer for each partition. Such a
producer counts its rows, since the rows of a task that fails end like those of one that does not. (What is usually
written is not exact: if Spark repeats a batch, the partitions of a topic may come in another order.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

OF_EVENT = "user string, amount bigint, price double"


class Written(NamedTuple):
    """The records of a query, with the columns key, value and timestamp, and its output mode."""

    records: Any
    mode: str = "append"


class Reader:
    """Spark's Kafka source."""

    def __init__(self, session: Any, servers: str, max_records: int, starts: str = "earliest") -> None:
        self._session = session
        self._servers = servers
        self._max_records = max_records
        self._starts = starts

    def stream(self, topic: str, inputs: int = 1) -> Any:
        """Return the records of one of several inputs."""
        options = {"startingOffsets": self._starts, "maxOffsetsPerTrigger": str(self._max_records // inputs)}
        stream = self._session.readStream.format("kafka").options(**options)
        return stream.option("kafka.bootstrap.servers", self._servers).option("subscribe", topic).load()

    def table(self, topic: str) -> Any:
        """Return the last value of each key, read anew in each batch."""
        batch = self._session.read.format("kafka").option("kafka.bootstrap.servers", self._servers)
        records = batch.option("subscribe", topic).load()
        return records.groupBy("key").agg(F.max_by("value", F.struct("partition", "offset")).alias("value"))

    def events(self, topic: str, inputs: int = 1) -> Any:
        """Return the events of a topic, decoded."""
        event = F.from_json(F.col("value").cast("string"), OF_EVENT)
        return self.stream(topic, inputs).select("key", event.alias("event"), "timestamp")


def filtered(read: Reader, topic: str) -> Written:
    """Return the events with an amount above 50."""
    events = read.events(topic).where("event.amount > 50")
    return Written(events.select("key", F.to_json("event").alias("value"), "timestamp"))


def windows(mode: str) -> Callable[[Reader, str], Written]:
    """Count the events of each minute and user."""

    def query(read: Reader, topic: str) -> Written:
        timed = read.stream(topic).withWatermark("timestamp", "10 seconds")
        counts = timed.groupBy(F.window("timestamp", "60 seconds"), "key").agg(*_count())
        start = F.unhex(F.lpad(F.hex(F.unix_millis("window.start")), 16, "0"))
        return Written(counts.select(F.concat("key", start).alias("key"), _long("count"), "timestamp"), mode)

    return query


def sessions(read: Reader, topic: str) -> Written:
    """Count the events of each session of a user."""
    timed = read.stream(topic).withWatermark("timestamp", "10 seconds")
    counts = timed.groupBy(F.session_window("timestamp", "5 seconds"), "key").agg(*_count())
    return Written(counts.select("key", _long("count"), "timestamp"))


def with_table(read: Reader, topic: str) -> Written:
    """Add the city of the user to each event, as the table is in its batch."""
    return _with_users(read, topic, _users(read))


def with_cached_table(read: Reader, topic: str) -> Written:
    """Add the city of the user to each event, as the table was at the start."""
    return _with_users(read, topic, _users(read).cache())


def _users(read: Reader) -> Any:
    user = F.from_json(F.col("value").cast("string"), "city string")
    return read.table("users").select("key", user.alias("user"))


def _with_users(read: Reader, topic: str, users: Any) -> Written:
    placed = F.to_json(F.struct("event.amount", "user.city"))
    return Written(read.events(topic).join(F.broadcast(users), "key").select("key", placed.alias("value"), "timestamp"))


def pairs(read: Reader, topic: str) -> Written:
    """Return the pairs of events of one user within a second of each other."""
    left = read.events(topic, 2).withWatermark("timestamp", "10 seconds").alias("left")
    right = read.events("others", 2).withWatermark("timestamp", "10 seconds").alias("right")
    times = "right.timestamp BETWEEN left.timestamp - INTERVAL 1 SECOND AND left.timestamp + INTERVAL 1 SECOND"
    joined = left.join(right, F.expr(f"left.key = right.key AND {times}"))
    pair = F.struct(F.col("left.event.amount").alias("left"), F.col("right.event.amount").alias("right"))
    time = F.greatest("left.timestamp", "right.timestamp").alias("timestamp")
    return Written(joined.select(F.col("left.key").alias("key"), F.to_json(pair).alias("value"), time))


def words(read: Reader, topic: str) -> Written:
    """Count the words of sentences."""
    word = F.explode(F.split(F.col("value").cast("string"), " ")).alias("key")
    counts = read.stream(topic).select(word, "timestamp").groupBy("key").agg(*_count())
    return Written(counts.select("key", _long("count"), "timestamp"), "update")


def _count() -> tuple[Any, Any]:
    """Return the number of rows, and the time of the last one."""
    return F.count(F.lit(1)).alias("count"), F.max("timestamp").alias("timestamp")


def _long(column: str) -> Any:
    """Return an integer as 8 bytes."""
    return F.unhex(F.lpad(F.hex(column), 16, "0")).alias("value")


def at_least_once(written: Written, servers: str, checkpoint: str) -> Any:
    """Return the writer of a query by Spark's own sink, which gives records the time at which it writes them."""
    writer = written.records.select("key", "value").writeStream.format("kafka").option("topic", "out")
    writer = writer.option("kafka.bootstrap.servers", servers).option("checkpointLocation", checkpoint)
    return writer.outputMode(written.mode)


def exactly_once(written: Written, servers: str, checkpoint: str) -> Any:
    """Return the writer of a query by transactional producers, with the times of the records."""
    name = checkpoint.rsplit("/", 1)[1]

    def write(batch: Any, number: int) -> None:
        rows = batch.select(
            F.col("key").cast("binary"), F.col("value").cast("binary"), F.unix_millis("timestamp").alias("timestamp")
        ).persist()
        counts = dict(rows.groupBy(F.spark_partition_id()).count().collect())
        written_rows = rows.mapInArrow(_transactions(servers, name, number, counts), "rows bigint")
        written_rows.collect()
        rows.unpersist()

    writer = written.records.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    return writer.outputMode(written.mode)


def _transactions(servers: str, name: str, number: int, counts: dict[int, int]) -> Callable[..., Any]:
    """Return the function that writes the rows of a partition in one transaction, unless they are written."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from confluent_kafka import Consumer, Producer, TopicPartition
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition = context.partitionId()
        servers_and = {"bootstrap.servers": servers}
        mine = {"transactional.id": f"{name}-{partition}", "partitioner": "murmur2_random"}
        faster = {"compression.type": "lz4", "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
        producer = Producer({**servers_and, **mine, **faster, "batch.size": 1_000_000})
        producer.init_transactions(60)
        group = Consumer({**servers_and, "group.id": f"{name}-out", "enable.auto.commit": False})
        anchor = TopicPartition("out", partition)
        rows = 0
        if group.committed([anchor], 60)[0].offset <= number:
            producer.begin_transaction()
            for batch in batches:
                keys, values, times = (column.to_pylist() for column in batch.columns)
                for key, value, time in zip(keys, values, times, strict=True):
                    producer.produce("out", value, key, timestamp=time)
                rows += len(batch)
                producer.poll(0)
            if rows != counts.get(partition, 0):
                raise RuntimeError(f"partition {partition} has {counts.get(partition, 0)} rows, of which {rows} came")
            position = TopicPartition("out", partition, number + 1)
            producer.send_offsets_to_transaction([position], group.consumer_group_metadata())
            producer.commit_transaction(60)
        group.close()
        yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})

    return write
