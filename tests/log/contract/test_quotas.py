"""Quotas of client ids: they are set, found and removed, and delay who sends or reads more, who loses nothing by it."""

import random
from collections.abc import Iterator

import pytest

from kstreams.errors import ConfigError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from kstreams.log.api import Ability, Throttling
from tests.log.contract.members import read
from tests.log.contract.reading import values_of

SOURCE = TopicPartition("words", 0)
RATE = 200_000
VALUES = [random.Random(i).randbytes(25_000) for i in range(96)]  # more than the 11 seconds at once, also compressed


@pytest.fixture
def quotas(log: Log) -> Iterator[Log]:
    """A home whose quotas are removed after the test: those of a cluster outlast its topics."""
    yield log
    with log.admin() as admin:
        for client_id, rates in admin.client_quotas().items():
            admin.alter_client_quotas(client_id, dict.fromkeys(rates))


def send(log: Log, client_id: str) -> Throttling:
    """Send all values; how the producer was delayed."""
    with log.producer({"client.id": client_id, "linger.ms": 0}) as producer:
        for value in VALUES:
            producer.send("words", None, value)
        producer.flush()
        return producer.throttling()


def test_quotas_are_set_found_and_removed_one_by_one(quotas: Log) -> None:
    with quotas.admin() as admin:
        assert admin.client_quotas() == {}
        admin.alter_client_quotas("reports", {"producer_byte_rate": 1_000, "consumer_byte_rate": 2_000.0})
        admin.alter_client_quotas(None, {"consumer_byte_rate": 3_000})
        assert admin.client_quotas() == {
            None: {"consumer_byte_rate": 3_000},
            "reports": {"producer_byte_rate": 1_000, "consumer_byte_rate": 2_000},
        }
        admin.alter_client_quotas("reports", {"producer_byte_rate": None, "consumer_byte_rate": 2_500})
        assert admin.client_quotas()["reports"] == {"consumer_byte_rate": 2_500}
        admin.alter_client_quotas("reports", {"consumer_byte_rate": None})
        assert list(admin.client_quotas()) == [None]


def test_a_quota_that_cannot_be_is_refused(quotas: Log) -> None:
    with quotas.admin() as admin:
        with pytest.raises(ConfigError, match="Did you mean 'producer_byte_rate'"):
            admin.alter_client_quotas("reports", {"producer_bytes_rate": 1})
        for rate in (0, -1, 1.5):
            with pytest.raises(ConfigError, match="at least 1"):
                admin.alter_client_quotas("reports", {"producer_byte_rate": rate})
        with pytest.raises(ConfigError, match="not empty"):
            admin.alter_client_quotas("", {"producer_byte_rate": 1})
        assert admin.client_quotas() == {}


def test_a_producer_over_its_quota_is_delayed_and_loses_nothing(quotas: Log) -> None:
    with quotas.admin() as admin:
        admin.create_topic("words")
        admin.alter_client_quotas("reports", {"producer_byte_rate": RATE})
    assert send(quotas, "others") == Throttling()
    throttling = send(quotas, "reports")
    assert throttling.responses > 0
    assert throttling.total_ms >= throttling.greatest_ms > 0
    assert values_of(quotas, "words") == [*VALUES, *VALUES]


def test_a_consumer_over_its_quota_is_delayed_and_reads_all(quotas: Log) -> None:
    with quotas.admin() as admin:
        admin.create_topic("words")
        admin.alter_client_quotas("reports", {"consumer_byte_rate": RATE})
    send(quotas, "others")
    with quotas.consumer({"client.id": "reports"}) as consumer:
        consumer.assign([SOURCE])
        values: list[bytes | None] = []
        while len(values) < len(VALUES):
            values += [row.value for batch in consumer.poll(0.2) for row in batch.rows()]
        while not consumer.is_at_end(SOURCE):
            assert consumer.poll(0.2) == []
        assert values == VALUES
        assert consumer.throttling().total_ms > 0


def test_who_has_no_quota_has_the_default(quotas: Log) -> None:
    with quotas.admin() as admin:
        admin.create_topic("words")
        admin.alter_client_quotas(None, {"producer_byte_rate": RATE})
        admin.alter_client_quotas("free", {"producer_byte_rate": 1_000_000_000})
    assert send(quotas, "free").total_ms == 0
    assert send(quotas, "others").total_ms > 0


@pytest.mark.needs(Ability.GROUPS)
def test_a_member_that_waits_by_itself_reads_all(quotas: Log) -> None:
    with quotas.admin() as admin:
        admin.create_topic("words")
        admin.alter_client_quotas("reports", {"consumer_byte_rate": RATE})
    send(quotas, "others")
    settings = {"client.id": "reports", "group.id": "readers", "quota.delays": False}
    with quotas.consumer(settings) as member:
        member.subscribe(["words"])
        assert len(read(member, len(VALUES))) == len(VALUES)
        member.commit()
        assert member.committed([SOURCE])[SOURCE].offset == len(VALUES)
