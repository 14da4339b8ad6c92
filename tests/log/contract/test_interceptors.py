"""Interceptors: what they see of records, deliveries and commits, and what they change."""

from collections.abc import Mapping
from typing import Any

import pytest

from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Delivery, Log, OffsetAndMetadata
from kstreams.log.api import Ability
from kstreams.log.interceptors import ConsumerInterceptor, ProducerInterceptor, SentRecord
from tests.log.contract.members import fill, read
from tests.log.contract.reading import drain, rows_of, sources, values_of

ZERO = TopicPartition("words", 0)


class Stamping(ProducerInterceptor):
    """Adds a header, and notes what it hears."""

    def __init__(self, name: str = "by") -> None:
        self.name = name
        self.deliveries: list[Delivery] = []
        self.closed = 0

    def on_send(self, record: SentRecord) -> SentRecord:
        return record._replace(headers=(*record.headers, (self.name, b"x")))

    def on_acknowledgement(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)

    def close(self) -> None:
        self.closed += 1


class Noting(ConsumerInterceptor):
    """Leaves out the values `b"secret"`, and notes commits."""

    def __init__(self) -> None:
        self.commits: list[Mapping[TopicPartition, OffsetAndMetadata]] = []
        self.closed = 0

    def on_consume(self, batches: list[Batch]) -> list[Batch]:
        kept = [[row for row in batch.rows() if row.value != b"secret"] for batch in batches]
        return [Batch.of_rows(batch.source, rows) for batch, rows in zip(batches, kept, strict=True) if rows]

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.commits.append(offsets)

    def close(self) -> None:
        self.closed += 1


class Failing(ProducerInterceptor, ConsumerInterceptor):  # type: ignore[misc]
    """Raises wherever it is called."""

    def fail(self, given: Any) -> Any:
        raise ValueError("as it does")

    on_send = on_acknowledgement = on_consume = on_commit = fail


def test_records_and_batches_pass_through_all_interceptors_in_order(log: Log) -> None:
    log.admin().create_topic("words")
    first, second = Stamping("a"), Stamping("b")
    with log.producer({"interceptors": [first, second]}) as producer:
        producer.send("words", b"k", b"1", timestamp=5, headers=(("own", None),))
        producer.send_batch(Batch.of_rows(ZERO, [Row(b"k", b"2", 6, ()), Row(None, None, 7, ())]))
    stamps = (("a", b"x"), ("b", b"x"))
    assert rows_of(log, "words") == [
        Row(b"k", b"1", 5, (("own", None), *stamps)), Row(b"k", b"2", 6, stamps), Row(None, None, 7, stamps)
    ]  # fmt: skip
    for interceptor in (first, second):
        assert interceptor.deliveries == [Delivery(ZERO, 0, 1, None), Delivery(ZERO, 1, 2, None)]
        assert interceptor.closed == 1


def test_callbacks_are_told_as_before(log: Log) -> None:
    log.admin().create_topic("words")
    told: list[Delivery] = []
    interceptor = Stamping()
    for only_errors in (False, True):
        with log.producer({"interceptors": [interceptor], "delivery.report.only.error": only_errors}) as producer:
            producer.send("words", b"k", b"v", timestamp=1, on_delivery=told.append)
    assert told == [Delivery(ZERO, 0, 1, None)]
    assert [delivery.offset for delivery in interceptor.deliveries] == [0, 1]


def test_what_cannot_be_sent_is_heard_of_too(log: Log) -> None:
    log.admin().create_topic("words", config={"max.message.bytes": "2000"})
    interceptor = Stamping()
    with log.producer({"interceptors": [interceptor]}) as producer:
        with pytest.raises(LogError, match="large"):
            producer.send("words", b"k", b"x" * 3_000)
        producer.send_batch(Batch.of_rows(ZERO, [Row(b"k", b"x" * 3_000, 1, ())]))
        with pytest.raises(LogError, match="large"):
            producer.flush()
    assert [(delivery.offset, delivery.error is None) for delivery in interceptor.deliveries] == [(-1, False)] * 2


def test_transactions_are_as_without(log: Log) -> None:
    log.admin().create_topic("words")
    interceptor = Stamping()
    with log.producer({"transactional.id": "t", "interceptors": [interceptor]}) as producer:
        for number in (1, 2):
            producer.begin_transaction()
            producer.send("words", b"k", b"%d" % number, timestamp=1)
            producer.commit_transaction() if number == 2 else producer.abort_transaction()
    assert values_of(log, "words") == [b"2"]
    assert [delivery.error is None for delivery in interceptor.deliveries] == [False, True]


def test_what_is_read_passes_through_and_positions_move_on(log: Log) -> None:
    log.admin().create_topic("words")
    interceptor = Noting()
    with log.producer() as producer:
        for value in (b"1", b"secret", b"3", b"secret"):
            producer.send("words", b"k", value, timestamp=1)
    with log.consumer({"interceptors": [interceptor]}) as consumer:
        consumer.assign(sources("words"))
        consumer.seek_to_beginning()
        assert [row.value for row in drain(consumer)] == [b"1", b"3"]
        assert consumer.position(ZERO) == 4
    assert interceptor.closed == 1


@pytest.mark.needs(Ability.GROUPS)
def test_commits_are_told(log: Log) -> None:
    fill(log, "words", partitions=1)
    interceptor = Noting()
    with log.consumer({"group.id": "readers", "interceptors": [interceptor]}) as consumer:
        consumer.subscribe(["words"])
        read(consumer, 10)
        consumer.commit({ZERO: OffsetAndMetadata(4, "memo")})
        consumer.commit()
        consumer.commit_async({ZERO: OffsetAndMetadata(7)})
        consumer.poll()
    wanted = [OffsetAndMetadata(4, "memo"), OffsetAndMetadata(10), OffsetAndMetadata(7)]
    assert interceptor.commits == [{ZERO: at} for at in wanted]


def test_one_that_fails_is_logged_and_passed_over(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.admin().create_topic("words")
    with log.producer({"interceptors": [Failing(), Stamping()]}) as producer:
        producer.send("words", b"k", b"v", timestamp=1)
    with log.consumer({"interceptors": [Failing()]}) as consumer:
        consumer.assign(sources("words"))
        consumer.seek_to_beginning()
        assert [(row.value, row.headers) for row in drain(consumer)] == [(b"v", (("by", b"x"),))]
    assert [line for line in caplog.messages if "interceptor" in line]


def test_one_that_sends_elsewhere_is_passed_over(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    class Diverting(ProducerInterceptor):
        def on_send(self, record: SentRecord) -> SentRecord:
            return record._replace(topic="other", value=b"changed")

    log.admin().create_topic("words")
    with log.producer({"interceptors": [Diverting()]}) as producer:
        producer.send("words", b"k", b"v", timestamp=1)
    assert values_of(log, "words") == [b"v"]
    assert "another topic" in caplog.text


@pytest.mark.parametrize("given", [f"{__name__}:Stamping", f"{__name__}.Stamping", Stamping, [f"{__name__}:Stamping"]])
def test_they_are_named_by_import_paths_and_classes(log: Log, given: Any) -> None:
    log.admin().create_topic("words")
    with log.producer({"interceptors": given}) as producer:
        producer.send("words", b"k", b"v", timestamp=1)
    assert rows_of(log, "words")[0].headers == (("by", b"x"),)


def test_a_path_that_leads_nowhere_is_refused(log: Log) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        log.producer({"interceptors": "kstreams.nowhere:Tracing"})
