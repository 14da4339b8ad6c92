"""The kinds of windows: how they are declared, and the arithmetic of their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from kstreams.kernel.advice import Advised, Advising
from kstreams.kernel.durations import Duration, to_ms
from kstreams.record import Window


def merged(time_ms: int, sessions: Iterable[Window]) -> Window:
    """Return the session of a record at `time_ms`, merged with the sessions that it extends.

    Examples
    --------
    >>> merged(5, [Window(0, 0), Window(10, 12)])
    Window(start_ms=0, end_ms=12)
    """
    start_ms = end_ms = time_ms
    for first_ms, last_ms in sessions:
        if first_ms < start_ms:  # noqa: PLR1730 (`min` would be a call per record)
            start_ms = first_ms
        if last_ms > end_ms:  # noqa: PLR1730
            end_ms = last_ms
    return Window(start_ms, end_ms)


END_OF_TIME_MS = 2**63 - 1
"""The last time, in ms: the end of a window without an end, and a time by which every record has expired."""


def _not_negative(duration: Duration, name: str) -> int:
    milliseconds = to_ms(duration)
    if milliseconds < 0:
        raise ValueError(f"{name} must not be negative, but is {milliseconds} ms")
    return milliseconds


def _positive(duration: Duration, name: str) -> int:
    milliseconds = to_ms(duration)
    if milliseconds <= 0:
        raise ValueError(f"{name} must be greater than zero, but is {milliseconds} ms")
    return milliseconds


class Windows(Advised, metaclass=Advising):
    """The base class of windows by which a grouped stream can be aggregated.

    A kind of windows defines `retention_ms` and `closes_after_ms`, and overrides the other properties if their defaults
    do not fit.

    Examples
    --------
    >>> isinstance(TimeWindows(size=10), Windows)
    True
    """

    __slots__ = ()

    @property
    def retention_ms(self) -> int:
        """The time for which a store must keep a window, in ms."""
        raise NotImplementedError

    @property
    def closes_after_ms(self) -> int:
        """The time after its end for which a window still accepts records, in ms."""
        raise NotImplementedError

    @property
    def least_retention_ms(self) -> int:
        """The shortest retention of a store that a user may set, in ms."""
        return self.retention_ms

    @property
    def fixed_size_ms(self) -> int | None:
        """The length of every window in ms; None if lengths differ, or if windows have no end."""
        return None

    @property
    def merges(self) -> bool:
        """True if windows of one key may merge, as sessions do."""
        return False

    @property
    def closes(self) -> bool:
        """True if windows have an end, so that they can be emitted when they close."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class TimeWindows(Windows):
    """Windows of one size that start every `advance`: tumbling windows if both are equal, else hopping windows.

    Kafka Streams: `TimeWindows.ofSizeAndGrace(size, grace).advanceBy(advance)`. A window contains the times with
    start <= time < end. Starts are multiples of `advance` and never negative.

    Parameters
    ----------
    size : timedelta or int (ms)
        Length of a window.
    advance : timedelta or int (ms), default `size`
        Distance between starts, at most `size`.
    grace : timedelta or int (ms), default 0
        How long after its end, in stream time, a window still accepts late records.

    Raises
    ------
    ValueError
        If a duration is out of bounds.

    Examples
    --------
    >>> TimeWindows(size=10, advance=5).starts_at(7)
    range(0, 8, 5)
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "of": "TimeWindows(size=...)",
        "of_size_with_no_grace": "TimeWindows(size=...)",
        "of_size_and_grace": "TimeWindows(size=..., grace=...)",
        "advance_by": "TimeWindows(size=..., advance=...)",
        "grace": "TimeWindows(size=..., grace=...), or read grace_ms",
    }

    size_ms: int
    advance_ms: int
    grace_ms: int

    def __init__(self, *, size: Duration, advance: Duration | None = None, grace: Duration = 0) -> None:
        size_ms = _positive(size, "the size of a window")
        advance_ms = size_ms if advance is None else _positive(advance, "the advance of a window")
        if advance_ms > size_ms:
            raise ValueError(f"windows of {size_ms} ms cannot advance by {advance_ms} ms: records would fall between")
        object.__setattr__(self, "size_ms", size_ms)
        object.__setattr__(self, "advance_ms", advance_ms)
        object.__setattr__(self, "grace_ms", _not_negative(grace, "the grace of a window"))

    def starts_at(self, timestamp_ms: int) -> range:
        """Return the starts of all windows that contain a time, ascending."""
        first = max(0, timestamp_ms - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return range(first, timestamp_ms + 1, self.advance_ms)

    def starts_ending_until(self, end_ms: int) -> int:
        """Return the greatest start of a window that ends at or before a time; a negative number if there is none."""
        return (end_ms - self.size_ms) // self.advance_ms * self.advance_ms

    @property
    def retention_ms(self) -> int:
        """The time for which a store must keep a window, in ms."""
        return self.size_ms + self.grace_ms

    @property
    def closes_after_ms(self) -> int:
        """The time after its end for which a window still accepts records, in ms."""
        return self.grace_ms

    @property
    def fixed_size_ms(self) -> int:
        """The length of every window in ms."""
        return self.size_ms


@dataclass(frozen=True, slots=True, init=False)
class UnlimitedWindows(Windows):
    """One window from `start` on, without an end. Kafka Streams: `UnlimitedWindows.of().startOn(start)`.

    Parameters
    ----------
    start : timedelta or int (ms since the epoch), default 0
        Earlier records are in no window.
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "of": "UnlimitedWindows()",
        "start_on": "UnlimitedWindows(start=...)",
    }

    start_ms: int

    def __init__(self, *, start: Duration = 0) -> None:
        object.__setattr__(self, "start_ms", _not_negative(start, "the start of the window"))

    def starts_at(self, timestamp_ms: int) -> range:
        """Return the start of the window if it contains a time."""
        return range(self.start_ms, self.start_ms + (timestamp_ms >= self.start_ms))

    def starts_ending_until(self, end_ms: int) -> int:
        """Return a negative number, because the window never ends."""
        return -1

    @property
    def size_ms(self) -> int:
        """The time from the start to the last time."""
        return END_OF_TIME_MS - self.start_ms

    @property
    def advance_ms(self) -> int:
        """A distance other than the size, because no further window follows."""
        return END_OF_TIME_MS

    @property
    def grace_ms(self) -> int:
        """0, because no record is late."""
        return 0

    @property
    def retention_ms(self) -> int:
        """The time for which a store must keep the window, in ms."""
        return END_OF_TIME_MS

    @property
    def least_retention_ms(self) -> int:
        """0, because any retention is accepted, as in Kafka Streams."""
        return 0

    @property
    def closes_after_ms(self) -> int:
        """0, because the window has no end."""
        return 0

    @property
    def closes(self) -> bool:
        """False, because the window has no end."""
        return False


