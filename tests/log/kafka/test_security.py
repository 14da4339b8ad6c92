"""Clients that have to log in: the settings reach every client, and passwords stay secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kstreams.errors import ConfigError, LogError
from kstreams.log import Log, OffsetAndMetadata, home_at
from tests.log.contract.members import fill, read
from tests.log.contract.reading import sources
from tests.support.kafka_cluster import KafkaCluster, can_run

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PASSWORD = "tiger-7f3a"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "security.allow.insecure": True,
    "sasl.mechanism": "PLAIN",
    "sasl.username": "shop",
    "sasl.password": PASSWORD,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(users={"shop": PASSWORD}) as started:
        yield started


def opened(cluster: KafkaCluster, **changed: Any) -> Log:
    settings = LOGIN | {name.replace("_", "."): value for name, value in changed.items()}
    return home_at(f"kafka:{cluster.bootstrap_servers}").open(settings)


def test_every_client_logs_in(cluster: KafkaCluster) -> None:
    with opened(cluster) as log:
        fill(log, "words", partitions=1)
        with log.consumer({"group.id": "readers"}) as member, log.producer({"transactional.id": "app"}) as producer:
            member.subscribe(["words"])
            assert len(read(member, 10)) == 10
            producer.begin_transaction()
            producer.commit_transaction({sources("words")[0]: OffsetAndMetadata(7)}, member.group_metadata())
            assert log.admin().committed("readers", sources("words")) == {sources("words")[0]: OffsetAndMetadata(7)}


def test_who_does_not_encrypt_has_to_say_so(cluster: KafkaCluster) -> None:
    with opened(cluster, security_allow_insecure=False) as log, pytest.raises(ConfigError, match="unencrypted"):
        log.admin().topics()


def test_a_wrong_password_is_refused_and_told_nowhere(
    cluster: KafkaCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kstreams.log.kafka.connection.TIMEOUT_S", 1)
    wrong = "lion-9c1e"
    with (
        caplog.at_level(logging.DEBUG),
        opened(cluster, sasl_password=wrong) as log,
        pytest.raises(LogError) as refused,
    ):
        log.admin().topics()
    assert "Authentication failed" in str(refused.value)
    assert wrong not in str(refused.value) + caplog.text
