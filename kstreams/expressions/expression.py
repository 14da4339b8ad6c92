"""`Expr`: an immutable tree of operations on a record, for the record path, for columns and for Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn

from kstreams.expressions.operations import AGGREGATIONS, OF_CURRENT_RECORD, Operation
from kstreams.kernel.advice import Advised

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
    T2 = TypeVar("T2")
else:
    from typing import TypeVar

    # Python 3.11 has no defaults of type variables
    T_co = TypeVar("T_co", covariant=True)
    T2 = TypeVar("T2")

LITERAL_TYPES = (bool, int, float, str, bytes, datetime, Decimal)

_SPELLINGS = {
    **{name: f".str.{name}()" for name in ("len", "upper", "lower", "slice")},
    **{name: f".str.{name}(...)" for name in ("contains", "starts_with", "ends_with")},
    **{name: f".cast(datetime).dt.{name}()" for name in ("year", "month", "day", "hour", "minute", "second")},
    "startswith": ".str.starts_with(...)",
    "endswith": ".str.ends_with(...)",
    "strip": ".str.strip_chars()",
    "replace": ".str.replace_all(...)",
    "isin": ".is_in(...)",
    "isnull": ".is_null()",
    "fillna": ".fill_null(...)",
    "field": ".struct.field(...)",
    "avg": ".mean()",
    "nunique": ".n_unique()",
    "astype": ".cast(...)",
}
"""What to write instead of names of other libraries, and of names that belong to `.str` and `.dt`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expr(Advised, Generic[T_co]):
    """A computation on a record or, if it contains an aggregation, on many records.

    A null input makes a result null, except in `is_null`, `fill_null`, and in `&` and `|` (Kleene logic); aggregations
    skip nulls. Division by zero is null. Integers have 64 bits. A filter treats null as false.

    Examples
    --------
    >>> import kstreams.expressions as ks
    >>> (ks.col("amount") > 100) & ~ks.col("refunded")
    ((ks.col('amount') > 100) & (~ks.col('refunded')))
    >>> ks.col("delay").mean()
    (ks.col('delay').sum() / ks.col('delay').count())
    """

    _spellings: ClassVar[Mapping[str, str]] = _SPELLINGS

    operation: Operation
    inputs: tuple[Expr, ...] = ()
    detail: Any = None

    # ---- the tree

    def walk(self) -> Iterator[Expr]:
        """Yield every node, inputs first."""
        for node in self.inputs:
            yield from node.walk()
        yield self

    @property
    def leaves(self) -> tuple[Expr, ...]:
        """The parts of a record that it reads, each once, in order."""
        return tuple({repr(node): node for node in self.walk() if node.operation.is_leaf}.values())

    @property
    def reads_current_record(self) -> bool:
        """True if it reads the headers or the position of the input record."""
        return any(node.operation in OF_CURRENT_RECORD for node in self.walk())

    @property
    def is_aggregation(self) -> bool:
        """True if it needs many records."""
        return any(node.operation in AGGREGATIONS for node in self.walk())

    def __repr__(self) -> str:
        arguments = [repr(node) for node in self.inputs]
        fields = ""
        if self.operation is Operation.STRUCT:
            fields = ", ".join(f"{name}={text}" for name, text in zip(self.detail, arguments, strict=True))
        return self.operation.value.format(*arguments, detail=self.detail, fields=fields)

    # ---- arithmetic

    def __add__(self, other: object) -> Expr:
        return applied(Operation.ADD, self, other)

    def __radd__(self, other: object) -> Expr:
        return applied(Operation.ADD, other, self)

    def __sub__(self, other: object) -> Expr:
        return applied(Operation.SUBTRACT, self, other)

    def __rsub__(self, other: object) -> Expr:
        return applied(Operation.SUBTRACT, other, self)

    def __mul__(self, other: object) -> Expr:
        return applied(Operation.MULTIPLY, self, other)

    def __rmul__(self, other: object) -> Expr:
        return applied(Operation.MULTIPLY, other, self)

    def __truediv__(self, other: object) -> Expr[float]:
        return applied(Operation.DIVIDE, self, other)

    def __rtruediv__(self, other: object) -> Expr[float]:
        return applied(Operation.DIVIDE, other, self)

    def __floordiv__(self, other: object) -> Expr:
        return applied(Operation.FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other: object) -> Expr:
        return applied(Operation.FLOOR_DIVIDE, other, self)

    def __mod__(self, other: object) -> Expr:
        return applied(Operation.MODULO, self, other)

    def __rmod__(self, other: object) -> Expr:
        return applied(Operation.MODULO, other, self)

    def __neg__(self) -> Expr[T_co]:
        return Expr(Operation.NEGATE, (self,))

    # ---- comparison and logic

    def __eq__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return applied(Operation.EQUAL, self, other)

    def __ne__(self, other: object) -> Expr[bool]:  # type: ignore[override]
        return applied(Operation.NOT_EQUAL, self, other)

    def __lt__(self, other: object) -> Expr[bool]:
        return applied(Operation.LESS, self, other)

    def __le__(self, other: object) -> Expr[bool]:
        return applied(Operation.LESS_EQUAL, self, other)

    def __gt__(self, other: object) -> Expr[bool]:
        return applied(Operation.GREATER, self, other)

    def __ge__(self, other: object) -> Expr[bool]:
        return applied(Operation.GREATER_EQUAL, self, other)

    def __and__(self, other: object) -> Expr[bool]:
        return applied(Operation.AND, self, other)

    def __rand__(self, other: object) -> Expr[bool]:
        return applied(Operation.AND, other, self)

    def __or__(self, other: object) -> Expr[bool]:
        return applied(Operation.OR, self, other)

    def __ror__(self, other: object) -> Expr[bool]:
        return applied(Operation.OR, other, self)

    def __invert__(self) -> Expr[bool]:
        return Expr(Operation.NOT, (self,))

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} has no truth value before there is a record: write & | ~ instead of and, or, not, "
            "with each comparison in parentheses, and a function instead of if"
        )

    def __iter__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be looped over or searched with `in`: use .is_in([...]) or .str.contains(...)"
        )

    def __contains__(self, item: object) -> NoReturn:
        iter(self)

    def is_null(self) -> Expr[bool]:
        """Return whether the value is null."""
        return Expr(Operation.IS_NULL, (self,))

    def is_in(self, values: Collection[Any]) -> Expr[bool]:
        """Return whether the value is one of `values` (literals of one type); null stays null."""
        return Expr(Operation.IS_IN, (self,), tuple(literal(value).detail for value in values))

    def between(self, low: object, high: object) -> Expr[bool]:
        """Return whether low <= value <= high."""
        return (self >= low) & (self <= high)

    def fill_null(self, value: object) -> Expr[T_co]:
        """Replace null by `value`, a literal or an expression."""
        return applied(Operation.FILL_NULL, self, value)

    def is_nan(self) -> Expr[bool]:
        """Return whether a float is NaN; null stays null."""
        return Expr(Operation.IS_NAN, (self,))

    def abs(self) -> Expr[T_co]:
        """Return the absolute value."""
        return Expr(Operation.ABS, (self,))

    def floor(self) -> Expr[T_co]:
        """Round down to a whole number; a float stays a float."""
        return Expr(Operation.FLOOR, (self,))

    def ceil(self) -> Expr[T_co]:
        """Round up to a whole number; a float stays a float."""
        return Expr(Operation.CEIL, (self,))

    def cast(self, kind: type[T2]) -> Expr[T2]:
        """Convert to `int`, `float`, `str` or `datetime`.

        To `int`: numbers are truncated toward zero, booleans become 0 or 1, times become milliseconds since the epoch;
        a number that does not fit in 64 bits becomes null. To `float`: from `int`. To `str`: from `int`. To `datetime`,
        in UTC: from `int`, milliseconds since the epoch, such as `ks.timestamp`; null beyond the years 1 to 9999. For
        other conversions, write a function.
        """
        return Expr(Operation.CAST, (self,), kind)

    @property
    def dt(self) -> Temporal:
        """Operations on a `datetime`: `ks.timestamp.cast(datetime).dt.hour()`."""
        return Temporal(self)

    @property
    def struct(self) -> Nested:
        """Operations on a value with fields: `ks.col("address").struct.field("city")`."""
        return Nested(self)

    @property
    def str(self) -> Text:
        """Operations on text: `ks.value.str.upper()`."""
        return Text(self)

    # ---- aggregation: of all records of a key (and window); nulls are skipped

    def count(self) -> Expr[int]:
        """Count the values that are not null. For the number of records: `ks.len()`."""
        return Expr(Operation.COUNT, (self,))

    def sum(self) -> Expr[T_co]:
        """Add the values, exactly for integers; null if there is none."""
        return Expr(Operation.SUM, (self,))

    def mean(self) -> Expr[float]:
        """Return the mean, stored as sum and count; null if there is no value."""
        return self.sum() / self.count()

    def min(self) -> Expr[T_co]:
        """Return the least value."""
        return Expr(Operation.MIN, (self,))

    def max(self) -> Expr[T_co]:
        """Return the greatest value."""
        return Expr(Operation.MAX, (self,))

    def n_unique(self) -> Expr[int]:
        """Count the different values, exactly; a NaN is no value.

        Each value is a row of a store beside that of the aggregates, `<store>-members`. In sessions and sliding
        windows, which merge and split, all values are in one row of the state: there they should be few.
        """
        return Expr(Operation.DISTINCT, (self,))

    def first(self) -> Expr[T_co]:
        """Return the value that was processed first."""
        return Expr(Operation.FIRST, (self,))

    def last(self) -> Expr[T_co]:
        """Return the value that was processed last."""
        return Expr(Operation.LAST, (self,))


