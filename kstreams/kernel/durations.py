"""Durations and times in milliseconds, from a `timedelta`, an aware `datetime` or an int."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TypeAlias

Duration: TypeAlias = timedelta | int
"""A `timedelta`, or whole milliseconds."""

Time: TypeAlias = datetime | int
"""An aware `datetime`, or milliseconds since 1970."""

FIRST_MS = 0
LAST_MS = 2**62
"""The times of records lie between these."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_MS = 2**60  # longer than any timedelta; the sum of a record's time and several of these is below 2^63


def to_ms(duration: Duration) -> int:
    """Return the whole milliseconds of a duration.

    Parameters
    ----------
    duration : timedelta or int
        An int is in milliseconds.

    Raises
    ------
    TypeError
        For any other type. A float is refused because it may be in seconds.
    ValueError
        If a timedelta is finer than a millisecond, or an int exceeds 2^60.

    Examples
    --------
    >>> to_ms(timedelta(minutes=1)), to_ms(250)
    (60000, 250)
    """
    if isinstance(duration, timedelta):
        whole, remainder = divmod(duration, _MILLISECOND)
        if remainder:
            raise ValueError(f"{duration!r} is finer than a millisecond; round it to whole milliseconds")
        return whole
    if isinstance(duration, int) and not isinstance(duration, bool):
        if abs(duration) > _LONGEST_MS:
            raise ValueError(f"{duration} ms are too many: write timedelta(days=999_999_999) for ever")
        return duration
    raise TypeError(f"{duration!r} is not a duration: pass a timedelta, or an int of milliseconds")


def time_ms(time: Time) -> int:
    """Return the whole milliseconds since 1970 of a time, rounded down.

    Raises
    ------
    TypeError
        For any other type. A float is refused because it may be in seconds.
    ValueError
        If a datetime has no time zone.

    Examples
    --------
    >>> time_ms(datetime(2026, 1, 1, tzinfo=UTC)), time_ms(250)
    (1767225600000, 250)
    """
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time!r} has no time zone: give it one, for example tzinfo=UTC")
        return (time - _EPOCH) // _MILLISECOND
    if hasattr(time, "__index__") and not isinstance(time, bool):  # an int, also one of NumPy
        return index(time)
    raise TypeError(f"{time!r} is not a time: pass a datetime with a time zone, or an int of milliseconds since 1970")


def time_ms_or_none(time: Time | None) -> int | None:
    """Return the milliseconds of a time, or None for None."""
    return None if time is None else time_ms(time)


def span_ms(begin: Time | None, end: Time | None) -> tuple[int, int]:
    """Return the milliseconds of both ends of a span. None is an open end.

    Examples
    --------
    >>> span_ms(None, 250)
    (0, 250)
    """
    return FIRST_MS if begin is None else time_ms(begin), LAST_MS if end is None else time_ms(end)


DurationText: TypeAlias = Duration | str
"""A `Duration`, or a number with a unit, such as "250ms", "1.5s", "5m", "2h" or "7d"."""

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def text_to_ms(duration: DurationText) -> int:
    """Return the whole milliseconds of a duration, which may be a text.

    Raises
    ------
    TypeError, ValueError
        As `to_ms`, and for a text that is not a number with a unit.

    Examples
    --------
    >>> text_to_ms("1.5s"), text_to_ms("5m"), text_to_ms(250)
    (1500, 300000, 250)
    """
    if not isinstance(duration, str):
        return to_ms(duration)
    match = _NUMBER_AND_UNIT.fullmatch(duration.strip())
    if match is None:
        raise ValueError(f"{duration!r} is not a duration: write a number with ms, s, m, h or d, such as 5m")
    number, unit = match.groups()
    return to_ms(round(float(number) * _UNITS_MS[unit]))
