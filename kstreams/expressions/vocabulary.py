"""The words that expressions begin with: `col`, `value`, `key`, `header`, `when`, `struct`, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from kstreams.expressions.expression import Expr, T_co, applied
from kstreams.expressions.headers import HeaderRead
from kstreams.expressions.operations import Operation
from kstreams.record import Headers

T = TypeVar("T")


def col(field: str) -> Expr:
    """A field of the value.

    Parameters
    ----------
    field : str
        Name of a field of the value's Struct, dataclass or TypedDict, or key of its dict.

    Examples
    --------
    >>> col("amount") * 2
    (ks.col('amount') * 2)
    """
    if not isinstance(field, str):
        raise TypeError(f"ks.col takes the name of a field, not {field!r}")
    return Expr(Operation.FIELD, (), field)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: `ks.left` or `ks.right`.

    Examples
    --------
    >>> right.col("rate") * left.col("amount")
    (ks.right.col('rate') * ks.col('amount'))
    """

    value: Expr
    field: Operation

    def col(self, field: str) -> Expr:
        """A field of this side's value."""
        return Expr(self.field, (), col(field).detail)


def header(name: str, *, type: object = str) -> Expr:
    """The last header of a name; null where the record has none, or one that is not of the type.

    Parameters
    ----------
    name : str
        Names are compared letter by letter, as in Kafka.
    type : type or Serde
        `str` (the default), `bytes`, or `int`, `float` or `bool`, which are read from text; a serde reads bytes of its
        own, such as those that Java's `LongSerializer` has written.

    Raises
    ------
    TypeError
        When the name is no text, or the type is none of these.

    Examples
    --------
    >>> header("trace-id").is_null() | (header("retries", type=int) > 3)
    (ks.header('trace-id').is_null() | (ks.header('retries', type=int) > 3))
    """
    return Expr(Operation.HEADER, (), HeaderRead.of(name, type))


def struct(**fields: object) -> Expr:
    """A value with these fields, each an expression or a literal: what `map_values` makes a new value of.

    Examples
    --------
    >>> struct(origin=key, late=col("delay") > 60)
    ks.struct(origin=ks.key, late=(ks.col('delay') > 60))
    """
    if not fields:
        raise TypeError("ks.struct needs at least one field")
    return Expr(Operation.STRUCT, applied(Operation.STRUCT, *fields.values()).inputs, tuple(fields))


def rows() -> Expr[int]:
    """The number of records (`ks.len()`), whatever their values.

    Examples
    --------
    >>> rows()
    ks.len()
    """
    return Expr(Operation.ROWS)


class WhenThen(Expr[T_co]):
    """What `ks.when(...).then(...)` gives: null where the condition does not hold, unless `otherwise` says more."""

    __slots__ = ()

    def otherwise(self, other: object) -> Expr:
        """`other`, a literal or an expression, where the condition does not hold."""
        return applied(Operation.CHOOSE, *self.inputs, other)


@dataclass(frozen=True, slots=True)
class When:
    """A condition that waits for what follows of it; see `when`."""

    condition: Expr

    def then(self, value: object) -> WhenThen:
        """`value`, a literal or an expression, where the condition holds."""
        return WhenThen(Operation.WHEN, applied(Operation.WHEN, self.condition, value).inputs)


def when(condition: Expr) -> When:
    """A choice: `when(condition).then(value).otherwise(other)`; a condition that is null does not hold.

    Examples
    --------
    >>> when(col("amount") > 100).then("large").otherwise("small")
    ks.when((ks.col('amount') > 100)).then('large').otherwise('small')
    """
    return When(condition)


def coalesce(first: Expr[T], *alternatives: object) -> Expr[T]:
    """The first that is not null, of expressions and literals of one type.

    Examples
    --------
    >>> coalesce(col("nick"), col("name"), "nobody")
    ks.col('nick').fill_null(ks.col('name')).fill_null('nobody')
    """
    for other in alternatives:
        first = first.fill_null(other)
    return first


value = Expr(Operation.VALUE)
"""The record's value."""
key = Expr(Operation.KEY)
"""The record's key; of a windowed key, the key inside."""
timestamp: Expr[int] = Expr(Operation.TIMESTAMP)
"""The record's event time, milliseconds since the epoch."""
topic: Expr[str] = Expr(Operation.TOPIC)
"""The topic that the input record was read from, of a repartition topic the name within Kafka; null outside of one."""
partition: Expr[int] = Expr(Operation.PARTITION)
"""The partition that the input record was read from; null outside of one."""
offset: Expr[int] = Expr(Operation.OFFSET)
"""The offset of the input record; null outside of one."""
headers: Expr[Headers] = Expr(Operation.HEADERS)
"""All headers of the record, in order: a tuple of pairs of name and bytes."""
left = Side(value, Operation.FIELD)
"""In a join, the left value, which is also `ks.value` and `ks.col(...)` there."""
right = Side(Expr(Operation.RIGHT), Operation.RIGHT_FIELD)
"""In a join, the right value: the other stream's, or the table's row."""
window_start: Expr[int] = Expr(Operation.WINDOW_START)
"""Start of a windowed key's window, milliseconds since the epoch."""
window_end: Expr[int] = Expr(Operation.WINDOW_END)
"""End of a windowed key's window, milliseconds since the epoch."""
