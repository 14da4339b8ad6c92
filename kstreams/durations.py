"""Durations: `timedelta`, or an int of milliseconds, become milliseconds."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

Duration: TypeAlias = timedelta | int
"""A `timedelta`, or whole milliseconds."""

_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_MS = 2**60  # longer than any timedelta; a time of a record and some of these add up to less than 2^63


def to_ms(duration: Duration) -> int:
    """Whole milliseconds of a duration.

    Parameters
    ----------
    duration : timedelta or int
        An int is milliseconds already.

    Raises
    ------
    TypeError
        For anything else: a float of seconds would be read as milliseconds, silently.
    ValueError
        When a timedelta is finer than a millisecond, or an int is more than 2^60.

    Examples
    --------
    >>> to_ms(timedelta(minutes=1)), to_ms(250)
    (60000, 250)
    """
    if isinstance(duration, timedelta):
        whole, rest = divmod(duration, _MILLISECOND)
        if rest:
            raise ValueError(f"{duration!r} is finer than a millisecond; round it to whole milliseconds")
        return whole
    if isinstance(duration, int) and not isinstance(duration, bool):
        if abs(duration) > _LONGEST_MS:
            raise ValueError(f"{duration} ms are too many: write timedelta(days=999_999_999) for ever")
        return duration
    raise TypeError(f"{duration!r} is not a duration: pass a timedelta, or an int of milliseconds")
