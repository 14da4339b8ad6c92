"""What operators call the functions with that they are given; calls that cannot work are refused at once."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from kstreams.arity import can_be_called, parameters_of
from kstreams.errors import TopologyError
from kstreams.expressions import Expr


@dataclass(frozen=True, slots=True)
class CalledWith:
    """Stands in the annotation of a field: the arguments of its function.

    Parameters
    ----------
    arguments : tuple of str
    key_first : bool
        Whether `with_key=True` puts the key in front.
    many : bool
        Whether it gives any number of results, so that it may be a generator function.
    """

    arguments: tuple[str, ...]
    key_first: bool = False
    many: bool = False


def called_with(*arguments: str, key_first: bool = False, many: bool = False) -> CalledWith:
    """What a field's function is called with."""
    return CalledWith(arguments, key_first, many)


def check_calls(operator: object, part: Any) -> None:
    """Raise a TopologyError for a function of a node, or of a part of it, that cannot be called as it will be."""
    kind: Any = type(part)
    for field, called in _called(kind).items():
        given = getattr(part, field)
        role = field.removesuffix("s") if isinstance(given, tuple) else field
        for function in given if isinstance(given, tuple) else (given,):
            _check(operator, role, function, called, with_key=called.key_first and part.with_key)


def check_call(place: str, role: str, function: Any, *arguments: str) -> None:
    """The same for a function that stands in no node: `place` names the operator, `role` the function."""
    _check(place, role, function, CalledWith(arguments), with_key=False)


def _check(operator: object, role: str, function: Any, called: CalledWith, *, with_key: bool) -> None:
    arguments = ("key", *called.arguments) if with_key else called.arguments
    if not called.many and inspect.isgeneratorfunction(function):
        raise TopologyError(
            f"{operator} takes one result of its {role}, but the one it was given is a generator function: write "
            "return instead of yield, or flat_map() or flat_map_values() for several results"
        )
    if isinstance(function, Expr) or not callable(function) or can_be_called(function, len(arguments)):
        return
    other = len(arguments) + (-1 if with_key else 1)
    switches = called.key_first and can_be_called(function, other)
    cure = _SWITCH[with_key] if switches else f"let it take {_counted(len(arguments))}"
    raise TopologyError(
        f"{operator} calls its {role} as {role}({', '.join(arguments)}), but the one it was given takes "
        f"{parameters_of(function)}: {cure}"
    )


_SWITCH = {False: "give with_key=True, or leave the key out", True: "leave with_key=True out, or take the key as well"}


def _counted(arguments: int) -> str:
    return {0: "no argument", 1: "one argument"}.get(arguments, f"{arguments} arguments")


@cache
def _called(kind: type) -> dict[str, CalledWith]:
    """The fields of a node or part that hold functions."""
    return dict(_annotated(get_type_hints(kind, include_extras=True)))


def _annotated(hints: dict[str, Any]) -> Iterator[tuple[str, CalledWith]]:
    for field, hint in hints.items():
        for said in getattr(hint, "__metadata__", ()):
            if isinstance(said, CalledWith):
                yield field, said
