"""The arguments with which operators call functions of the user, and checks that the functions take them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints

from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.arity import can_be_called, parameters_of
from kstreams.processor.context.record_functions import OfRecord


@dataclass(frozen=True, slots=True)
class FunctionArguments:
    """The annotation of a field that holds a function: the arguments of its calls.

    Parameters
    ----------
    arguments : tuple of str
    key_first : bool
        True if `with_key=True` puts the key in front.
    mapped_key_first : bool
        True if `with_mapped_key=True` puts the key and the mapped key in front.
    many : bool
        True if it returns any number of results, so that it may be a generator function.
    of_record : bool
        True if `with_record=True` passes the whole record instead.
    """

    arguments: tuple[str, ...]
    key_first: bool = False
    mapped_key_first: bool = False
    many: bool = False
    of_record: bool = False

    def option_of(self, part: Any) -> str | None:
        """Return the option of a node that puts arguments in front; None without one."""
        if self.mapped_key_first and part.with_mapped_key:
            return "with_mapped_key"
        return "with_key" if self.key_first and part.with_key else None


def called_with(
    *arguments: str,
    key_first: bool = False,
    mapped_key_first: bool = False,
    many: bool = False,
    of_record: bool = False,
) -> FunctionArguments:
    """Declare the arguments with which an operator calls the function in a field."""
    return FunctionArguments(arguments, key_first, mapped_key_first, many, of_record)


def check_calls(operator: object, part: object) -> None:
    """Raise a TopologyError if a function of a node, or of a part of the node, does not take its arguments."""
    kind: Any = type(part)
    for field, called in _function_fields(kind).items():
        argument = getattr(part, field)
        role = field.removesuffix("s") if isinstance(argument, tuple) else field
        for function in argument if isinstance(argument, tuple) else (argument,):
            if isinstance(function, OfRecord):
                _check(operator, role, function.function, called, "with_record")
            else:
                _check(operator, role, function, called, called.option_of(part))


def check_call(place: str, role: str, function: object, *arguments: str) -> None:
    """Raise a TopologyError if a function that no node holds does not take its arguments.

    `place` names the operator in the error, `role` the function.
    """
    _check(place, role, function, FunctionArguments(arguments), None)


def _check(operator: object, role: str, function: object, called: FunctionArguments, option: str | None) -> None:
    arguments = ("record",) if option == "with_record" else (*_LEADING[option], *called.arguments)
    if not called.many and inspect.isgeneratorfunction(function):
        raise TopologyError(
            f"{operator} takes one result of its {role}, but the one it was given is a generator function: write "
            "return instead of yield, or flat_map() or flat_map_values() for several results"
        )
    if isinstance(function, Expr) or not callable(function) or can_be_called(function, len(arguments)):
        return
    cure = _option_cure(function, called, option) or f"let it take {_counted(len(arguments))}"
    if called.of_record and option is None and can_be_called(function, 1):
        cure += ", or give with_record=True, which calls it with the whole record"
    raise TopologyError(
        f"{operator} calls its {role} as {role}({', '.join(arguments)}), but the one it was given takes "
        f"{parameters_of(function)}: {cure}"
    )


_LEADING: dict[str | None, tuple[str, ...]] = {
    None: (),
    "with_key": ("key",),
    "with_mapped_key": ("key", "mapped_key"),
}
"""The arguments that each option puts in front."""


def _option_cure(function: Any, called: FunctionArguments, option: str | None) -> str | None:
    """Return the advice if the function takes the arguments of another option; None if it does not."""
    count = len(called.arguments)
    if option == "with_record":
        fits = can_be_called(function, count) or (called.key_first and can_be_called(function, count + 1))
        return "let it take the record alone, which has key and value, or leave with_record=True out" if fits else None
    if option == "with_mapped_key" or not called.key_first:
        return None
    if option == "with_key":
        fits_without = can_be_called(function, count)
        return "leave with_key=True out, or take the key as well" if fits_without else None
    if can_be_called(function, count + 1):
        return "give with_key=True, or leave the key out"
    fits_mapped = called.mapped_key_first and can_be_called(function, count + 2)
    return "give with_mapped_key=True, or leave both keys out" if fits_mapped else None


def _counted(arguments: int) -> str:
    return {0: "no argument", 1: "one argument"}.get(arguments, f"{arguments} arguments")


@cache
def _function_fields(kind: type) -> dict[str, FunctionArguments]:
    """Return the fields of a node or part that hold functions."""
    return dict(_annotated(get_type_hints(kind, include_extras=True)))


def _annotated(hints: dict[str, Any]) -> Iterator[tuple[str, FunctionArguments]]:
    for field, hint in hints.items():
        for annotation in getattr(hint, "__metadata__", ()):
            if isinstance(annotation, FunctionArguments):
                yield field, annotation
