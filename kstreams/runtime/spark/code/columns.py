"""`column_of`: the text of an expression as a column of PySpark, with the results of `as_function`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from kstreams.expressions import Expr, Operation, Schema, as_function, type_of
from kstreams.expressions.functions import FIRST_MS, LAST_MS, in_utc
from kstreams.runtime.spark.code.scanning import has_operator, without_parentheses
from kstreams.runtime.spark.code.unsayable import Unsayable

Leaf: TypeAlias = Callable[[Expr], str]
"""Returns the text of a part of a record: a field, the key, the timestamp."""

_COLUMN = re.compile(r'F\.col\(("[^"]*")\)')
_INT32 = 2**31


class Term(NamedTuple):
    """A part of an expression: its text, and True if the text is a Python literal, which Spark makes a column of."""

    text: str
    is_literal: bool = False

    @property
    def column(self) -> str:
        """The text as a column; integers have 64 bits."""
        if not self.is_literal:
            return self.text
        column = f"F.lit({self.text})"
        return f'{column}.cast("bigint")' if self.text.lstrip("-").isdigit() else column

    @property
    def argument(self) -> str:
        """The text as an argument of a function of Spark, which also takes the name of a column."""
        by_name = _COLUMN.fullmatch(self.text)
        return by_name.group(1) if by_name else self.column


def column_of(expr: Expr, leaf: Leaf, schema: Schema) -> str:
    """Return the text of an expression, without parentheses around the whole.

    Raises
    ------
    Unsayable
        If Spark has no function with the same results.

    Examples
    --------
    >>> from kstreams.expressions import col
    >>> def field(node):
    ...     return f'F.col("value.{node.detail}")'
    >>> column_of((col("amount") > 100) & ~col("paid"), field, Schema())
    '(F.col("value.amount") > 100) & ~F.col("value.paid")'
    """
    return without_parentheses(term_of(expr, leaf, schema).column)


def term_of(expr: Expr, leaf: Leaf, schema: Schema) -> Term:
    """Return an expression as a term."""
    if not expr.leaves and not expr.is_aggregation and expr.operation is not Operation.STRUCT:
        return Term(_literal(as_function(expr, ())()), is_literal=True)
    if expr.operation.is_leaf:
        return Term(leaf(expr))
    inputs = [term_of(node, leaf, schema) for node in expr.inputs]
    return Term(_RULES[expr.operation](expr, inputs, schema))


Rule: TypeAlias = Callable[[Expr, list[Term], Schema], str]


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        return f'F.to_timestamp(F.lit("{in_utc(value):%Y-%m-%d %H:%M:%S.%f}"))'
    if isinstance(value, str):
        return in_quotes(value)
    if value is None or isinstance(value, bool | int | bytes):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if value - value == 0 else f'float("{value}")'
    raise Unsayable(f"{value!r} is a {type(value).__name__}, which has no equal column in Spark")


def in_quotes(text: str) -> str:
    """Return a text as a literal of Python in double quotes.

    Examples
    --------
    >>> print(in_quotes('say "no"'))
    "say \\"no\\""
    """
    return json.dumps(text)


def _infix(operator: str) -> Rule:
    return lambda expr, inputs, schema: f"({inputs[0].text} {operator} {inputs[1].text})"


def _method(template: str) -> Rule:
    """Return the rule of a method of a column; `{0}` is the column, `{detail}` its text in quotes."""
    return lambda expr, inputs, schema: template.format(inputs[0].column, detail=json.dumps(expr.detail))


def _function(template: str) -> Rule:
    """Return the rule of a function of Spark; `{0}` is the name or text of a column, `{detail}` a text in quotes."""
    return lambda expr, inputs, schema: template.format(
        *(term.argument for term in inputs), detail=json.dumps(expr.detail)
    )


def _kinds(expr: Expr, schema: Schema) -> list[object]:
    return [type_of(node, schema).kind for node in expr.inputs]


def _add(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    if type_of(expr, schema).kind is str:
        return f"F.concat({inputs[0].argument}, {inputs[1].argument})"
    return f"({inputs[0].text} + {inputs[1].text})"


def _divisor(term: Term) -> str:
    """Return a divisor that is null instead of zero."""
    is_safe = term.is_literal and float(term.text) != 0
    return term.text if is_safe else f"F.nullif({term.column}, F.lit(0))"


def _divide(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return f"({inputs[0].text} / {_divisor(inputs[1])})"


def _require_integers(expr: Expr, schema: Schema) -> None:
    if any(kind is not int for kind in _kinds(expr, schema)):
        raise Unsayable(f"{expr!r} rounds fractions, for which Spark has no equal function")


def _modulo(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    """Return the remainder with the sign of the divisor; Spark's has the sign of the dividend."""
    _require_integers(expr, schema)
    if inputs[1].is_literal and int(inputs[1].text) > 0:
        return f"F.pmod({inputs[0].argument}, F.lit({inputs[1].text}))"
    divisor = _divisor(inputs[1])
    return f"((({inputs[0].text} % {divisor}) + {divisor}) % {divisor})"


