"""`OffsetReset`: where reading starts in a partition without a committed offset (`offset_reset=`, KIP-1106)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Literal, TypeAlias

from kstreams.errors import ConfigError
from kstreams.kernel.durations import to_ms

OffsetReset: TypeAlias = Literal["earliest", "latest", "none"] | timedelta
"""At the first record, after the last record, nowhere (an error), or at the time that lies a duration before now."""

_WORDS = ("earliest", "latest", "none")
_DURATION = re.compile(r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def offset_reset_of(reset: OffsetReset | str | None) -> str | timedelta | None:
    """Check an offset reset, and return Kafka's text for a duration as a `timedelta`.

    Raises
    ------
    ConfigError
        If it is neither a strategy nor a duration, or a negative duration.

    Examples
    --------
    >>> offset_reset_of("latest"), offset_reset_of("by_duration:PT1H30M")
    ('latest', datetime.timedelta(seconds=5400))
    """
    match = _DURATION.fullmatch(reset) if isinstance(reset, str) else None
    if match is not None and any(match.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if reset is None or reset in _WORDS or (isinstance(reset, timedelta) and to_ms(reset) >= 0):
        return reset
    raise ConfigError(
        f"offset_reset cannot be {reset!r}: use 'earliest', 'latest', 'none', or a timedelta that is not negative"
    )
