"""Three versions of an Avro schema with every type there is: fields come, go, get wider and other names."""

from __future__ import annotations

import json
from typing import Any

Field = dict[str, Any]


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def field(name: str, kind: Any, **more: Any) -> Field:
    return {"name": name, "type": kind, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"], "default": "RED"}
ADDRESS = {"type": "record", "name": "Address", "fields": [field("street", "string"), field("zip", "int")]}
CARD = {"type": "record", "name": "Card", "fields": [field("digits", "string")]}
BILL = {"type": "record", "name": "Bill", "fields": [field("days", "int"), field("to", optional("Address"))]}

ALWAYS: list[Field] = [
    field("number", "long"),
    field("note", "string"),
    field("a_boolean", "boolean"),
    field("an_int", "int"),
    field("a_long", "long"),
    field("a_float", "float"),
    field("a_double", "double"),
    field("a_string", "string"),
    field("some_bytes", "bytes"),
    field("a_null", "null"),
    field("a_date", logical("int", "date")),
    field("time_millis", logical("int", "time-millis")),
    field("time_micros", logical("long", "time-micros")),
    field("timestamp_millis", logical("long", "timestamp-millis")),
    field("timestamp_micros", logical("long", "timestamp-micros")),
    field("local_millis", logical("long", "local-timestamp-millis")),
    field("local_micros", logical("long", "local-timestamp-micros")),
    field("a_uuid", logical("string", "uuid")),
    field("a_decimal", logical("bytes", "decimal", precision=18, scale=4)),
    field("a_fixed_decimal", fixed("Money", 8, logicalType="decimal", precision=18, scale=2)),
    field("a_duration", fixed("Span", 12, logicalType="duration")),
    field("a_fixed", fixed("Digest", 6)),
    field("a_colour", COLOURS),
    field("an_address", ADDRESS),
    field("longs", array("long")),
    field("strings", array("string")),
    field("doubles", array("double")),
    field("addresses", array("Address")),
    field("colours", array("Colour")),
    field("dates", array(logical("int", "date"))),
    field("lists", array(array("int"))),
    field("optionals", array(optional("string"))),
    field("map_of_longs", map_of("long")),
    field("map_of_strings", map_of("string")),
    field("map_of_addresses", map_of("Address")),
    field("map_of_lists", map_of(array("double"))),
    field("optional_boolean", optional("boolean")),
    field("optional_int", optional("int")),
    field("optional_long", optional("long")),
    field("optional_double", optional("double")),
    field("optional_string", optional("string")),
    field("optional_bytes", optional("bytes")),
    field("optional_date", optional(logical("int", "date"))),
    field("optional_timestamp", optional(logical("long", "timestamp-micros"))),
    field("optional_decimal", optional(logical("bytes", "decimal", precision=18, scale=4))),
    field("optional_address", optional("Address")),
    field("optional_list", optional(array("string"))),
    field("optional_colour", optional("Colour")),
    field("int_or_string", ["int", "string"]),
    field("card_or_bill", ["null", CARD, BILL]),
]
"""What all versions have alike."""

FIRST: list[Field] = [
    field("wider_long", "int"),
    field("wider_double", "int"),
    field("wider_float", "float"),
    field("to_bytes", "string"),
    field("old_name", "string"),
    field("gone", "string"),
    field("became_optional", "string"),
    field("a_shade", {"type": "enum", "name": "Shade", "symbols": ["DARK", "LIGHT"]}),
]

SECOND: list[Field] = [
    field("wider_long", "long"),
    field("wider_double", "int"),
    field("wider_float", "float"),
    field("to_bytes", "string"),
    field("new_name", "string", aliases=["old_name"]),
    field("became_optional", optional("string")),
    field("a_shade", {"type": "enum", "name": "Shade", "symbols": ["DARK", "DUSK", "LIGHT"], "default": "DARK"}),
    field("added_text", "string", default="none"),
]

THIRD: list[Field] = [
    field("added_list", array("long"), default=[1, 2]),
    field("added_map", map_of("string"), default={"a": "b"}),
    field("added_address", "Address", default={"street": "Main", "zip": 8000}),
    field("added_optional", optional("long"), default=None),
    field("wider_long", "long"),
    field("wider_double", "double"),
    field("wider_float", "double"),
    field("to_bytes", "bytes"),
    field("new_name", "string", aliases=["old_name"]),
    field("became_optional", optional("string")),
    field("a_shade", {"type": "enum", "name": "Shade", "symbols": ["DARK", "LIGHT"], "default": "DARK"}),
    field("added_text", "string", default="none"),
]


def order(fields: list[Field]) -> str:
    return json.dumps({"type": "record", "name": "Order", "namespace": "interop", "fields": [*ALWAYS, *fields]})


ORDERS = [order(fields) for fields in (FIRST, SECOND, THIRD)]
"""The three versions, the newest last."""

CUSTOMER_KEY = json.dumps(
    {
        "type": "record",
        "name": "CustomerKey",
        "namespace": "interop",
        "fields": [field("region", "string"), field("id", "long")],
    }
)
