"""Points in time as a test writes them: milliseconds since the epoch, or a datetime."""

from __future__ import annotations

from datetime import datetime

from kstreams.kernel import durations
from kstreams.kernel.durations import Time


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
    >>> from datetime import UTC
    >>> time_ms(datetime(1970, 1, 2, tzinfo=UTC)), time_ms(5)
    (86400000, 5)
    """
    if isinstance(time, datetime) and time.microsecond % 1000:
        raise ValueError(f"{time!r} is finer than a millisecond: replace(microsecond=...) with whole milliseconds")
    return durations.time_ms(time)