@dataclass(frozen=True, slots=True)
class Text:
    """Text operations of an expression. Lengths and positions count Unicode code points."""

    of: Expr

    def len(self) -> Expr[int]:
        """Return the number of code points."""
        return Expr(Operation.LENGTH, (self.of,))

    def upper(self) -> Expr[str]:
        """Convert to upper case, like `str.upper`."""
        return Expr(Operation.UPPER, (self.of,))

    def lower(self) -> Expr[str]:
        """Convert to lower case, like `str.lower`."""
        return Expr(Operation.LOWER, (self.of,))

    def contains(self, part: str) -> Expr[bool]:
        """Return whether the text contains `part` (text, not a pattern)."""
        return Expr(Operation.CONTAINS, (self.of,), part)

    def starts_with(self, prefix: str) -> Expr[bool]:
        """Return whether the text starts with `prefix`."""
        return Expr(Operation.STARTS_WITH, (self.of,), prefix)

    def ends_with(self, suffix: str) -> Expr[bool]:
        """Return whether the text ends with `suffix`."""
        return Expr(Operation.ENDS_WITH, (self.of,), suffix)

    def slice(self, offset: int, length: int) -> Expr[str]:
        """Return `length` code points from `offset`; neither may be negative."""
        if offset < 0 or length < 0:
            raise ValueError(f"str.slice({offset}, {length}): offset and length must not be negative")
        return Expr(Operation.SLICE, (self.of,), (offset, length))

    def strip_chars(self, characters: str = " \t\n\r") -> Expr[str]:
        """Remove these characters at both ends."""
        return Expr(Operation.STRIP, (self.of,), characters)

    def replace_all(self, old: str, new: str) -> Expr[str]:
        """Replace every `old` (text, not a pattern) by `new`."""
        if not old:
            raise ValueError("str.replace_all needs a text to look for")
        return Expr(Operation.REPLACE, (self.of,), (old, new))


