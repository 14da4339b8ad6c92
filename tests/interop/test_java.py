"""Java writes, an application reads, marks each record and writes it, Java reads: nothing is lost or changed.

Three versions of each schema are mixed in one topic. Java's own resolution says what a reader of the newest one gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaRegistry, SchemaType
from tests.interop import avro_schemas, json_schemas, proto_schemas
from tests.interop.java_side import Job, Version, differences, write
from tests.native.world import World
from tests.support.schema_registry_server import RegistryServer

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

COUNT, KEYS, PARTITIONS = 100_000, 1_000, 6


@dataclass
class Address:
    street: str
    zip: int


@dataclass
class Order:
    """What applications make of the newest JSON schema."""

    number: int
    note: str
    a_boolean: bool
    a_number: float
    a_string: str
    an_address: Address
    numbers: list[float]
    strings: list[str]
    addresses: list[Address]
    lists: list[list[int]]
    added: str = "none"
    more_added: int = 7


class Format(NamedTuple):
    """A format: its schemas, and the serdes of keys and of values of the newest version."""

    type: SchemaType
    key_schema: str
    schemas: list[str]
    key: ks.Serde[Any]
    value: ks.Serde[Any]
    marked: Callable[[Any], Any]


def marked(order: dict[str, Any]) -> dict[str, Any]:
    return {**order, "note": f"seen {order['note']}"}


AVRO = Format(
    "AVRO",
    avro_schemas.CUSTOMER_KEY,
    avro_schemas.ORDERS,
    ks.Avro(avro_schemas.CUSTOMER_KEY),
    ks.Avro(avro_schemas.ORDERS[-1]),
    marked,
)
PROTOBUF = Format(
    "PROTOBUF",
    proto_schemas.CUSTOMER_KEY,
    proto_schemas.ORDERS,
    ks.Protobuf(proto_schemas.CUSTOMER_KEY),
    ks.Protobuf(proto_schemas.ORDERS[-1], message="interop.Order"),
    marked,
)
JSON = Format(
    "JSON",
    json_schemas.CUSTOMER_KEY,
    json_schemas.ORDERS,
    ks.JsonSchema(json_schemas.CUSTOMER_KEY),
    ks.JsonSchema(json_schemas.ORDERS[-1], type=Order),
    lambda order: replace(order, note=f"seen {order.note}"),
)
EACH = pytest.mark.parametrize("format", [AVRO, PROTOBUF, JSON], ids=lambda format: format.type.lower())


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


@pytest.fixture
def registry(server: RegistryServer) -> Iterator[SchemaRegistry]:
    registry = registry_of(Config.of({"schema.registry.url": server.url}))
    yield registry
    registry.close()


@pytest.fixture
def world(kafka: Any, server: RegistryServer, tmp_path: Path) -> World:
    homes = {"bootstrap.servers": kafka.bootstrap_servers, "schema.registry.url": server.url}
    own = {"application.id": tmp_path.name, "processing.guarantee": "exactly_once_v2"}
    world = World(tmp_path, **homes, **own)
    for topic in ("orders", "customers", "marked"):
        world.create(f"{tmp_path.name}-{topic}", PARTITIONS)
    return world


@pytest.fixture
def job(world: World, registry: SchemaRegistry, tmp_path: Path) -> Callable[[Format, str, int], Job]:
    """What Java writes to a topic; the schemas are registered as its serializers would."""

    def version(subject: str, text: str, format: Format) -> Version:
        if format.type != "PROTOBUF":
            return Version(registry.register(subject, Schema(text, format.type)).id, text)
        # Real servers know that a text and its base64 form are one schema; this one compares texts.
        declared = ks.Protobuf(text, message=re.findall(r"message (\w+)", text)[0]).declared_schema()
        assert declared is not None
        number = registry.register(subject, declared).id
        return Version(number, proto_schemas.descriptors(text, tmp_path / f"schema{number}.bin"))

    def of(format: Format, topic: str, count: int) -> Job:
        topic = f"{tmp_path.name}-{topic}"
        key = version(f"{topic}-key", format.key_schema, format)
        orders = [version(f"{topic}-value", text, format) for text in format.schemas]
        return Job(world.settings["bootstrap.servers"], topic, format.type, count, KEYS, key, orders)

    return of


@EACH
def test_records_of_three_versions_come_back_as_java_would_read_them(
    world: World, job: Callable[..., Job], tmp_path: Path, format: Format
) -> None:
    orders = job(format, "orders", COUNT)
    write(orders, tmp_path)
    builder = ks.StreamsBuilder()
    stream = builder.stream(orders.topic, key=format.key, value=format.value)
    stream.map_values(format.marked, value=format.value).to(marked_topic(orders))
    world.run(builder.build())
    assert differences(orders._replace(topic=marked_topic(orders)), tmp_path) == 0


@EACH
def test_keys_that_are_grouped_anew_meet_those_that_java_partitioned(
    world: World, job: Callable[..., Job], tmp_path: Path, format: Format
) -> None:
    customers, orders = job(format, "customers", KEYS), job(format, "orders", 10 * KEYS)
    write(customers, tmp_path)
    write(orders, tmp_path)
    builder = ks.StreamsBuilder()
    table = builder.table(customers.topic, key=format.key, value=format.value).map_values(number, value=int)
    stream = builder.stream(orders.topic, key=format.key, value=format.value).map_values(number, value=int)
    regrouped = stream.select_key(lambda key, order: key, key=format.key)
    joined = regrouped.join(table, lambda order, customer: [order, customer], value=list[int])
    joined.to(marked_topic(orders))
    world.run(builder.build())
    met = [row.value for row in world.rows(marked_topic(orders), bytes, list[int])]
    assert sorted(met) == [[number, number % KEYS] for number in range(10 * KEYS)]


def marked_topic(orders: Job) -> str:
    return orders.topic.replace("-orders", "-marked")


def number(order: Any) -> int:
    """The number of an order, be it a dict or an object."""
    return int(order["number"] if isinstance(order, dict) else order.number)
