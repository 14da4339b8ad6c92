"""confluent-kafka's own Avro serializers as writers and readers, against a registry server."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import SchemaReference as ConfluentReference
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import headers_column, rows_of_headers
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaReference, SchemaRegistry
from kstreams.serdes.typed import same_value
from tests.native.world import World, until
from tests.serdes.test_avro_apps import ORDERS, Order
from tests.serdes.test_avro_classes import MATRIX
from tests.support.schema_registry_server import RegistryServer
from tests.support.schema_serdes import bound

QUICK = {"schema.registry.max.retries": 1, "schema.registry.retries.wait.ms": 20}


@pytest.fixture(scope="module")
def registry(server: RegistryServer) -> Iterator[SchemaRegistry]:
    opened = registry_of(Config.of({"schema.registry.url": server.url}))
    opened.set_compatibility("NONE")
    yield opened
    opened.close()


def context(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


NOT_IN_FASTAVRO = {"timedelta", "duration", "none"}  # it reads the first two as bytes, and no record without any


@pytest.mark.parametrize("name", [name for name in MATRIX if name not in NOT_IN_FASTAVRO])
def test_both_read_what_the_other_writes(name: str, client: SchemaRegistryClient, registry: SchemaRegistry) -> None:
    kind, value = MATRIX[name]
    made: Any = dataclasses.make_dataclass("Record", [("field", kind)])
    topic = f"matrix-{list(MATRIX).index(name)}"
    classes, dicts = bound(ks.Avro(made), registry, topic), bound(ks.Avro(), registry, topic)
    data = classes.serialize(made(value))
    theirs = AvroDeserializer(client, return_record_name=True)(data, context(topic))
    ours = dicts.deserialize(data)
    assert same_value(_untagged(theirs), _untagged(ours))
    text = registry.version(f"{topic}-value").schema.text
    again = AvroSerializer(client, text)(ours, context(topic))
    assert again[:5] == data[:5]
    assert same_value(classes.deserialize(again), made(value))


def _untagged(value: Any) -> Any:
    """Without the names of records, which fastavro gives for some unions where ours needs none."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        return _untagged(value[1])
    if isinstance(value, dict):
        return {name: _untagged(part) for name, part in value.items()}
    return [_untagged(part) for part in value] if isinstance(value, list) else value


def test_a_guid_in_a_header_is_read_by_both(client: SchemaRegistryClient, registry: SchemaRegistry) -> None:
    serde = bound(ks.Avro(Order, schema_id="header"), registry, "in-header")
    values, headers = serde.unframed(serde.encode_rows([ORDERS[3]]), None)
    assert headers is not None
    ((header,),) = rows_of_headers(headers)
    assert header[0] == "__value_schema_id"
    theirs = AvroDeserializer(client)(values[0].as_py(), context("in-header", [header]))
    assert theirs == dataclasses.asdict(ORDERS[3])
    guid = SchemaId("AVRO", guid=registry.version("in-header-value").guid).guid_to_bytes()
    assert header[1] == guid
    framed = serde.framed(values, headers_column([[("__value_schema_id", guid)]]))
    assert serde.decode_rows(framed) == [ORDERS[3]]


def test_a_type_of_another_subject(client: SchemaRegistryClient, registry: SchemaRegistry) -> None:
    money = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}
    registry.register("money", Schema(json.dumps(money)))
    sale = {"type": "record", "name": "Sale", "namespace": "shop", "fields": [{"name": "price", "type": "shop.Money"}]}
    reference = SchemaReference("shop.Money", "money", 1)
    serde = bound(ks.Avro(json.dumps(sale), references=[reference]), registry, "sales")
    data = serde.serialize({"price": {"cents": 7}})
    assert serde.deserialize(data) == {"price": {"cents": 7}}
    assert AvroDeserializer(client)(data, context("sales")) == {"price": {"cents": 7}}
    named = ConfluentSchema(json.dumps(sale), "AVRO", [ConfluentReference("shop.Money", "money", 1)])
    theirs = AvroSerializer(client, named)({"price": {"cents": 9}}, context("sales"))
    assert bound(ks.Avro(), registry, "sales").deserialize(theirs) == {"price": {"cents": 9}}


