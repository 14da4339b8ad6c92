"""The functions that generated code calls for operations that no Python operator has."""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


def floor_divide(left: Any, right: Any) -> Any:
    """Return left // right as columns compute it: floats by the floor of the quotient; null for a zero divisor.

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
    if isinstance(quotient, Decimal):
        return Decimal(math.floor(quotient))
    return float(math.floor(quotient)) if math.isfinite(quotient) else quotient


def modulo(left: object, right: object) -> Any:
    """Return left - (left // right) * right, with the sign of the divisor; null for a zero divisor.

    Examples
    --------
    >>> modulo(-7, 2), modulo(7.5, 2), modulo(1, 0)
    (1, 1.5, None)
    """
    if right == 0:
        return None
    return left - floor_divide(left, right) * right


def divide(left: Any, right: Any) -> Any:
    """Return left / right, a float unless one is a Decimal; null for a zero divisor.

    Examples
    --------
    >>> divide(1, 2), divide(Decimal("0.3"), 3), divide(1, 0)
    (0.5, Decimal('0.1'), None)
    """
    if right == 0:
        return None
    return left / right if isinstance(left, Decimal) or isinstance(right, Decimal) else float(left) / right


def to_int(value: Any) -> int | None:
    """Truncate a number, null if it does not fit in 64 bits; convert a time to milliseconds since the epoch.

    Examples
    --------
    >>> to_int(-1.5), to_int(float("nan")), to_int(True), to_int(datetime(1970, 1, 2))
    (-1, None, 1, 86400000)
    """
    if isinstance(value, datetime):
        return (in_utc(value) - EPOCH) // MILLISECOND
    return int(value) if -(2.0**63) <= value < 2.0**63 else None


def to_datetime(value: Any) -> datetime | None:
    """Convert milliseconds since the epoch to a time; null beyond the years of a `datetime`.

    Examples
    --------
    >>> to_datetime(86_400_000), to_datetime(2**60)
    (datetime.datetime(1970, 1, 2, 0, 0, tzinfo=datetime.timezone.utc), None)
    """
    if isinstance(value, datetime):
        return in_utc(value)
    return EPOCH + value * MILLISECOND if FIRST_MS <= value <= LAST_MS else None


def in_utc(time: datetime) -> datetime:
    """Convert a time to UTC; a time without a zone counts as UTC."""
    if time.tzinfo is UTC:
        return time
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def truncate(time: datetime, every: timedelta) -> datetime | None:
    """Round a time down to a multiple of a duration since the epoch; null before the year 1.

    Examples
    --------
    >>> truncate(datetime(1970, 1, 1, 7, 40), timedelta(hours=1)).hour
    7
    """
    since = (in_utc(time) - EPOCH) // every * every
    return EPOCH + since if since // MILLISECOND >= FIRST_MS else None


def whole(number: Any, rounded: Callable[[Any], int]) -> Any:
    """Round a number to a whole number of its own type; infinities and NaN stay as they are.

    Examples
    --------
    >>> whole(1.5, math.floor), whole(-0.5, math.ceil), whole(math.inf, math.ceil), whole(3, math.floor)
    (1.0, -0.0, inf, 3)
    """
    if isinstance(number, float):
        return math.copysign(rounded(number), number) if math.isfinite(number) else number
    return number if isinstance(number, int) else type(number)(rounded(number))


DATE_PARTS: dict[str, Callable[[datetime], int]] = {
    **{name: attrgetter(name) for name in ("year", "month", "day", "hour", "minute", "second")},
    "millisecond": lambda time: time.microsecond // 1000,
    "microsecond": attrgetter("microsecond"),
    "quarter": lambda time: (time.month + 2) // 3,
    "week": lambda time: time.isocalendar().week,
    "iso_year": lambda time: time.isocalendar().year,
    "weekday": datetime.isoweekday,
    "ordinal_day": lambda time: time.timetuple().tm_yday,
}


def date_part(time: datetime, name: str) -> int:
    """Return a part of a time in UTC.

    Examples
    --------
    >>> date_part(datetime(2013, 1, 1), "weekday")
    2
    """
    return DATE_PARTS[name](in_utc(time))


def date_of(time: datetime) -> date:
    """Return the date of a time in UTC.

    Examples
    --------
    >>> date_of(datetime(2013, 1, 1, 12))
    datetime.date(2013, 1, 1)
    """
    return in_utc(time).date()


UNITS = {
    "us": timedelta(microseconds=1),
    "ms": MILLISECOND,
    "s": timedelta(seconds=1),
    "d": timedelta(days=1),
}


def epoch(time: datetime, unit: str) -> int:
    """Return the time since the epoch in a unit, rounded down.

    Examples
    --------
    >>> epoch(datetime(1969, 12, 31, 23), "d"), epoch(datetime(1970, 1, 1, 0, 1), "s")
    (-1, 60)
    """
    return (in_utc(time) - EPOCH) // UNITS[unit]


def offset_by(time: datetime, by: timedelta) -> datetime | None:
    """Add a duration to a time; null beyond the years of a `datetime`.

    Examples
    --------
    >>> offset_by(datetime(1970, 1, 1), timedelta(days=1)), offset_by(datetime(1, 1, 1), timedelta(days=-1))
    (datetime.datetime(1970, 1, 2, 0, 0, tzinfo=datetime.timezone.utc), None)
    """
    try:
        return in_utc(time) + by
    except OverflowError:
        return None


def time_text(time: datetime, template: str) -> str:
    """Return the text of a time, by a template of `python_format`.

    Examples
    --------
    >>> time_text(datetime(2013, 2, 1), "{0.month:02} {1:03}")
    '02 032'
    """
    at = in_utc(time)
    return template.format(at, at.timetuple().tm_yday)


def extract(text: str, pattern: re.Pattern[str], group: int) -> str | None:
    """Return a group of the first match of a pattern.

    Examples
    --------
    >>> extract("a=1", re.compile("=(.)"), 1), extract("a", re.compile("=(.)"), 1)
    ('1', None)
    """
    match = pattern.search(text)
    return None if match is None else match[group]


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def to_integer(text: str, base: int) -> int | None:
    """Return the integer that a text is; null for other texts, and if it does not fit in 64 bits.

    Examples
    --------
    >>> to_integer("-12", 10), to_integer("ff", 16), to_integer("1_0", 10), to_integer("9" * 20, 10)
    (-12, 255, None, None)
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or not digits.isascii() or digits.strip(_DIGITS[:base] + _DIGITS[:base].upper()):
        return None
    if len(digits.lstrip("0")) > 64:  # also more digits than `int` takes
        return None
    number = int(text, base)
    return number if -(2**63) <= number < 2**63 else None


def digest(text: str, algorithm: str) -> str | int:
    """Return the digest of the UTF-8 bytes of a text.

    Examples
    --------
    >>> digest("a", "crc32"), digest("a", "md5")
    (3904355907, '0cc175b9c0f1b6a831c399e269772661')
    """
    data = text.encode("utf-8", "surrogatepass")
    return zlib.crc32(data) if algorithm == "crc32" else hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def item_at(items: Any, index: int) -> Any:
    """Return an item of a list; null if there is none.

    Examples
    --------
    >>> item_at([1, 2], -1), item_at([1, 2], 2)
    (2, None)
    """
    return items[index] if -len(items) <= index < len(items) else None


def join(texts: list[str | None], separator: str) -> str:
    """Join texts; nulls are left out.

    Examples
    --------
    >>> join(["a", None, "b"], ",")
    'a,b'
    """
    return separator.join([text for text in texts if text is not None])


def field_of(record_value: object, name: str) -> Any:
    """Return a field of a value of unknown type: an item of a dict, else an attribute."""
    return record_value.get(name) if isinstance(record_value, dict) else getattr(record_value, name)


def quantile_of(ranked: tuple[int, int, Any, Any] | None, quantile: float, interpolation: str) -> Any:
    """Return a quantile of the number of values, the number of lesser values, and the values below and above the rank.

    Examples
    --------
    >>> quantile_of((4, 1, 10, 20), 0.5, "linear"), quantile_of((4, 1, 10, 20), 0.5, "lower"), quantile_of(None, 1, "")
    (15.0, 10, None)
    """
    if ranked is None:
        return None
    count, _, lower, upper = ranked
    share = math.modf(quantile * (count - 1))[0]
    if interpolation in ("lower", "higher"):
        return lower if interpolation == "lower" or not share else upper
    if interpolation == "nearest":
        return lower if share < 0.5 else upper
    if not share or lower == upper:
        return float(lower)
    return lower + (upper - lower) * (0.5 if interpolation == "midpoint" else share)


def quantile_in(numbers: tuple[Any, ...], quantile: float, interpolation: str) -> Any:
    """Return a quantile of sorted values.

    Examples
    --------
    >>> quantile_in((10, 20, 30, 40), 0.5, "linear"), quantile_in((), 0.5, "linear")
    (25.0, None)
    """
    if not numbers:
        return None
    place = quantile * (len(numbers) - 1)
    lower = numbers[math.floor(place)]
    return quantile_of((len(numbers), 0, lower, numbers[math.ceil(place)]), quantile, interpolation)


def inserted(values: tuple[Any, ...], value: object) -> tuple[Any, ...]:
    """Add a value to a sorted tuple; a NaN is not added.

    Examples
    --------
    >>> inserted((1, 3), 3), inserted((1, 3), 2)
    ((1, 3, 3), (1, 2, 3))
    """
    if value != value:  # noqa: PLR0124 (of a NaN alone)
        return values
    position = bisect_right(values, value)
    return (*values[:position], value, *values[position:])


def inserted_all(values: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Merge two sorted tuples.

    Examples
    --------
    >>> inserted_all((1, 3), (2, 3))
    (1, 2, 3, 3)
    """
    return tuple(sorted(values + other))


def with_member(members: tuple[Any, ...], value: object) -> tuple[Any, ...]:
    """Add a member to a set, which is a sorted tuple; a NaN is not added.

    Examples
    --------
    >>> with_member((1, 3), 2), with_member((1, 3), 3)
    ((1, 2, 3), (1, 3))
    """
    if value != value:  # noqa: PLR0124 (of a NaN alone)
        return members
    position = bisect_left(members, value)
    if position < len(members) and members[position] == value:
        return members
    return (*members[:position], value, *members[position:])


def union(first: tuple[object, ...], other: tuple[object, ...]) -> tuple[object, ...]:
    """Return the union of two sets, which are sorted tuples.

    Examples
    --------
    >>> union((1, 3), (2, 3))
    (1, 2, 3)
    """
    for value in other:
        first = with_member(first, value)
    return first
