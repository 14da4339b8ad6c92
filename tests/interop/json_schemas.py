"""Three versions of a JSON Schema: fields come and go."""

from __future__ import annotations

import json
from typing import Any

ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type": "integer"}}}
ALWAYS: dict[str, Any] = {
    "number": {"type": "integer"},
    "note": {"type": "string"},
    "a_boolean": {"type": "boolean"},
    "a_number": {"type": "number"},
    "a_string": {"type": "string"},
    "an_address": ADDRESS,
    "numbers": {"type": "array", "items": {"type": "number"}},
    "strings": {"type": "array", "items": {"type": "string"}},
    "addresses": {"type": "array", "items": ADDRESS},
    "lists": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
}
FIRST: dict[str, Any] = {}
SECOND = {"added": {"type": "string", "default": "none"}}
THIRD = {**SECOND, "more_added": {"type": "integer", "default": 7}}


def order(fields: dict[str, Any]) -> str:
    return json.dumps({"title": "Order", "type": "object", "properties": {**ALWAYS, **fields}})


ORDERS = [order(fields) for fields in (FIRST, SECOND, THIRD)]
CUSTOMER_KEY = json.dumps(
    {
        "title": "CustomerKey",
        "type": "object",
        "properties": {"region": {"type": "string"}, "id": {"type": "integer"}},
    }
)
