"""`Expr`: an immutable tree of operations on a record, for the record path, for columns and for Spark."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, TypeAlias, get_args

from kstreams.expressions.operations import AGGREGATIONS, OF_CURRENT_RECORD, Operation
from kstreams.expressions.time_formats import check_format
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

Date: TypeAlias = date
Interpolation: TypeAlias = Literal["nearest", "lower", "higher", "midpoint", "linear"]
"""The result of a quantile between two values."""
LITERAL_TYPES = (bool, int, float, str, bytes, datetime, Decimal)

_SPELLINGS = {
    **{name: f".str.{name}()" for name in ("len", "upper", "lower", "slice")},
    **{name: f".str.{name}(...)" for name in ("contains", "starts_with", "ends_with")},
    **{name: f".cast(datetime).dt.{name}()" for name in ("year", "month", "day", "hour", "minute", "second")},
    **{name: f".str.{name}(...)" for name in ("extract", "split", "head", "tail", "zfill", "to_integer")},
    "startswith": ".str.starts_with(...)",
    "endswith": ".str.ends_with(...)",
    "strip": ".str.strip_chars()",
    "lstrip": ".str.strip_chars_start()",
    "rstrip": ".str.strip_chars_end()",
    "removeprefix": ".str.strip_prefix(...)",
    "removesuffix": ".str.strip_suffix(...)",
    "rjust": ".str.pad_start(...)",
    "ljust": ".str.pad_end(...)",
    "title": ".str.to_titlecase()",
    "strftime": ".dt.to_string(...)",
    "replace": ".str.replace_all(...)",
    "isin": ".is_in(...)",
    "isnull": ".is_null()",
    "fillna": ".fill_null(...)",
    "field": ".struct.field(...)",
    "avg": ".mean()",
    "nunique": ".n_unique()",
    "percentile": ".quantile(...)",
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
    def list(self) -> Items:
        """Operations on a list: `ks.value.str.split(",").list.get(0)`."""
        return Items(self)

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

    def min_by(self, by: Expr) -> Expr[T_co]:
        """Return the value where `by` is least; records without `by` are skipped.

        Of equal ones in a stream, the first is returned, in a table the least value.
        """
        return Expr(Operation.MIN_BY, (self, by))

    def max_by(self, by: Expr) -> Expr[T_co]:
        """Return the value where `by` is greatest, such as `ks.col("auction").max_by(ks.col("bids"))`.

        Records without `by` are skipped. Of equal ones in a stream, the first is returned, in a table the greatest
        value. A grouped table keeps each pair as a row of the store `<store>-members`, so that a row that leaves is
        taken back at a logarithmic cost.
        """
        return Expr(Operation.MAX_BY, (self, by))

    def median(self) -> Expr[float]:
        """Return the median; see `quantile`."""
        return self.quantile(0.5, "linear")

    def quantile(self, quantile: float, interpolation: Interpolation = "nearest") -> Expr:
        """Return a quantile of a stream or of the rows of a grouped table, exactly; a NaN is no value.

        Each value is a row of the store `<store>-members`, and the state has the value at the rank, which moves by one
        place at most: the cost of an update is logarithmic. In sessions and sliding windows, which merge and split, all
        values are in one row of the state: there they should be few, or `approx_quantile` serves.
        """
        _check_quantile("quantile", quantile)
        if interpolation not in get_args(Interpolation):
            raise ValueError(f"quantile takes {', '.join(get_args(Interpolation))}, not {interpolation!r}")
        return Expr(Operation.QUANTILE, (self,), (quantile, interpolation))

    def approx_n_unique(self) -> Expr[int]:
        """Count the different values of a stream by a HyperLogLog of 4 KB, with a standard error of 1.6 %.

        It needs `pip install 'kstreams-dsl[sketches]'`.
        """
        return Expr(Operation.APPROX_DISTINCT, (self,))

    def approx_quantile(self, quantile: float) -> Expr[float]:
        """Return a quantile of the numbers of a stream by a t-digest of up to 5 KB, which is most exact at both ends.

        It needs `pip install 'kstreams-dsl[sketches]'`.
        """
        _check_quantile("approx_quantile", quantile)
        return Expr(Operation.APPROX_QUANTILE, (self,), float(quantile))

    def n_unique(self) -> Expr[int]:
        """Count the different values, exactly; a NaN is no value.

        Each value is a row of a store beside that of the aggregates, `<store>-members`. In sessions and sliding
        windows, which merge and split, all values are in one row of the state: there they should be few.
        """
        return Expr(Operation.DISTINCT, (self,))

    def collect(self) -> Expr:
        """Return the list of all values, in the order in which they were processed; nulls are left out.

        Each value is a row of the store `<store>-members`, so that a record writes one row however long the list is.
        The list is read when an update is emitted, with the record cache once a commit. A value that leaves a grouped
        table leaves the list: of equal ones, the earliest. In windows that emit updates, in sessions and in sliding
        windows, the list is one row of the state: there it should be short, or the windows emit on close. Queries read
        such a list from a store after the aggregation, such as that of `map_values(..., materialized=)`.
        """
        return Expr(Operation.COLLECT, (self,))

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

    def to_titlecase(self) -> Expr[str]:
        """Start each word with a capital letter, like `str.title`: a word is a sequence of letters."""
        return Expr(Operation.TITLE, (self.of,))

    def reverse(self) -> Expr[str]:
        """Reverse the order of the code points."""
        return Expr(Operation.REVERSE, (self.of,))

    def contains(self, pattern: str, *, literal: bool = True) -> Expr[bool]:
        """Return whether the text contains `pattern`: a text or, if not `literal`, a regular expression of Python."""
        if literal:
            return Expr(Operation.CONTAINS, (self.of,), pattern)
        return Expr(Operation.MATCHES, (self.of,), _compiled("contains", pattern).pattern)

    def starts_with(self, prefix: str) -> Expr[bool]:
        """Return whether the text starts with `prefix`."""
        return Expr(Operation.STARTS_WITH, (self.of,), prefix)

    def ends_with(self, suffix: str) -> Expr[bool]:
        """Return whether the text ends with `suffix`."""
        return Expr(Operation.ENDS_WITH, (self.of,), suffix)

    def slice(self, offset: int, length: int | None = None) -> Expr[str]:
        """Return `length` code points from `offset`, by default all; a negative offset counts from the end."""
        if length is not None and length < 0:
            raise ValueError(f"str.slice({offset}, {length}): the length must not be negative")
        if offset < 0:
            end = self.tail(-offset)
            return end if length is None else end.str.head(length)
        return Expr(Operation.SLICE, (self.of,), (offset, length))

    def head(self, n: int = 5) -> Expr[str]:
        """Return the first `n` code points; if `n` is negative, all but the last `-n`."""
        return self.slice(0, n) if n >= 0 else Expr(Operation.HEAD, (self.of,), n)

    def tail(self, n: int = 5) -> Expr[str]:
        """Return the last `n` code points; if `n` is negative, all but the first `-n`."""
        if n == 0:
            return self.slice(0, 0)
        return self.slice(-n) if n < 0 else Expr(Operation.TAIL, (self.of,), n)

    def strip_chars(self, characters: str = " \t\n\r") -> Expr[str]:
        """Remove these characters at both ends."""
        return Expr(Operation.STRIP, (self.of,), characters)

    def strip_chars_start(self, characters: str = " \t\n\r") -> Expr[str]:
        """Remove these characters at the start."""
        return Expr(Operation.STRIP_START, (self.of,), characters)

    def strip_chars_end(self, characters: str = " \t\n\r") -> Expr[str]:
        """Remove these characters at the end."""
        return Expr(Operation.STRIP_END, (self.of,), characters)

    def strip_prefix(self, prefix: str) -> Expr[str]:
        """Remove `prefix` if the text starts with it."""
        return Expr(Operation.STRIP_PREFIX, (self.of,), prefix)

    def strip_suffix(self, suffix: str) -> Expr[str]:
        """Remove `suffix` if the text ends with it."""
        return Expr(Operation.STRIP_SUFFIX, (self.of,), suffix)

    def pad_start(self, length: int, fill_char: str = " ") -> Expr[str]:
        """Put `fill_char` before the text until it has `length` code points, like `str.rjust`."""
        return Expr(Operation.PAD_START, (self.of,), _padding("pad_start", length, fill_char))

    def pad_end(self, length: int, fill_char: str = " ") -> Expr[str]:
        """Put `fill_char` after the text until it has `length` code points, like `str.ljust`."""
        return Expr(Operation.PAD_END, (self.of,), _padding("pad_end", length, fill_char))

    def zfill(self, length: int) -> Expr[str]:
        """Put zeros before the text, but after a sign, until it has `length` code points, like `str.zfill`."""
        return Expr(Operation.ZFILL, (self.of,), _padding("zfill", length, "0")[0])

    def replace_all(self, pattern: str, value: str, *, literal: bool = True) -> Expr[str]:
        """Replace every `pattern` by `value`.

        The pattern is a text or, if not `literal`, a regular expression of Python: `value` may then have groups, such
        as `\\1`, as in `re.sub`.
        """
        if not pattern:
            raise ValueError("str.replace_all needs a text to look for")
        if literal:
            return Expr(Operation.REPLACE, (self.of,), (pattern, value))
        _check_replacement(_compiled("replace_all", pattern), value)
        return Expr(Operation.REPLACE_MATCHES, (self.of,), (pattern, value))

    def extract(self, pattern: str, group_index: int = 1) -> Expr[str]:
        """Return a group of the first match of a regular expression of Python; null without a match.

        Group 0 is the whole match.
        """
        groups = _compiled("extract", pattern).groups
        if not 0 <= group_index <= groups:
            raise ValueError(f"str.extract({pattern!r}, {group_index}): the pattern has {groups} groups")
        return Expr(Operation.EXTRACT, (self.of,), (pattern, group_index))

    def split(self, by: str) -> Expr[list[str]]:
        """Return the list of the parts between every `by` (text, not a pattern), like `str.split`."""
        if not by:
            raise ValueError("str.split needs a text between the parts")
        return Expr(Operation.SPLIT, (self.of,), by)

    def to_integer(self, base: int = 10) -> Expr[int]:
        """Return the integer that the text is: a sign and ASCII digits. Null for other texts and beyond 64 bits."""
        if not 2 <= base <= 36:
            raise ValueError(f"str.to_integer({base}): the base must be between 2 and 36")
        return Expr(Operation.TO_INTEGER, (self.of,), base)

    def md5(self) -> Expr[str]:
        """Return the MD5 digest of the UTF-8 bytes, as 32 lower-case hexadecimal digits."""
        return Expr(Operation.DIGEST, (self.of,), "md5")

    def sha256(self) -> Expr[str]:
        """Return the SHA-256 digest of the UTF-8 bytes, as 64 lower-case hexadecimal digits."""
        return Expr(Operation.DIGEST, (self.of,), "sha256")

    def crc32(self) -> Expr[int]:
        """Return the CRC-32 of the UTF-8 bytes, 0 to 2**32 - 1, as `zlib.crc32`: the same in all processes."""
        return Expr(Operation.DIGEST, (self.of,), "crc32")


def _check_quantile(method: str, quantile: float) -> None:
    if not 0 <= quantile <= 1:
        raise ValueError(f"{method}({quantile!r}): it must be between 0 and 1")


def _compiled(method: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"str.{method}({pattern!r}): {error}") from error


def _check_replacement(pattern: re.Pattern[str], value: str) -> None:
    try:
        # The alternative matches the empty text, so that the groups of the replacement are resolved.
        re.sub(f"(?:{pattern.pattern})|", value, "")
    except (re.error, IndexError) as error:
        raise ValueError(f"str.replace_all({pattern.pattern!r}, {value!r}): {error}") from error


def _padding(method: str, length: int, fill_char: str) -> tuple[int, str]:
    if length < 0 or len(fill_char) != 1:
        raise ValueError(f"str.{method} takes a length that is not negative and one character")
    return length, fill_char


@dataclass(frozen=True, slots=True)
class Items:
    """Operations on a list."""

    of: Expr

    def len(self) -> Expr[int]:
        """Return the number of items."""
        return Expr(Operation.LIST_LENGTH, (self.of,))

    def get(self, index: int) -> Expr:
        """Return an item; a negative index counts from the end. Null if there is none."""
        return Expr(Operation.LIST_GET, (self.of,), index)

    def first(self) -> Expr:
        """Return the first item, or null."""
        return self.get(0)

    def last(self) -> Expr:
        """Return the last item, or null."""
        return self.get(-1)

    def contains(self, item: object) -> Expr[bool]:
        """Return whether an item equals `item`, a literal."""
        return Expr(Operation.LIST_CONTAINS, (self.of,), literal(item).detail)

    def join(self, separator: str) -> Expr[str]:
        """Join the texts of a list; nulls are left out."""
        return Expr(Operation.LIST_JOIN, (self.of,), separator)


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

    def millisecond(self) -> Expr[int]:
        """Return the milliseconds since the last second, 0 to 999."""
        return Expr(Operation.DATE_PART, (self.of,), "millisecond")

    def microsecond(self) -> Expr[int]:
        """Return the microseconds since the last second, 0 to 999,999."""
        return Expr(Operation.DATE_PART, (self.of,), "microsecond")

    def quarter(self) -> Expr[int]:
        """Return the quarter of the year, 1 to 4."""
        return Expr(Operation.DATE_PART, (self.of,), "quarter")

    def week(self) -> Expr[int]:
        """Return the week of the ISO year, 1 to 53."""
        return Expr(Operation.DATE_PART, (self.of,), "week")

    def iso_year(self) -> Expr[int]:
        """Return the year to which the ISO week belongs."""
        return Expr(Operation.DATE_PART, (self.of,), "iso_year")

    def date(self) -> Expr[Date]:
        """Return the date."""
        return Expr(Operation.DATE, (self.of,))

    def epoch(self, time_unit: str = "us") -> Expr[int]:
        """Return the time since the epoch in "us", "ms", "s" or "d", rounded down."""
        if time_unit not in ("us", "ms", "s", "d"):
            raise ValueError(f"dt.epoch takes 'us', 'ms', 's' or 'd', not {time_unit!r}")
        return Expr(Operation.EPOCH, (self.of,), time_unit)

    def offset_by(self, by: timedelta) -> Expr[datetime]:
        """Add a duration, which may be negative; null beyond the years 1 to 9999."""
        return Expr(Operation.OFFSET_BY, (self.of,), by)

    def to_string(self, format: str) -> Expr[str]:
        """Return the time as text, by %Y %m %d %H %M %S %f %j and %%: `ks.col("at").dt.to_string("%Y-%m-%d")`."""
        return Expr(Operation.FORMAT, (self.of,), check_format(format))

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
