"""Expressions from text in the syntax of Python. The text is parsed, and none of it is evaluated as code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import reduce
from typing import Any, TypeAlias

from kstreams.connect.tables import Place
from kstreams.errors import ConfigError, TopologyError
from kstreams.expressions import (
    Expr,
    Schema,
    coalesce,
    col,
    fields_of,
    header,
    key,
    literal,
    offset,
    partition,
    timestamp,
    topic,
    type_of,
    value,
    when,
)
from kstreams.expressions.types import split_optional
from kstreams.kernel.advice import nearest_name
from kstreams.kernel.durations import text_to_ms

Argument: TypeAlias = Any
"""An expression, a constant, a list of constants or a type."""

ALLOWED = (
    "fields, numbers, texts in quotes, True, False, + - * / // %, == != < <= > >=, in [...], is None, and, or, not, "
    "`a if condition else b`, ks.key, ks.value, ks.timestamp, ks.topic, ks.partition, ks.offset, ks.header(...), "
    "and the methods of expressions"
)
_PARTS: Mapping[str, Expr] = {
    "key": key,
    "value": value,
    "timestamp": timestamp,
    "topic": topic,
    "partition": partition,
    "offset": offset,
}
_FUNCTIONS: Mapping[str, Callable[..., Expr]] = {"col": col, "header": header, "lit": literal, "coalesce": coalesce}
_METHODS: Mapping[str, tuple[str, ...]] = {
    "": ("is_null", "is_in", "between", "fill_null", "is_nan", "abs", "floor", "ceil", "cast"),
    "str": (
        "len", "upper", "lower", "to_titlecase", "reverse", "contains", "starts_with", "ends_with", "slice", "head",
        "tail", "strip_chars", "strip_chars_start", "strip_chars_end", "strip_prefix", "strip_suffix", "pad_start",
        "pad_end", "zfill", "replace_all", "extract", "split", "to_integer", "md5", "sha256", "crc32",
    ),
    "list": ("len", "get", "first", "last", "contains", "join"),
    "dt": (
        "year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond", "weekday", "ordinal_day",
        "quarter", "week", "iso_year", "date", "epoch", "truncate", "offset_by", "to_string",
    ),
    "struct": ("field",),
}  # fmt: skip
"""The methods of expressions, by their namespace."""
_OF_TEXT = (
    "contains", "starts_with", "ends_with", "strip_chars", "strip_chars_start", "strip_chars_end", "strip_prefix",
    "strip_suffix", "replace_all", "split", "to_string",
)  # fmt: skip
"""The methods of texts and times whose positional arguments are texts."""
_OF_DURATION = ("truncate", "offset_by")
"""The methods that take a duration."""
_TYPES: Mapping[str, type] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "bytes": bytes,
    "datetime": datetime,
}
_OPERATORS: Mapping[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Expr, Expr], Expr]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LITERALS = (ast.List, ast.Tuple, ast.Set)


def expression_of(text: object, place: Place, schema: Schema) -> Expr:
    """Return the expression that a text describes. Names are the fields of the value.

    Parameters
    ----------
    text : str
    place : Place
    schema : Schema
        The types of keys and values.

    Raises
    ------
    ConfigError
        If the text is not in the syntax, calls anything else than methods of expressions, or does not fit the types.

    Examples
    --------
    >>> place = Place("trades.toml", ("sinks.large",))
    >>> expression_of("size >= 1_000 and symbol != 'X'", place, Schema())
    ((ks.col('size') >= 1000) & (ks.col('symbol') != 'X'))
    >>> expression_of("open('/etc/passwd')", place, Schema())
    Traceback (most recent call last):
    kstreams.errors.ConfigError: trades.toml: sinks.large: open(...) cannot be called, at character 1 of ...
    """
    if not isinstance(text, str):
        raise place.error(f"an expression is a text in quotes, not {text!r}")
    line = " ".join(text.split("\n")).strip()
    try:
        tree = ast.parse(line, mode="eval").body
    except SyntaxError as error:
        at = error.offset or len(line) + 1
        raise place.error(f"{error.msg}, at character {at} of {line!r}; allowed are: {ALLOWED}") from None
    expression = _ExpressionReader(line, place, schema.value).read(tree)
    try:
        type_of(expression, schema)
    except TopologyError as error:
        raise place.error(f"{error}, in {line!r}") from error
    return expression


class _ExpressionReader:
    """Reads one text.

    Parameters
    ----------
    text : str
    place : Place
    kind : type
        The type of values.
    """

    def __init__(self, text: str, place: Place, kind: object) -> None:
        self._text = text
        self._place = place
        self._kind = split_optional(kind).kind
        self._fields = fields_of(self._kind)

    def read(self, node: ast.expr) -> Expr:
        """Return the expression of a node."""
        rule = _RULES.get(type(node))
        if rule is None:
            raise self.error(node, f"{ast.unparse(node)} is not allowed", allowed=ALLOWED)
        return rule(self, node)

    def error(self, node: ast.expr, problem: str, *, allowed: str = "") -> ConfigError:
        """Return an error at a node."""
        before = self._text.encode()[: node.col_offset].decode()
        names = f"; allowed are: {allowed}" if allowed else ""
        return self._place.error(f"{problem}, at character {len(before) + 1} of {self._text!r}{names}")

    def name(self, node: ast.Name) -> Expr:
        if self._fields is not None and node.id not in self._fields:
            near = nearest_name(node.id, self._fields, cutoff=0.5)
            hint = "" if near is None else f"did you mean {near}? "
            fields = ", ".join(self._fields)
            raise self.error(node, f"there is no field {node.id}; {hint}There are: {fields}")
        if self._fields is None and isinstance(self._kind, type) and self._kind in _TYPES.values():
            raise self.error(node, f"values are {self._kind.__name__}, without fields: write ks.value")
        return col(node.id)

    def constant(self, node: ast.Constant) -> Expr:
        if node.value is None:
            raise self.error(node, "None can only be compared: write `is None` or `is not None`")
        try:
            return literal(node.value)
        except TypeError as error:
            raise self.error(node, str(error)) from None

    def logic(self, node: ast.BoolOp) -> Expr:
        combined = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        return reduce(combined, map(self.read, node.values))

    def unary(self, node: ast.UnaryOp) -> Expr:
        if isinstance(node.op, ast.USub):
            number = _constant(node)
            return literal(number) if isinstance(number, int | float) else -self.read(node.operand)
        if isinstance(node.op, ast.UAdd):
            return self.read(node.operand)
        return ~self.read(node.operand)

    def binary(self, node: ast.BinOp) -> Expr:
        combined = _OPERATORS.get(type(node.op))
        if combined is None:
            raise self.error(node, f"{ast.unparse(node)} is not allowed", allowed=ALLOWED)
        return combined(self.read(node.left), self.read(node.right))

    def choice(self, node: ast.IfExp) -> Expr:
        chosen = when(self.read(node.test)).then(self.read(node.body))
        is_null = isinstance(node.orelse, ast.Constant) and node.orelse.value is None
        return chosen if is_null else chosen.otherwise(self.read(node.orelse))

    def comparisons(self, node: ast.Compare) -> Expr:
        """Return `a < b < c` as `a < b and b < c`."""
        lefts = [node.left, *node.comparators]
        pairs = zip(lefts, node.ops, node.comparators, strict=False)
        return reduce(operator.and_, [self._comparison(left, sign, right) for left, sign, right in pairs])

    def _comparison(self, left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Expr:
        if isinstance(sign, ast.In | ast.NotIn):
            if not isinstance(right, _LITERALS):
                hint = f"{ast.unparse(right)}.str.contains({ast.unparse(left)})"
                raise self.error(right, f"`in` takes a list of constants; within a text, write {hint}")
            is_member = self.read(left).is_in(self._argument(right))
            return is_member if isinstance(sign, ast.In) else ~is_member
        is_none = isinstance(right, ast.Constant) and right.value is None
        if isinstance(sign, ast.Is | ast.IsNot):
            if not is_none:
                raise self.error(right, "`is` compares with None only: write ==")
            is_null = self.read(left).is_null()
            return is_null if isinstance(sign, ast.Is) else ~is_null
        return _COMPARISONS[type(sign)](self.read(left), self.read(right))

    def attribute(self, node: ast.Attribute) -> Expr:
        """Return a part of the record, such as `ks.key`."""
        if not _is_package(node.value):
            name = ast.unparse(node.value)
            raise self.error(node, f"{name}.{node.attr} is not allowed: write {name}.struct.field({node.attr!r})")
        if node.attr not in _PARTS:
            raise self.error(node, f"there is no ks.{node.attr}", allowed=", ".join(f"ks.{part}" for part in _PARTS))
        return _PARTS[node.attr]

    def call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Attribute):
            hint = ", ".join(f".{name}()" for name in _METHODS[""])
            raise self.error(node, f"{ast.unparse(node.func)}(...) cannot be called", allowed=f"{hint}, .str, .dt")
        function = self._function(node, node.func)
        arguments = [self._argument(argument, node.func.attr) for argument in node.args]
        named = {item.arg or "**": self._argument(item.value, node.func.attr) for item in node.keywords}
        texts = [*arguments, *(item for name, item in named.items() if name != "literal")]
        if node.func.attr in _OF_TEXT and not _is_of_list(node.func) and not all(isinstance(t, str) for t in texts):
            raise self.error(node, f".str.{node.func.attr}() takes texts in quotes")
        try:
            return function(*arguments, **named)
        except (TypeError, ValueError) as error:
            raise self.error(node, str(error)) from error

    def _function(self, node: ast.Call, name: ast.Attribute) -> Callable[..., Expr]:
        """Return the function of the package, or the method of an expression, that a node calls."""
        if _is_package(name.value):
            if name.attr not in _FUNCTIONS:
                raise self.error(node, f"there is no ks.{name.attr}(...)", allowed=", ".join(_FUNCTIONS))
            return _FUNCTIONS[name.attr]
        holder: Any = name.value
        namespace = ""
        if isinstance(holder, ast.Attribute) and holder.attr in _METHODS:
            namespace = holder.attr
            holder = holder.value
        if name.attr not in _METHODS[namespace]:
            dot = f"{namespace}." if namespace else ""
            near = nearest_name(name.attr, _METHODS[namespace])
            hint = "" if near is None else f"; did you mean .{dot}{near}()?"
            allowed = ", ".join(f".{dot}{method}()" for method in _METHODS[namespace])
            raise self.error(node, f"there is no method .{dot}{name.attr}(){hint}", allowed=allowed)
        expression: Any = self.read(holder)
        method: Callable[..., Expr] = getattr(getattr(expression, namespace) if namespace else expression, name.attr)
        return method

    def _argument(self, node: ast.expr, method: str = "") -> Argument:
        if method == "cast" and isinstance(node, ast.Name) and node.id in _TYPES:
            return _TYPES[node.id]
        if isinstance(node, _LITERALS):
            return [self._argument(item) for item in node.elts]
        constant = _constant(node)
        if constant is None:
            return _TYPES[node.id] if method == "header" and _is_type(node) else self.read(node)  # type: ignore[attr-defined]
        return timedelta(milliseconds=text_to_ms(constant)) if method in _OF_DURATION else constant


def _constant(node: ast.expr) -> Any:
    """Return the value of a constant, also of a negative number. None for any other node."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        return -number if isinstance(number, int | float) and not isinstance(number, bool) else None
    return None


def _is_of_list(method: ast.Attribute) -> bool:
    return isinstance(method.value, ast.Attribute) and method.value.attr == "list"


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in _TYPES


def _is_package(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "ks"


_RULES: Mapping[type[ast.expr], Callable[[_ExpressionReader, Any], Expr]] = {
    ast.Name: _ExpressionReader.name,
    ast.Constant: _ExpressionReader.constant,
    ast.BoolOp: _ExpressionReader.logic,
    ast.UnaryOp: _ExpressionReader.unary,
    ast.BinOp: _ExpressionReader.binary,
    ast.IfExp: _ExpressionReader.choice,
    ast.Compare: _ExpressionReader.comparisons,
    ast.Attribute: _ExpressionReader.attribute,
    ast.Call: _ExpressionReader.call,
}
