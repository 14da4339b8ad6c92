"""Which Avro schemas read which: pairs by the rules of Avro's specification, and random ones that fastavro reads."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_one

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.rules import incompatibilities
from kstreams.schemas.references import ResolvedSchema


def record(*fields: dict[str, Any], name: str = "Order", **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def field(name: str, kind: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **attributes}


def enum(*symbols: str, name: str = "Color", **attributes: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **attributes}


def fixed(size: int, name: str = "Hash", **attributes: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **attributes}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def reasons(reader: Any, writer: Any) -> list[str]:
    return [
        str(each) for each in incompatibilities(ResolvedSchema(json.dumps(reader)), ResolvedSchema(json.dumps(writer)))
    ]


TREE = record(field("left", ["null", "Order"]), field("right", ["null", "Order"]))

READS = {
    "the same": (record(field("id", "long")), record(field("id", "long"))),
    "int as long": ("long", "int"),
    "int as float": ("float", "int"),
    "int as double": ("double", "int"),
    "long as float": ("float", "long"),
    "long as double": ("double", "long"),
    "float as double": ("double", "float"),
    "string as bytes": ("bytes", "string"),
    "bytes as string": ("string", "bytes"),
    "a field less": (record(), record(field("id", "long"))),
    "a field more, with a default": (record(field("id", "long", default=0)), record()),
    "a field by its alias": (record(field("key", "long", aliases=["id"])), record(field("id", "int"))),
    "a record by its alias": (record(name="Purchase", aliases=["Order"]), record()),
    "a record in another namespace": (record(name="new.Order"), record(name="old.Order")),
    "an enum with more symbols": (enum("RED", "BLUE"), enum("RED")),
    "an enum with less symbols and a default": (enum("RED", default="RED"), enum("RED", "BLUE")),
    "an array of a wider type": ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    "a map of a wider type": ({"type": "map", "values": "double"}, {"type": "map", "values": "int"}),
    "a type as a union with it": (["null", "string"], "string"),
    "a type as a union with a wider one": (["null", "long"], "int"),
    "a union of one as its type": ("long", ["int"]),
    "a union with one type less": (["null", "int", "string"], ["null", "int"]),
    "a union in another order": (["string", "null"], ["null", "string"]),
    "records of a union by their names": (
        [record(name="A"), record(field("b", "long"), name="B")],
        [record(field("b", "int"), name="B")],
    ),
    "a fixed of the same size": (fixed(16), fixed(16)),
    "a type that refers to itself": (TREE, TREE),
    "a decimal with more digits": (decimal(9, 2), decimal(5, 2)),
    "a logical type as what lies below it": ("long", {"type": "long", "logicalType": "timestamp-millis"}),
    "a string with properties": ({"type": "string", "avro.java.string": "String"}, "string"),
}

DOES_NOT_READ = {
    "long as int": ("int", "long", "(root): long cannot be read as int"),
    "double as float": ("float", "double", "(root): double cannot be read as float"),
    "string as int": ("int", "string", "(root): string cannot be read as int"),
    "boolean as int": ("int", "boolean", "(root): boolean cannot be read as int"),
    "an array as a map": (
        {"type": "map", "values": "int"},
        {"type": "array", "items": "int"},
        "(root): array cannot be read as map",
    ),
    "a field more": (
        record(field("id", "long")),
        record(),
        "Order.id: is read, but was not written, and has no default",
    ),
    "a field with another type": (
        record(field("id", "int")),
        record(field("id", "string")),
        "Order.id: string cannot be read as int",
    ),
    "a field of a record in a record": (
        record(field("item", record(field("price", "int"), name="Item"))),
        record(field("item", record(field("price", "long"), name="Item"))),
        "Order.item.price: long cannot be read as int",
    ),
    "a field of a record in an array": (
        record(field("items", {"type": "array", "items": record(field("price", "int"), name="Item")})),
        record(field("items", {"type": "array", "items": record(name="Item")})),
        "Order.items[].price: is read, but was not written, and has no default",
    ),
    "a record of another name": (
        record(name="Purchase"),
        record(),
        "(root): the record Order cannot be read as Purchase, which has no such alias",
    ),
    "an enum with less symbols": (
        enum("RED"),
        enum("RED", "BLUE", "GREEN"),
        "(root): the enum Color lacks BLUE, GREEN, and has no default",
    ),
    "an enum of another name": (
        enum("RED", name="Paint"),
        enum("RED"),
        "(root): the enum Color cannot be read as Paint, which has no such alias",
    ),
    "a fixed of another size": (fixed(8), fixed(16), "(root): 16 bytes were written, and 8 are read"),
    "null where it is not read": ("string", ["null", "string"], "(root): null cannot be read as string"),
    "a type that a union does not have": (
        ["null", "int"],
        ["null", "string"],
        "(root): string is written, and the union is read as null or int alone",
    ),
    "a record of a union that has changed": (
        ["null", record(field("id", "int"))],
        ["null", record(field("id", "long"))],
        "Order.id: long cannot be read as int",
    ),
    "a decimal of another scale": (
        decimal(9, 3),
        decimal(9, 2),
        "(root): decimals with 2 digits after the point were written, and 3 are read",
    ),
    "a missing field whose enum has a default": (
        record(field("color", enum("RED", default="RED"))),
        record(),
        "Order.color: is read, but was not written, and has no default",
    ),
    "a type that refers to itself": (
        record(field("next", ["null", "Order"]), field("id", "int")),
        record(field("next", ["null", "Order"]), field("id", "long")),
        "Order.id: long cannot be read as int",
    ),
}


@pytest.mark.parametrize("what", READS)
def test_what_can_be_read(what: str) -> None:
    reader, writer = READS[what]
    assert reasons(reader, writer) == []


@pytest.mark.parametrize("what", DOES_NOT_READ)
def test_what_cannot_be_read_is_said_with_its_place(what: str) -> None:
    reader, writer, reason = DOES_NOT_READ[what]
    assert reasons(reader, writer) == [reason]


def test_all_incompatibilities_are_said() -> None:
    reader = record(field("a", "int"), field("b", "int"), field("c", "int"))
    assert reasons(reader, record(field("a", "string"), field("b", "int"))) == [
        "Order.a: string cannot be read as int",
        "Order.c: is read, but was not written, and has no default",
    ]


def test_types_of_other_subjects_are_followed() -> None:
    text = '{"type":"array","items":"Item"}'
    old, new = (
        ResolvedSchema(text, imports=(("Item", json.dumps(record(field("price", kind), name="Item"))),))
        for kind in ("long", "int")
    )
    assert [str(each) for each in incompatibilities(new, old)] == ["[].price: long cannot be read as int"]
    assert incompatibilities(old, new) == []


@pytest.mark.parametrize(
    "text", ["", "{", "3", '"nothing"', '{"type":"record","fields":[]}', '{"type":"enum","name":"E","symbols":["1"]}']
)
def test_what_is_no_schema_is_said(text: str) -> None:
    with pytest.raises(RegistryError, match="this is no Avro schema"):
        incompatibilities(ResolvedSchema(text), ResolvedSchema(text))


class Schemas:
    """Random schemas, and random changes of them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def pair(self) -> tuple[Any, Any]:
        """A reader's schema and a writer's that resembles it."""
        writer = self._record("Root", 2)
        return self._changed(writer), writer

    def _any(self, depth: int) -> Any:
        simple = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
        if depth == 0 or self._random.random() < 0.5:
            return self._random.choice(simple)
        self._count += 1
        number = self._count
        return self._random.choice(
            [
                lambda: {"type": "array", "items": self._any(depth - 1)},
                lambda: {"type": "map", "values": self._any(depth - 1)},
                lambda: enum("A", "B", "C", name=f"E{number}"),
                lambda: fixed(4, name=f"F{number}"),
                lambda: self._record(f"R{number}", depth - 1),
                lambda: ["null", self._random.choice(["int", "string", self._record(f"U{number}", depth - 1)])],
            ]
        )()

    def _record(self, name: str, depth: int) -> Any:
        return record(*(field(f"f{i}", self._any(depth)) for i in range(self._random.randint(0, 3))), name=name)

    def _changed(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._changed(each) for each in schema]
        if isinstance(schema, str):
            wider = {"int": "long", "long": "double", "float": "double", "string": "bytes"}  # bytes need not be text
            turn = self._random.random()
            return (
                wider.get(schema, schema)
                if turn < 0.3
                else ["null", schema]
                if 0.3 < turn < 0.4 and schema != "null"
                else schema
            )
        if schema["type"] == "record":
            kept = [
                {**each, "type": self._changed(each["type"])}
                for each in schema["fields"]
                if self._random.random() < 0.8
            ]
            more = [field("more", "int", default=3)] if self._random.random() < 0.3 else []
            return {**schema, "fields": kept + more}
        if schema["type"] == "enum" and self._random.random() < 0.3:
            return {**schema, "symbols": ["A", "B"], **({"default": "A"} if self._random.random() < 0.5 else {})}
        return {name: self._changed(part) if name in ("items", "values") else part for name, part in schema.items()}


def test_what_is_compatible_by_the_rules_fastavro_reads() -> None:
    schemas, compatible = Schemas(36), 0
    for _ in range(1_500):
        reader, writer = schemas.pair()
        if reasons(reader, writer):
            continue
        compatible += 1
        written, read = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
        payload = io.BytesIO()
        fastavro.schemaless_writer(payload, written, generate_one(written))
        payload.seek(0)
        fastavro.schemaless_reader(payload, written, read)
    assert compatible > 500