@dataclass(frozen=True, slots=True, init=False)
class SlidingWindows(Windows):
    """Windows of records whose times differ by at most `difference`; both ends belong to a window.

    There is one window for each set of such records: see `kstreams.windows.sliding`.
    Kafka Streams: `SlidingWindows.ofTimeDifferenceAndGrace(difference, grace)`.

    Parameters
    ----------
    difference : timedelta or int (ms)
        The greatest distance of two records in one window.
    grace : timedelta or int (ms), default 0
        How long after its end, in stream time, a window still accepts late records.

    Examples
    --------
    >>> SlidingWindows(difference=10, grace=5).retention_ms
    25
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "of_time_difference_with_no_grace": "SlidingWindows(difference=...)",
        "of_time_difference_and_grace": "SlidingWindows(difference=..., grace=...)",
        "with_time_difference_and_grace": "SlidingWindows(difference=..., grace=...)",
    }

    difference_ms: int
    grace_ms: int

    def __init__(self, *, difference: Duration, grace: Duration = 0) -> None:
        object.__setattr__(self, "difference_ms", _not_negative(difference, "the time difference of sliding windows"))
        object.__setattr__(self, "grace_ms", _not_negative(grace, "the grace of a window"))

    @property
    def retention_ms(self) -> int:
        """The time for which a store must keep a window, in ms."""
        return 2 * self.difference_ms + self.grace_ms

    @property
    def size_ms(self) -> int:
        """The time from a window's start to its end, in ms."""
        return self.difference_ms

    @property
    def fixed_size_ms(self) -> int:
        """The length of every window in ms."""
        return self.difference_ms

    @property
    def closes_after_ms(self) -> int:
        """The time after its end for which a window still accepts records, in ms."""
        return self.grace_ms


