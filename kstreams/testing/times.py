"""Points in time as a test writes them: milliseconds since the epoch, or a datetime."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Time: TypeAlias = datetime | int
"""An aware `datetime`, or whole milliseconds since the epoch."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def time_ms(time: Time) -> int:
    """Milliseconds since the epoch.

    Raises
    ------
    TypeError
        For anything else: a float of seconds would be read as milliseconds, silently.
    ValueError
        When a datetime has no time zone, or is finer than a millisecond.

    Examples
    --------
    >>> time_ms(datetime(1970, 1, 2, tzinfo=UTC)), time_ms(5)
    (86400000, 5)
    """
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError(f"{time!r} has no time zone: give it one, as tzinfo=UTC")
        whole, rest = divmod(time - _EPOCH, _MILLISECOND)
        if rest:
            raise ValueError(f"{time!r} is finer than a millisecond: replace(microsecond=...) with whole milliseconds")
        return whole
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    raise TypeError(f"{time!r} is no time: give a datetime with a time zone, or whole milliseconds since the epoch")
