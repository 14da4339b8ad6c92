"""What is of Kafka alone: what it cannot do is said, silence has an end, settings of topics are translated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest

from kstreams.errors import ConfigError, FencedError, LogError, UncertainCommitError, UnsupportedError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Log, OffsetAndMetadata, home_at
from tests.log.contract.reading import rows_of, values_of
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

WORDS = TopicPartition("words", 0)


@pytest.fixture
def log(kafka: KafkaCluster) -> Iterator[Log]:
    delete_everything(kafka.bootstrap_servers)
    with home_at(f"kafka:{kafka.bootstrap_servers}").open() as log:
        yield log


def test_a_coordinator_of_several_producers_is_refused_with_the_cure(log: Log) -> None:
    with pytest.raises(UnsupportedError, match="bootstrap"):
        log.coordinator("app")
    with pytest.raises(ConfigError, match=r"transactional\.id"):
        log.producer({"transaction.coordinator": "token"})


def test_the_time_zero_is_refused_and_not_written_as_the_time_of_sending(log: Log) -> None:
    log.admin().create_topic("words")
    batch = Batch.of_rows(WORDS, [Row(b"k", b"1", 5, ()), Row(b"k", b"2", 0, ())])
    with log.producer() as producer:
        with pytest.raises(LogError, match="timestamp 0"):
            producer.send("words", b"k", b"v", timestamp=0)
        assert producer.refused(batch).keys() == {1}
        producer.send_batch(batch)
        with pytest.raises(LogError, match="timestamp 0"):
            producer.flush()
    assert values_of(log, "words") == []


def test_a_name_of_a_header_that_would_be_cut_off_is_refused(log: Log) -> None:
    log.admin().create_topic("words")
    headers = (("trace\0id", b"x"),)
    batch = Batch.of_rows(WORDS, [Row(b"k", b"1", 5, ()), Row(b"k", b"2", 5, headers)])
    with log.producer() as producer:
        with pytest.raises(LogError, match="character 0"):
            producer.send("words", b"k", b"v", headers=headers)
        assert producer.refused(batch).keys() == {1}
    assert values_of(log, "words") == []


def test_a_topic_may_give_records_the_time_of_their_append(log: Log) -> None:
    log.admin().create_topic("words", config={"message.timestamp.type": "LogAppendTime"})
    with log.producer() as producer:
        producer.send("words", b"k", b"v", timestamp=5)
    assert rows_of(log, "words")[0].timestamp > 1_700_000_000_000


def test_windows_that_are_kept_by_the_time_of_records_are_kept_for_ever(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = {"cleanup.policy": "compact,delete", "retention.ms": "1000", "retention.clock": "record"}
    with caplog.at_level(logging.WARNING, "kstreams"):
        log.admin().create_topic("windows", config=wanted)
    config = log.admin().describe_topic("windows").config
    assert (config["cleanup.policy"], config["retention.ms"]) == ("compact", "-1")
    assert "topic.retention.clock=wall" in caplog.text


def test_callbacks_may_tell_of_failures_alone(log: Log) -> None:
    log.admin().create_topic("words")
    told: list[Any] = []
    with log.producer({"delivery.report.only.error": True}) as producer:
        producer.send("words", b"k", b"v", on_delivery=told.append)
        producer.flush()
    assert told == []
    assert values_of(log, "words") == [b"v"]


def test_a_commit_without_an_answer_ends_with_an_error_and_the_next_producer_knows() -> None:
    """The broker stands still in the middle of a commit. Whatever it did, records and offsets agree."""
    with KafkaCluster() as cluster, home_at(f"kafka:{cluster.bootstrap_servers}").open() as log:
        log.admin().create_topic("words")
        settings = {"transactional.id": "app", "max.block.ms": 2_000}
        producer = log.producer(settings)
        producer.begin_transaction()
        producer.send("words", b"k", b"1")
        producer.flush()
        log.admin().committed("g", [WORDS])
        cluster.pause()
        try:
            with pytest.raises(UncertainCommitError, match="another producer"):
                producer.commit_transaction({WORDS: OffsetAndMetadata(7)}, "g")
        finally:
            cluster.go_on()
        with pytest.raises(UncertainCommitError):
            producer.begin_transaction()
        producer.close()
        with log.producer({"transactional.id": "app"}) as successor:
            counts = values_of(log, "words") == [b"1"]
            assert bool(log.admin().committed("g", [WORDS])) == counts
            successor.begin_transaction()
            successor.send("words", b"k", b"2")
            successor.commit_transaction({WORDS: OffsetAndMetadata(8)}, "g")
        assert log.admin().committed("g", [WORDS]) == {WORDS: OffsetAndMetadata(8)}
        assert values_of(log, "words") == [b"1", b"2"][0 if counts else 1 :]


def test_a_fenced_producer_says_so_when_it_sends(log: Log) -> None:
    log.admin().create_topic("words")
    first = log.producer({"transactional.id": "one", "linger.ms": 0})
    first.begin_transaction()
    log.producer({"transactional.id": "one"}).close()

    def send_on() -> None:
        for _ in range(1_000):
            first.send("words", b"a", b"b")
            sleep(0.01)

    with pytest.raises(FencedError):
        send_on()
    first.close()
