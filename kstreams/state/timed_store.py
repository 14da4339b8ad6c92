"""`TimedStore`: a store for processors, whose times may be datetimes; they are checked and converted to milliseconds.

Operators pass milliseconds to stores, without a check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kstreams.kernel.durations import time_ms
from kstreams.record import AggregationWithHeaders, ValueAndTimestamp, ValueTimestampHeaders, Window, Windowed
from kstreams.state.values_with_headers import checked_row

Taken: TypeAlias = Callable[[Any], Any]
"""Converts an argument of the user to that of the store."""
Places: TypeAlias = Mapping[int, Taken]
"""The conversions of a method's arguments, by position."""
Times: TypeAlias = Mapping[str, Places]
"""The conversions by method."""


def taken_time(time: Any) -> int:
    """Return the milliseconds of a time.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> taken_time(datetime(1970, 1, 2, tzinfo=UTC))
    86400000
    """
    return time if type(time) is int else time_ms(time)


def taken_bound(time: object) -> int | None:
    """Return the milliseconds of a bound; None stands for no bound.

    Examples
    --------
    >>> taken_bound(5), taken_bound(None)
    (5, None)
    """
    return None if time is None else taken_time(time)


def taken_value(value: object) -> Any:
    """Return a value with a timestamp in milliseconds; raise TypeError for a value without timestamp.

    Examples
    --------
    >>> taken_value(ValueAndTimestamp("a", 5))
    ValueAndTimestamp(value='a', timestamp=5)
    """
    if value is None:
        return None
    if not (isinstance(value, tuple) and len(value) == 2):
        raise TypeError(f"this store keeps values with their time: put ValueAndTimestamp({value!r}, timestamp)")
    return value if type(value[1]) is int else ValueAndTimestamp(value[0], taken_time(value[1]))


def taken_value_with_headers(value: object) -> Any:
    """Return a value with a timestamp in milliseconds and headers; raise TypeError for anything else.

    Examples
    --------
    >>> taken_value_with_headers(ValueTimestampHeaders("a", 5)).headers
    ()
    """
    if value is None:
        return None
    row = checked_row(value, ValueTimestampHeaders)
    return row if type(row.timestamp) is int else row._replace(timestamp=taken_time(row.timestamp))


def taken_aggregation(value: object) -> Any:
    """Return a value of a session with headers; raise TypeError for anything else.

    Examples
    --------
    >>> taken_aggregation(AggregationWithHeaders(3)).headers
    ()
    """
    return None if value is None else checked_row(value, AggregationWithHeaders)


def taken_session(session: object) -> Any:
    """Return a key with its window in milliseconds; raise TypeError for anything else.

    Examples
    --------
    >>> taken_session(Windowed("a", Window(0, 5)))
    Windowed(key='a', window=Window(start_ms=0, end_ms=5))
    """
    if not (isinstance(session, tuple) and len(session) == 2 and isinstance(session[1], tuple)):
        raise TypeError(f"{session!r} is no session: give Windowed(key, Window(start_ms, end_ms))")
    key, (start, end) = session
    return Windowed(key, Window(taken_time(start), taken_time(end)))


class TimedStore:
    """A store whose methods take times of users. All other methods and attributes are those of the store.

    Parameters
    ----------
    store : LiveStore or a wrapper of one
    times : mapping of str to mapping of int to callable
        The conversions of arguments, by method and position.
    """

    def __init__(self, store: Any, times: Times) -> None:
        self._store = store
        for method, places in times.items():
            setattr(self, method, _taking(getattr(store, method), tuple(places.items())))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if callable(attribute):
            setattr(self, name, attribute)  # a method is looked up once
        return attribute


def _taking(method: Callable[..., Any], places: tuple[tuple[int, Taken], ...]) -> Callable[..., Any]:
    def call(*positional: object, **named: object) -> Any:
        arguments = list(positional)
        for place, parameter in places:
            if place < len(arguments):
                arguments[place] = parameter(arguments[place])
        return method(*arguments, **named)

    return call
