"""`is_immutable`: whether the values of a type can change."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Iterable

import msgspec

_SCALARS: frozenset[object] = frozenset(
    {
        str, int, float, bytes, bool, type(None), None, decimal.Decimal, uuid.UUID,
        datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    }
)  # fmt: skip
_CONTAINERS = (tuple, frozenset, typing.Union, types.UnionType)


def is_immutable(kind: object) -> bool:
    """True if every value of a type is immutable, with all its parts. False if the type does not tell.

    Examples
    --------
    >>> is_immutable(tuple[int, str | None]), is_immutable(list[int]), is_immutable(object)
    (True, False, False)
    """
    try:
        return _is_immutable(kind, frozenset())
    except (TypeError, NameError):  # an unhashable or unresolvable annotation
        return False


def _is_immutable(kind: object, enclosing_classes: frozenset[object]) -> bool:
    if kind in _SCALARS or kind in enclosing_classes:  # a recursive type is as immutable as its other parts
        return True
    origin = typing.get_origin(kind)
    if origin is typing.Literal:
        return True
    if origin is typing.Annotated:
        return _is_immutable(typing.get_args(kind)[0], enclosing_classes)
    if origin in _CONTAINERS:
        return _are_immutable(typing.get_args(kind), enclosing_classes)
    return isinstance(kind, type) and _is_immutable_class(kind, enclosing_classes | {kind})


def _are_immutable(kinds: Iterable[object], enclosing_classes: frozenset[object]) -> bool:
    return all(kind is Ellipsis or _is_immutable(kind, enclosing_classes) for kind in kinds)


def _is_immutable_class(kind: type, enclosing_classes: frozenset[object]) -> bool:
    if issubclass(kind, enum.Enum):
        return True
    is_frozen = (
        (issubclass(kind, msgspec.Struct) and kind.__struct_config__.frozen)
        or (dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )
    return bool(is_frozen) and _are_immutable(typing.get_type_hints(kind).values(), enclosing_classes)