def test_subjects_are_those_of_their_strategy(client: SchemaRegistryClient, registry: SchemaRegistry) -> None:
    schema = {"type": "record", "name": "Ping", "namespace": "net", "fields": [{"name": "n", "type": "int"}]}
    conf = {"subject.name.strategy": record_subject_name_strategy}
    theirs = AvroSerializer(client, json.dumps(schema), conf=conf)({"n": 1}, context("any"))
    registered = registry.version("net.Ping")
    serde = bound(ks.Avro(json.dumps(schema), subject="record", auto_register=False), registry, "any")
    assert serde.serialize({"n": 1}) == theirs
    assert registered.id == int.from_bytes(theirs[1:5], "big")


def test_an_application_goes_on_while_the_server_is_away(tmp_path: Path) -> None:
    """With the schemas that it has read and written before; nothing is lost, and nothing is written twice."""
    server = RegistryServer()
    world = World(tmp_path, **{"schema.registry.url": server.url, "processing.guarantee": "exactly_once_v2", **QUICK})
    for topic in ("orders", "out"):
        world.create(topic)
    registry = registry_of(Config.of(world.settings))
    write = bound(ks.Avro(Order), registry).serialize
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    orders.map_values(lambda order: dataclasses.replace(order, note="seen"), value=ks.Avro(Order)).to("out")
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS[:20]])
    streams = world.streams(builder.build())
    streams.start()
    until(lambda: len(world.rows("out", str, bytes)) == 20)
    read = bound(ks.Avro(Order), registry, "out").deserialize
    read(world.rows("out", str, bytes)[0].value)
    server.__exit__(None, None, None)
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS[20:]])
    until(lambda: len(world.rows("out", str, bytes)) == 60)
    streams.close()
    seen = [read(row.value) for row in world.rows("out", str, bytes)]
    assert seen == [dataclasses.replace(order, note="seen") for order in ORDERS]
    registry.close()


def test_what_is_not_known_while_the_server_is_away_waits_for_it(tmp_path: Path) -> None:
    server = RegistryServer()
    world = World(tmp_path, **{"schema.registry.url": server.url, "processing.guarantee": "exactly_once_v2", **QUICK})
    for topic in ("orders", "out"):
        world.create(topic)
    registry = registry_of(Config.of(world.settings))
    write = bound(ks.Avro(Order), registry).serialize
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS])
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Avro(Order)).to("out", key=str, value=ks.Avro(Order))
    server.fail(1_000)
    with pytest.raises(ks.errors.RegistryError, match="id 1: the store is down"):
        world.run(builder.build(), deserialization_exception_handler="continue", task_timeout_ms=300)
    assert world.rows("out", str, bytes) == []
    server.fail(0)
    world.run(builder.build(), deserialization_exception_handler="continue")
    assert [row.key for row in world.rows("out", str, bytes)] == [str(order.id) for order in ORDERS]
    registry.close()
    server.__exit__(None, None, None)


def test_a_store_that_cannot_ask_the_server_ends_the_application(tmp_path: Path) -> None:
    """A handler that goes on without a record's results would lose those of all records while the server is away."""
    with RegistryServer() as server:
        world = World(tmp_path, **{"schema.registry.url": server.url, **QUICK})
        world.create("orders")
        world.write("orders", [(str(order.id), msgspec.json.encode(order), order.id) for order in ORDERS])
        builder = ks.StreamsBuilder()
        orders = builder.stream("orders", key=str, value=Order)
        orders.group_by_key().reduce(lambda old, new: new, value=ks.Avro(Order), materialized="last")
        server.fail(1_000)
        handlers = {"processing_exception_handler": "continue", "production_exception_handler": "continue"}
        with pytest.raises(ks.errors.KStreamsError, match="the store is down"):
            world.run(builder.build(), task_timeout_ms=300, **handlers)
        server.fail(0)
        world.run(builder.build(), **handlers)
        assert len(world.rows("app-last-changelog", str, bytes)) == 60
