"""The types in the return annotations of functions; None without an annotation."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from kstreams.processor.context.record_functions import OfRecord
from kstreams.serdes.base import without_none


def return_type(function: Callable[..., Any]) -> Any:
    """Return the annotated return type without `None`; for a class, the class.

    Examples
    --------
    >>> def half(value: int) -> float | None: ...
    >>> return_type(half), return_type(str), return_type(lambda value: value)
    (<class 'float'>, <class 'str'>, None)
    """
    while isinstance(function, functools.partial | OfRecord):
        function = function.function if isinstance(function, OfRecord) else function.func
    if isinstance(function, type):
        return function
    return _plain(_return_annotation(function))


def return_pair(function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the key and value type of a function annotated with `tuple[K, V]`."""
    return _pair(return_type(function))


def return_items(function: Callable[..., Any]) -> Any:
    """Return the type of the items of a function annotated with `list[T]`, `Iterable[T]` and the like."""
    return _plain(_first(return_type(function)))


def return_pairs(function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the key and value type of a function annotated with `list[tuple[K, V]]` and the like."""
    return _pair(return_items(function))


def _return_annotation(function: Callable[..., Any]) -> Any:
    annotated = function if isinstance(function, (types.FunctionType, types.MethodType)) else type(function).__call__
    try:
        return typing.get_type_hints(annotated).get("return")
    except Exception:  # an annotation that cannot be evaluated counts as none
        return None


def _plain(annotation: object) -> Any:
    if annotation is Any or isinstance(annotation, TypeVar):
        return None
    return None if annotation is type(None) else without_none(annotation)


def _first(annotation: object) -> Any:
    return (typing.get_args(annotation) or (None,))[0]


def _pair(annotation: object) -> tuple[Any, Any]:
    kinds = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple and len(kinds) == 2:
        return _plain(kinds[0]), _plain(kinds[1])
    return None, None
