"""Answers to calls of a transaction are lost, late or cut off: nothing is lost, nothing counts twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kstreams.errors import LogError, UncertainCommitError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log, OffsetAndMetadata, Producer, home_at
from tests.log.contract.reading import commits_are_awaited, values_of
from tests.support.kafka_cluster import KafkaCluster, can_run
from tests.support.kafka_topics import delete_everything
from tests.support.tcp_proxy import Fault, Request

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

WORDS = TopicPartition("words", 0)
SOON = {"transactional.id": "app", "max.block.ms": 1_500}
COUNT = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(proxied=True) as started:
        yield started


@pytest.fixture
def log(cluster: KafkaCluster) -> Iterator[Log]:
    delete_everything(cluster.bootstrap_servers)
    with home_at(f"kafka:{cluster.bootstrap_servers}").open() as opened:
        opened.admin().create_topic("words")
        opened.admin().create_topic("out")
        with commits_are_awaited(opened):
            yield opened


class Copier:
    """Copies words to `out` in transactions of ten; after an error it begins anew from what is committed."""

    def __init__(self, log: Log, stack: ExitStack, settings: dict[str, Any]) -> None:
        self._log, self._stack, self._settings = log, stack, settings
        self.failures: list[LogError] = []
        self._consumer = stack.enter_context(log.consumer())
        self._producer: Producer | None = None
        self._at = 0

    def copy(self, until: int) -> None:
        """Go on until so many are committed."""
        while self._at < until:
            try:
                self._step()
            except LogError as error:
                self.failures.append(error)
                if self._producer is not None:
                    self._producer.close()
                self._producer = None

    def _step(self) -> None:
        if self._producer is None:  # it ends what the one before has left open: what is committed then stays
            self._producer = self._stack.enter_context(self._log.producer(self._settings))
            known = self._log.admin().committed("copier", [WORDS])
            self._at = known[WORDS].offset if known else 0
            self._consumer.assign([WORDS])
            self._consumer.seek(WORDS, self._at)
        batches = self._consumer.poll(5, max_records=10)
        self._producer.begin_transaction()
        for batch in batches:
            for row in batch.rows():
                self._producer.send("out", None, row.value)
        at = self._consumer.position(WORDS)
        self._producer.commit_transaction({WORDS: OffsetAndMetadata(at)}, "copier")
        self._at = at


@pytest.fixture
def copier(log: Log) -> Iterator[Callable[..., Copier]]:
    with log.producer() as producer:
        for number in range(COUNT):
            producer.send("words", None, b"%d" % number)
    with ExitStack() as stack:
        yield lambda **settings: Copier(log, stack, SOON | settings)


@pytest.mark.parametrize("how", ["lose", "cut", "hold"])
@pytest.mark.parametrize(
    "asked",
    [
        Request.ADD_PARTITIONS_TO_TXN,
        Request.ADD_OFFSETS_TO_TXN,
        Request.TXN_OFFSET_COMMIT,
        Request.PRODUCE,
        Request.END_TXN,
    ],
)
def test_everything_is_copied_once_though_answers_are_missing(
    cluster: KafkaCluster, log: Log, copier: Callable[..., Copier], asked: Request, how: str
) -> None:
    copying = copier()
    copying.copy(20)
    fault = getattr(cluster.proxy, how)(asked)
    copying.copy(100)
    assert fault.done.is_set()
    assert copying.failures or how == "cut", "the client tries again by itself after a connection has ended"
    fault.let_go()
    copying.copy(COUNT)
    assert values_of(log, "out") == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("how", ["lose", "cut", "hold"])
@pytest.mark.parametrize("asked", [Request.INIT_PRODUCER_ID, Request.END_TXN])
def test_the_client_asks_again_within_the_time_of_the_call(
    cluster: KafkaCluster, log: Log, copier: Callable[..., Copier], asked: Request, how: str
) -> None:
    copying = copier(**{"request.timeout.ms": 1_000, "max.block.ms": 20_000})
    fault = getattr(cluster.proxy, how)(asked)
    copying.copy(COUNT)
    assert fault.done.is_set()
    assert copying.failures == []
    assert values_of(log, "out") == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("how", ["lose", "cut", "hold"])
def test_a_batch_that_is_sent_again_for_want_of_an_answer_is_there_once(
    cluster: KafkaCluster, log: Log, how: str
) -> None:
    with log.producer({"request.timeout.ms": 1_000}) as producer:
        producer.send("words", b"k", b"0")
        producer.flush()
        fault = getattr(cluster.proxy, how)(Request.PRODUCE)
        for number in range(1, 50):
            producer.send("words", b"k", b"%d" % number)
        producer.flush()
    assert fault.done.is_set()
    fault.let_go()
    assert values_of(log, "words") == [b"%d" % number for number in range(50)]


def test_a_commit_whose_answer_is_lost_is_uncertain_and_its_producer_is_not_used_again(
    cluster: KafkaCluster, log: Log
) -> None:
    producer = log.producer(SOON)
    producer.begin_transaction()
    producer.send("words", b"k", b"1")
    cluster.proxy.lose(Request.END_TXN)
    with pytest.raises(UncertainCommitError, match="another producer"):
        producer.commit_transaction({WORDS: OffsetAndMetadata(7)}, "g")
    for call in (producer.begin_transaction, producer.abort_transaction, producer.commit_transaction):
        with pytest.raises(UncertainCommitError):
            call()
    producer.close()
    with log.producer(SOON) as successor:
        assert values_of(log, "words") == [b"1"], "the broker had committed it"
        assert log.admin().committed("g", [WORDS]) == {WORDS: OffsetAndMetadata(7)}
        successor.begin_transaction()
        successor.send("words", b"k", b"2")
        successor.commit_transaction()
    assert values_of(log, "words") == [b"1", b"2"]


def test_a_late_answer_to_an_older_producer_changes_nothing(cluster: KafkaCluster, log: Log) -> None:
    producer = log.producer(SOON)
    producer.begin_transaction()
    producer.send("words", b"k", b"old")
    fault = cluster.proxy.hold(Request.ADD_OFFSETS_TO_TXN)
    with pytest.raises(UncertainCommitError):
        producer.commit_transaction({WORDS: OffsetAndMetadata(99)}, "g")
    with log.producer(SOON) as successor:
        successor.begin_transaction()
        fault.let_go()
        successor.send("words", b"k", b"new")
        successor.commit_transaction({WORDS: OffsetAndMetadata(1)}, "g")
        assert values_of(log, "words") == [b"new"]
        assert log.admin().committed("g", [WORDS]) == {WORDS: OffsetAndMetadata(1)}
        producer.close()


def test_a_producer_closes_though_its_abort_gets_no_answer(cluster: KafkaCluster, log: Log) -> None:
    producer = log.producer(SOON)
    producer.begin_transaction()
    producer.send("words", b"k", b"old")
    producer.flush()
    fault = cluster.proxy.hold(Request.END_TXN)
    producer.close()
    fault.let_go()
    with log.producer(SOON) as successor:
        successor.begin_transaction()
        successor.send("words", b"k", b"new")
        successor.commit_transaction()
    assert values_of(log, "words") == [b"new"]


def test_a_connection_that_ends_in_a_commit_is_made_anew_without_a_word(cluster: KafkaCluster, log: Log) -> None:
    with log.producer({"transactional.id": "app"}) as producer:
        producer.begin_transaction()
        producer.send("words", b"k", b"1")
        fault = cluster.proxy.cut(Request.END_TXN)
        producer.commit_transaction({WORDS: OffsetAndMetadata(1)}, "g")
        assert fault.done.is_set()
    assert values_of(log, "words") == [b"1"]
    assert log.admin().committed("g", [WORDS]) == {WORDS: OffsetAndMetadata(1)}


def kill_who_answers(cluster: KafkaCluster, fault: Fault) -> None:
    """Kill the broker that has answered, and start it again; the answer never comes."""
    fault.done.wait()
    cluster.kill(fault.place + 1)
    fault.let_go()
    cluster.start(fault.place + 1)


def test_brokers_that_are_killed_in_the_middle_of_commits_lose_and_double_nothing() -> None:
    """One of three brokers at a time, with the same producer as long as it is sound: it was seen to block for ever."""
    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(3, proxied=True) as cluster, home_at(f"kafka:{cluster.bootstrap_servers}").open() as log:
        for topic in ("words", "out"):
            log.admin().create_topic(topic)
        with log.producer() as producer:
            for number in range(COUNT):
                producer.send("words", None, b"%d" % number)
        with ExitStack() as stack:
            copier = Copier(log, stack, SOON)
            for turn, request in enumerate((Request.END_TXN, Request.ADD_OFFSETS_TO_TXN, Request.TXN_OFFSET_COMMIT), 1):
                killer = threading.Thread(target=kill_who_answers, args=(cluster, cluster.proxy.hold(request)))
                killer.start()
                copier.copy(50 * turn)
                killer.join()
            copier.copy(COUNT)
        assert values_of(log, "out") == [b"%d" % number for number in range(COUNT)]
