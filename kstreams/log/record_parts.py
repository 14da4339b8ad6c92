"""The parts of a record, checked before any home of topics buffers them."""

from __future__ import annotations

from kstreams.errors import LogError
from kstreams.kernel.durations import Time, time_ms
from kstreams.record import Headers


def not_bytes(key: object, value: object) -> LogError:
    """The error for a key and a value that are not both bytes or None."""
    return LogError(f"Keys and values are bytes or None, not {type(key).__name__} and {type(value).__name__}.")


def checked_time(timestamp: Time) -> int:
    """A time in ms; LogError for one beyond 64 bits, or for what is no time."""
    time = timestamp if type(timestamp) is int else _told_ms(timestamp)
    if not -(2**63) <= time < 2**63:
        raise LogError(f"The timestamp {time} does not fit into 64 bits: give milliseconds since 1970.")
    return time


def _told_ms(timestamp: Time) -> int:
    try:
        return time_ms(timestamp)
    except (TypeError, ValueError) as error:
        raise LogError(f"A record cannot be sent with this timestamp: {error}.") from None


def checked_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Headers with names that can be written; LogError for others."""
    return [(_name(name), None if raw is None else bytes(raw)) for name, raw in headers]


def _name(name: object) -> str:
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LogError(f"The name {text!r} of a header cannot be written as UTF-8: {error.reason}.") from None
    return text