@dataclass(frozen=True, slots=True, init=False)
class SessionWindows(Windows):
    """Windows that grow as long as records of a key are at most `gap` apart; both ends belong to a session.

    Kafka Streams: `SessionWindows.ofInactivityGapAndGrace(gap, grace)`.

    Parameters
    ----------
    gap : timedelta or int (ms)
        The greatest distance of consecutive records in one session.
    grace : timedelta or int (ms), default 0
        How long after its end and the gap, in stream time, a session still accepts late records.

    Examples
    --------
    >>> SessionWindows(gap=30).closes_after_ms
    30
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "with_": "SessionWindows(gap=...)",
        "of_inactivity_gap_with_no_grace": "SessionWindows(gap=...)",
        "of_inactivity_gap_and_grace": "SessionWindows(gap=..., grace=...)",
        "grace": "SessionWindows(gap=..., grace=...), or read grace_ms",
    }

    gap_ms: int
    grace_ms: int

    def __init__(self, *, gap: Duration, grace: Duration = 0) -> None:
        object.__setattr__(self, "gap_ms", _positive(gap, "the gap of session windows"))
        object.__setattr__(self, "grace_ms", _not_negative(grace, "the grace of a window"))

    @property
    def retention_ms(self) -> int:
        """The time for which a store must keep a session, in ms."""
        return self.gap_ms + self.grace_ms

    @property
    def closes_after_ms(self) -> int:
        """The time after its end for which a session still accepts records, in ms. A session may grow by its gap."""
        return self.gap_ms + self.grace_ms

    @property
    def merges(self) -> bool:
        """True, because a record between two sessions merges them."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class JoinWindows(Advised, metaclass=Advising):
    """The window of a stream-stream join: right.time in [left.time - before, left.time + after], both ends included.

    Kafka Streams: `JoinWindows.ofTimeDifferenceAndGrace(difference, grace).before(before).after(after)`.

    Parameters
    ----------
    before, after : timedelta or int (ms)
        How far a partner in the right stream may be before and after a record of the left stream. One of them may be
        negative as long as before + after >= 0.
    grace : timedelta or int (ms), default 0
        How long unmatched rows of an outer side wait for late partners.

    Examples
    --------
    >>> JoinWindows.of(100).swapped() == JoinWindows(before=100, after=100)
    True
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "of_time_difference_with_no_grace": "JoinWindows.of(difference)",
        "of_time_difference_and_grace": "JoinWindows.of(difference, grace)",
        "before": "JoinWindows(before=..., after=...)",
        "after": "JoinWindows(before=..., after=...)",
        "grace": "JoinWindows(before=..., after=..., grace=...), or read grace_ms",
    }

    before_ms: int
    after_ms: int
    grace_ms: int

    def __init__(self, *, before: Duration, after: Duration, grace: Duration = 0) -> None:
        before_ms = to_ms(before)
        after_ms = to_ms(after)
        if before_ms + after_ms < 0:
            raise ValueError(f"a join window must not end ({after_ms} ms) before it starts ({-before_ms} ms)")
        object.__setattr__(self, "before_ms", before_ms)
        object.__setattr__(self, "after_ms", after_ms)
        object.__setattr__(self, "grace_ms", _not_negative(grace, "the grace of a join window"))

    @classmethod
    def of(cls, difference: Duration, grace: Duration = 0) -> JoinWindows:
        """Return the window of records whose times differ by at most `difference`, in either direction."""
        return cls(before=difference, after=difference, grace=grace)

    def swapped(self) -> JoinWindows:
        """Return the window of the right stream: with `before` and `after` exchanged."""
        return JoinWindows(before=self.after_ms, after=self.before_ms, grace=self.grace_ms)

    @property
    def size_ms(self) -> int:
        """The length of the window in ms."""
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        """The time for which the stores of a join must keep a record, in ms."""
        return self.size_ms + self.grace_ms
