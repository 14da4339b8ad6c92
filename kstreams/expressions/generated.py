"""Struct types that are generated from field names and types; another process creates them again from their name.

A generated class cannot be pickled by value for a Spark executor, since msgspec builds its layout with the class. So
its qualified name contains its fields, and this module resolves such names.
"""

from __future__ import annotations

import re
import types
from datetime import date, datetime
from functools import lru_cache
from typing import Any, get_args, get_origin

import msgspec

_SCALARS = {kind.__name__: kind for kind in (int, float, str, bool, bytes, datetime, date)}
_TYPES: dict[str, Any] = {**_SCALARS, **{f"list[{name}]": list[kind] for name, kind in _SCALARS.items()}}  # type: ignore[valid-type]
_NAME = re.compile(r"Fields\((.*)\)")
_FIELD = re.compile(r"(\w+): ([\w\[\]]+)( \| None)?")


@lru_cache(maxsize=256)
def struct_type(fields: tuple[tuple[str, object], ...]) -> type:
    """Return the frozen Struct of these field names and types; equal fields return the same type.

    Examples
    --------
    >>> struct_type((("origin", str), ("delay", float | None)))(origin="JFK", delay=None)
    Fields(origin='JFK', delay=None)
    """
    struct = msgspec.defstruct("Fields", fields, module=__name__, frozen=True)
    struct.__qualname__ = f"Fields({', '.join(f'{name}: {_type_text(kind)}' for name, kind in fields)})"
    return struct


def _type_text(kind: object) -> str:
    if isinstance(kind, types.UnionType):
        return " | ".join(map(_type_text, get_args(kind)))
    if get_origin(kind) is list:
        return f"list[{', '.join(map(_type_text, get_args(kind)))}]"
    if kind is types.NoneType:
        return "None"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def __getattr__(name: str) -> Any:
    match = _NAME.fullmatch(name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    parsed = [_FIELD.fullmatch(part) for part in match[1].split(", ")]
    if not all(field and field[2] in _TYPES for field in parsed):
        raise AttributeError(
            f"{name} has fields of types that are known in one process only: declare the type with value="
        )
    return struct_type(tuple((field[1], _kind(field)) for field in parsed if field))


def _kind(field: re.Match[str]) -> Any:
    kind = _TYPES[field[2]]
    return kind | None if field[3] else kind
