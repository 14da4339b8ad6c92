"""Queries that read a Kafka which encrypts and asks for a login: by the settings that all clients of kstreams take."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark.code.kafka_options import SecretValues, kafka_options
from kstreams.runtime.spark.code.program import program_of
from kstreams.runtime.spark.settings import needs_tasks
from tests.spark.running import Application, Row
from tests.support.certificates import Authority, can_make
from tests.support.kafka_cluster import KafkaCluster, can_run

LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "shop"}


def options(settings: dict[str, Any]) -> dict[str, str]:
    named = kafka_options(settings, SecretValues.of(settings))
    return {name.removeprefix("kafka."): value for name, value in named.items() if "bootstrap" not in name}


def test_settings_of_clients_are_options_of_sparks_connector(tmp_path: Path) -> None:
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_text("the certificate")
    key.write_text("the key")
    files = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key), "ssl.key.password": "tiger"}
    assert options({"security.protocol": "SSL", "ssl.ca.location": "ca.pem", **files}) == {
        "security.protocol": "SSL",
        "ssl.truststore.location": "ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
        "ssl.key.password": "tiger",
    }
    oauth = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.client.id": "shop"}
    secret = {"sasl.oauthbearer.client.secret": "tiger", "sasl.oauthbearer.token.endpoint.url": "https://one/token"}
    login = options(oauth | secret)
    assert login["sasl.jaas.config"].endswith('OAuthBearerLoginModule required clientId="shop" clientSecret="tiger";')
    assert login["sasl.oauthbearer.token.endpoint.url"] == "https://one/token"
    assert (
        "ScramLoginModule"
        in options(LOGIN | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.password": "t"})["sasl.jaas.config"]
    )


def test_a_program_reads_passwords_and_keys_when_it_runs() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=int).to("out")
    secrets = {"sasl.password": "secret-of-ann", "ssl.key.pem": "secret key", "ssl.certificate.pem": "certificate"}
    text = program_of(builder.build(), Config.of({"application.id": "app", **LOGIN, **secrets}), {}.get)
    assert "secret" not in text
    assert "import os\n" in text
    settings = next(node.value for node in ast.parse(text).body if isinstance(node, ast.Assign))
    environment = {"KAFKA_PASSWORD": "of-ann", "KAFKA_KEY": "key"}
    named = eval(compile(ast.Expression(settings), "program", "eval"), {"os": type("Os", (), {"environ": environment})})
    assert named["kafka.ssl.keystore.key"] == "key"
    assert named["kafka.sasl.jaas.config"].endswith('required username="shop" password="of-ann";')


def test_a_setting_that_javas_client_lacks_is_left_to_tasks() -> None:
    setting = "enable.ssl.certificate.verification"
    assert needs_tasks(Config.of({"application.id": "app", setting: False})) == setting


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_query_reads_topics_of_a_broker_that_encrypts_and_asks_for_a_login(spark: Any, tmp_path: Path) -> None:
    if not (can_run() and can_make()):
        pytest.skip("a broker with TLS needs Java, Maven to fetch it, and openssl")
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).filter(ks.value > 3).to("out")
    authority = Authority(tmp_path / "authority")
    with KafkaCluster(users={"shop": "tiger"}, certificate=authority.server("IP:127.0.0.1")) as cluster:
        settings = {
            **LOGIN,
            "bootstrap.servers": cluster.bootstrap_servers,
            "sasl.password": "tiger",
            "ssl.ca.location": str(authority.certificate),
            "spark.kstreams.path": "relational",
        }
        app = Application(spark, tmp_path, builder, {"in": (str, int), "out": (str, int)}, **settings)
        app.create("in").write(Row("in", f"key-{n}", n, n) for n in range(1, 10))
        app.run()
        app.run_natively()
        assert sorted(app.rows("out")) == sorted(app.rows("out", "")) != []
