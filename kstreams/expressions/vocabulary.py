"""The functions and constants from which expressions start: `col`, `value`, `key`, `header`, `when`, `struct`, …"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from kstreams.expressions.expression import Expr, T_co, applied
from kstreams.expressions.headers import HeaderRead
from kstreams.expressions.operations import Operation
from kstreams.record import Headers

T = TypeVar("T")


def col(field: str) -> Expr:
    """Return a field of the value.

    Parameters
    ----------
    field : str
        Name of a field of a Struct, dataclass or TypedDict, or key of a dict.

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
        """Return a field of the value of this side."""
        return Expr(self.field, (), col(field).detail)


def header(name: str, *, type: object = str) -> Expr:
    """Return the last header of a name; null if there is none, or if it is not of the type.

    Parameters
    ----------
    name : str
        Names are compared letter by letter, as in Kafka.
    type : type or Serde
        `str` (the default) or `bytes`; `int`, `float` or `bool`, which are read from text; or a serde for other bytes,
        such as those of the `LongSerializer` of Java.

    Raises
    ------
    TypeError
        If the name is no text, or the type is none of these.

    Examples
    --------
    >>> header("trace-id").is_null() | (header("retries", type=int) > 3)
    (ks.header('trace-id').is_null() | (ks.header('retries', type=int) > 3))
    """
    return Expr(Operation.HEADER, (), HeaderRead.of(name, type))


def struct(**fields: object) -> Expr:
    """Return a value with fields, each an expression or a literal, such as for `map_values`.

    Examples
    --------
    >>> struct(origin=key, late=col("delay") > 60)
    ks.struct(origin=ks.key, late=(ks.col('delay') > 60))
    """
    if not fields:
        raise TypeError("ks.struct needs at least one field")
    return Expr(Operation.STRUCT, applied(Operation.STRUCT, *fields.values()).inputs, tuple(fields))


def rows() -> Expr[int]:
    """Return the number of records (`ks.len()`), also of records with null values.

    Examples
    --------
    >>> rows()
    ks.len()
    """
    return Expr(Operation.ROWS)


class WhenThen(Expr[T_co]):
    """The result of `ks.when(...).then(...)`: null if the condition is not true, unless `otherwise` sets a value."""

    __slots__ = ()

    def otherwise(self, other: object) -> Expr:
        """Return `other`, a literal or an expression, if the condition is not true."""
        return applied(Operation.CHOOSE, *self.inputs, other)


@dataclass(frozen=True, slots=True)
class When:
    """A condition without its value yet; see `when`."""

    condition: Expr

    def then(self, value: object) -> WhenThen:
        """Return `value`, a literal or an expression, if the condition is true."""
        return WhenThen(Operation.WHEN, applied(Operation.WHEN, self.condition, value).inputs)


def when(condition: Expr) -> When:
    """Start a choice: `when(condition).then(value).otherwise(other)`; a null condition counts as false.

    Examples
    --------
    >>> when(col("amount") > 100).then("large").otherwise("small")
    ks.when((ks.col('amount') > 100)).then('large').otherwise('small')
    """
    return When(condition)


def coalesce(first: Expr[T], *alternatives: object) -> Expr[T]:
    """Return the first of some expressions and literals of one type that is not null.

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
"""The topic of the input record (for a repartition topic, its name in Kafka); null without an input record."""
partition: Expr[int] = Expr(Operation.PARTITION)
"""The partition of the input record; null without an input record."""
offset: Expr[int] = Expr(Operation.OFFSET)
"""The offset of the input record; null without an input record."""
headers: Expr[Headers] = Expr(Operation.HEADERS)
"""All headers of the record, in order: a tuple of pairs of name and bytes."""
left = Side(value, Operation.FIELD)
"""In a join, the left value, which is also `ks.value` and `ks.col(...)` there."""
right = Side(Expr(Operation.RIGHT), Operation.RIGHT_FIELD)
"""In a join, the right value: of the other stream, or the row of the table."""
window_start: Expr[int] = Expr(Operation.WINDOW_START)
"""The start of the window of a windowed key, in milliseconds since the epoch."""
window_end: Expr[int] = Expr(Operation.WINDOW_END)
"""The end of the window of a windowed key, in milliseconds since the epoch."""
