"""Checks the arguments of an operator when it is declared."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from kstreams.dsl.graph.node import Node
from kstreams.dsl.graph.signatures import check_calls
from kstreams.errors import SerdeError, TopologyError
from kstreams.expressions import Expr
from kstreams.serdes import serde_of

_TYPINGS = {"key": "key", "value": "value", "other_value": "other_value", "result": "value"}
"""The fields that declare types, and the keywords by which the user sets them."""


def check_arguments(node: Node) -> None:
    """Raise a TopologyError for an argument of the wrong type; it names the operator and the right type.

    A function must take the arguments with which the operator calls it; a type must have a serde.
    """
    _check(node, node)


def _check(node: Node, part: Any) -> None:
    kind: Any = type(part)
    hints = _hints(kind)
    for field in fields(part):
        argument = getattr(part, field.name)
        if field.name in _TYPINGS:
            _check_type(node, _TYPINGS[field.name], argument)
        elif not _fits(argument, hints[field.name]):
            raise TopologyError(f"{node} takes {_type_text(hints[field.name])} as {field.name}, not {argument!r}")
        for item in argument if isinstance(argument, tuple) else (argument,):
            if is_dataclass(item) and not isinstance(item, type | Expr):
                _check(node, item)
    check_calls(node, part)


def _check_type(node: Node, keyword: str, argument: object) -> None:
    try:
        serde_of(bytes if argument is None else argument)
    except SerdeError as error:
        if not isinstance(
            error.__cause__, NameError
        ):  # a type that is named in a string annotation may be defined later
            raise TopologyError(
                f"{node} cannot use {keyword}={getattr(argument, '__name__', argument)}: {error}"
            ) from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(argument: object, hint: object) -> bool:
    origin = get_origin(hint)
    inner = get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(argument, member) for member in inner)
    if origin is Callable:
        return callable(argument)
    if origin is tuple:
        if not isinstance(argument, tuple):
            return False
        expected = inner[:1] * len(argument) if inner[-1] is Ellipsis else inner
        return len(argument) == len(expected) and all(map(_fits, argument, expected))
    return hint is Any or not isinstance(hint, type) or origin is not None or isinstance(argument, hint)


def _type_text(hint: Any) -> str:
    """Describe a type in words.

    Examples
    --------
    >>> _type_text(Callable[..., Any] | Expr | None)
    'a function or an expression'
    """
    origin = get_origin(hint)
    inner = get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_type_text(member) for member in inner if member is not types.NoneType)
    if origin is Callable:
        return "a function"
    if origin is tuple:
        return "a pair of expressions" if inner == (Expr, Expr) else f"several of {_type_text(inner[0])}"
    return "an expression" if hint is Expr else f"{hint.__name__}"
