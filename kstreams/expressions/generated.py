"""Struct types that are generated from field names and types; another process finds them again by their name.

A class that exists nowhere in source cannot be sent to a Spark executor by value (msgspec builds its layout when the
class is made). So its qualified name says all that it is made of, and this module answers to such names.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

_SCALARS = {kind.__name__: kind for kind in (int, float, str, bool, bytes, datetime)}
_NAME = re.compile(r"Fields\((.*)\)")
_FIELD = re.compile(r"(\w+): (\w+)( \| None)?")


@lru_cache(maxsize=256)
def struct_type(fields: tuple[tuple[str, object], ...]) -> type:
    """The frozen Struct of these field names and types; equal fields give the very same type.

    Examples
    --------
    >>> struct_type((("origin", str), ("delay", float | None)))(origin="JFK", delay=None)
    Fields(origin='JFK', delay=None)
    """
    struct = msgspec.defstruct("Fields", fields, module=__name__, frozen=True)
    struct.__qualname__ = f"Fields({', '.join(f'{name}: {_spelled(kind)}' for name, kind in fields)})"
    return struct


def _spelled(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def __getattr__(name: str) -> Any:
    match = _NAME.fullmatch(name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    parsed = [_FIELD.fullmatch(part) for part in match[1].split(", ")]
    if not all(field and field[2] in _SCALARS for field in parsed):
        raise AttributeError(
            f"{name} has fields of types that are known in one process only: declare the type with value="
        )
    return struct_type(tuple((field[1], _kind(field)) for field in parsed if field))


def _kind(field: re.Match[str]) -> Any:
    kind = _SCALARS[field[2]]
    return kind | None if field[3] else kind
