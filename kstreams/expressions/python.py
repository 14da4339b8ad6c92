"""Expressions as generated Python functions, for the record path.

The source has one line per node. It contains only generated names and field names that are identifiers; constants are
bound to names. So no text of a user is parsed as code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from kstreams.errors import TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.functions import (
    date_of,
    date_part,
    digest,
    divide,
    epoch,
    extract,
    field_of,
    floor_divide,
    in_utc,
    item_at,
    join,
    modulo,
    offset_by,
    time_text,
    to_datetime,
    to_int,
    to_integer,
    truncate,
    whole,
)
from kstreams.expressions.operations import OF_CURRENT_RECORD, Operation
from kstreams.expressions.struct_class import gives_struct, struct_class
from kstreams.expressions.time_formats import python_format
from kstreams.expressions.types import Schema, fields_of, split_optional, type_of
from kstreams.record import Windowed

_ARGUMENT_OF = {
    Operation.FIELD: "value",
    Operation.VALUE: "value",
    Operation.RIGHT_FIELD: "right",
    Operation.RIGHT: "right",
    Operation.KEY: "key",
    Operation.TIMESTAMP: "timestamp",
    **dict.fromkeys(OF_CURRENT_RECORD, "record"),
    Operation.WINDOW_START: "key",
    Operation.WINDOW_END: "key",
}


def as_function(
    expr: Expr,
    arguments: Sequence[str] = ("key", "value", "timestamp"),
    *,
    key: object = None,
    value: object = None,
    right: object = None,
    result: object = None,
) -> Callable[..., Any]:
    """Return the function that computes an expression of one record.

    Parameters
    ----------
    expr : Expr
        An expression without aggregations.
    arguments : sequence of str
        The positional arguments of the function: any of "key", "value", "right", "timestamp", "record". The record has
        the headers and the position of the input record, like `CurrentRecord`.
    key, value, right : type, optional
        Types of the key and value, and of the right value of a join; fields and types are checked if they are known.
    result : type, optional
        The class that a `ks.struct` creates as the result, called with the fields as keywords, or `dict`.

    Raises
    ------
    TopologyError
        If the expression does not fit the types, or reads a part that is no argument of the function.

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
        The names that the lines may use.
    schema : Schema
        The types, by which fields are attributes or items.
    """

    def __init__(self, arguments: Sequence[str], schema: Schema) -> None:
        self.arguments = arguments
        self.schema = schema
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"Windowed": Windowed, "__name__": __name__, "math": math}
        self._assigned_names: dict[str, str] = {}

    def add(self, expr: Expr, result: object = None) -> str:
        """Add the lines of an expression, once for equal expressions; return the name that holds its value.

        `result` is the declared type of this value; a `ks.struct` creates an object of this type.
        """
        if not gives_struct(expr):
            result = None
        title = f"{expr!r}" if result is None else f"{expr!r} as {result!r}"
        if title not in self._assigned_names:
            if expr.operation is Operation.STRUCT:
                text = self._struct(expr, result)
            else:
                text = _RULES[expr.operation](self, expr, [self.add(node, result) for node in expr.inputs])
            self._assigned_names[title] = self.assign(text)
        return self._assigned_names[title]

    def define(self, expr: Expr, name: str) -> None:
        """Define that `name` holds the value of `expr`."""
        self._assigned_names[repr(expr)] = name

    def assign(self, text: str) -> str:
        """Add the line `name = text` with a new name; return the name."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: object) -> str:
        """Bind a constant to a new name; return the name."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def argument(self, expr: Expr) -> str:
        """Return the argument that a leaf reads."""
        name = _ARGUMENT_OF[expr.operation]
        if name not in self.arguments:
            raise TopologyError(f"{expr!r} cannot be used here: only {' and '.join(self.arguments)} can be read")
        return name

    def _struct(self, expr: Expr, result: object) -> str:
        make = struct_class(expr, self.schema, result)
        fields = ", ".join(f"{name}={self.add(node)}" for name, node in zip(expr.detail, expr.inputs, strict=True))
        return f"{self.constant(make)}({fields})"

    def function(self, name: str, arguments: Sequence[str], result: str) -> Callable[..., Any]:
        """Compile the function."""
        source = f"def {name}({', '.join(arguments)}):\n " + "\n ".join([*self.lines, f"return {result}"])
        exec(compile(source, f"<{name}>", "exec"), self.names)
        function: Callable[..., Any] = self.names.pop(name)
        return function


def _field(body: Body, expr: Expr, _: list[str]) -> str:
    holder = body.argument(expr)
    kind = split_optional(body.schema.value if expr.operation is Operation.FIELD else body.schema.right).kind
    return f"None if {holder} is None else {_read(body, holder, expr.detail, kind)}"


def _read(body: Body, holder: str, name: str, kind: object) -> str:
    """Return the source that reads a field of a value that is not null."""
    if kind is Any or not isinstance(kind, type) or not name.isidentifier():
        body.names["field_of"] = field_of
        return f"field_of({holder}, {body.constant(name)})"
    if fields_of(kind) is not None and not issubclass(kind, dict):
        return f"{holder}.{name}"
    return f"{holder}.get({body.constant(name)})"


def _window_bound(body: Body, expr: Expr, _: list[str]) -> str:
    bound = "start_ms" if expr.operation is Operation.WINDOW_START else "end_ms"
    return f"{body.argument(expr)}.window.{bound}"


def _position(name: str) -> Callable[[Body, Expr, list[str]], str]:
    """Return the rule of topic, partition or offset; they are null without an input record."""

    def rule(body: Body, expr: Expr, _: list[str]) -> str:
        record = body.argument(expr)
        return f"None if {record}.topic is None else {record}.{name}"

    return rule


def _header(body: Body, expr: Expr, _: list[str]) -> str:
    return f"{body.constant(expr.detail)}({body.argument(expr)}.headers)"


def _guarded(template: str, **names: Callable[..., Any]) -> Callable[[Body, Expr, list[str]], str]:
    """Return a rule whose result is null if an input is null."""

    def rule(body: Body, expr: Expr, inputs: list[str]) -> str:
        body.names.update(names)
        detail = body.constant(expr.detail) if "{detail}" in template else ""
        nullable = [
            name for name, node in zip(inputs, expr.inputs, strict=True) if node.operation is not Operation.LITERAL
        ]
        text = template.format(*inputs, detail=detail)
        return f"None if {' or '.join(f'{name} is None' for name in nullable)} else {text}" if nullable else text

    return rule


def _compared(operator: str) -> Callable[[Body, Expr, list[str]], str]:
    """Return the rule of a comparison. Times are converted to UTC, because Python compares no aware and naive times."""

    def rule(body: Body, expr: Expr, inputs: list[str]) -> str:
        times = any(type_of(node, body.schema).kind is datetime for node in expr.inputs)
        template = f"in_utc({{0}}) {operator} in_utc({{1}})" if times else f"{{0}} {operator} {{1}}"
        return _guarded(template, in_utc=in_utc)(body, expr, inputs)

    return rule


def _is_in(body: Body, expr: Expr, inputs: list[str]) -> str:
    return f"None if {inputs[0]} is None else {inputs[0]} in {body.constant(frozenset(expr.detail))}"


def _slice(body: Body, expr: Expr, inputs: list[str]) -> str:
    offset, length = expr.detail
    end = "" if length is None else int(offset + length)
    return f"None if {inputs[0]} is None else {inputs[0]}[{int(offset)}:{end}]"


def _of_constant(template: str, constant: Callable[[Any], object], **names: object) -> Callable[..., str]:
    """Return a rule with a constant that is computed of the detail once."""

    def rule(body: Body, expr: Expr, inputs: list[str]) -> str:
        body.names.update(names)
        text = template.format(inputs[0], constant=body.constant(constant(expr.detail)))
        return f"None if {inputs[0]} is None else {text}"

    return rule


_CASTS: dict[type, Callable[[Any], Any]] = {int: to_int, float: float, str: str, datetime: to_datetime}


def _cast(body: Body, expr: Expr, inputs: list[str]) -> str:
    if type_of(expr.inputs[0], body.schema).kind is int is expr.detail:
        return inputs[0]  # also an integer that does not fit in 64 bits
    return f"None if {inputs[0]} is None else {body.constant(_CASTS[expr.detail])}({inputs[0]})"


def _divide(body: Body, expr: Expr, inputs: list[str]) -> str:
    body.names["divide"] = divide
    kinds = {type_of(node, body.schema).kind for node in expr.inputs}
    template = "None if {1} == 0 else float({0}) / {1}" if kinds <= {int, float} else "divide({0}, {1})"
    return _guarded(template)(body, expr, inputs)


def _member(body: Body, expr: Expr, inputs: list[str]) -> str:
    kind = type_of(expr.inputs[0], body.schema).kind
    return f"None if {inputs[0]} is None else {_read(body, inputs[0], expr.detail, kind)}"


def _choose(body: Body, expr: Expr, inputs: list[str]) -> str:
    condition, value, *other = inputs
    return f"{value} if {condition} else {other[0] if other else None}"


def _or(left: str, right: str) -> str:
    return f"True if {left} is True or {right} is True else None if {left} is None or {right} is None else False"


def _column(_: Body, expr: Expr, __: list[str]) -> str:
    raise TopologyError(f"{expr!r} is a column of a batch, which a function of one record cannot read")


def _aggregation(_: Body, expr: Expr, __: list[str]) -> str:
    raise TopologyError(f"{expr!r} needs many records: it can only stand in an aggregate")


_RULES: dict[Operation, Callable[[Body, Expr, list[str]], str]] = {
    Operation.FIELD: _field,
    Operation.VALUE: lambda body, expr, _: body.argument(expr),
    Operation.RIGHT_FIELD: _field,
    Operation.RIGHT: lambda body, expr, _: body.argument(expr),
    Operation.KEY: lambda body, expr, _: "key.key if type({0}) is Windowed else {0}".format(body.argument(expr)),
    Operation.TIMESTAMP: lambda body, expr, _: body.argument(expr),
    Operation.TOPIC: _position("topic"),
    Operation.PARTITION: _position("partition"),
    Operation.OFFSET: _position("offset"),
    Operation.HEADER: _header,
    Operation.HEADERS: lambda body, expr, _: f"tuple({body.argument(expr)}.headers)",
    Operation.WINDOW_START: _window_bound,
    Operation.WINDOW_END: _window_bound,
    Operation.COLUMN: _column,
    Operation.LITERAL: lambda body, expr, _: body.constant(expr.detail),
    Operation.ADD: _guarded("{0} + {1}"),
    Operation.SUBTRACT: _guarded("{0} - {1}"),
    Operation.MULTIPLY: _guarded("{0} * {1}"),
    Operation.DIVIDE: _divide,
    Operation.FLOOR_DIVIDE: _guarded("floor_divide({0}, {1})", floor_divide=floor_divide),
    Operation.MODULO: _guarded("modulo({0}, {1})", modulo=modulo),
    Operation.NEGATE: _guarded("-{0}"),
    Operation.EQUAL: _compared("=="),
    Operation.NOT_EQUAL: _compared("!="),
    Operation.LESS: _compared("<"),
    Operation.LESS_EQUAL: _compared("<="),
    Operation.GREATER: _compared(">"),
    Operation.GREATER_EQUAL: _compared(">="),
    Operation.AND: lambda body, e, i: "False if {0} is False or {1} is False else {0} and {1}".format(*i),
    Operation.OR: lambda body, e, i: _or(*i),
    Operation.NOT: _guarded("not {0}"),
    Operation.IS_NULL: lambda body, e, i: f"{i[0]} is None",
    Operation.IS_IN: _is_in,
    Operation.FILL_NULL: lambda body, e, i: "{1} if {0} is None else {0}".format(*i),
    Operation.IS_NAN: _guarded("{0} != {0}"),
    Operation.ABS: _guarded("abs({0})"),
    Operation.FLOOR: _guarded("whole({0}, floor)", whole=whole, floor=math.floor),
    Operation.CEIL: _guarded("whole({0}, ceil)", whole=whole, ceil=math.ceil),
    Operation.WHEN: _choose,
    Operation.CHOOSE: _choose,
    Operation.MEMBER: _member,
    Operation.DATE_PART: _guarded("date_part({0}, {detail})", date_part=date_part),
    Operation.TRUNCATE: _guarded("truncate({0}, {detail})", truncate=truncate),
    Operation.DATE: _guarded("date_of({0})", date_of=date_of),
    Operation.EPOCH: _guarded("epoch({0}, {detail})", epoch=epoch),
    Operation.OFFSET_BY: _guarded("offset_by({0}, {detail})", offset_by=offset_by),
    Operation.FORMAT: _of_constant("time_text({0}, {constant})", python_format, time_text=time_text),
    Operation.CAST: _cast,
    Operation.LENGTH: _guarded("len({0})"),
    Operation.UPPER: _guarded("{0}.upper()"),
    Operation.LOWER: _guarded("{0}.lower()"),
    Operation.TITLE: _guarded("{0}.title()"),
    Operation.REVERSE: _guarded("{0}[::-1]"),
    Operation.CONTAINS: _guarded("{detail} in {0}"),
    Operation.MATCHES: _of_constant("{constant}({0}) is not None", lambda pattern: re.compile(pattern).search),
    Operation.STARTS_WITH: _guarded("{0}.startswith({detail})"),
    Operation.ENDS_WITH: _guarded("{0}.endswith({detail})"),
    Operation.SLICE: _slice,
    Operation.HEAD: _guarded("{0}[:{detail}]"),
    Operation.TAIL: _of_constant("{0}[{constant}:]", lambda n: -n),
    Operation.STRIP: _guarded("{0}.strip({detail})"),
    Operation.STRIP_START: _guarded("{0}.lstrip({detail})"),
    Operation.STRIP_END: _guarded("{0}.rstrip({detail})"),
    Operation.STRIP_PREFIX: _guarded("{0}.removeprefix({detail})"),
    Operation.STRIP_SUFFIX: _guarded("{0}.removesuffix({detail})"),
    Operation.PAD_START: _guarded("{0}.rjust(*{detail})"),
    Operation.PAD_END: _guarded("{0}.ljust(*{detail})"),
    Operation.ZFILL: _guarded("{0}.zfill({detail})"),
    Operation.REPLACE: _guarded("{0}.replace(*{detail})"),
    Operation.REPLACE_MATCHES: _of_constant(
        "{constant}({0})", lambda detail: lambda text: re.sub(detail[0], detail[1], text)
    ),
    Operation.EXTRACT: _of_constant(
        "extract({0}, *{constant})", lambda detail: (re.compile(detail[0]), detail[1]), extract=extract
    ),
    Operation.SPLIT: _guarded("{0}.split({detail})"),
    Operation.TO_INTEGER: _guarded("to_integer({0}, {detail})", to_integer=to_integer),
    Operation.DIGEST: _guarded("digest({0}, {detail})", digest=digest),
    Operation.LIST_LENGTH: _guarded("len({0})"),
    Operation.LIST_GET: _guarded("item_at({0}, {detail})", item_at=item_at),
    Operation.LIST_CONTAINS: _guarded("{detail} in {0}"),
    Operation.LIST_JOIN: _guarded("join({0}, {detail})", join=join),
    Operation.STRUCT: lambda body, expr, _: body._struct(expr, None),
    **dict.fromkeys((operation for operation in Operation if operation.is_aggregation), _aggregation),
}
