"""A coordinator commits what several producers have prepared, as one; whatever else they wrote is never seen."""

import pytest

from kstreams.errors import FencedError, LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Log, OffsetAndMetadata, Producer, TransactionCoordinator
from kstreams.log.api import Ability
from tests.log.contract.reading import sources, values_of

pytestmark = pytest.mark.needs(Ability.COORDINATOR)


@pytest.fixture
def words(log: Log) -> Log:
    log.admin().create_topic("words", partitions=2)
    return log


def joined(log: Log, coordinator: TransactionCoordinator) -> Producer:
    producer = log.producer({"transaction.coordinator": coordinator.token})
    producer.begin_transaction()
    return producer


def prepared(log: Log, coordinator: TransactionCoordinator, *values: bytes, partition: int = 0) -> str:
    """A transaction with these records, prepared by a producer that is gone."""
    with joined(log, coordinator) as producer:
        for value in values:
            producer.send("words", b"k", value, partition=partition)
        return producer.prepare_transaction()


def test_the_prepared_transactions_of_several_producers_become_visible_as_one(words: Log) -> None:
    (source,) = sources("words")
    with words.coordinator("app") as coordinator:
        first = prepared(words, coordinator, b"1", b"2")
        second = prepared(words, coordinator, b"3", partition=1)
        assert values_of(words, "words", 2) == []
        coordinator.commit([first, second], {source: OffsetAndMetadata(7, "step 1")}, "g")
        assert values_of(words, "words", 2) == [b"1", b"2", b"3"]
        assert words.admin().committed("g", [source]) == {source: OffsetAndMetadata(7, "step 1")}


def test_what_is_not_named_at_the_commit_is_never_seen(words: Log) -> None:
    """An attempt that was tried again, one that ran beside another, and one that died."""
    with words.coordinator("app") as coordinator:
        prepared(words, coordinator, b"first try")
        named = prepared(words, coordinator, b"second try")
        dead = joined(words, coordinator)
        dead.send("words", b"k", b"half")
        dead.flush()
        coordinator.commit([named])
        assert values_of(words, "words", 2) == [b"second try"]
        dead.close()
    assert values_of(words, "words", 2) == [b"second try"]


def test_a_producer_that_is_late_for_the_commit_is_fenced(words: Log) -> None:
    with words.coordinator("app") as coordinator:
        late = joined(words, coordinator)
        later = words.producer({"transaction.coordinator": coordinator.token})
        coordinator.commit([])
        late.send("words", b"k", b"late", partition=0)
        with pytest.raises(FencedError):
            late.flush()
        with pytest.raises(FencedError):
            later.begin_transaction()
        coordinator.commit([prepared(words, coordinator, b"next")])
        late.close()
        later.close()
    assert values_of(words, "words", 2) == [b"next"]


def test_one_producer_may_prepare_one_transaction_after_the_other(words: Log) -> None:
    with words.coordinator("app") as coordinator:
        with joined(words, coordinator) as producer:
            producer.send("words", b"k", b"1", partition=0)
            first = producer.prepare_transaction()
            producer.begin_transaction()
            producer.send("words", b"k", b"2", partition=0)
            second = producer.prepare_transaction()
        coordinator.commit([second])
        assert first != second
    assert values_of(words, "words", 2) == [b"2"]


def test_a_transaction_that_its_producer_did_not_prepare_is_aborted_when_it_closes(words: Log) -> None:
    with words.coordinator("app") as coordinator:
        with joined(words, coordinator) as producer:
            producer.send("words", b"k", b"1", partition=0)
            producer.flush()
        with words.producer() as other:
            other.send("words", b"k", b"after", partition=0)
        assert values_of(words, "words", 2) == [b"after"]


def test_a_newer_coordinator_fences_the_older_one_and_its_producers(words: Log) -> None:
    (source,) = sources("words")
    old = words.coordinator("app")
    name, zombie = prepared(words, old, b"old"), joined(words, old)
    with words.coordinator("app") as new:
        with pytest.raises(FencedError, match="app"):
            old.commit([name], {source: OffsetAndMetadata(99)}, "g")
        zombie.send("words", b"k", b"zombie", partition=1)
        with pytest.raises(FencedError):
            zombie.prepare_transaction()
        with pytest.raises(FencedError):
            new.commit([name])
        named = prepared(words, new, b"new")
        old.close()  # takes nothing from the newer one
        new.commit([named])
    zombie.close()
    assert values_of(words, "words", 2) == [b"new"]
    assert words.admin().committed("g", [source]) == {}


def test_when_one_transaction_is_lost_none_is_committed(words: Log) -> None:
    (source,) = sources("words")
    with words.coordinator("app") as coordinator:
        kept = prepared(words, coordinator, b"kept")
        with joined(words, coordinator) as producer:
            producer.send("words", b"k", b"lost", partition=0)
            lost = str(int(producer.prepare_transaction()) + 1)
        with pytest.raises(FencedError):
            coordinator.commit([kept, lost], {source: OffsetAndMetadata(1)}, "g")
        assert values_of(words, "words", 2) == []
        coordinator.commit([kept])
    assert values_of(words, "words", 2) == [b"kept"]
    assert words.admin().committed("g", [source]) == {}


def test_readers_stop_at_what_is_prepared_until_the_coordinator_commits_or_closes(words: Log) -> None:
    with words.producer() as other:
        with words.coordinator("app") as coordinator:
            prepared(words, coordinator, b"open")
            other.send("words", b"k", b"after", partition=0)
            other.flush()
            assert values_of(words, "words", 2) == []
        assert values_of(words, "words", 2) == [b"after"]


def test_a_coordinator_may_commit_offsets_alone(words: Log) -> None:
    (source,) = sources("words")
    with words.coordinator("app") as coordinator:
        coordinator.commit([], {source: OffsetAndMetadata(3)}, "g")
        assert words.admin().committed("g", [source]) == {source: OffsetAndMetadata(3)}
        with pytest.raises(LogError, match="group"):
            coordinator.commit([], {source: OffsetAndMetadata(4)})


def test_who_commits_is_said_when_it_is_the_other(words: Log) -> None:
    with words.coordinator("app") as coordinator:
        producer = joined(words, coordinator)
        with pytest.raises(LogError, match="prepare_transaction"):
            producer.commit_transaction()
        producer.close()
    with words.producer({"transactional.id": "app"}) as producer:
        producer.begin_transaction()
        with pytest.raises(LogError, match=r"transaction\.coordinator"):
            producer.prepare_transaction()
    with pytest.raises(LogError, match="no token"):
        words.producer({"transaction.coordinator": "app"})


def test_a_transaction_with_a_record_that_cannot_be_written_cannot_be_prepared(words: Log) -> None:
    words.admin().create_topic("table", config={"cleanup.policy": "compact"})
    with words.coordinator("app") as coordinator:
        with joined(words, coordinator) as producer:
            producer.send("words", b"k", b"1", partition=0)
            producer.send_batch(Batch.of_rows(TopicPartition("table", 0), [Row(None, b"no key", 0, ())]))
            for _ in range(2):
                with pytest.raises(LogError, match="key"):
                    producer.prepare_transaction()
        coordinator.commit([])
    assert values_of(words, "words", 2) == []
