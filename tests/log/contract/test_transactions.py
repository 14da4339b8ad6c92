"""Transactions: all or nothing, hidden until committed, one producer at a time for each transactional id."""

import pytest

from kstreams.errors import FencedError, LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Log, OffsetAndMetadata, Producer
from tests.log.contract.reading import drain, sources, values_of


def transactional(log: Log, name: str = "app") -> Producer:
    return log.producer({"transactional.id": name})


@pytest.fixture
def words(log: Log) -> Log:
    log.admin().create_topic("words", partitions=2)
    return log


def send(producer: Producer, *values: bytes, partition: int = 0) -> None:
    for value in values:
        producer.send("words", b"k", value, partition=partition)


def test_records_are_hidden_until_the_commit(words: Log) -> None:
    with transactional(words) as producer, words.consumer() as consumer:
        consumer.assign(sources("words", 2))
        consumer.seek_to_beginning()
        producer.begin_transaction()
        send(producer, b"1", b"2")
        send(producer, b"3", partition=1)
        producer.flush()
        assert drain(consumer) == []
        producer.commit_transaction()
        assert sorted(row.value for row in drain(consumer)) == [b"1", b"2", b"3"]


def test_aborted_records_are_never_seen(words: Log) -> None:
    with transactional(words) as producer:
        producer.begin_transaction()
        send(producer, b"written")
        producer.flush()
        send(producer, b"buffered")
        producer.abort_transaction()
        producer.begin_transaction()
        send(producer, b"kept")
        producer.commit_transaction()
    assert values_of(words, "words", 2) == [b"kept"]


def test_readers_stop_at_the_first_open_transaction(words: Log) -> None:
    (source,) = sources("words")
    with transactional(words) as producer, words.producer() as other:
        other.send("words", b"k", b"before", partition=0)
        other.flush()
        producer.begin_transaction()
        send(producer, b"open")
        producer.flush()
        other.send("words", b"k", b"after", partition=0)
        other.flush()
        assert values_of(words, "words", 2) == [b"before"]
        assert words.admin().end_offsets([source]) == {source: 1}
        assert words.admin().end_offsets([source], committed_only=False)[source] >= 3
        assert values_of(words, "words", 2, isolation_level="read_uncommitted") == [b"before", b"open", b"after"]
        producer.commit_transaction()
        assert values_of(words, "words", 2) == [b"before", b"open", b"after"]


def test_seeking_to_the_end_stops_at_the_first_open_transaction(words: Log) -> None:
    (source,) = sources("words")
    with transactional(words) as producer, words.consumer() as consumer:
        producer.begin_transaction()
        send(producer, b"1")
        producer.flush()
        consumer.assign([source])
        consumer.seek_to_end()
        producer.commit_transaction()
        assert [row.value for row in drain(consumer)] == [b"1"]


def test_offsets_are_committed_with_the_records(words: Log) -> None:
    (source,) = sources("words")
    with transactional(words) as producer, words.admin() as admin:
        producer.begin_transaction()
        send(producer, b"1")
        producer.commit_transaction({source: OffsetAndMetadata(11, "memo")}, "g")
        assert admin.committed("g", [source]) == {source: OffsetAndMetadata(11, "memo")}
        producer.begin_transaction()
        send(producer, b"2")
        producer.abort_transaction()
        assert admin.committed("g", [source]) == {source: OffsetAndMetadata(11, "memo")}


def test_a_transaction_may_commit_offsets_alone_or_nothing(words: Log) -> None:
    (source,) = sources("words")
    with transactional(words) as producer:
        producer.begin_transaction()
        producer.commit_transaction({source: OffsetAndMetadata(3)}, "g")
        producer.begin_transaction()
        producer.commit_transaction()
    assert words.admin().committed("g", [source]) == {source: OffsetAndMetadata(3)}


def test_a_second_producer_fences_the_first_and_ends_its_transaction(words: Log) -> None:
    (source,) = sources("words")
    with transactional(words) as old:
        old.begin_transaction()
        send(old, b"old")
        old.flush()
        with transactional(words) as new:
            new.begin_transaction()
            send(new, b"new")
            new.commit_transaction()
            with pytest.raises(FencedError, match="app"):
                old.commit_transaction({source: OffsetAndMetadata(99)}, "g")
        with pytest.raises(FencedError):
            transactional_again(old)
    assert values_of(words, "words", 2) == [b"new"]
    assert words.admin().committed("g", [source]) == {}


def transactional_again(producer: Producer) -> None:
    producer.abort_transaction()
    producer.begin_transaction()


def test_what_a_fenced_producer_still_writes_is_never_seen(words: Log) -> None:
    with transactional(words) as old:
        old.begin_transaction()
        send(old, b"1")
        old.flush()
        with transactional(words) as new:
            send(old, b"2")
            send(old, b"3", partition=1)
            with pytest.raises(FencedError):
                old.commit_transaction()
            new.begin_transaction()
            send(new, b"new")
            new.commit_transaction()
    assert values_of(words, "words", 2) == [b"new"]


def test_closing_a_producer_aborts_its_transaction(words: Log) -> None:
    with transactional(words) as producer:
        producer.begin_transaction()
        send(producer, b"1")
        producer.flush()
    with words.producer() as other:
        other.send("words", b"k", b"2", partition=0)
    assert values_of(words, "words", 2) == [b"2"]


def test_producers_with_other_ids_do_not_mind_each_other(words: Log) -> None:
    with transactional(words, "a") as one, transactional(words, "b") as other:
        one.begin_transaction()
        other.begin_transaction()
        send(one, b"1")
        send(other, b"2", partition=1)
        other.commit_transaction()
        assert values_of(words, "words", 2) == [b"2"]
        one.commit_transaction()
    assert values_of(words, "words", 2) == [b"1", b"2"]


def test_transactions_in_the_wrong_order_are_refused(words: Log) -> None:
    with words.producer() as plain, pytest.raises(LogError, match=r"transactional\.id"):
        plain.begin_transaction()
    with transactional(words) as producer:
        with pytest.raises(LogError, match="begin_transaction"):
            send(producer, b"1")
        with pytest.raises(LogError, match="begin_transaction"):
            producer.commit_transaction()
        with pytest.raises(LogError, match="begin_transaction"):
            producer.abort_transaction()
        producer.begin_transaction()
        with pytest.raises(LogError, match="open already"):
            producer.begin_transaction()


def test_a_transaction_with_a_record_that_cannot_be_written_cannot_be_committed(words: Log) -> None:
    words.admin().create_topic("table", config={"cleanup.policy": "compact"})
    with transactional(words) as producer:
        producer.begin_transaction()
        send(producer, b"1")
        producer.send_batch(Batch.of_rows(TopicPartition("table", 0), [Row(None, b"no key", 1, ())]))
        for _ in range(2):
            with pytest.raises(LogError, match="key"):
                producer.commit_transaction()
        producer.abort_transaction()
    assert values_of(words, "words", 2) == []
