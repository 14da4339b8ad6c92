"""`column_of`: the text of an expression as a column of PySpark, with the results of `as_function`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from msgspec.json import encode as json_text

from kstreams.expressions import Expr, Operation, Schema, as_function, type_of
from kstreams.expressions.functions import FIRST_MS, LAST_MS, in_utc
from kstreams.expressions.time_formats import java_format
from kstreams.runtime.spark.code.patterns import java_pattern, java_replacement
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
    if _is_part(expr):
        part = _part(expr, leaf, schema)
        return Term(f'{part}.cast("timestamp")' if type_of(expr, schema).kind is datetime else part)
    if expr.operation is Operation.STRUCT:
        return Term(_struct(expr, [stored_term(node, leaf, schema) for node in expr.inputs], schema))
    _require_no_decimals(expr, schema)
    inputs = [term_of(node, leaf, schema) for node in expr.inputs]
    return Term(_RULES[expr.operation](expr, inputs, schema))


def stored_term(expr: Expr, leaf: Leaf, schema: Schema) -> Term:
    """Return an expression as values hold it: datetimes and dates as the texts of JSON, all else as it is."""
    if expr.operation is Operation.STRUCT or type_of(expr, schema).kind not in (datetime, date):
        return term_of(expr, leaf, schema)
    if not expr.leaves and not expr.is_aggregation:
        time = as_function(expr, ())()
        return Term(_literal(time and json_text(time).decode().strip('"')), is_literal=True)
    if _is_part(expr):
        return Term(_part(expr, leaf, schema))
    if expr.operation in _COMPUTED:
        return Term(_COMPUTED[expr.operation].format(without_parentheses(term_of(expr, leaf, schema).column)))
    if expr.operation in _CHOICES:
        first_result = len(expr.inputs) - _CHOICES[expr.operation]
        conditions = [term_of(node, leaf, schema) for node in expr.inputs[:first_result]]
        results = [stored_term(node, leaf, schema) for node in expr.inputs[first_result:]]
        return Term(_RULES[expr.operation](expr, [*conditions, *results], schema))
    raise Unsayable(f"{expr!r} keeps the zone of a datetime, which Spark does not")


_COMPUTED = {
    **dict.fromkeys((Operation.CAST, Operation.TRUNCATE, Operation.OFFSET_BY), "utc_text({})"),
    Operation.DATE: '{}.cast("string")',
}
"""The texts of times and dates that are computed."""

_CHOICES = {Operation.FILL_NULL: 2, Operation.WHEN: 1, Operation.CHOOSE: 2}
"""The number of inputs at the end of which the result is one, as it is."""


def _is_part(expr: Expr) -> bool:
    return expr.operation.is_leaf or expr.operation in (Operation.MEMBER, Operation.LIST_GET)


def _part(expr: Expr, leaf: Leaf, schema: Schema) -> str:
    """Return a part of a record, a member of one or an item of a list, as values hold it."""
    if expr.operation.is_leaf:
        return leaf(expr)
    return _RULES[expr.operation](expr, [term_of(node, leaf, schema) for node in expr.inputs], schema)


def _require_no_decimals(expr: Expr, schema: Schema) -> None:
    """Raise Unsayable if an operation reads a Decimal, which is a text in Spark, and does not pass it on."""
    if Decimal in _kinds(expr, schema) and expr.operation not in (Operation.IS_NULL, Operation.COUNT, *_CHOICES):
        raise Unsayable(f"{expr!r} computes with Decimals, of which Spark rounds the digits")


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
    return json.dumps(text, ensure_ascii=False)


def _infix(operator: str) -> Rule:
    return lambda expr, inputs, schema: f"({inputs[0].text} {operator} {inputs[1].text})"


def _method(template: str) -> Rule:
    """Return the rule of a method of a column; `{0}` is the column, `{detail}` its text in quotes."""
    return lambda expr, inputs, schema: template.format(inputs[0].column, detail=_detail(expr))


def _function(template: str) -> Rule:
    """Return the rule of a function of Spark; `{0}` is the name or text of a column, `{detail}` a text in quotes."""
    return lambda expr, inputs, schema: template.format(*(term.argument for term in inputs), detail=_detail(expr))


def _detail(expr: Expr) -> str:
    """Return the text of the constant of an operation; None if the rule does not need it."""
    return in_quotes(expr.detail) if isinstance(expr.detail, str) else repr(expr.detail)


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
    template = _DATE_PARTS.get(expr.detail, f"F.{expr.detail}({{0}})")
    return f'{template.format(inputs[0].argument)}.cast("bigint")'


_DATE_PARTS = {
    "day": "F.dayofmonth({0})",
    "ordinal_day": "F.dayofyear({0})",
    "weekday": "(F.weekday({0}) + 1)",
    "week": "F.weekofyear({0})",
    "iso_year": 'F.extract(F.lit("YEAROFWEEK"), {0})',
    "millisecond": "F.pmod(F.unix_millis({0}), F.lit(1000))",
    "microsecond": "F.pmod(F.unix_micros({0}), F.lit(1000000))",
}
"""The columns of parts of times that Spark names otherwise."""


_UNITS = {timedelta(days=1): "day", timedelta(hours=1): "hour", timedelta(minutes=1): "minute"}


def _truncate(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    time = inputs[0].argument
    if expr.detail in _UNITS:
        return f'F.date_trunc("{_UNITS[expr.detail]}", {time})'
    every = expr.detail // timedelta(microseconds=1)
    return f"F.timestamp_micros(F.unix_micros({time}) - F.pmod(F.unix_micros({time}), F.lit({every})))"


_EPOCHS = {
    "us": "F.unix_micros({0})",
    "ms": "F.unix_millis({0})",
    "s": "F.unix_seconds({0})",
    "d": 'F.unix_date(F.to_date({0})).cast("bigint")',
}


def _epoch(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return _EPOCHS[expr.detail].format(inputs[0].argument)


def _offset_by(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    moved = f"(F.unix_micros({inputs[0].argument}) + F.lit({expr.detail // timedelta(microseconds=1)}))"
    fits = f"{moved}.between({FIRST_MS * 1000}, {LAST_MS * 1000 + 999})"
    return f"F.when({fits}, F.timestamp_micros({moved}))"


def _format(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return f"F.date_format({inputs[0].argument}, {in_quotes(java_format(expr.detail))})"


def _matches(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return f"F.regexp_like({inputs[0].argument}, F.lit({in_quotes(java_pattern(expr.detail))}))"


def _extract(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    pattern, group = expr.detail
    java = in_quotes(java_pattern(pattern, reads_groups=group > 0))
    text = inputs[0].argument
    return f"F.when(F.regexp_like({text}, F.lit({java})), F.regexp_extract({text}, {java}, {group}))"


def _replace_matches(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    pattern, value = expr.detail
    java = java_pattern(pattern, reads_groups="\\" in value)
    replacement = java_replacement(pattern, value)
    return f"F.regexp_replace({inputs[0].argument}, F.lit({in_quotes(java)}), F.lit({in_quotes(replacement)}))"


def _split(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return f"F.split({inputs[0].argument}, {in_quotes(java_pattern(re.escape(expr.detail)))}, -1)"


def _slice(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    offset, length = expr.detail
    return f"F.substring({inputs[0].argument}, {offset + 1}, {_INT32 - 1 if length is None else length})"


def _head(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    text = inputs[0].argument
    return f"F.left({inputs[0].column}, F.length({text}) - F.lit({-expr.detail}))"


def _strip_prefix(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    text = inputs[0]
    rest = f"F.substring({text.argument}, {len(expr.detail) + 1}, {_INT32 - 1})"
    return f"F.when({text.column}.startswith({in_quotes(expr.detail)}), {rest}).otherwise({text.column})"


def _strip_suffix(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    text = inputs[0]
    rest = f"F.left({text.column}, F.length({text.argument}) - F.lit({len(expr.detail)}))"
    return f"F.when({text.column}.endswith({in_quotes(expr.detail)}), {rest}).otherwise({text.column})"


def _padded(function: str) -> Rule:
    """Return the rule of a padding; Spark's functions cut longer texts."""

    def rule(expr: Expr, inputs: list[Term], schema: Schema) -> str:
        length, fill_char = expr.detail
        text = inputs[0]
        padded = f"F.{function}({text.argument}, {length}, {in_quotes(fill_char)})"
        return f"F.when(F.length({text.argument}) < {length}, {padded}).otherwise({text.column})"

    return rule


