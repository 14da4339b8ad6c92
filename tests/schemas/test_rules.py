"""The rules of compatibility: which versions a new schema is compared with, in which direction, for each type."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kstreams.errors import ConfigError, IncompatibleSchemaError
from kstreams.schemas import Schema, SchemaReference, SchemaRegistry
from kstreams.schemas.compatibility.rules import RULES


def order(*fields: tuple[str, Any]) -> Schema:
    """A record with these fields; those that end in a question mark have a default."""
    named = [
        {"name": name.rstrip("?"), "type": kind, **({"default": 0} if name.endswith("?") else {})}
        for name, kind in fields
    ]
    return Schema(json.dumps({"type": "record", "name": "Order", "fields": named}))


ID, PRICE, OPTIONAL_PRICE = ("id", "int"), ("price", "int"), ("price?", "int")
CHANGES = {
    "a field more": (order(ID), order(ID, PRICE)),
    "an optional field more": (order(ID), order(ID, OPTIONAL_PRICE)),
    "a field less": (order(ID, PRICE), order(ID)),
    "an optional field less": (order(ID, OPTIONAL_PRICE), order(ID)),
    "a wider type": (order(ID), order(("id", "long"))),
    "a narrower type": (order(("id", "long")), order(ID)),
    "another type": (order(ID), order(("id", "string"))),
}
ALLOWED = {
    "BACKWARD": {"an optional field more", "a field less", "an optional field less", "a wider type"},
    "FORWARD": {"a field more", "an optional field more", "an optional field less", "a narrower type"},
    "FULL": {"an optional field more", "an optional field less"},
    "NONE": set(CHANGES),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_rule_allows(local: SchemaRegistry, rule: str, change: str) -> None:
    before, after = CHANGES[change]
    local.set_compatibility(rule, "orders-value")
    local.register("orders-value", before)
    if change in ALLOWED[rule.removesuffix("_TRANSITIVE")]:
        assert local.incompatibilities("orders-value", after) == []
        assert local.register("orders-value", after).version == 2
        return
    assert local.incompatibilities("orders-value", after) != []
    with pytest.raises(IncompatibleSchemaError, match=rule):
        local.register("orders-value", after)
    assert local.versions("orders-value") == [1]


@pytest.mark.parametrize(
    ("rule", "versions", "after", "is_transitively_allowed"),
    [
        ("BACKWARD", (order(ID), order(ID, OPTIONAL_PRICE)), order(ID, PRICE), False),
        ("FORWARD", (order(ID, PRICE), order(ID, OPTIONAL_PRICE)), order(ID), False),
        ("FULL", (order(("id", "string")), order(ID)), order(ID, OPTIONAL_PRICE), False),
        ("BACKWARD", (order(ID), order(ID, OPTIONAL_PRICE)), order(("id", "long"), OPTIONAL_PRICE), True),
    ],
)
def test_a_transitive_rule_compares_with_all_versions_another_with_the_newest(
    local: SchemaRegistry, rule: str, versions: tuple[Schema, ...], after: Schema, is_transitively_allowed: bool
) -> None:
    local.set_compatibility("NONE")
    for each in versions:
        local.register("orders-value", each)
    local.set_compatibility(rule)
    assert local.incompatibilities("orders-value", after) == []
    local.set_compatibility(f"{rule}_TRANSITIVE")
    assert (local.incompatibilities("orders-value", after) == []) == is_transitively_allowed


def test_every_reason_names_version_and_place(local: SchemaRegistry) -> None:
    local.set_compatibility("FULL", "orders-value")
    local.register("orders-value", order(ID))
    assert local.incompatibilities("orders-value", order(("id", "string"), PRICE)) == [
        "cannot read version 1: Order.id: int cannot be read as string",
        "cannot read version 1: Order.price: is read, but was not written, and has no default",
        "cannot be read by version 1: Order.id: string cannot be read as int",
    ]


def test_deleted_versions_do_not_count(local: SchemaRegistry) -> None:
    local.set_compatibility("NONE")
    local.register("orders-value", order(("id", "string")))
    local.register("orders-value", order(ID))
    local.set_compatibility("BACKWARD_TRANSITIVE")
    assert local.incompatibilities("orders-value", order(("id", "long"))) != []
    local.delete("orders-value", 1)
    assert local.register("orders-value", order(("id", "long"))).version == 3


@pytest.mark.parametrize(
    ("kind", "before", "allowed", "forbidden"),
    [
        (
            "PROTOBUF",
            'syntax = "proto3"; message A { int32 a = 1; }',
            'syntax = "proto3"; message A { int64 a = 1; string b = 2; }',
            'syntax = "proto3"; message A { string a = 1; }',
        ),
        (
            "JSON",
            '{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}',
            '{"type":"object","properties":{"a":{"type":"number"},"b":{}},"additionalProperties":false}',
            '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}',
        ),
    ],
)
def test_rules_hold_for_every_type_of_schema(
    local: SchemaRegistry, kind: Any, before: str, allowed: str, forbidden: str
) -> None:
    local.register("orders-value", Schema(before, kind))
    with pytest.raises(IncompatibleSchemaError):
        local.register("orders-value", Schema(forbidden, kind))
    assert local.register("orders-value", Schema(allowed, kind)).version == 2


def test_another_type_of_schema_is_not_compatible(local: SchemaRegistry) -> None:
    local.register("orders-value", Schema('"string"'))
    with pytest.raises(IncompatibleSchemaError, match="AVRO cannot be read as JSON"):
        local.register("orders-value", Schema('{"type":"string"}', "JSON"))


def test_the_schemas_that_it_refers_to_count(local: SchemaRegistry) -> None:
    for kind in ("int", "long"):
        local.set_compatibility("NONE", "item")
        item = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": kind}]}
        local.register("item", Schema(json.dumps(item)))
    text = '{"type":"array","items":"Item"}'
    narrow, wide = (Schema(text, references=(SchemaReference("Item", "item", version),)) for version in (1, 2))
    local.register("orders-value", wide)
    assert local.incompatibilities("orders-value", narrow) == [
        "cannot read version 1: [].price: long cannot be read as int"
    ]


def test_a_rule_that_is_none_is_refused(local: SchemaRegistry) -> None:
    with pytest.raises(ConfigError, match="'sideways' is no rule of compatibility: there are BACKWARD,"):
        local.set_compatibility("sideways")
