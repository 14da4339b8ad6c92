"""Clients that log in over TLS: whom they trust, and what is said when the broker is not the one they trust."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import LogError
from kstreams.log import Log, OffsetAndMetadata, home_at
from tests.log.contract.members import fill, read
from tests.log.contract.reading import sources
from tests.support.certificates import Authority, can_make
from tests.support.kafka_cluster import KafkaCluster, can_run

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PASSWORD = "tiger-7f3a"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (can_run() and can_make()):
        pytest.skip("a broker with TLS needs Java, Maven to fetch it, and openssl")
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder / "right")


@pytest.fixture(scope="module")
def cluster(authority: Authority) -> Iterator[KafkaCluster]:
    with KafkaCluster(users={"shop": PASSWORD}, certificate=authority.server("IP:127.0.0.1")) as started:
        yield started


def opened(cluster: KafkaCluster, trusted: Path | None, **changed: Any) -> Log:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "shop"}
    settings = {**login, "sasl.password": PASSWORD, **changed}
    if trusted is not None:
        settings["ssl.ca.location"] = str(trusted)
    return home_at(f"kafka:{cluster.bootstrap_servers}").open(settings)


def refusal(log: Log, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("kstreams.log.kafka.connection.TIMEOUT_S", 1)
    with log, pytest.raises(LogError) as refused:
        log.admin().topics()
    return str(refused.value)


def test_every_client_encrypts_and_logs_in(cluster: KafkaCluster, authority: Authority) -> None:
    with opened(cluster, authority.certificate) as log:
        fill(log, "words", partitions=1)
        with log.consumer({"group.id": "readers"}) as member, log.producer({"transactional.id": "app"}) as producer:
            member.subscribe(["words"])
            assert len(read(member, 10)) == 10
            producer.begin_transaction()
            producer.send("words", b"k", b"v", timestamp=1)
            producer.commit_transaction({sources("words")[0]: OffsetAndMetadata(7)}, member.group_metadata())
            assert log.admin().committed("readers", sources("words")) == {sources("words")[0]: OffsetAndMetadata(7)}


@pytest.mark.parametrize("trusts", ["another authority", "those of the machine"])
def test_a_broker_that_is_not_trusted_is_an_error_that_names_the_cure(
    cluster: KafkaCluster, folder: Path, trusts: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trusted = Authority(folder / "wrong").certificate if trusts == "another authority" else None
    with caplog.at_level(logging.DEBUG):
        told = refusal(opened(cluster, trusted), monkeypatch)
    assert "certificate verify failed" in told
    assert "ssl.ca.location" in told
    assert PASSWORD not in told + caplog.text


def test_a_certificate_of_another_server_is_refused(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    with KafkaCluster(users={"shop": PASSWORD}, certificate=authority.server("DNS:elsewhere.example")) as cluster:
        told = refusal(opened(cluster, authority.certificate), monkeypatch)
    assert "certificate" in told
    assert "127.0.0.1" in told


def test_a_wrong_password_is_refused_over_tls_too(
    cluster: KafkaCluster, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refusal(opened(cluster, authority.certificate, **{"sasl.password": "lion-9c1e"}), monkeypatch)
    assert "Authentication failed" in told
    assert "lion-9c1e" not in told


def test_who_does_not_encrypt_is_told_that_nobody_answers(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "security.allow.insecure": True}
    told = refusal(opened(cluster, None, **login), monkeypatch)
    assert "bootstrap.servers" in told


def test_quotas_are_changed_over_tls_by_who_trusts_the_broker(
    cluster: KafkaCluster, authority: Authority, folder: Path
) -> None:
    with opened(cluster, authority.certificate) as log, log.admin() as admin:
        admin.alter_client_quotas("reports", {"producer_byte_rate": 1_000})
        assert admin.client_quotas() == {"reports": {"producer_byte_rate": 1_000}}
        admin.alter_client_quotas("reports", {"producer_byte_rate": None})
    with (
        opened(cluster, Authority(folder / "foreign").certificate) as log,
        pytest.raises(LogError, match="certificate verify failed"),
    ):
        log.admin().client_quotas()
