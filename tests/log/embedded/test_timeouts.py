"""What waits ends: a dead producer's transaction, a full buffer, a record that lingers."""

import fcntl
from pathlib import Path

import pytest

from kstreams.errors import BufferFullError, FencedError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import Producer, open_log
from tests.log.contract.reading import values_of
from tests.log.embedded.files import head

SOURCE = TopicPartition("words", 0)


def test_a_dead_producers_transaction_holds_readers_only_until_its_timeout(tmp_path: Path) -> None:
    clock = ManualClock(1_000)
    with open_log(tmp_path, clock=clock) as log:
        log.admin().create_topic("words")
        dead = log.producer({"transactional.id": "app", "transaction.timeout.ms": 500})
        dead.begin_transaction()
        dead.send("words", b"k", b"dead")
        dead.flush()
        with log.producer() as other:
            other.send("words", b"k", b"living")
        assert values_of(log, "words") == []
        assert log.admin().end_offsets([SOURCE]) == {SOURCE: 0}
        clock.advance(500)
        assert log.admin().end_offsets([SOURCE]) == {SOURCE: 2}
        assert values_of(log, "words") == [b"living"]
        with pytest.raises(FencedError, match=r"transaction\.timeout\.ms"):
            dead.commit_transaction()
        dead.close()


def test_a_prepared_transaction_waits_for_its_coordinator_until_its_timeout(tmp_path: Path) -> None:
    clock = ManualClock(1_000)
    with open_log(tmp_path, clock=clock) as log, log.coordinator("app") as coordinator:
        log.admin().create_topic("words")
        settings = {"transaction.coordinator": coordinator.token, "transaction.timeout.ms": 500}
        with log.producer(settings) as producer:
            producer.begin_transaction()
            producer.send("words", b"k", b"prepared")
            name = producer.prepare_transaction()
        clock.advance(499)
        assert log.admin().end_offsets([SOURCE]) == {SOURCE: 0}
        clock.advance(1)
        assert log.admin().end_offsets([SOURCE]) == {SOURCE: 1}
        with pytest.raises(FencedError, match=r"transaction\.timeout\.ms"):
            coordinator.commit([name])
        assert values_of(log, "words") == []


def test_many_transactions_leave_little_behind(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        with log.producer({"transactional.id": "app"}) as producer:
            for i in range(50):
                producer.begin_transaction()
                producer.send("words", b"k", b"%d" % i)
                producer.commit_transaction() if i % 2 else producer.abort_transaction()
                log.clean()
        assert values_of(log, "words") == [b"%d" % i for i in range(1, 50, 2)]


def send_without_end(producer: Producer, told: list[int]) -> None:
    while True:
        producer.send("words", b"k", b"x" * 100, on_delivery=lambda delivery: told.append(delivery.offset))


def test_a_buffer_that_cannot_be_written_blocks_and_then_says_so(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        settings = {"buffer.memory": 5_000, "max.block.ms": 20, "batch.size": 1_000}
        told: list[int] = []
        with log.producer(settings) as producer:
            with (head(tmp_path).parent / "lock").open() as other_writer:
                fcntl.flock(other_writer, fcntl.LOCK_EX)
                with pytest.raises(BufferFullError, match=r"buffer\.memory"):
                    send_without_end(producer, told)
                with pytest.raises(LogError, match="Another writer"):
                    producer.flush(timeout=0.01)
                assert told == []
            producer.flush()
            assert told == list(range(len(told)))
        assert len(values_of(log, "words")) == len(told) > 30


def test_a_record_larger_than_the_buffer_passes_alone(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        with log.producer({"buffer.memory": 100}) as producer:
            for _ in range(3):
                producer.send("words", b"k", b"x" * 1_000)
        assert len(values_of(log, "words")) == 3


def test_a_poll_waits_by_the_clock_it_was_given(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_log(tmp_path, clock=clock) as log, log.consumer() as consumer:
        log.admin().create_topic("words")
        consumer.assign([SOURCE])
        assert consumer.poll(timeout=60) == []
        assert clock.wall_ms() > 0
