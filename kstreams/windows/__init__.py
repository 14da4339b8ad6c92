"""Windows of event time: their kinds, and the arithmetic of their bounds. Pure logic, in milliseconds."""

from kstreams.windows.kinds import (
    END_OF_TIME_MS,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Windows,
)

__all__ = [
    "END_OF_TIME_MS",
    "JoinWindows",
    "SessionWindows",
    "SlidingWindows",
    "TimeWindows",
    "UnlimitedWindows",
    "Windows",
]
