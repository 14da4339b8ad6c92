"""The type of the rows of a DataFrame: a struct with a field per column, from the schema as JSON."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec

from kstreams.errors import TopologyError

CHANGES = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that the change data feed of Delta adds."""

_PLAIN: dict[str, Any] = {
    **dict.fromkeys(("string", "char", "varchar"), str),
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), datetime),
    "boolean": bool,
    "binary": bytes,
    "date": date,
}


def row_type(name: str, schema: dict[str, Any]) -> type:
    """Return the type of the rows of a schema, as `StructType.jsonValue` of Spark returns it.

    Parameters
    ----------
    name : str
        Name of the type.
    schema : dict

    Raises
    ------
    TopologyError
        If a column has a type without a counterpart.

    Examples
    --------
    >>> fields = [{"name": "id", "type": "long", "nullable": False}, {"name": "city", "type": "string"}]
    >>> Person = row_type("Person", {"type": "struct", "fields": fields})
    >>> Person(1, "Ulm")
    Person(id=1, city='Ulm')
    """
    fields = [field for field in schema["fields"] if field["name"] not in CHANGES]
    for field in fields:
        if not field["name"].isidentifier():
            raise TopologyError(f"the column {field['name']!r} cannot be a field of a row: rename it, or select others")
    typed = [(field["name"], _kind(f"{name}_{field['name']}", field)) for field in fields]
    return msgspec.defstruct(name, typed, module="__main__", frozen=True)


def _kind(name: str, field: dict[str, Any]) -> Any:
    kind = _type(name, field["type"])
    return kind | None if field.get("nullable", True) else kind


def _type(name: str, kind: Any) -> Any:
    if isinstance(kind, dict):
        return _COMPOSED[kind["type"]](name, kind) if kind["type"] in _COMPOSED else _unknown(kind["type"])
    base = kind.partition("(")[0]
    return Decimal if base == "decimal" else _PLAIN.get(base) or _unknown(kind)


def _element(name: str, kind: object, *, nullable: bool) -> Any:
    arrow_type = _type(name, kind)
    return arrow_type | None if nullable else arrow_type


def _list(name: str, kind: dict[str, Any]) -> Any:
    return list[_element(name, kind["elementType"], nullable=kind["containsNull"])]  # type: ignore[misc]


def _map(name: str, kind: dict[str, Any]) -> Any:
    value = _element(name, kind["valueType"], nullable=kind["valueContainsNull"])
    return dict[_type(name, kind["keyType"]), value]  # type: ignore[misc]


_COMPOSED = {"struct": row_type, "array": _list, "map": _map}


def _unknown(kind: object) -> Any:
    raise TopologyError(f"a column of type {kind} has no counterpart in Python: cast it, or select other columns")