@dataclass(frozen=True, slots=True)
class Temporal:
    """Operations on times, in UTC; a `datetime` without a zone counts as UTC."""

    of: Expr

    def year(self) -> Expr[int]:
        """Return the year."""
        return Expr(Operation.DATE_PART, (self.of,), "year")

    def month(self) -> Expr[int]:
        """Return the month, 1 to 12."""
        return Expr(Operation.DATE_PART, (self.of,), "month")

    def day(self) -> Expr[int]:
        """Return the day of the month, 1 to 31."""
        return Expr(Operation.DATE_PART, (self.of,), "day")

    def hour(self) -> Expr[int]:
        """Return the hour, 0 to 23."""
        return Expr(Operation.DATE_PART, (self.of,), "hour")

    def minute(self) -> Expr[int]:
        """Return the minute, 0 to 59."""
        return Expr(Operation.DATE_PART, (self.of,), "minute")

    def second(self) -> Expr[int]:
        """Return the second, 0 to 59."""
        return Expr(Operation.DATE_PART, (self.of,), "second")

    def weekday(self) -> Expr[int]:
        """Return the day of the week: 1 is Monday, 7 is Sunday."""
        return Expr(Operation.DATE_PART, (self.of,), "weekday")

    def ordinal_day(self) -> Expr[int]:
        """Return the day of the year, 1 to 366."""
        return Expr(Operation.DATE_PART, (self.of,), "ordinal_day")

    def truncate(self, every: timedelta) -> Expr[datetime]:
        """Round down to a multiple of a duration since the epoch, such as the start of the hour."""
        if every % timedelta(milliseconds=1) or every <= timedelta(0):
            raise ValueError(f"dt.truncate takes a positive number of milliseconds, not {every!r}")
        return Expr(Operation.TRUNCATE, (self.of,), every)


@dataclass(frozen=True, slots=True)
class Nested:
    """Operations on a value with fields."""

    of: Expr

    def field(self, name: str) -> Expr:
        """Return a field of the value."""
        return Expr(Operation.MEMBER, (self.of,), name)


def literal(value: T2) -> Expr[T2]:
    """Return a constant; raise TypeError for a value that cannot be a literal.

    Examples
    --------
    >>> literal(1) + 1
    (1 + 1)
    """
    if value is None:
        raise TypeError("None cannot stand in an expression: compare with .is_null(), replace with .fill_null(value)")
    if not isinstance(value, LITERAL_TYPES):
        raise TypeError(
            f"{value!r} cannot stand in an expression: only int, float, str, bool, bytes, datetime and Decimal can"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise TypeError(f"{value} cannot stand in an expression: integers have 64 bits")
    return Expr(Operation.LITERAL, (), value)


def applied(operation: Operation, *inputs: object) -> Expr:
    """Return an operation on expressions and literals."""
    return Expr(operation, tuple(node if isinstance(node, Expr) else literal(node) for node in inputs))
