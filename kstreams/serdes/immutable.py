"""`is_immutable`: types whose values cannot change."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Iterable
from typing import Any

import msgspec

_LEAVES: frozenset[Any] = frozenset(
    {
        str, int, float, bytes, bool, type(None), None, decimal.Decimal, uuid.UUID,
        datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    }
)  # fmt: skip
_CONTAINERS = (tuple, frozenset, typing.Union, types.UnionType)


def is_immutable(kind: object) -> bool:
    """True if every value of a type, and everything inside it, is immutable. False if that is not known.

    Examples
    --------
    >>> is_immutable(tuple[int, str | None]), is_immutable(list[int]), is_immutable(Any)
    (True, False, False)
    """
    try:
        return _immutable(kind, frozenset())
    except (TypeError, NameError):  # an unhashable or unresolvable annotation
        return False


def _immutable(kind: object, within: frozenset[object]) -> bool:
    if kind in _LEAVES or kind in within:  # for a recursive type, its other parts decide
        return True
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return True
    if origin is typing.Annotated:
        return _immutable(typing.get_args(kind)[0], within)
    if origin in _CONTAINERS:
        return _all_immutable(typing.get_args(kind), within)
    return isinstance(kind, type) and _immutable_class(kind, within | {kind})


def _all_immutable(kinds: Iterable[Any], within: frozenset[object]) -> bool:
    return all(kind is Ellipsis or _immutable(kind, within) for kind in kinds)


def _immutable_class(kind: type, within: frozenset[object]) -> bool:
    if issubclass(kind, enum.Enum):
        return True
    frozen = (
        (issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen)
        or (dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )
    return bool(frozen) and _all_immutable(typing.get_type_hints(kind).values(), within)
