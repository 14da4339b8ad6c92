"""Sessions: how a record and the sessions it touches become one."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.record import Window


def merged(time_ms: int, touched: Iterable[Window]) -> Window:
    """The session that a record at `time_ms` makes with those within the gap of it.

    Examples
    --------
    >>> merged(5, [Window(0, 0), Window(10, 12)])
    Window(start_ms=0, end_ms=12)
    """
    start_ms = end_ms = time_ms
    for first_ms, last_ms in touched:
        if first_ms < start_ms:  # noqa: PLR1730 (`min` would be a call per record)
            start_ms = first_ms
        if last_ms > end_ms:  # noqa: PLR1730
            end_ms = last_ms
    return Window(start_ms, end_ms)
