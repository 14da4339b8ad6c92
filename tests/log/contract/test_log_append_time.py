"""Topics whose records have the time at which they were written, whatever their senders say."""

from itertools import pairwise

import pytest

from kstreams.errors import ConfigError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Log
from tests.log.contract.reading import rows_of, sources

APPENDED = {"message.timestamp.type": "LogAppendTime"}
YEAR_2024_MS = 1_704_000_000_000


def test_records_and_batches_get_the_time_of_writing(log: Log) -> None:
    log.admin().create_topic("words", config=APPENDED)
    with log.producer() as producer:
        producer.send("words", b"k", b"1", timestamp=5, headers=(("h", b"x"),))
        producer.send("words", b"k", b"2")
        producer.flush()
        producer.send_batch(Batch.of_rows(TopicPartition("words", 0), [Row(b"k", b"3", 7, ()), Row(b"k", b"4", 9, ())]))
    rows = rows_of(log, "words")
    assert [(row.value, row.headers) for row in rows] == [(b"1", (("h", b"x"),)), (b"2", ()), (b"3", ()), (b"4", ())]
    assert all(row.timestamp > YEAR_2024_MS for row in rows)
    assert all(before.timestamp <= after.timestamp for before, after in pairwise(rows))
    assert log.admin().describe_topic("words").config["message.timestamp.type"] == "LogAppendTime"


def test_a_topic_changes_to_it_and_back(log: Log) -> None:
    log.admin().create_topic("words")
    for number, time_type in enumerate(("CreateTime", "LogAppendTime", None), 1):
        log.admin().alter_topic("words", {"message.timestamp.type": time_type})
        with log.producer() as producer:
            producer.send("words", b"k", b"%d" % number, timestamp=number)
    first, second, third = rows_of(log, "words")
    assert (first.timestamp, third.timestamp) == (1, 3)
    assert second.timestamp > YEAR_2024_MS


def test_a_time_is_sought_among_times_of_writing(log: Log) -> None:
    log.admin().create_topic("words", config=APPENDED)
    with log.producer() as producer, log.consumer() as consumer:
        producer.send("words", b"k", b"v", timestamp=5)
        producer.flush()
        consumer.assign(sources("words"))
        consumer.seek_to_time(*sources("words"), 6)
        assert consumer.position(*sources("words")) == 0


def test_another_type_is_refused(log: Log) -> None:
    with pytest.raises(ConfigError, match="LogAppendTime"):
        log.admin().create_topic("words", config={"message.timestamp.type": "AppendTime"})