def _to_integer(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    if expr.detail != 10:
        raise Unsayable(f"{expr!r} reads a base for which Spark has no equal function")
    is_integer = f'F.regexp_like({inputs[0].argument}, F.lit("\\\\A[+-]?[0-9]+\\\\z"))'
    return f'F.when({is_integer}, {inputs[0].column}.try_cast("bigint"))'


_DIGESTS = {"md5": "F.md5({0})", "sha256": "F.sha2({0}, 256)", "crc32": "F.crc32({0})"}


def _digest(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    return _DIGESTS[expr.detail].format(inputs[0].argument)


def _list_get(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    place = expr.detail + 1 if expr.detail >= 0 else expr.detail
    return f"F.try_element_at({inputs[0].argument}, F.lit({place}))"


def _list_contains(expr: Expr, inputs: list[Term], schema: Schema) -> str:
    items = inputs[0]
    if not isinstance(expr.detail, str | int | float):
        raise Unsayable(f"{expr!r} compares texts of JSON, which have several notations of a value")
    has_item = f"F.array_contains({items.argument}, F.lit({_literal(expr.detail)}))"
    return f"F.when({items.column}.isNotNull(), F.coalesce({has_item}, F.lit(False)))"


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
    Operation.DATE: _function("F.to_date({0})"),
    Operation.EPOCH: _epoch,
    Operation.OFFSET_BY: _offset_by,
    Operation.FORMAT: _format,
    Operation.LENGTH: _function('F.length({0}).cast("bigint")'),
    Operation.UPPER: _case("upper"),
    Operation.LOWER: _case("lower"),
    Operation.TITLE: _refused("starts a word after each sign, for which Spark has no function"),
    Operation.REVERSE: _function("F.reverse({0})"),
    Operation.CONTAINS: _method("{0}.contains({detail})"),
    Operation.MATCHES: _matches,
    Operation.STARTS_WITH: _method("{0}.startswith({detail})"),
    Operation.ENDS_WITH: _method("{0}.endswith({detail})"),
    Operation.HEAD: _head,
    Operation.TAIL: lambda expr, inputs, schema: f"F.right({inputs[0].column}, F.lit({expr.detail}))",
    Operation.STRIP: _function("F.btrim({0}, F.lit({detail}))"),
    Operation.STRIP_START: _function("F.ltrim({0}, F.lit({detail}))"),
    Operation.STRIP_END: _function("F.rtrim({0}, F.lit({detail}))"),
    Operation.STRIP_PREFIX: _strip_prefix,
    Operation.STRIP_SUFFIX: _strip_suffix,
    Operation.PAD_START: _padded("lpad"),
    Operation.PAD_END: _padded("rpad"),
    Operation.ZFILL: _refused("pads after a sign, for which Spark has no function"),
    Operation.REPLACE: lambda expr, inputs, schema: (
        f"F.replace({inputs[0].argument}, F.lit({in_quotes(expr.detail[0])}), F.lit({in_quotes(expr.detail[1])}))"
    ),
    Operation.REPLACE_MATCHES: _replace_matches,
    Operation.EXTRACT: _extract,
    Operation.SPLIT: _split,
    Operation.TO_INTEGER: _to_integer,
    Operation.DIGEST: _digest,
    Operation.LIST_LENGTH: _function('F.array_size({0}).cast("bigint")'),
    Operation.LIST_GET: _list_get,
    Operation.LIST_CONTAINS: _list_contains,
    Operation.LIST_JOIN: _function("F.array_join({0}, {detail})"),
    Operation.SLICE: _slice,
    Operation.STRUCT: _struct,
    Operation.ROWS: lambda expr, inputs, schema: "F.count(F.lit(1))",
    Operation.COUNT: _function("F.count({0})"),
    Operation.SUM: _function("F.sum({0})"),
    Operation.MIN: _of_numbers("min"),
    Operation.MAX: _of_numbers("max"),
    **dict.fromkeys((Operation.MIN_BY, Operation.MAX_BY), _ARRIVAL),
    **dict.fromkeys(
        (Operation.APPROX_DISTINCT, Operation.APPROX_QUANTILE),
        _refused("is a sketch, of which Spark has another kind with other results"),
    ),
    Operation.QUANTILE: _refused("keeps every value, for which Spark has no aggregation in a stream"),
    Operation.DISTINCT: _refused("keeps every value, for which Spark has no aggregation in a stream"),
    Operation.COLLECT: _ARRIVAL,
    Operation.FIRST: _ARRIVAL,
    Operation.LAST: _ARRIVAL,
}
