"""Whether keys of two types can be equal; a join of other keys would match no records."""

from __future__ import annotations

import types
import typing
from typing import Any, is_typeddict

from kstreams.dsl.analysis.types import TypeOf
from kstreams.errors import TopologyError
from kstreams.expressions import plain_type
from kstreams.record import Windowed
from kstreams.serdes import Serde


def check_keys(place: str, left: TypeOf, right: TypeOf) -> None:
    """Raise a TopologyError if both types of keys are known, and no key of one type equals a key of the other type.

    Parameters
    ----------
    place : str
        Names the join and its line.
    """
    if can_be_equal(left.kind, right.kind):
        return
    raise TopologyError(
        f"{place} joins keys of {_type_text(left.kind)}, from {left.origin}, with keys of "
        f"{_type_text(right.kind)}, from {right.origin}, which are never equal: give one side the other's keys by "
        "select_key(), or correct the type that was declared"
    )


def can_be_equal(left: object, right: object) -> bool:
    """Return whether values of two types can be equal and have equal bytes; True if a type is not known.

    Examples
    --------
    >>> can_be_equal(str, int), can_be_equal(str, None), can_be_equal(bool, int), can_be_equal(int | str, str)
    (False, True, False, True)
    """
    left = _plain(left)
    right = _plain(right)
    left_class = _class_of(left)
    right_class = _class_of(right)
    if left_class is None or right_class is None:
        return True
    if left_class is right_class is Windowed:
        return all(map(can_be_equal, typing.get_args(left), typing.get_args(right)))
    related = issubclass(left_class, right_class) or issubclass(right_class, left_class)
    return related and (left_class is right_class or bool not in {left_class, right_class})


def _plain(kind: object) -> Any:
    """Return the type within a serde, an `Annotated`, a `NewType` or `T | None`."""
    return plain_type(kind.type if isinstance(kind, Serde) else kind)


def _class_of(kind: object) -> type | None:
    """Return the class of the values of a type; None if they can have several classes."""
    if is_typeddict(kind):
        return dict
    origin = typing.get_origin(kind) or kind
    return origin if isinstance(origin, type) and origin is not types.UnionType else None


def _type_text(kind: object) -> str:
    kind = kind.type if isinstance(kind, Serde) else kind
    return kind.__name__ if isinstance(kind, type) and not typing.get_args(kind) else str(kind)
