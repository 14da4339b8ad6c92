"""confluent-kafka's own Protobuf serializers as writers and readers, against a registry server."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import SchemaRegistry
from tests.support.schema_registry_server import RegistryServer
from tests.support.schema_serdes import bound, generated_module, message_class

PART = """
syntax = "proto3";
package interop;
message Money { int64 units = 1; string currency = 2; }
"""
SALE = """
syntax = "proto3";
package interop;
import "interop_money.proto";
import "google/protobuf/timestamp.proto";
message Refund { int64 id = 1; }
message Sale {
  message Line { string sku = 1; sint32 count = 2; Money price = 3; }
  enum State { OPEN = 0; DONE = 1; }
  int64 id = 1; optional string coupon = 2; repeated Line lines = 3; map<string, double> rates = 4;
  google.protobuf.Timestamp at = 5; State state = 6; oneof paid_by { string card = 7; fixed64 account = 8; }
}
"""


@pytest.fixture(scope="module")
def registry(server: RegistryServer) -> Iterator[SchemaRegistry]:
    opened = registry_of(Config.of({"schema.registry.url": server.url}))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interop")
    (folder / "interop_money.proto").write_text(PART)
    (folder / "interop_sale.proto").write_text(SALE)
    return folder


@pytest.fixture(scope="module")
def pb2(folder: Path) -> Any:
    sys.path.insert(0, str(folder))
    generated_module(folder, "interop_money")
    module = generated_module(folder, "interop_sale")
    sys.path.remove(str(folder))
    return module


def of_values(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def sale(pb2: Any, number: int) -> Any:
    message = pb2.Sale(id=number, rates={"EUR": number / 3, "ISK": 1.0}, state=number % 2)
    message.at.FromMicroseconds(1_700_000_000_000_000 + number)
    for at in range(number % 3):
        message.lines.add(sku=f"s{at}", count=-at).price.units = number
    if number % 2:
        message.coupon = "x" * (number % 5)
    message.account = number
    return message


@dataclass
class Line:
    sku: str
    count: int


@dataclass
class Sale:
    id: int
    lines: list[Line]
    rates: dict[str, float]
    coupon: str | None = None


def test_what_confluent_wrote_is_read(client: SchemaRegistryClient, registry: SchemaRegistry, pb2: Any) -> None:
    serialize = ProtobufSerializer(pb2.Sale, client)
    as_messages = bound(ks.Protobuf(pb2.Sale), registry, "theirs")
    as_dicts = bound(ks.Protobuf(), registry, "theirs")
    as_objects = bound(ks.Protobuf(Sale), registry, "theirs")
    for number in range(100):
        message = sale(pb2, number)
        data = serialize(message, of_values("theirs"))
        assert as_messages.deserialize(data) == message
        read = as_dicts.deserialize(data)
        assert (read["id"], read["account"], read["card"]) == (number, number, None)
        assert read["state"] == ("DONE" if number % 2 else "OPEN")
        assert [line["count"] for line in read["lines"]] == [line.count for line in message.lines]
        lines = [Line(line.sku, line.count) for line in message.lines]
        coupon = message.coupon if message.HasField("coupon") else None
        assert as_objects.deserialize(data) == Sale(number, lines, dict(message.rates), coupon)


def test_confluent_reads_what_was_written(client: SchemaRegistryClient, registry: SchemaRegistry, pb2: Any) -> None:
    deserialize = ProtobufDeserializer(pb2.Sale, {}, client)
    serde = bound(ks.Protobuf(pb2.Sale), registry, "ours")
    for number in range(100):
        message = sale(pb2, number)
        assert deserialize(serde.serialize(message), of_values("ours")) == message


def test_both_write_the_same_bytes_and_register_the_same_schema(
    client: SchemaRegistryClient, registry: SchemaRegistry, pb2: Any
) -> None:
    for cls in (pb2.Sale, pb2.Refund, pb2.Sale.Line):
        topic = f"same-{cls.DESCRIPTOR.name}"
        theirs = ProtobufSerializer(cls, client)(cls(), of_values(topic))
        assert bound(ks.Protobuf(cls), registry, topic).serialize(cls()) == theirs
        assert registry.versions(f"{topic}-value") == [1]


def test_confluent_reads_files_and_classes_too(
    client: SchemaRegistryClient, registry: SchemaRegistry, pb2: Any, folder: Path
) -> None:
    serde = bound(ks.Protobuf(folder / "interop_sale.proto", message="Sale"), registry, "files")
    data = serde.serialize({"id": 7, "lines": [{"sku": "tea", "price": {"units": 2}}], "state": "DONE"})
    message = ProtobufDeserializer(pb2.Sale, {}, client)(data, of_values("files"))
    assert (message.id, message.lines[0].price.units, message.state) == (7, 2, 1)
    derived = bound(ks.Protobuf(Sale, message="derived.Sale"), registry, "classes")
    written = derived.serialize(Sale(7, [Line("tea", 2)], {}))
    cls = message_class(derived.declared_schema(), "derived.Sale")
    assert ProtobufDeserializer(cls, {}, client)(written, of_values("classes")).lines[0].count == 2


def test_a_frame_with_a_guid_is_the_one_that_confluent_puts_into_headers(registry: SchemaRegistry, pb2: Any) -> None:
    for cls in (pb2.Sale, pb2.Refund, pb2.Sale.Line):
        serde = bound(ks.Protobuf(cls, schema_id="header"), registry, f"guid-{cls.DESCRIPTOR.name}")
        data = serde.serialize(cls())
        header = data[: serde.header_length(data)]
        read = SchemaId("PROTOBUF")
        assert read.from_bytes(io.BytesIO(header)).read() == b""
        assert str(read.guid) == registry.version(f"guid-{cls.DESCRIPTOR.name}-value").guid
        assert read.guid_to_bytes() == header
        assert serde.deserialize(data) == cls()


def test_a_registry_without_guids_is_said_to_have_none(registry: SchemaRegistry, pb2: Any) -> None:
    number = registry.register("no-guid-value", ks.Protobuf(pb2.Refund).declared_schema()).id
    serde = bound(ks.Protobuf(pb2.Refund, schema_id="header", use_schema_id=number), registry, "no-guid")
    with pytest.raises(SerdeError, match="tells no GUID"):
        serde.serialize(pb2.Refund())


def test_imports_are_subjects_that_confluent_finds(
    client: SchemaRegistryClient, registry: SchemaRegistry, pb2: Any
) -> None:
    bound(ks.Protobuf(pb2.Sale), registry, "imports").serialize(pb2.Sale())
    schema = client.get_latest_version("imports-value").schema
    assert [(each.name, each.subject, each.version) for each in schema.references] == [
        ("interop_money.proto", "interop_money.proto", 1)
    ]
    text = client.get_latest_version("interop_money.proto").schema.schema_str
    (money,) = (each for each in pb2.DESCRIPTOR.dependencies if each.name == "interop_money.proto")
    assert base64.b64decode(text) == money.serialized_pb


def test_a_file_and_the_class_generated_from_it_have_one_schema(
    registry: SchemaRegistry, pb2: Any, folder: Path
) -> None:
    bound(ks.Protobuf(pb2.Sale), registry, "one").serialize(pb2.Sale())
    bound(ks.Protobuf(folder / "interop_sale.proto", message="Sale"), registry, "one").serialize({})
    assert registry.versions("one-value") == [1]
