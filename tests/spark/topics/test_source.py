"""The embedded log as a Spark source: every row once, offsets a pure function of the log, bounded triggers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from chispa import assert_df_equality

from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from kstreams.runtime.spark.exchange.rows import SCHEMA
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import StreamReader, TopicReader, register

pytestmark = pytest.mark.spark

WORDS = TopicPartition("words", 0)


def fill(log_dir: Path, topic: str = "words", partitions: int = 2, rows: int = 10, start: int = 0) -> None:
    with open_log(log_dir) as log, log.admin() as admin, log.producer() as producer:
        if topic not in admin.topics():
            admin.create_topic(topic, partitions, {"retention.ms": "-1"})
        for i in range(start, start + rows):
            headers = [("n", str(i).encode())] if i % 3 == 0 else []
            producer.send(topic, b"k%d" % i, b"v%d" % i, timestamp=i, partition=i % partitions, headers=headers)


@pytest.fixture
def source(spark, log_dir: Path):
    register(spark)
    fill(log_dir)

    def options(reader, **more: object):
        reader = reader.format("kstreams").option("path", str(log_dir)).option("topics", "words")
        for key, value in more.items():
            reader = reader.option(key, value)
        return reader.load()

    return options


def run(spark, stream, checkpoint: Path) -> list[int]:
    """Run to the end of what there is; the number of rows of each trigger."""
    counts: list[int] = []

    def collect(rows, batch_id: int) -> None:
        counts.append(rows.count())

    writer = stream.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return counts


def test_a_batch_reads_every_row_with_its_place_time_and_headers(spark, source) -> None:
    read = source(spark.read).orderBy("timestamp").limit(2)
    expected = spark.createDataFrame(
        [("words", 0, 0, 0, b"k0", b"v0", [("n", b"0")]), ("words", 1, 0, 1, b"k1", b"v1", [])], SCHEMA
    )
    assert_df_equality(read, expected, ignore_nullable=True)


def test_a_large_partition_is_split_among_tasks(spark, source) -> None:
    read = source(spark.read, rowsPerTask=2)
    assert read.rdd.getNumPartitions() == 6
    assert read.count() == 10


def test_a_stream_takes_no_more_than_the_limit_and_stops_at_the_end(spark, source, tmp_path: Path) -> None:
    assert run(spark, source(spark.readStream, maxRecordsPerTrigger=4), tmp_path / "checkpoint") == [4, 4, 2]


def test_a_restarted_stream_goes_on_behind_what_it_has_read(spark, source, log_dir: Path, tmp_path: Path) -> None:
    stream = source(spark.readStream)
    assert run(spark, stream, tmp_path / "checkpoint") == [10]
    fill(log_dir, rows=3, start=10)
    assert run(spark, stream, tmp_path / "checkpoint") == [3]
    assert run(spark, stream, tmp_path / "checkpoint") == []


def test_reading_a_range_again_gives_the_same_rows_though_the_log_has_grown(source, log_dir: Path) -> None:
    reader = StreamReader(TopicReader(HomeAddress(str(log_dir)), ["words"], 100), None)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert json.loads(json.dumps(end)) == {"words": {"0": 5, "1": 5}}

    def rows() -> list:
        return [b.to_pylist() for span in reader.partitions(start, end) for b in reader.read(span)]

    before = rows()
    fill(log_dir, rows=5, start=10)
    assert rows() == before
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == {"words": {"0": 8, "1": 7}}


def test_rows_of_an_open_or_aborted_transaction_are_not_read(spark, source, log_dir: Path) -> None:
    producer = open_log(log_dir).producer({"transactional.id": "t"})
    producer.begin_transaction()
    producer.send("words", b"k", b"open", timestamp=1, partition=0)
    producer.flush()
    assert source(spark.read).count() == 10
    producer.abort_transaction()
    fill(log_dir, rows=2, start=10)
    assert source(spark.read).count() == 12
    producer.close()


def test_rows_that_retention_has_taken_are_missed_aloud(source, log_dir: Path) -> None:
    reader = StreamReader(TopicReader(HomeAddress(str(log_dir)), ["words"], 100), None)
    start, end = reader.initialOffset(), reader.latestOffset({}, reader.getDefaultReadLimit())
    with open_log(log_dir).admin() as admin:
        admin.delete_records({WORDS: 3})
    (first, *_) = reader.partitions(start, end)
    with pytest.raises(LogError, match="words-0 was deleted up to offset 3, but rows from 0 on are still to be read"):
        next(reader.read(first))


def test_an_unnamed_log_is_refused() -> None:
    with pytest.raises(ConfigError, match='needs the options "path"'):
        TopicReader.of({"topics": "words"})


def open_files(folder: Path) -> Iterator[str]:
    """The files in a folder that this process has open."""
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one that listed them
            file = os.readlink(f"/proc/self/fd/{descriptor}")
            if file.startswith(f"{folder}{os.sep}"):
                yield file


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_reads_one_log_after_another_has_few_of_them_open(tmp_path: Path) -> None:
    for number in range(20):
        fill(tmp_path / str(number))
        topics = TopicReader(HomeAddress(str(tmp_path / str(number))), ["words"], 100)
        (part, _) = topics.partitions_between(topics.beginning(), topics.end())
        assert sum(len(batch) for batch in topics.read(part)) == 5
    assert 1 <= len({file.removeprefix(f"{tmp_path}/").split(os.sep)[0] for file in open_files(tmp_path)}) <= 5
