"""Records that were written with another schema than they are read with: Avro's rules, and what the class adds."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import uuid
from decimal import Decimal
from typing import Any

import pytest

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import PLAIN, kind_of
from kstreams.serdes.avro.reading import AvroReader
from kstreams.serdes.avro.schema import AvroSchema, parsed
from kstreams.serdes.avro.writing import AvroWriter


def schema_of(*fields: Any, name: str = "Order") -> AvroSchema:
    return parsed(json.dumps({"type": "record", "name": name, "fields": list(fields)}))


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def record(name: str, *fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


ID = field("id", "long")


def read(written: AvroSchema, wanted: AvroSchema, value: Any, kind: Any = None) -> Any:
    """What is read of a value that was written with one schema, by way of another."""
    data = AvroWriter(written, PLAIN).one(value)
    return AvroReader(written, wanted, PLAIN if kind is None else kind_of(kind)).one(data)


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("int", 7, 7),
        ("double", 1, 1.0),
        ("bytes", "\u00ff", b"\xff"),
        (["null", "string"], None, None),
        (["string", "null"], "x", "x"),
        ({"type": "array", "items": "long"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "bytes"}, {"a": "\u00fe"}, {"a": b"\xfe"}),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (record("R", field("a", "int", default=3), field("b", "int")), {"b": 4}, {"a": 3, "b": 4}),
        ({"type": "int", "logicalType": "date"}, 1, dt.date(1970, 1, 2)),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1000, dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
        ({"type": "string", "logicalType": "uuid"}, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001", Decimal("0.01")),
    ],
)
def test_a_field_that_the_writer_lacks_has_the_default_of_the_schema(kind: Any, default: Any, expected: Any) -> None:
    value = read(schema_of(ID), schema_of(ID, field("more", kind, default=default)), {"id": 1})
    assert value == {"id": 1, "more": expected}
    assert type(value["more"]) is type(expected)


def test_each_record_has_a_default_of_its_own() -> None:
    written, wanted = schema_of(ID), schema_of(ID, field("tags", {"type": "array", "items": "string"}, default=[]))
    reader, data = AvroReader(written, wanted, PLAIN), AvroWriter(written, PLAIN).one({"id": 1})
    reader.one(data)["tags"].append("x")
    assert reader.one(data) == {"id": 1, "tags": []}


@dataclasses.dataclass
class Order:
    id: int
    note: str = "of the class"
    tags: list[str] = dataclasses.field(default_factory=list)


def test_the_default_of_a_class_goes_before_that_of_its_schema() -> None:
    tags = field("tags", {"type": "array", "items": "string"}, default=["of the schema"])
    wanted = schema_of(ID, field("note", "string", default="of the schema"), tags)
    assert read(schema_of(ID), wanted, {"id": 1}, Order) == Order(1)


def test_a_field_without_any_default_is_an_error_of_the_record() -> None:
    wanted = schema_of(ID, field("customer", record("Customer", field("name", "string"), field("city", "string"))))
    written = schema_of(ID, field("customer", record("Customer", field("name", "string"))))
    with pytest.raises(SerdeError, match=r"field customer\.city: .*no default"):
        read(written, wanted, {"id": 1, "customer": {"name": "Ann"}})


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        ("int", "long", 1, 1),
        ("int", "double", 1, 1.0),
        ("long", "float", 2, 2.0),
        ("float", "double", 1.5, 1.5),
        ("string", "bytes", "ü", "ü".encode()),
        ("bytes", "string", b"x", "x"),
        ("int", ["null", "long"], 1, 1),
        (["null", "int"], "int", 1, 1),
        (["int", "string"], ["string", "long"], 1, 1),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [1], [1.0]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "long"]}, {"a": 1}, {"a": 1}),
    ],
)
def test_types_widen(old: Any, new: Any, value: Any, expected: Any) -> None:
    seen = read(schema_of(field("a", old)), schema_of(field("a", new)), {"a": value})["a"]
    assert seen == expected
    assert repr(seen) == repr(expected)


@pytest.mark.parametrize("value", [b"x", "x", 2**53 + 1, 7, 1.5, None])
def test_values_of_a_union_hold_on_to_their_types_though_another_branch_could_take_them(value: Any) -> None:
    union = ["null", "string", "double", "bytes", "float", "long", "int"]
    seen = read(schema_of(field("a", union)), schema_of(field("a", union), field("b", "int", default=1)), {"a": value})
    assert repr(seen["a"]) == repr(value)


@pytest.mark.parametrize(("old", "new", "value"), [("string", "int", "x"), (["null", "string"], "string", None)])
def test_what_the_other_schema_has_no_place_for_is_an_error_with_the_field(old: Any, new: Any, value: Any) -> None:
    with pytest.raises(SerdeError, match="field a: "):
        read(schema_of(field("a", old)), schema_of(field("a", new)), {"a": value})


def test_fields_are_told_by_aliases_and_records_by_names_without_namespace() -> None:
    written = schema_of(field("client", "string"), name="com.acme.Order")
    wanted = schema_of(field("customer", "string", aliases=["client"]))
    assert read(written, wanted, {"client": "Ann"}) == {"customer": "Ann"}


@pytest.mark.parametrize("names", [("client", "customer"), ("customer", "client")])
def test_a_field_of_the_name_goes_before_one_of_an_alias(names: tuple[str, str]) -> None:
    written = schema_of(*(field(name, "string") for name in names))
    wanted = schema_of(field("customer", "string", aliases=["client"]))
    assert read(written, wanted, {"client": "old", "customer": "new"}) == {"customer": "new"}


def test_symbols_that_the_reader_does_not_know_become_its_default() -> None:
    def of(symbols: list[str], **more: Any) -> AvroSchema:
        return schema_of(field("a", {"type": "enum", "name": "E", "symbols": symbols, **more}))

    assert read(of(["A", "B"]), of(["A", "Z"], default="Z"), {"a": "B"}) == {"a": "Z"}
    with pytest.raises(SerdeError, match=r"field a: .*B"):
        read(of(["A", "B"]), of(["A", "Z"]), {"a": "B"})


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Car:
    color: Color


def test_a_symbol_that_the_class_does_not_have_is_an_error_with_the_field() -> None:
    schema = schema_of(field("color", {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}))
    assert read(schema, schema, {"color": "red"}, Car) == Car(Color.RED)
    with pytest.raises(SerdeError, match=r"field color: .*blue"):
        read(schema, schema, {"color": "blue"}, Car)


def test_a_record_becomes_one_of_several() -> None:
    card, cash = record("Card", field("number", "string")), record("Cash", field("amount", "double"))
    written, wanted = schema_of(field("by", card)), schema_of(field("by", ["null", cash, card]))
    assert read(written, wanted, {"by": {"number": "42"}}) == {"by": ("Card", {"number": "42"})}


def test_a_record_of_several_becomes_the_only_one() -> None:
    card, cash = record("Card", field("number", "string")), record("Cash", field("amount", "double"))
    written, wanted = schema_of(field("by", ["null", cash, card])), schema_of(field("by", card))
    assert read(written, wanted, {"by": ("Card", {"number": "42"})}) == {"by": {"number": "42"}}


def of_logical_type(name: str) -> AvroSchema:
    return schema_of(field("at", {"type": "long", "logicalType": name}))


def test_a_moment_is_the_one_that_was_written_whatever_its_unit() -> None:
    value = {"at": dt.datetime(2026, 3, 1, tzinfo=dt.UTC)}
    assert read(of_logical_type("timestamp-millis"), of_logical_type("timestamp-micros"), value) == value


def test_a_moment_is_no_plain_number() -> None:
    with pytest.raises(SerdeError, match="field at: "):
        read(of_logical_type("timestamp-micros"), schema_of(field("at", "long")), {"at": dt.datetime.now(dt.UTC)})


def test_decimals_of_another_scale_are_refused() -> None:
    def of(scale: int) -> AvroSchema:
        return schema_of(field("a", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}))

    with pytest.raises(SerdeError, match="field a: "):
        read(of(2), of(3), {"a": Decimal("1.50")})


@pytest.mark.parametrize("kind", ["string", "double", "long", {"type": "fixed", "name": "F", "size": 9}])
def test_bytes_that_end_within_a_field_that_is_dropped_are_an_error(kind: Any) -> None:
    written, wanted = schema_of(ID, field("dropped", kind)), schema_of(ID)
    values = {"string": "abc", "double": 1.5, "long": 2**40}
    data = AvroWriter(written, PLAIN).one({"id": 1, "dropped": values.get(str(kind), b"x" * 9)})
    reader = AvroReader(written, wanted, PLAIN)
    assert reader.one(data) == {"id": 1}
    for damaged in (data[:-1], data + b"\0"):
        with pytest.raises(SerdeError):
            reader.one(damaged)
