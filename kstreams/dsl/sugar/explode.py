"""`explode`: a record for each item of a list in a field of the value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kstreams.expressions import Schema, as_function, col, fields_of, type_of
from kstreams.expressions.aggregation import struct_of


@dataclass(frozen=True, slots=True)
class Explode:
    """Returns a value for each item of a list in a field, with the item in place of the list.

    Parameters
    ----------
    field : str
    read : callable
        `value -> list`, or None.
    others : mapping of str to callable
        The reads of the other fields.
    result : type
        The type of the new values.
    """

    field: str
    read: Callable[[Any], Sequence[Any] | None]
    others: dict[str, Callable[[Any], Any]]
    result: Any

    def __call__(self, value: Any) -> list[Any]:
        fields = {name: read(value) for name, read in self.others.items()}
        return [self.result(**{**fields, self.field: item}) for item in self.read(value) or ()]


@dataclass(frozen=True, slots=True)
class ExplodeDict:
    """`Explode` of values whose type is not known, which are dicts."""

    field: str

    def __call__(self, value: dict[str, Any] | None) -> list[dict[str, Any]]:
        return [] if value is None else [{**value, self.field: item} for item in value.get(self.field) or ()]


def explode_of(field: str, value: Any) -> tuple[Callable[[Any], list[Any]], Any]:
    """Return the function that explodes a field of values of a type, and the type of the new values.

    Raises
    ------
    TopologyError
        If there is no such field, or it has no list.

    Examples
    --------
    >>> from typing import TypedDict
    >>> Line = TypedDict("Line", {"number": int, "words": list[str]})
    >>> explode, result = explode_of("words", Line)
    >>> explode({"number": 1, "words": ["to", "be"]})
    [Fields(number=1, words='to'), Fields(number=1, words='be')]
    """
    schema = Schema(value=value)
    item = type_of(col(field).list.get(0), schema)
    fields = fields_of(value)
    if fields is None:
        return ExplodeDict(field), dict
    kinds = {name: item if name == field else type_of(col(name), schema) for name in fields}
    others = {name: as_function(col(name), ["value"], value=value) for name in fields if name != field}
    result = struct_of(kinds)
    return Explode(field, as_function(col(field), ["value"], value=value), others, result), result
