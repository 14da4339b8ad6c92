"""Reading: positions, seeking, limits, pausing, waiting."""

import threading

import pytest

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from kstreams.log.api import Ability
from tests.log.contract.reading import drain, polls, sources

WORDS = TopicPartition("words", 0)


@pytest.fixture
def words(log: Log) -> Log:
    """A topic with 1,000 records in small and large frames; record i has the value i and the timestamp 10 i, not 0."""
    log.admin().create_topic("words")
    with log.producer({"linger.ms": -1}) as producer:
        for i in range(1_000):
            producer.send("words", b"k", b"%d" % i, timestamp=10 * i or 1)
            if i < 20 or i % 100 == 0:
                producer.flush()
    return log


def numbers(rows) -> list[int]:
    return [int(row.value) for row in rows]


def test_polls_return_what_comes_next_and_never_more_than_asked(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek_to_beginning()
        seen: list[int] = []
        while len(seen) < 1_000:
            batches = consumer.poll(10, max_records=7)
            assert sum(map(len, batches)) <= 7
            for batch in batches:
                assert batch.source == WORDS
                assert batch.offsets.tolist() == numbers(batch.rows())
                seen += numbers(batch.rows())
            assert consumer.position(WORDS) == len(seen)
        assert seen == list(range(1_000))


@pytest.mark.parametrize("offset", [0, 1, 19, 20, 21, 99, 100, 101, 555, 999])
def test_reading_goes_on_at_the_offset_that_was_sought(words: Log, offset: int) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek(WORDS, offset)
        assert consumer.position(WORDS) == offset
        assert numbers(drain(consumer)) == list(range(offset, 1_000))


@pytest.mark.parametrize("time", [-5, 0, 2, 10, 191, 1_005, 5_550, 9_990])
def test_a_time_leads_to_the_first_record_at_or_after_it(words: Log, time: int) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek_to_time(WORDS, time)
        assert consumer.position(WORDS) == max(0, -(-time // 10))


def test_a_time_after_all_records_leads_to_the_end(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek_to_time(WORDS, 9_991)
        assert consumer.position(WORDS) == 1_000


def test_an_admin_finds_the_first_records_at_or_after_times(words: Log) -> None:
    with words.admin() as admin:
        assert [admin.offsets_at_times({WORDS: time})[WORDS] for time in (0, 10, 11, 9_990, 9_991)] == [
            0,
            1,
            2,
            999,
            1_000,
        ]
        assert admin.offsets_at_times({}) == {}


def test_what_is_written_after_seeking_to_the_end_is_read(words: Log) -> None:
    with words.consumer() as consumer, words.producer() as producer:
        consumer.assign([WORDS])
        consumer.seek_to_end()
        assert consumer.poll() == []
        producer.send("words", b"k", b"1000")
        producer.flush()
        assert numbers(drain(consumer)) == [1_000]


def test_a_batch_stays_as_it_is_after_the_consumer_is_closed(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek_to_beginning()
        batches = list(polls(consumer))
    words.admin().delete_topic("words")
    assert numbers(row for batch in batches for row in batch.rows()) == list(range(1_000))


def test_kept_partitions_keep_their_position_when_others_are_assigned(log: Log) -> None:
    log.admin().create_topic("t", partitions=3)
    with log.producer() as producer:
        for partition in range(3):
            for i in range(4):
                producer.send("t", b"k", b"%d" % i, partition=partition)
    first, second, third = sources("t", 3)
    with log.consumer() as consumer:
        consumer.assign([first, second])
        consumer.seek(first, 3)
        consumer.assign([first, third])
        assert consumer.assignment() == {first, third}
        assert consumer.position(first) == 3
        with pytest.raises(LogError, match="assign"):
            consumer.position(second)


def test_paused_partitions_are_passed_over_until_they_are_resumed(log: Log) -> None:
    log.admin().create_topic("t", partitions=2)
    with log.producer() as producer:
        for partition in range(2):
            producer.send("t", b"k", b"%d" % partition, partition=partition)
    first, second = sources("t", 2)
    with log.consumer() as consumer:
        consumer.assign([first, second])
        consumer.seek_to_beginning()
        consumer.pause([first])
        assert numbers(drain(consumer, paused=[first])) == [1]
        consumer.resume([first])
        assert numbers(drain(consumer)) == [0]


@pytest.mark.needs(Ability.FAIR_POLLS)
def test_no_partition_starves_another(log: Log) -> None:
    log.admin().create_topic("t", partitions=2)
    with log.producer() as producer:
        for i in range(2_000):
            producer.send("t", b"k", b"%d" % i, partition=i % 2)
    with log.consumer() as consumer:
        consumer.assign(sources("t", 2))
        consumer.seek_to_beginning()
        seen = {batch.source.partition for _ in range(4) for batch in consumer.poll(max_records=10)}
    assert seen == {0, 1}


def test_a_poll_wakes_up_when_something_is_written(log: Log) -> None:
    log.admin().create_topic("words")
    waiting = threading.Event()

    def write() -> None:
        waiting.wait()
        with log.producer() as producer:
            producer.send("words", b"k", b"7")

    writer = threading.Thread(target=write)
    writer.start()
    with log.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek_to_beginning()
        waiting.set()
        assert numbers(row for batch in consumer.poll(timeout=60) for row in batch.rows()) == [7]
    writer.join()


def test_an_unknown_topic_is_refused_with_the_nearest_known(words: Log) -> None:
    with words.consumer() as consumer, pytest.raises(UnknownTopicError, match="'words'"):
        consumer.assign([TopicPartition("word", 0)])


def test_two_consumers_read_the_same_without_minding_each_other(words: Log) -> None:
    with words.consumer() as one, words.consumer() as other:
        for consumer in (one, other):
            consumer.assign([WORDS])
            consumer.seek_to_beginning()
        assert numbers(drain(one, 13)) == numbers(drain(other)) == list(range(1_000))


def test_a_wakeup_from_another_thread_ends_the_poll_that_waits_or_the_next_one(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        drain(consumer)
        for _ in range(3):
            sleeper = threading.Thread(target=consumer.poll, args=(86_400,), daemon=True)
            sleeper.start()
            consumer.wakeup()
            sleeper.join(20)
            assert not sleeper.is_alive()


def test_a_poll_that_was_woken_gives_what_there_is(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.wakeup()
        assert numbers(drain(consumer)) == list(range(1_000))
