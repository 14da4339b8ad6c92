"""Serdes with a schema registry know the topics they serve, wherever they are used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.log.schema_registries import ApplicationRegistry, registry_of
from kstreams.schemas import RegisteredSchema, Schema, SchemaRegistry
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.schemas import SchemaOptions, SchemaReader, SchemaSerde, SchemaWriter
from kstreams.testing import TopologyTestDriver

Driven = Callable[[ks.StreamsBuilder], TopologyTestDriver]


class Plain(SchemaSerde[Any]):
    """JSON with a schema that names a type and says nothing else."""

    schema_type = "JSON"

    def __init__(self, kind: str = "text", **options: Any) -> None:
        super().__init__(SchemaOptions(**options))
        self.kind = kind

    def declared_schema(self) -> Schema:
        return Schema(json.dumps({"title": self.kind}), "JSON")

    def record_name(self, schema: Schema) -> str:
        return f"shop.{self.kind}"

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        return SchemaReader.of(lambda data: json.loads(data[start:]))

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        return SchemaWriter.of(lambda value: frame + json.dumps(value).encode())


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"application.id": "app", "schema.registry.url": "local:", "log.dir": tmp_path / "log"}


@pytest.fixture
def registry(settings: dict[str, Any]) -> Iterator[SchemaRegistry]:
    with closing(registry_of(Config.of(settings))) as opened:
        yield opened


@pytest.fixture
def driven(settings: dict[str, Any]) -> Callable[[ks.StreamsBuilder], TopologyTestDriver]:
    return lambda builder: TopologyTestDriver(builder.build(), settings)


def test_each_topic_and_store_has_its_subject(registry: SchemaRegistry, driven: Driven) -> None:
    builder = ks.StreamsBuilder()
    words = builder.stream("words", key=str, value=Plain())
    by_word = words.select_key(lambda key, word: word, key=Plain("key")).group_by_key()
    last = by_word.reduce(lambda old, new: new, materialized="last")
    last.to_stream().to("out", key=Plain("key"), value=Plain())
    with driven(builder) as driver:
        driver.create_input_topic("words", key=str, value=Plain()).pipe_input("k", "a")
        assert driver.create_output_topic("out", key=Plain("key"), value=Plain()).read_key_value() == ("a", "a")
    repartitioned = [name for name in registry.subjects() if "repartition" in name]
    assert sorted(name.rpartition("-")[2] for name in repartitioned) == ["key", "value"]
    assert all(name.startswith("app-") for name in repartitioned)
    others = set(registry.subjects()) - set(repartitioned)
    assert others == {"words-value", "app-last-changelog-key", "app-last-changelog-value", "out-key", "out-value"}


def test_a_registry_is_opened_once_and_closed_with_its_application(settings: dict[str, Any]) -> None:
    registry = ApplicationRegistry(Config.of(settings))
    assert registry() is registry()
    first = registry()
    registry.close()
    assert registry() is not first
    registry.close()


def test_windowed_keys_pass_their_use_on(registry: SchemaRegistry, driven: Driven) -> None:
    builder = ks.StreamsBuilder()
    words = builder.stream("words", key=Plain("key"), value=str)
    counts = words.group_by_key().windowed_by(ks.TimeWindows(size=10)).count("counts")
    counts.to_stream().to("out", key=ks.serdes.TimeWindowedSerde(Plain("key"), 10), value=int)
    with driven(builder) as driver:
        driver.create_input_topic("words", key=Plain("key"), value=str).pipe_input("a", "x", timestamp=12)
        keys = ks.serdes.TimeWindowedSerde(Plain("key"), 10)
        ((key, count),) = driver.create_output_topic("out", key=keys, value=int).read_key_values()
        assert (key.key, key.window.start_ms, count) == ("a", 10, 1)
    assert "out-key" in registry.subjects()


def test_a_sink_that_chooses_topics_uses_the_subject_of_each(registry: SchemaRegistry, driven: Driven) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("words", key=str, value=str).to(lambda key, value, context: value, key=str, value=Plain())
    with driven(builder) as driver:
        topic = driver.create_input_topic("words", key=str, value=str)
        for word in ("one", "two", "one"):
            topic.pipe_input("k", word)
        assert driver.create_output_topic("one", key=str, value=Plain()).read_values() == ["one", "one"]
    assert registry.subjects() == ["one-value", "two-value"]


def test_a_guid_in_a_header_is_written_and_read(registry: SchemaRegistry, driven: Driven) -> None:
    builder = ks.StreamsBuilder()
    in_header = Plain(schema_id="header")
    builder.stream("words", key=in_header, value=in_header).map_values(str.upper).to("out", key=str, value=in_header)
    with driven(builder) as driver:
        driver.create_input_topic("words", key=in_header, value=in_header).pipe_input(
            "k", "a", headers=(("own", b"1"),)
        )
        record = driver.create_output_topic("out", key=str, value=bytes).read_record()
    assert record.value == b'"A"'
    names = [name for name, _ in record.headers]
    assert names == ["own", "__key_schema_id", "__value_schema_id"]
    (guid,) = [value for name, value in record.headers if name == "__value_schema_id"]
    assert guid is not None
    assert guid[:1] == b"\x01"
    assert len(guid) == 17


def test_the_header_of_a_record_does_not_outlive_its_bytes(registry: SchemaRegistry, driven: Driven) -> None:
    """A value that is written with an id in front must not go under the GUID of what was read."""
    builder = ks.StreamsBuilder()
    in_header, other = Plain(schema_id="header"), Plain("other")
    builder.stream("words", key=str, value=in_header).map_values(str.upper).to("out", key=str, value=other)
    with driven(builder) as driver:
        driver.create_input_topic("words", key=str, value=in_header).pipe_input("k", "a")
        record = driver.create_output_topic("out", key=str, value=bytes).read_record()
    assert record.headers == ()
    assert record.value == b'\x00\x00\x00\x00\x02"A"'


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("topic", "orders-value"),
        ("record", "shop.text"),
        ("topic-record", "orders-shop.text"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "shop.text"),
        (lambda topic, is_key, record: f"{topic}|{is_key}|{record}", "orders|False|shop.text"),
    ],
)
def test_subjects(strategy: Any, subject: str, registry: SchemaRegistry) -> None:
    Plain(subject=strategy).of_topic(SerdeUse("orders", False, Config.of({}), lambda: registry)).serialize("a")
    assert registry.subjects() == [subject]


def test_a_schema_that_is_not_registered_is_looked_up(registry: SchemaRegistry) -> None:
    registry.register("other", Plain().declared_schema())
    serde = Plain(auto_register=False).of_topic(SerdeUse("orders", False, Config.of({}), lambda: registry))
    with pytest.raises(ks.errors.SchemaNotFoundError):
        serde.serialize("a")
    registry.register("orders-value", Plain().declared_schema())
    assert serde.deserialize(serde.serialize("a")) == "a"
    assert registry.subjects() == ["orders-value", "other"]


def test_without_an_application_a_serde_says_what_it_needs() -> None:
    with pytest.raises(SerdeError, match=r"schema\.registry\.url"):
        Plain().serialize("a")


def test_bytes_of_another_making_are_no_value(registry: SchemaRegistry) -> None:
    serde = Plain().of_topic(SerdeUse("orders", False, Config.of({}), lambda: registry))
    for data in (b"", b"\x00\x00", b'{"a": 1}', b"\x01" + bytes(15), b"\x00\x00\x00\x00\x09x"):
        with pytest.raises(SerdeError):
            serde.deserialize(data)


def test_a_topology_without_such_serdes_stays_as_it_is() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("words", key=str, value=str).group_by_key().count("counts").to_stream().to("out", key=str, value=int)
    topology, config = builder.build(), Config.of(application_id="app")
    assert topology.bound(config, ApplicationRegistry(config)) is topology
