"""The functions that generated code calls for operations that no Python operator has."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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


def field_of(record_value: object, name: str) -> Any:
    """Return a field of a value of unknown type: an item of a dict, else an attribute."""
    return record_value.get(name) if isinstance(record_value, dict) else getattr(record_value, name)


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
