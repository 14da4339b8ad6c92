"""Expressions as narwhals expressions, for frames of Spark and other backends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kstreams.errors import UnsupportedError
from kstreams.expressions.expression import Expr
from kstreams.expressions.operations import BY_ANOTHER, SKETCHES, Operation
from kstreams.expressions.python import as_function
from kstreams.expressions.types import Schema, type_of

if TYPE_CHECKING:
    import narwhals as nw

Leaf = Callable[[Expr], "nw.Expr"]


def to_narwhals(expr: Expr, leaf: Leaf, schema: Schema) -> nw.Expr:
    """Return the narwhals expression with the results of `as_function`.

    Parameters
    ----------
    expr : Expr
        The expression; with aggregations, for `group_by(...).agg(...)`.
    leaf : callable
        Returns the narwhals expression of a leaf: a field, the key, the timestamp …
    schema : Schema
        Types of the key and value.

    Examples
    --------
    >>> import narwhals, pyarrow
    >>> from kstreams.expressions import col
    >>> doubled = to_narwhals(col("n") * 2, lambda node: narwhals.col(node.detail), Schema(str, dict[str, int]))
    >>> narwhals.from_native(pyarrow.table({"n": [1, None]})).select(doubled)["n"].to_list()
    [2, None]
    """
    if not expr.leaves and not expr.is_aggregation:
        return _constant(expr)
    inputs = [to_narwhals(node, leaf, schema) for node in expr.inputs]
    lowered: nw.Expr = _RULES[expr.operation](expr, inputs, leaf, schema)
    return lowered


Rule = Callable[[Expr, "list[nw.Expr]", Leaf, Schema], "nw.Expr"]


def _leaf(expr: Expr, _: list[nw.Expr], leaf: Leaf, __: Schema) -> nw.Expr:
    return leaf(expr)


def _constant(expr: Expr) -> nw.Expr:
    """Return the literal of an expression without leaves; a backend would compute a frame with one row."""
    import narwhals as nw

    dtypes = {int: nw.Int64(), float: nw.Float64(), str: nw.String(), bool: nw.Boolean(), bytes: nw.Binary()}
    return nw.lit(as_function(expr, ())(), dtypes.get(type_of(expr, Schema()).kind))


def _literal(expr: Expr, *_: object) -> nw.Expr:
    return _constant(expr)


def _plain(function: Callable[..., nw.Expr]) -> Rule:
    return lambda expr, inputs, leaf, schema: function(*inputs)


def _detailed(function: Callable[[nw.Expr, Any], nw.Expr]) -> Rule:
    return lambda expr, inputs, leaf, schema: function(inputs[0], expr.detail)


def _add(expr: Expr, inputs: list[nw.Expr], _: Leaf, schema: Schema) -> nw.Expr:
    import narwhals as nw

    if type_of(expr, schema).kind is str:
        return nw.concat_str(inputs)  # backends disagree about + between texts
    return inputs[0] + inputs[1]


def _divided(function: Callable[[nw.Expr, nw.Expr], nw.Expr]) -> Rule:
    def rule(expr: Expr, inputs: list[nw.Expr], _: Leaf, __: Schema) -> nw.Expr:
        import narwhals as nw

        left, right = inputs
        return function(left, nw.when(right != 0).then(right))

    return rule


def _modulo(expr: Expr, inputs: list[nw.Expr], _: Leaf, schema: Schema) -> nw.Expr:
    import narwhals as nw

    left = inputs[0]
    right = nw.when(inputs[1] != 0).then(inputs[1])
    if type_of(expr, schema).kind is int:
        return left % right
    return left - (left // right) * right  # backends would add the divisor first and round


def _is_in(expr: Expr, inputs: list[nw.Expr], _: Leaf, __: Schema) -> nw.Expr:
    import narwhals as nw

    return nw.when(~inputs[0].is_null()).then(inputs[0].is_in(expr.detail))


def _fill_null(expr: Expr, inputs: list[nw.Expr], _: Leaf, __: Schema) -> nw.Expr:
    import narwhals as nw

    return nw.coalesce(*inputs)


def _cast(expr: Expr, inputs: list[nw.Expr], _: Leaf, schema: Schema) -> nw.Expr:
    import narwhals as nw

    number = inputs[0]
    if expr.detail is not int:
        return number.cast({float: nw.Float64(), str: nw.String()}[expr.detail])
    if type_of(expr.inputs[0], schema).kind is float:
        whole = nw.when(number < 0).then(number.ceil()).otherwise(number.floor())
        number = nw.when((number >= -(2.0**63)) & (number < 2.0**63)).then(whole)
    return number.cast(nw.Int64())


def _struct(expr: Expr, inputs: list[nw.Expr], _: Leaf, __: Schema) -> nw.Expr:
    import narwhals as nw

    return nw.struct(*(node.alias(name) for name, node in zip(expr.detail, inputs, strict=True)))


def _unmerged(text: nw.Expr) -> nw.Expr:
    """Return the text for a case change. Spark would merge two case changes, but an upper-case ß remains SS."""
    import narwhals as nw

    return nw.concat_str([text, nw.lit("")])


def _whole(name: str) -> Rule:
    def rule(expr: Expr, inputs: list[nw.Expr], _: Leaf, schema: Schema) -> nw.Expr:
        return getattr(inputs[0], name)() if type_of(expr.inputs[0], schema).kind is float else inputs[0]

    return rule


def _choose(_: Expr, inputs: list[nw.Expr], __: Leaf, ___: Schema) -> nw.Expr:
    import narwhals as nw

    condition, value, *other = inputs
    chosen = nw.when(nw.coalesce(condition, nw.lit(False))).then(value)
    return chosen.otherwise(*other) if other else chosen


def _row_count(*_: object) -> nw.Expr:
    import narwhals as nw

    return nw.len()


def _refused(expr: Expr, *_: object) -> nw.Expr:
    raise UnsupportedError(f"{expr!r} {REFUSED[expr.operation]}")


_ARRIVAL = "depends on the order of records, which a frame does not have"
_TIMES = "depends on the zone in which a session of Spark shows times"
_DIALECT = "is defined by Python, from which the functions of backends differ"
_BY_PYTHON = (
    Operation.TITLE,
    Operation.REVERSE,
    Operation.MATCHES,
    Operation.HEAD,
    Operation.TAIL,
    Operation.STRIP_START,
    Operation.STRIP_END,
    Operation.STRIP_PREFIX,
    Operation.STRIP_SUFFIX,
    Operation.PAD_START,
    Operation.PAD_END,
    Operation.ZFILL,
    Operation.REPLACE_MATCHES,
    Operation.EXTRACT,
    Operation.SPLIT,
    Operation.TO_INTEGER,
    Operation.DIGEST,
    Operation.LIST_LENGTH,
    Operation.LIST_GET,
    Operation.LIST_CONTAINS,
    Operation.LIST_JOIN,
)
REFUSED = {
    **dict.fromkeys(_BY_PYTHON, _DIALECT),
    Operation.FIRST: _ARRIVAL,
    Operation.LAST: _ARRIVAL,
    **dict.fromkeys(BY_ANOTHER, _ARRIVAL),
    **dict.fromkeys(SKETCHES, "is a sketch of Apache DataSketches, which frames do not have"),
    Operation.QUANTILE: "keeps every value, which frames do not between batches",
    Operation.DISTINCT: "keeps every value, which frames do not between batches",
    Operation.COLLECT: "keeps every value, which frames do not between batches",
    Operation.MEMBER: "reads a value inside of another",
    Operation.DATE_PART: _TIMES,
    Operation.TRUNCATE: _TIMES,
    Operation.DATE: _TIMES,
    Operation.EPOCH: _TIMES,
    Operation.OFFSET_BY: _TIMES,
    Operation.FORMAT: _TIMES,
}
"""The operations that frames do not have, and the reason."""


def refusal(expr: Expr) -> str | None:
    """Return the reason why frames cannot compute an expression; None if they can.

    Examples
    --------
    >>> from kstreams.expressions import col
    >>> refusal(col("at").dt.hour() > 6)
    "ks.col('at').dt.hour() depends on the zone in which a session of Spark shows times"
    """
    for node in expr.walk():
        if node.operation in REFUSED:
            return f"{node!r} {REFUSED[node.operation]}"
        if node.operation is Operation.CAST and (node.detail is datetime or node.inputs[0].detail is datetime):
            return f"{node!r} {_TIMES}"
    return None


_RULES: dict[Operation, Rule] = {
    **dict.fromkeys((operation for operation in Operation if operation.is_leaf), _leaf),
    Operation.LITERAL: _literal,
    Operation.ADD: _add,
    Operation.SUBTRACT: _plain(operator.sub),
    Operation.MULTIPLY: _plain(operator.mul),
    Operation.DIVIDE: _divided(operator.truediv),
    Operation.FLOOR_DIVIDE: _divided(operator.floordiv),
    Operation.MODULO: _modulo,
    Operation.NEGATE: _plain(lambda number: 0 - number),
    Operation.EQUAL: _plain(operator.eq),
    Operation.NOT_EQUAL: _plain(operator.ne),
    Operation.LESS: _plain(operator.lt),
    Operation.LESS_EQUAL: _plain(operator.le),
    Operation.GREATER: _plain(operator.gt),
    Operation.GREATER_EQUAL: _plain(operator.ge),
    Operation.AND: _plain(operator.and_),
    Operation.OR: _plain(operator.or_),
    Operation.NOT: _plain(operator.invert),
    Operation.IS_NULL: _plain(lambda node: node.is_null()),
    Operation.IS_IN: _is_in,
    Operation.FILL_NULL: _fill_null,
    Operation.IS_NAN: _plain(lambda number: number.is_nan()),
    Operation.ABS: _plain(lambda number: number.abs()),
    Operation.FLOOR: _whole("floor"),
    Operation.CEIL: _whole("ceil"),
    Operation.WHEN: _choose,
    Operation.CHOOSE: _choose,
    **dict.fromkeys(REFUSED, _refused),
    Operation.CAST: _cast,
    Operation.LENGTH: _plain(lambda text: text.str.len_chars()),
    Operation.UPPER: _plain(lambda text: _unmerged(text).str.to_uppercase()),
    Operation.LOWER: _plain(lambda text: _unmerged(text).str.to_lowercase()),
    Operation.CONTAINS: _detailed(lambda text, part: text.str.contains(part, literal=True)),
    Operation.STARTS_WITH: _detailed(lambda text, prefix: text.str.starts_with(prefix)),
    Operation.ENDS_WITH: _detailed(lambda text, suffix: text.str.ends_with(suffix)),
    Operation.STRIP: _detailed(lambda text, characters: text.str.strip_chars(characters)),
    Operation.REPLACE: _detailed(lambda text, pair: text.str.replace_all(*pair, literal=True)),
    Operation.SLICE: _detailed(lambda text, span: text.str.slice(*span)),
    Operation.STRUCT: _struct,
    Operation.ROWS: _row_count,
    Operation.COUNT: _plain(lambda node: node.count()),
    Operation.SUM: _plain(lambda node: node.sum()),
    Operation.MIN: _plain(lambda node: node.min()),
    Operation.MAX: _plain(lambda node: node.max()),
}
