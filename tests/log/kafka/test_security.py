"""Clients that have to log in: the settings reach every client, and passwords stay secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

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
SCRAM = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    **{
        f"listener.name.login.scram-sha-{bits}.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
        for bits in (256, 512)
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(settings=SCRAM, users={"shop": PASSWORD}) as started:
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


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_quotas_are_changed_by_who_logs_in(cluster: KafkaCluster, mechanism: str) -> None:
    if mechanism != "PLAIN":
        add_scram_user(cluster, mechanism, "scram,user=", PASSWORD)
    user = "shop" if mechanism == "PLAIN" else "scram,user="
    with opened(cluster, sasl_mechanism=mechanism, sasl_username=user) as log, log.admin() as admin:
        admin.alter_client_quotas("reports", {"producer_byte_rate": 1_000})
        assert admin.client_quotas() == {"reports": {"producer_byte_rate": 1_000}}
        admin.alter_client_quotas("reports", {"producer_byte_rate": None})
        assert admin.client_quotas() == {}
    wrong = "lion-9c1e"
    with (
        opened(cluster, sasl_mechanism=mechanism, sasl_username=user, sasl_password=wrong) as log,
        pytest.raises(LogError, match="refuses the log-in") as refused,
    ):
        log.admin().client_quotas()
    assert wrong not in str(refused.value)


def test_a_log_in_that_only_kafkas_client_knows_is_told(cluster: KafkaCluster) -> None:
    with opened(cluster, sasl_mechanism="OAUTHBEARER") as log, pytest.raises(ConfigError, match=r"kafka-configs\.sh"):
        log.admin().client_quotas()


def add_scram_user(cluster: KafkaCluster, mechanism: str, user: str, password: str) -> None:
    scram = ScramMechanism[mechanism.replace("-", "_")]
    admin = AdminClient(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            **{name: value for name, value in LOGIN.items() if name != "security.allow.insecure"},
        }
    )
    credential = UserScramCredentialUpsertion(user, ScramCredentialInfo(scram, 4096), password.encode())
    for future in admin.alter_user_scram_credentials([credential]).values():
        future.result(30)
