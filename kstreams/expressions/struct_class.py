"""The class of the objects that a `ks.struct` creates, and the check of its fields."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Collection
from typing import Any, NamedTuple, is_typeddict

from kstreams.errors import TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.operations import Operation
from kstreams.expressions.types import Schema, type_of


def struct_class(expr: Expr, schema: Schema, declared: object = None) -> Any:
    """Return the class of a `ks.struct`: the declared one, else a class generated from its names and types.

    Parameters
    ----------
    expr : Expr
        A `ks.struct`.
    schema : Schema
        The types of the records.
    declared : type, optional
        The declared type of the key or value that the struct creates.

    Raises
    ------
    TopologyError
        If the fields are not those of the declared class.

    Examples
    --------
    >>> from kstreams.expressions import struct, value
    >>> struct_class(struct(size=value), Schema(), dict[str, int])
    dict[str, int]
    """
    cls = plain_type(declared)
    if cls is None or cls is Any:
        generated = type_of(expr, schema).kind
        return dict if generated is Any else generated
    _check_fields(expr, cls)
    return cls


def gives_struct(expr: Expr) -> bool:
    """Return whether the result of an expression can be a `ks.struct`.

    Examples
    --------
    >>> from kstreams.expressions import col, struct, when
    >>> gives_struct(when(col("late")).then(struct(item=col("item")))), gives_struct(col("item"))
    (True, False)
    """
    if expr.operation is Operation.STRUCT:
        return True
    return expr.operation in _CHOICES and any(map(gives_struct, expr.inputs))


_CHOICES = (Operation.WHEN, Operation.CHOOSE, Operation.FILL_NULL)
"""Operations whose result is one of their inputs. The condition of a choice is no struct."""


def plain_type(kind: object) -> Any:
    """Return the type within an `Annotated`, a `NewType` or `T | None`.

    Examples
    --------
    >>> plain_type(int | None)
    <class 'int'>
    """
    while True:
        members = [member for member in typing.get_args(kind) if member is not types.NoneType]
        if typing.get_origin(kind) in {types.UnionType, typing.Union} and len(members) == 1:
            kind = members[0]
        elif isinstance(kind, typing.NewType):
            kind = kind.__supertype__
        elif typing.get_origin(kind) is typing.Annotated:
            kind = members[0]
        else:
            return kind


class _Fields(NamedTuple):
    """The fields that a class takes as keywords; any if `names` is None."""

    names: Collection[str] | None
    required: Collection[str] = ()


def _check_fields(expr: Expr, cls: object) -> None:
    fields = _accepted_fields(cls)
    name = getattr(cls, "__name__", str(cls))
    if fields is None:
        raise TopologyError(
            f"{expr!r} makes fields, but {name} has no fields: declare a Struct, a dataclass, a TypedDict or dict"
        )
    for field in expr.detail:
        if fields.names is not None and field not in fields.names:
            raise TopologyError(
                f"{expr!r} makes the field {field!r}, but {name} has no such field; it has: {', '.join(fields.names)}"
            )
    for field in fields.required:
        if field not in expr.detail:
            raise TopologyError(f"{expr!r} leaves out the field {field!r}, which {name} needs: add {field}=...")


def _accepted_fields(cls: Any) -> _Fields | None:
    """Return the fields that a class takes; None for a class without fields."""
    origin = typing.get_origin(cls) or cls
    if is_typeddict(origin):
        return _Fields(tuple(origin.__annotations__), origin.__required_keys__)
    if not isinstance(origin, type):
        return None
    return _Fields(None) if issubclass(origin, dict) else _keywords_of(origin)


def _keywords_of(cls: type) -> _Fields | None:
    try:
        parameters = inspect.signature(cls).parameters.values()
    except ValueError:  # a type that is written in C, such as int
        return None
    named = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    return _Fields(
        None if is_open else [parameter.name for parameter in named],
        [parameter.name for parameter in named if parameter.default is parameter.empty],
    )
