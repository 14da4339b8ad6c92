"""Times as people write them: milliseconds since 1970, or ISO."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kstreams.errors import KStreamsError

_LATEST_MS = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_ms(written: int | str) -> int:
    """The milliseconds since 1970 of a time; one without a zone is UTC.

    Raises
    ------
    KStreamsError
        When it is no time.

    Examples
    --------
    >>> instant_ms(7), instant_ms("7"), instant_ms("2026-11-25T12:00:00.5+01:00"), instant_ms("2026-11-25 11:00")
    (7, 7, 1795604400500, 1795604400000)
    """
    time_ms = written if isinstance(written, int) else _of_text(written)
    if not 0 <= time_ms <= _LATEST_MS:
        raise KStreamsError(
            f"its timestamp {written} is no time: give the milliseconds since 1970-01-01T00:00Z, or an ISO time"
        )
    return time_ms


def _of_text(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise KStreamsError(
            f"its timestamp {text!r} is no time: write it as 2026-11-25T12:00:00Z, or as milliseconds since 1970"
        ) from None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
