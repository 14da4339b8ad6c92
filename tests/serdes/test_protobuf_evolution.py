"""Protobuf records of older and newer schemas, and of schemas that cannot be read at all."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.schemas import Schema, SchemaRegistry
from kstreams.serdes.base import Serde
from tests.support.schema_serdes import bound


@dataclass
class Order:
    id: int
    customer: str = "nobody"
    tags: list[str] = field(default_factory=lambda: ["new"])
    amount: float = 1.0


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2


@dataclass
class Shirt:
    size: Size


class Sale(msgspec.Struct, rename="camel"):
    order_id: int


def message(fields: str, name: str = "Order") -> str:
    return f'syntax = "proto3"; message {name} {{ {fields} }}'


def written(fields: str, value: dict[str, Any], registry: SchemaRegistry, name: str = "Order") -> bytes:
    return bound(ks.Protobuf(message(fields, name)), registry).serialize(value)


def reader(serde: Serde[Any], registry: SchemaRegistry) -> Serde[Any]:
    return bound(serde, registry)


def test_fields_that_the_record_has_not_take_the_defaults_of_the_class(registry: SchemaRegistry) -> None:
    data = written("int64 id = 1;", {"id": 7}, registry)
    assert reader(ks.Protobuf(Order), registry).deserialize(data) == Order(7)


def test_a_required_field_that_the_schema_has_not_is_an_error_that_names_it(registry: SchemaRegistry) -> None:
    data = written("string customer = 1;", {"customer": "Ada"}, registry)
    with pytest.raises(SerdeError, match=r"the message Order has no field id: give id a default"):
        reader(ks.Protobuf(Order), registry).deserialize(data)


def test_fields_of_a_class_are_read_by_their_names_whatever_their_numbers(registry: SchemaRegistry) -> None:
    data = written("string customer = 8; int32 id = 9; bool express = 2;", {"id": 7, "customer": "Ada"}, registry)
    assert reader(ks.Protobuf(Order), registry).deserialize(data) == Order(7, "Ada")


def test_fields_in_camel_case_are_those_of_a_class_that_renames_its_own(registry: SchemaRegistry) -> None:
    data = written("int64 order_id = 1;", {"order_id": 7}, registry, "Sale")
    assert reader(ks.Protobuf(Sale), registry).deserialize(data) == Sale(7)


def test_an_optional_field_that_is_absent_takes_the_default_or_is_an_error(registry: SchemaRegistry) -> None:
    absent = written("optional int64 id = 1; optional string customer = 2;", {"id": 7}, registry)
    assert reader(ks.Protobuf(Order), registry).deserialize(absent) == Order(7)
    without_id = written("optional int64 id = 1;", {}, registry)
    with pytest.raises(SerdeError, match="the record has no id"):
        reader(ks.Protobuf(Order), registry).deserialize(without_id)


def test_a_field_of_another_type_is_an_error_that_names_it(registry: SchemaRegistry) -> None:
    data = written("string id = 1;", {"id": "7"}, registry)
    with pytest.raises(SerdeError, match=r"the field Order.id is string, and not int"):
        reader(ks.Protobuf(Order), registry).deserialize(data)


def test_whole_numbers_are_read_as_floats_where_these_hold_them(registry: SchemaRegistry) -> None:
    serde = reader(ks.Protobuf(Order), registry)
    fields = "int64 id = 1; int64 amount = 4;"
    assert serde.deserialize(written(fields, {"id": 1, "amount": 2**53}, registry)).amount == 2.0**53
    with pytest.raises(SerdeError, match="is no 64-bit float"):
        serde.deserialize(written(fields, {"id": 1, "amount": 2**53 + 1}, registry))


def test_a_value_that_the_enum_of_the_class_has_not_is_an_error_of_its_record(registry: SchemaRegistry) -> None:
    fields = "enum Size { SIZE_SMALL = 0; SIZE_LARGE = 1; SIZE_HUGE = 2; } Size size = 1;"
    serde = reader(ks.Protobuf(Shirt), registry)
    assert serde.deserialize(written(fields, {"size": "SIZE_LARGE"}, registry, "Shirt")) == Shirt(Size.LARGE)
    with pytest.raises(SerdeError, match=r"SIZE_HUGE of the enum Shirt\.Size is no value of Size"):
        serde.deserialize(written(fields, {"size": "SIZE_HUGE"}, registry, "Shirt"))


def test_a_message_of_another_name_is_an_error_not_a_wrong_value(registry: SchemaRegistry) -> None:
    data = written("int64 id = 1; double amount = 2;", {"id": 1}, registry, "Refund")
    with pytest.raises(SerdeError, match="the record is the message Refund, but Order is expected"):
        reader(ks.Protobuf(Order), registry).deserialize(data)
    assert reader(ks.Protobuf(Order, message="Refund"), registry).deserialize(data).id == 1
    with pytest.raises(SerdeError, match="the record is the message Refund"):
        reader(ks.Protobuf(message("int64 id = 1;")), registry).deserialize(data)


@dataclass(frozen=True)
class Change:
    """A field as it was written and as a file reads it."""

    before: str
    after: str
    value: Any
    read: Any


READABLE = [
    Change("int32 n = 1;", "int64 n = 1;", -5, -5),
    Change("uint32 n = 1;", "uint64 n = 1;", 2**32 - 1, 2**32 - 1),
    Change("uint32 n = 1;", "int64 n = 1;", 2**32 - 1, 2**32 - 1),
    Change("sint32 n = 1;", "sint64 n = 1;", -5, -5),
    Change("bool n = 1;", "int32 n = 1;", True, 1),
    Change("string n = 1;", "bytes n = 1;", "ü", "ü".encode()),
    Change("bytes n = 1;", "string n = 1;", b"tea", "tea"),
    Change("int32 n = 1;", "repeated int32 n = 1;", 5, [5]),
    Change("int32 m = 1;", "int32 n = 1;", 5, 5),
    Change("int32 n = 1;", "optional int32 n = 1;", 5, 5),
]
UNREADABLE = [
    Change("int64 n = 1;", "int32 n = 1;", 2**40, None),
    Change("int32 n = 1;", "uint32 n = 1;", -1, None),
    Change("int32 n = 1;", "sint32 n = 1;", 1, None),
    Change("int32 n = 1;", "bool n = 1;", 2, None),
    Change("int32 n = 1;", "string n = 1;", 2, None),
    Change("int32 n = 1;", "float n = 1;", 2, None),
    Change("fixed32 n = 1;", "float n = 1;", 2, None),
    Change("double n = 1;", "float n = 1;", 0.1, None),
    Change("repeated int32 n = 1;", "int32 n = 1;", [1, 2], None),
    Change("map<string, int32> n = 1;", "map<string, string> n = 1;", {"a": 1}, None),
    Change("message M { int32 x = 1; } M n = 1;", "message M { string x = 1; } M n = 1;", {"x": 1}, None),
]


@pytest.mark.parametrize("change", READABLE, ids=lambda change: f"{change.before} {change.after}")
def test_a_file_reads_what_others_wrote_by_number(change: Change, registry: SchemaRegistry) -> None:
    name = "m" if " m " in change.before else "n"
    data = written(change.before, {name: change.value}, registry)
    assert reader(ks.Protobuf(message(change.after)), registry).deserialize(data) == {"n": change.read}


@pytest.mark.parametrize("change", UNREADABLE, ids=lambda change: f"{change.before} {change.after}")
def test_what_a_file_would_read_as_a_wrong_value_is_an_error(change: Change, registry: SchemaRegistry) -> None:
    data = written(change.before, {"n": change.value}, registry)
    with pytest.raises(SerdeError, match=r"records of Order cannot be read as Order: "):
        reader(ks.Protobuf(message(change.after)), registry).deserialize(data)


def test_three_versions_in_one_topic_are_read_as_the_newest_class(registry: SchemaRegistry) -> None:
    first = written("int64 id = 1;", {"id": 1}, registry)
    second = written("int64 id = 1; string customer = 2;", {"id": 2, "customer": "Ada"}, registry)
    third = bound(ks.Protobuf(Order), registry).serialize(Order(3, "Bob", [], 9.0))
    serde = reader(ks.Protobuf(Order), registry)
    column = pa.array([third, first, second, first], pa.binary())
    assert serde.decode_rows(column) == [Order(3, "Bob", [], 9.0), Order(1), Order(2, "Ada"), Order(1)]


def test_a_latest_version_that_cannot_hold_the_class_is_refused_when_writing(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(message("string id = 1;"), "PROTOBUF"))
    with pytest.raises(SerdeError, match=r"schema id 1 cannot read what Protobuf\(Order\) describes"):
        bound(ks.Protobuf(Order, use_latest_version=True), registry).serialize(Order(1))


def test_a_field_that_the_message_lacks_must_hold_its_default_when_it_is_written(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(message("int64 id = 1; string customer = 2;"), type=Order), registry)
    assert serde.deserialize(serde.serialize(Order(1, "Ada"))) == Order(1, "Ada")
    for wrong in (Order(1, "Ada", []), Order(1, "Ada", amount=2.0)):
        with pytest.raises(SerdeError, match=r"Order has no field (tags|amount), and would be read back without it"):
            serde.serialize(wrong)
    with pytest.raises(SerdeError, match="has no field id: give id a default"):
        bound(ks.Protobuf(message("string customer = 2;"), type=Order), registry).serialize(Order(1))


def test_proto2_defaults_stand_for_what_is_absent(registry: SchemaRegistry) -> None:
    text = (
        'syntax = "proto2"; message Order { required int64 id = 1; optional string customer = 2 [default = "guest"]; }'
    )
    serde = bound(ks.Protobuf(text, type=Order), registry)
    assert serde.deserialize(serde.serialize(Order(1))) == Order(1)
    dicts = bound(ks.Protobuf(text), registry)
    data = dicts.serialize({"id": 1})
    assert serde.deserialize(data) == Order(1, "guest")
    with pytest.raises(SerdeError, match="required"):
        dicts.serialize({"customer": "Ada"})