def _floor_divide(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    remainder = _modulo(expr, inputs, schema)
    divisor = Term(_divisor(inputs[1]), inputs[1].is_literal and float(inputs[1].text) != 0).column
    return f'F.call_function("div", {inputs[0].text} - {remainder}, {divisor})'


def _is_in(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return f"{inputs[0].column}.isin([{', '.join(map(_literal, expr.detail))}])"


def _choose(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    condition, value, *other = inputs
    chosen = f"F.when({without_parentheses(condition.column)}, {value.column})"
    return f"{chosen}.otherwise({other[0].column})" if other else chosen


def _cast(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    if expr.inputs[0].operation is Operation.TIMESTAMP and expr.detail is datetime:
        return 'F.col("timestamp")'
    source = type_of(expr.inputs[0], schema).kind
    rule = _CASTS.get((source, expr.detail))
    if rule is None:
        raise Unsayable(f"{expr!r} has no equal cast in Spark")
    return rule.format(inputs[0].column)


_CASTS: dict[tuple[object, object], str] = {
    (int, int): "{0}",
    (float, int): '{0}.try_cast("bigint")',
    (bool, int): '{0}.cast("bigint")',
    (datetime, int): "F.unix_millis({0})",
    (int, float): '{0}.cast("double")',
    (float, float): "{0}",
    (int, str): '{0}.cast("string")',
    (str, str): "{0}",
    (int, datetime): f"F.when({{0}}.between({FIRST_MS}, {LAST_MS}), F.timestamp_millis({{0}}))",
    (datetime, datetime): "{0}",
}
"""The cast between two types. A fraction that does not fit in 64 bits is null."""


def _whole(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    _require_integers(expr, schema)
    return inputs[0].column


def _case(function: str) -> Rule:
    """Return the rule of a change of case. Spark would merge two of them, but an upper-case ß remains SS."""

    def rule(expr: Expr, inputs: list[Term], schema: Schema) -> str:
        is_changed = expr.inputs[0].operation in (Operation.UPPER, Operation.LOWER)
        text = f'F.concat({inputs[0].argument}, F.lit(""))' if is_changed else inputs[0].argument
        return f"F.{function}({text})"

    return rule


def _date_part(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    function = {"day": "dayofmonth", "ordinal_day": "dayofyear"}.get(expr.detail, expr.detail)
    part = f"F.{function}({inputs[0].argument})"
    return f'({part} + 1).cast("bigint")' if expr.detail == "weekday" else f'{part}.cast("bigint")'


_UNITS = {timedelta(days=1): "day", timedelta(hours=1): "hour", timedelta(minutes=1): "minute"}


def _truncate(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    time = inputs[0].argument
    if expr.detail in _UNITS:
        return f'F.date_trunc("{_UNITS[expr.detail]}", {time})'
    every = expr.detail // timedelta(microseconds=1)
    return f"F.timestamp_micros(F.unix_micros({time}) - F.pmod(F.unix_micros({time}), F.lit({every})))"


def _struct(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return struct_text(dict(zip(expr.detail, inputs, strict=True)))


def struct_text(fields: dict[str, Term]) -> str:
    """Return the text of a struct of named terms."""
    named = (aliased(term.column, name) for name, term in fields.items())
    return f"F.struct({', '.join(named)})"


def aliased(column: str, name: str) -> str:
    """Return a column with a name; `~` and `-` bind weaker than the call of a method.

    Examples
    --------
    >>> aliased('~F.col("late")', "early")
    '(~F.col("late")).alias("early")'
    """
    return f"{f'({column})' if has_operator(column) else column}.alias({in_quotes(name)})"


def _of_numbers(function: str) -> Rule:
    """Return the rule of an extreme, which skips NaN as it skips null."""

    def rule(expr: Expr, inputs: list[Term], schema: Schema) -> str:
        value = inputs[0]
        if _kinds(expr, schema) == [float]:
            return f"F.{function}(F.when(~F.isnan({value.argument}), {value.column}))"
        return f"F.{function}({value.argument})"

    return rule


def _refused(reason: str) -> Rule:
    def rule(expr: Expr, inputs: list[Term], schema: Schema) -> str:
        raise Unsayable(f"{expr!r} {reason}")

    return rule


_ARRIVAL = _refused("depends on the order of records, which Spark's aggregations do not have")

_RULES: dict[Operation, Rule] = {
    Operation.ADD: _add,
    Operation.SUBTRACT: _infix("-"),
    Operation.MULTIPLY: _infix("*"),
    Operation.DIVIDE: _divide,
    Operation.FLOOR_DIVIDE: _floor_divide,
    Operation.MODULO: _modulo,
    Operation.NEGATE: _method("(-{0})"),
    Operation.EQUAL: _infix("=="),
    Operation.NOT_EQUAL: _infix("!="),
    Operation.LESS: _infix("<"),
    Operation.LESS_EQUAL: _infix("<="),
    Operation.GREATER: _infix(">"),
    Operation.GREATER_EQUAL: _infix(">="),
    Operation.AND: _infix("&"),
    Operation.OR: _infix("|"),
    Operation.NOT: _method("~{0}"),
    Operation.IS_NULL: _method("{0}.isNull()"),
    Operation.IS_IN: _is_in,
    Operation.FILL_NULL: _function("F.coalesce({0}, {1})"),
    Operation.IS_NAN: lambda expr, inputs, schema: (
        f"F.when({inputs[0].column}.isNotNull(), F.isnan({inputs[0].argument}))"
    ),
    Operation.ABS: _function("F.abs({0})"),
    Operation.FLOOR: _whole,
    Operation.CEIL: _whole,
    Operation.WHEN: _choose,
    Operation.CHOOSE: _choose,
    Operation.CAST: _cast,
    Operation.MEMBER: _method("{0}.getField({detail})"),
    Operation.DATE_PART: _date_part,
    Operation.TRUNCATE: _truncate,
    Operation.LENGTH: _function('F.length({0}).cast("bigint")'),
    Operation.UPPER: _case("upper"),
    Operation.LOWER: _case("lower"),
    Operation.CONTAINS: _method("{0}.contains({detail})"),
    Operation.STARTS_WITH: _method("{0}.startswith({detail})"),
    Operation.ENDS_WITH: _method("{0}.endswith({detail})"),
    Operation.STRIP: _function("F.btrim({0}, F.lit({detail}))"),
    Operation.REPLACE: lambda expr, inputs, schema: (
        f"F.replace({inputs[0].argument}, F.lit({in_quotes(expr.detail[0])}), F.lit({in_quotes(expr.detail[1])}))"
    ),
    Operation.SLICE: lambda expr, inputs, schema: (
        f"F.substring({inputs[0].argument}, {expr.detail[0] + 1}, {expr.detail[1]})"
    ),
    Operation.STRUCT: _struct,
    Operation.ROWS: lambda expr, inputs, schema: "F.count(F.lit(1))",
    Operation.COUNT: _function("F.count({0})"),
    Operation.SUM: _function("F.sum({0})"),
    Operation.MIN: _of_numbers("min"),
    Operation.MAX: _of_numbers("max"),
    Operation.DISTINCT: _refused("keeps every value, for which Spark has no aggregation in a stream"),
    Operation.FIRST: _ARRIVAL,
    Operation.LAST: _ARRIVAL,
}
