"""The record path of expressions: an expression as a plain Python function, straight-line and without dispatch.

One line of source per node; the generated text holds only names made here and field names that are identifiers, and
constants are bound by name, so nothing that a user writes is ever parsed as code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from kstreams.errors import TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.operations import Operation
from kstreams.expressions.types import Schema, fields_of, split_optional, type_of
from kstreams.record import Windowed

_NEEDS = {
    Operation.FIELD: "value",
    Operation.VALUE: "value",
    Operation.RIGHT_FIELD: "right",
    Operation.RIGHT: "right",
    Operation.KEY: "key",
    Operation.TIMESTAMP: "timestamp",
    Operation.WINDOW_START: "key",
    Operation.WINDOW_END: "key",
}


def as_function(
    expr: Expr,
    arguments: Sequence[str] = ("key", "value", "timestamp"),
    *,
    key: Any = None,
    value: Any = None,
    right: Any = None,
    result: Any = None,
) -> Callable[..., Any]:
    """The function that computes an expression of one record.

    Parameters
    ----------
    expr : Expr
        Without aggregations.
    arguments : sequence of str
        What the function takes, positionally: any of "key", "value", "right", "timestamp".
    key, value, right : type, optional
        Types of key and value, and of the right value of a join; when they are known, fields and types are checked now.
    result : type, optional
        What a `ks.struct` at the top makes: a class called with the fields as keywords, or `dict`.

    Raises
    ------
    TopologyError
        When the expression does not fit the types, or reads what the function does not get.

    Examples
    --------
    >>> from kstreams.expressions import col
    >>> dear = as_function(col("amount") > 100, ["value"])
    >>> dear({"amount": 101}), dear({"amount": None})
    (True, None)
    """
    schema = Schema(key, value, right)
    type_of(expr, schema)
    if expr.is_aggregation:
        raise TopologyError(f"{expr!r} needs many records: it can only stand in an aggregate")
    body = Body(arguments, schema)
    last = body.add(expr, result)
    return body.function("expression", arguments, last)


class Body:
    """The lines of a function under construction.

    Parameters
    ----------
    arguments : sequence of str
        Names that the lines may use.
    schema : Schema
        Tells whether fields are attributes or items.
    """

    def __init__(self, arguments: Sequence[str], schema: Schema) -> None:
        self.arguments, self.schema = arguments, schema
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"Windowed": Windowed, "__name__": __name__, "math": math}
        self._known: dict[str, str] = {}

    def add(self, expr: Expr, result: Any = None) -> str:
        """Add the lines of an expression, once for equal ones; returns the name that holds its value."""
        shown = f"{expr!r}" if result is None else f"{expr!r} as {result!r}"
        if shown not in self._known:
            if expr.operation is Operation.STRUCT:
                text = self._struct(expr, result)
            else:
                text = _RULES[expr.operation](self, expr, [self.add(node) for node in expr.inputs])
            self._known[shown] = self.assign(text)
        return self._known[shown]

    def define(self, expr: Expr, name: str) -> None:
        """Say that `name` holds the value of `expr` already."""
        self._known[repr(expr)] = name

    def assign(self, text: str) -> str:
        """Add the line `new name = text`."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: Any) -> str:
        """A name bound to a constant."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def argument(self, expr: Expr) -> str:
        """The argument that a leaf reads."""
        name = _NEEDS[expr.operation]
        if name not in self.arguments:
            raise TopologyError(f"{expr!r} cannot be used here: only {' and '.join(self.arguments)} can be seen")
        return name

    def _struct(self, expr: Expr, result: Any) -> str:
        make = result or split_optional(type_of(expr, self.schema).kind).kind
        if make is Any:
            make = dict
        fields = ", ".join(f"{name}={self.add(node)}" for name, node in zip(expr.detail, expr.inputs, strict=True))
        return f"{self.constant(make)}({fields})"

    def function(self, name: str, arguments: Sequence[str], result: str) -> Callable[..., Any]:
        """The finished function."""
        source = f"def {name}({', '.join(arguments)}):\n " + "\n ".join([*self.lines, f"return {result}"])
        exec(compile(source, f"<{name}>", "exec"), self.names)
        function: Callable[..., Any] = self.names.pop(name)
        return function


# ---- what the generated lines call where an operator alone would not do


def floor_divide(left: Any, right: Any) -> Any:
    """Left // right as columns compute it: floats by the floor of the quotient; null for a zero divisor.

    Examples
    --------
    >>> floor_divide(-7, 2), floor_divide(7.5, 2), floor_divide(1, 0)
    (-4, 3.0, None)
    """
    if right == 0:
        return None
    if type(left) is int and type(right) is int:
        return left // right
    quotient = left / right
    return float(math.floor(quotient)) if math.isfinite(quotient) else quotient


def modulo(left: Any, right: Any) -> Any:
    """Left - (left // right) * right, with the sign of the divisor; null for a zero divisor.

    Examples
    --------
    >>> modulo(-7, 2), modulo(7.5, 2), modulo(1, 0)
    (1, 1.5, None)
    """
    if right == 0:
        return None
    return left - floor_divide(left, right) * right


def to_int(number: Any) -> int | None:
    """A number without its fraction; null when it has none or does not fit in 64 bits.

    Examples
    --------
    >>> to_int(-1.5), to_int(float("nan")), to_int(True)
    (-1, None, 1)
    """
    return int(number) if -(2.0**63) <= number < 2.0**63 else None


def field_of(record_value: Any, name: str) -> Any:
    """A field of a value whose type is not known: an item of a dict, else an attribute."""
    return record_value.get(name) if isinstance(record_value, dict) else getattr(record_value, name)


def _field(body: Body, expr: Expr, _: list[str]) -> str:
    holder, name = body.argument(expr), expr.detail
    kind = split_optional(body.schema.value if expr.operation is Operation.FIELD else body.schema.right).kind
    if kind is Any or not isinstance(kind, type) or not name.isidentifier():
        body.names["field_of"] = field_of
        return f"None if {holder} is None else field_of({holder}, {body.constant(name)})"
    if fields_of(kind) is not None and not issubclass(kind, dict):
        return f"None if {holder} is None else {holder}.{name}"
    return f"None if {holder} is None else {holder}.get({body.constant(name)})"


def _window_bound(body: Body, expr: Expr, _: list[str]) -> str:
    bound = "start_ms" if expr.operation is Operation.WINDOW_START else "end_ms"
    return f"{body.argument(expr)}.window.{bound}"


def _guarded(template: str, **names: Callable[..., Any]) -> Callable[[Body, Expr, list[str]], str]:
    """A rule whose result is null when an input is."""

    def rule(body: Body, expr: Expr, inputs: list[str]) -> str:
        body.names.update(names)
        detail = body.constant(expr.detail) if "{detail}" in template else ""
        nullable = [
            name for name, node in zip(inputs, expr.inputs, strict=True) if node.operation is not Operation.LITERAL
        ]
        text = template.format(*inputs, detail=detail)
        return f"None if {' or '.join(f'{name} is None' for name in nullable)} else {text}" if nullable else text

    return rule


def _is_in(body: Body, expr: Expr, inputs: list[str]) -> str:
    return f"None if {inputs[0]} is None else {inputs[0]} in {body.constant(frozenset(expr.detail))}"


def _slice(body: Body, expr: Expr, inputs: list[str]) -> str:
    offset, length = expr.detail
    return f"None if {inputs[0]} is None else {inputs[0]}[{int(offset)}:{int(offset + length)}]"


def _cast(body: Body, expr: Expr, inputs: list[str]) -> str:
    body.names["to_int"] = to_int
    convert = {int: "to_int", float: "float", str: "str"}[expr.detail]
    return f"None if {inputs[0]} is None else {convert}({inputs[0]})"


def _or(left: str, right: str) -> str:
    return f"True if {left} is True or {right} is True else None if {left} is None or {right} is None else False"


def _aggregation(_: Body, expr: Expr, __: list[str]) -> str:
    raise TopologyError(f"{expr!r} needs many records: it can only stand in an aggregate")


_RULES: dict[Operation, Callable[[Body, Expr, list[str]], str]] = {
    Operation.FIELD: _field,
    Operation.VALUE: lambda body, expr, _: body.argument(expr),
    Operation.RIGHT_FIELD: _field,
    Operation.RIGHT: lambda body, expr, _: body.argument(expr),
    Operation.KEY: lambda body, expr, _: "key.key if type({0}) is Windowed else {0}".format(body.argument(expr)),
    Operation.TIMESTAMP: lambda body, expr, _: body.argument(expr),
    Operation.WINDOW_START: _window_bound,
    Operation.WINDOW_END: _window_bound,
    Operation.LITERAL: lambda body, expr, _: body.constant(expr.detail),
    Operation.ADD: _guarded("{0} + {1}"),
    Operation.SUBTRACT: _guarded("{0} - {1}"),
    Operation.MULTIPLY: _guarded("{0} * {1}"),
    Operation.DIVIDE: _guarded("None if {1} == 0 else float({0}) / {1}"),
    Operation.FLOOR_DIVIDE: _guarded("floor_divide({0}, {1})", floor_divide=floor_divide),
    Operation.MODULO: _guarded("modulo({0}, {1})", modulo=modulo),
    Operation.NEGATE: _guarded("-{0}"),
    Operation.EQUAL: _guarded("{0} == {1}"),
    Operation.NOT_EQUAL: _guarded("{0} != {1}"),
    Operation.LESS: _guarded("{0} < {1}"),
    Operation.LESS_EQUAL: _guarded("{0} <= {1}"),
    Operation.GREATER: _guarded("{0} > {1}"),
    Operation.GREATER_EQUAL: _guarded("{0} >= {1}"),
    Operation.AND: lambda body, e, i: "False if {0} is False or {1} is False else {0} and {1}".format(*i),
    Operation.OR: lambda body, e, i: _or(*i),
    Operation.NOT: _guarded("not {0}"),
    Operation.IS_NULL: lambda body, e, i: f"{i[0]} is None",
    Operation.IS_IN: _is_in,
    Operation.FILL_NULL: lambda body, e, i: "{1} if {0} is None else {0}".format(*i),
    Operation.CAST: _cast,
    Operation.LENGTH: _guarded("len({0})"),
    Operation.UPPER: _guarded("{0}.upper()"),
    Operation.LOWER: _guarded("{0}.lower()"),
    Operation.CONTAINS: _guarded("{detail} in {0}"),
    Operation.STARTS_WITH: _guarded("{0}.startswith({detail})"),
    Operation.ENDS_WITH: _guarded("{0}.endswith({detail})"),
    Operation.SLICE: _slice,
    Operation.STRUCT: lambda body, expr, _: body._struct(expr, None),
    **dict.fromkeys((operation for operation in Operation if operation.is_aggregation), _aggregation),
}
