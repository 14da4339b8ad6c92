"""A home of topics is found by its address or in a configuration, and says what can be done with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.config import Config
from kstreams.errors import ConfigError, LogError
from kstreams.log import home_at, home_of, homes, open_log, register_home
from kstreams.log.embedded.home import EmbeddedHome


@pytest.fixture
def kinds() -> Iterator[None]:
    known = dict(homes._HOMES)
    yield
    homes._HOMES.clear()
    homes._HOMES.update(known)


def test_a_folder_and_its_address_are_the_same_home(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
    for address in (tmp_path, str(tmp_path), f"log:{tmp_path}", home_at(tmp_path).address):
        with home_at(address).open() as log, log.admin() as admin:
            assert [*admin.topics()] == ["words"]


def test_open_log_takes_an_address(tmp_path: Path) -> None:
    open_log(f"log:{tmp_path / 'log'}").close()
    home_at(tmp_path / "log").check()


def test_a_configuration_names_its_home(tmp_path: Path) -> None:
    config = Config.of({"application.id": "app", "log.dir": tmp_path})
    assert home_of(config).address == f"log:{tmp_path}"
    assert "log.dir" in home_of(config).settings


@pytest.mark.parametrize("servers", ["localhost:9092", "kafka:localhost:9092"])
def test_brokers_in_a_configuration_name_a_kafka_cluster(servers: str) -> None:
    assert home_of(Config.of({"bootstrap.servers": servers})).address == "kafka:localhost:9092"


def test_an_embedded_log_may_stand_in_the_place_of_brokers(tmp_path: Path) -> None:
    assert home_of(Config.of({"bootstrap.servers": f"log:{tmp_path}"})).address == f"log:{tmp_path}"


@pytest.mark.parametrize("servers", ["localhost", "localhost:port", "one:9092,two"])
def test_what_is_no_address_of_a_broker_is_refused(servers: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        home_of({"bootstrap.servers": f"kafka:{servers}"})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"security.protocol": "SASL_PLAINTEXT"}, "SASL_SSL"),
        ({"security.protocol": "SASL_SSL", "enable.ssl.certificate.verification": False}, r"ssl\.ca\.location"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"}, "other servers"),
        ({"sasl.username": "scott"}, "client does not log in"),
        ({"security.protocol": "SASL_SSL", "sasl.jaas.config": "tiger;"}, r"sasl\.username"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanisms": "tiger", "sasl.password": "tiger"}, r"\*\*\*\*"),
    ],
)
def test_unsafe_or_wrong_security_is_refused_without_telling_secrets(settings: dict[str, Any], named: str) -> None:
    with (
        home_at("kafka:localhost:9").open(Config.of(settings)) as log,
        pytest.raises(ConfigError, match=named) as refusal,
    ):
        log.producer()
    assert "tiger" not in str(refusal.value)


def test_what_is_unsafe_is_done_when_it_is_asked_for() -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "scott"}
    config = Config.of({**settings, "sasl.password": "tiger", "security.allow.insecure": True})
    with home_at("kafka:localhost:9").open(config) as log:
        log.consumer().close()


def test_an_address_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no address of a home of topics"):
        home_at("s3://bucket/topics")


def test_a_home_that_is_not_there_is_not_made_unless_asked(tmp_path: Path) -> None:
    home = home_at(tmp_path / "mistyped")
    with pytest.raises(LogError, match="there is no log in"):
        home.check()
    home.check(create=True)
    assert not (tmp_path / "mistyped").exists()


def test_a_kind_of_home_is_registered_by_its_scheme(tmp_path: Path, kinds: None) -> None:
    register_home("below", lambda place: EmbeddedHome(tmp_path / place))
    with home_at("below:one").open() as log:
        log.admin().create_topic("words")
    assert (tmp_path / "one" / "topics").is_dir()


def test_the_files_of_a_home_are_maintained_through_it(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    with home.open() as log, log.producer() as producer:
        log.admin().create_topic("table", config={"cleanup.policy": "compact"})
        for value in (b"1", b"2"):
            producer.send("table", b"k", value)
            producer.flush()
    files = home.files
    assert files is not None
    assert list(files.verify()) == []
    assert len(list(files.dump("table"))) == 2
    assert [freed._asdict()["topic"] for freed in files.compact()] == ["table"]
    assert files.num_partitions() == 1
