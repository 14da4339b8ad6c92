"""Whether what the user gave an operator may stand where it was put; told when the operator is declared."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from kstreams.dsl.graph.node import Node
from kstreams.errors import TopologyError
from kstreams.expressions import Expr

_TYPINGS = {"key", "value", "other_value", "result"}
"""Fields that declare types: whether these have serdes is asked where bytes are needed."""


def check_arguments(node: Node) -> None:
    """Raise a TopologyError when a function, a number or the like is none; names the operator and what it takes."""
    _check(node, node)


def _check(node: Node, part: Any) -> None:
    kind: Any = type(part)
    hints = _hints(kind)
    for field in fields(part):
        given = getattr(part, field.name)
        if field.name not in _TYPINGS and not _fits(given, hints[field.name]):
            raise TopologyError(f"{node} takes {_said(hints[field.name])} as {field.name}, not {given!r}")
        for item in given if isinstance(given, tuple) else (given,):
            if is_dataclass(item) and not isinstance(item, type | Expr):
                _check(node, item)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(given: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(given, each) for each in inner)
    if origin is Callable:
        return callable(given)
    if origin is tuple:
        if not isinstance(given, tuple):
            return False
        expected = inner[:1] * len(given) if inner[-1] is Ellipsis else inner
        return len(given) == len(expected) and all(map(_fits, given, expected))
    return hint is Any or not isinstance(hint, type) or origin is not None or isinstance(given, hint)


def _said(hint: Any) -> str:
    """A type in words.

    Examples
    --------
    >>> _said(Callable[..., Any] | Expr | None)
    'a function or an expression'
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_said(each) for each in inner if each is not types.NoneType)
    if origin is Callable:
        return "a function"
    if origin is tuple:
        return "a pair of expressions" if inner == (Expr, Expr) else f"several of {_said(inner[0])}"
    return "an expression" if hint is Expr else f"{hint.__name__}"
