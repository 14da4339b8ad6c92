"""How settings are given, checked and shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kstreams.config import KEYS, PREFIXES, Config, masked
from kstreams.config.config import MemoryShares
from kstreams.config.keys import OLD_NAMES
from kstreams.errors import ConfigError


def load(tmp_path: Path, toml: str = "", environment: dict[str, str] | None = None, **explicit: object) -> Config:
    file = tmp_path / "kstreams.toml"
    file.write_text(toml)
    return Config.load(file=file, environment=environment or {}, **explicit)


def test_keys_are_kafka_streams_and_keep_its_defaults() -> None:
    config = Config.of(application_id="a")
    assert config["num.stream.threads"] == 1
    assert config["commit.interval.ms"] == 30_000
    assert config["statestore.cache.max.bytes"] == 10 * 1024 * 1024
    assert config["processing.guarantee"] == "at_least_once"
    assert config["max.task.idle.ms"] == 0
    assert config["log.dir"] == Path(".kstreams/log")
    assert config["state.dir"] == Path(".kstreams/state")


def test_exactly_once_commits_every_100_ms_unless_said_otherwise() -> None:
    assert Config.of(processing_guarantee="exactly_once_v2")["commit.interval.ms"] == 100
    assert Config.of(processing_guarantee="exactly_once_v2", commit_interval_ms=7)["commit.interval.ms"] == 7


def test_keywords_are_the_keys_with_underscores() -> None:
    config = Config.of({"num.stream.threads": 2}, num_stream_threads=3, application_id="a", producer_linger_ms=4)
    assert config["num.stream.threads"] == 3
    assert config.application_id == "a"
    assert config.prefixed("producer.") == {"linger.ms": 4}


def test_explicit_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    toml = 'num.stream.threads = 2\nclient.id = "file"\npoll.ms = 5'
    environment = {"KSTREAMS_NUM_STREAM_THREADS": "3", "KSTREAMS_CLIENT_ID": "environment", "HOME": "/"}
    config = load(tmp_path, toml, environment, num_stream_threads=4)
    assert (config["num.stream.threads"], config["client.id"], config["poll.ms"]) == (4, "environment", 5)
    assert config["max.task.idle.ms"] == 0


def test_defaults_can_be_put_under_and_settings_over() -> None:
    config = Config.of(application_id="mine", poll_ms=1)
    assert config.over({"application.id": "file", "client.id": "c"}).explicit == {
        "application.id": "mine",
        "client.id": "c",
        "poll.ms": 1,
    }
    assert config.replace({"poll.ms": 2}).explicit == {"application.id": "mine", "poll.ms": 2}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num.stream.thread": 2}, "unknown configuration key num.stream.thread; the nearest is num.stream.threads"),
        ({"num.stream.threads": 0}, "num.stream.threads cannot be 0: it must be at least 1"),
        ({"num.stream.threads": "two"}, "num.stream.threads cannot be 'two': a whole number is needed"),
        ({"num.stream.threads": True}, "a whole number is needed"),
        ({"commit.interval.ms": -1}, "at least 0"),
        ({"processing.guarantee": "exactly_once"}, "allowed are at_least_once, exactly_once_v2"),
        ({"application.id": "a/b"}, "only letters, digits"),
        ({"log.durability": "always"}, "allowed are none, os, fsync"),
        ({"statestore.cache.max.bytes": "ten"}, "a number of bytes is needed"),
        ({"zzzz": 1}, "unknown configuration key zzzz"),
    ],
)
def test_what_cannot_be_is_an_error_that_names_the_key(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.of(settings)


def test_an_unknown_variable_or_file_entry_is_an_error_that_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="environment variable KSTREAMS_NUM_STREAM_THREAD"):
        load(tmp_path, environment={"KSTREAMS_NUM_STREAM_THREAD": "2"})
    with pytest.raises(ConfigError, match=r"kstreams\.toml"):
        load(tmp_path, "num.stream.thread = 2")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, "= nonsense")


def test_variables_for_tests_are_no_settings(tmp_path: Path) -> None:
    assert load(tmp_path, environment={"KSTREAMS_TEST_ANYTHING": "1"}).explicit == {}


def test_values_are_read_from_text_and_from_python() -> None:
    assert Config.of(poll_ms=timedelta(seconds=2))["poll.ms"] == 2000
    assert Config.of(poll_ms="15")["poll.ms"] == 15
    assert Config.of({"statestore.cache.max.bytes": "2 MiB"})["statestore.cache.max.bytes"] == 2 * 1024**2
    assert Config.of({"cache.max.bytes.buffering": 0})["statestore.cache.max.bytes"] == 0
    assert Config.of({"bootstrap.servers": ["a:1", "b:2"]})["bootstrap.servers"] == "a:1,b:2"


def test_names_of_kafka_are_read_in_capitals_too() -> None:
    key = "default.interactive.query.isolation.level"
    assert Config.of()[key] == "read_uncommitted"
    assert Config.of({key: "READ_COMMITTED"})[key] == "read_committed"
    with pytest.raises(ConfigError, match="allowed are read_uncommitted, read_committed"):
        Config.of({key: "serializable"})


@pytest.mark.parametrize("no_limit", [-1, "-1", None])
def test_uncommitted_changes_without_a_limit_of_their_own_have_their_share_of_the_memory(no_limit: object) -> None:
    settings = {} if no_limit is None else {"statestore.uncommitted.max.bytes": no_limit}
    assert MemoryShares.of(Config.of({**settings, "memory.max.bytes": 1200})).uncommitted == 100


KEYS_OF_KAFKA_STREAMS = """
acceptable.recovery.lag allow.os.group.write.access application.id application.server bootstrap.servers
buffered.records.per.partition built.in.metrics.version cache.max.bytes.buffering client.id commit.interval.ms
config.providers connections.max.idle.ms default.client.supplier default.deserialization.exception.handler
default.dsl.store default.interactive.query.isolation.level default.key.serde default.list.key.serde.inner
default.list.key.serde.type default.list.value.serde.inner default.list.value.serde.type
default.production.exception.handler default.timestamp.extractor default.value.serde
deserialization.exception.handler dsl.store.format dsl.store.suppliers.class enable.metrics.push
enable.transactional.statestores ensure.explicit.internal.resource.naming errors.dead.letter.queue.topic.name
group.protocol log.summary.interval.ms max.task.idle.ms max.warmup.replicas metadata.cluster.check.enable
metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
metrics.num.samples metrics.recording.level metrics.sample.window.ms num.standby.replicas num.stream.threads poll.ms
probing.rebalance.interval.ms processing.exception.handler processing.exception.handler.global.enabled
processing.guarantee processor.wrapper.class production.exception.handler rack.aware.assignment.non_overlap_cost
rack.aware.assignment.strategy rack.aware.assignment.tags rack.aware.assignment.traffic_cost receive.buffer.bytes
reconnect.backoff.max.ms reconnect.backoff.ms repartition.purge.interval.ms replication.factor request.timeout.ms
retry.backoff.ms rocksdb.config.setter security.protocol send.buffer.bytes state.cleanup.delay.ms
state.cleanup.dir.max.age.ms state.dir statestore.cache.max.bytes statestore.uncommitted.max.bytes
task.assignor.class task.timeout.ms topology.description.push.enabled topology.optimization upgrade.from
window.size.ms windowed.inner.class.serde windowstore.changelog.additional.retention.ms
""".split()  # noqa: SIM905
"""All keys of `StreamsConfig` 4.4.0."""


@pytest.mark.parametrize("key", KEYS_OF_KAFKA_STREAMS)
def test_every_key_of_kafka_streams_is_known(key: str) -> None:
    assert OLD_NAMES.get(key, key) in KEYS


def test_prefixed_settings_pass_through() -> None:
    settings = {prefix + "any.thing": object() for prefix in PREFIXES}
    config = Config.of(settings)
    assert all(config[key] is value for key, value in settings.items())


def test_reading_an_unknown_key_is_an_error_too() -> None:
    with pytest.raises(ConfigError, match=r"the nearest is poll\.ms"):
        Config.of()["pol.ms"]


def test_the_application_id_is_needed_when_it_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"application\.id is not set"):
        Config.of().application_id


def test_equal_configs_have_equal_hashes() -> None:
    one, other = (Config.of({"application.id": "app", "producer.acks": ["all"]}) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other, Config.of(application_id="another")}) == 2


def test_secrets_are_not_shown() -> None:
    config = Config.of({"producer.sasl.password": "hunter2", "consumer.ssl.key.password": "hunter2", "poll.ms": 3})
    assert "hunter2" not in repr(config)
    assert "3" in repr(config)


def test_settings_that_change_nothing_are_accepted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    Config.of({"metric.reporters": "x"}).warn_of_unused()
    assert "metric.reporters: Not used by this engine: metrics are read from this process." in caplog.text


def test_every_key_has_a_sentence_and_a_default_of_its_kind() -> None:
    for key in KEYS.values():
        assert key.doc.endswith(".")
        assert key.default is None or key.kind.read(key.default) is not None


def test_settings_of_schema_registries_come_from_everywhere_under_the_names_of_confluent(tmp_path: Path) -> None:
    strategy = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    urls = '["http://one:8081", "http://two:8081"]'
    toml = f'schema.registry.url = {urls}\nvalue.subject.name.strategy = "{strategy}"'
    environment = {"KSTREAMS_AUTO_REGISTER_SCHEMAS": "false", "KSTREAMS_SCHEMA_REGISTRY_MAX_RETRIES": "7"}
    config = load(tmp_path, toml, environment, basic_auth_user_info="me:tiger")
    assert config["schema.registry.url"] == "http://one:8081,http://two:8081"
    assert config["value.subject.name.strategy"] == "RecordNameStrategy"
    assert config["auto.register.schemas"] is False
    assert config["schema.registry.max.retries"] == 7
    assert config["schema.registry.basic.auth.user.info"] == "me:tiger"


def test_a_function_may_name_subjects() -> None:
    def strategy(topic: str, is_key: bool, record_name: str) -> str:
        return topic

    assert Config.of({"key.subject.name.strategy": strategy})["key.subject.name.strategy"] is strategy
    with pytest.raises(ConfigError, match="TopicRecordNameStrategy"):
        Config.of({"key.subject.name.strategy": "com.example.Own"})


def test_secrets_of_schema_registries_are_not_shown() -> None:
    config = Config.of(
        {
            "schema.registry.url": "http://me:hunter2@localhost:8081",
            "schema.registry.basic.auth.user.info": "me:hunter2",
            "schema.registry.bearer.auth.token": "hunter2",
            "schema.registry.ssl.key.password": "hunter2",
        }
    )
    assert "hunter2" not in repr(config)
    assert "localhost:8081" in repr(config)
    assert "hunter2" not in masked("no answer of http://me:hunter2@localhost:8081", {})
    assert masked("wrong password hunter2", config) == "wrong password ****"
    assert masked("None of them", config) == "None of them"


@pytest.mark.parametrize("name", ["truststore.location", "truststore.password", "keystore.location"])
def test_what_only_java_can_use_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(ConfigError, match="PEM"):
        Config.of({f"schema.registry.ssl.{name}": "/etc/store.jks"})
