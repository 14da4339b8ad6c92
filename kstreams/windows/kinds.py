"""The kinds of windows: how they are declared, and the arithmetic of their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from kstreams.kernel.advice import Advised, Advising
from kstreams.kernel.durations import Duration, to_ms
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


END_OF_TIME_MS = 2**63 - 1
"""The end of a window that has none."""


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
    """Windows by which a grouped stream can be aggregated; every kind of windows is a subclass.

    A kind has `retention_ms` and `closes_after_ms`, and overrides the other properties where it differs from most.

    Examples
    --------
    >>> isinstance(TimeWindows(size=10), Windows)
    True
    """

    __slots__ = ()

    @property
    def retention_ms(self) -> int:
        """How long a store must keep a window."""
        raise NotImplementedError

    @property
    def closes_after_ms(self) -> int:
        """How long after its end a window still takes records."""
        raise NotImplementedError

    @property
    def least_retention_ms(self) -> int:
        """The least retention of a store that a user may set."""
        return self.retention_ms

    @property
    def fixed_size_ms(self) -> int | None:
        """The length of every window; None if lengths differ, or if windows have no end."""
        return None

    @property
    def merges(self) -> bool:
        """True if windows of one key may merge, as sessions do."""
        return False

    @property
    def closes(self) -> bool:
        """True if windows have an end, so that they can be emitted on close."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class TimeWindows(Windows):
    """Windows of one size, starting every `advance`: tumbling when both are equal, hopping otherwise.

    Kafka Streams: `TimeWindows.ofSizeAndGrace(size, grace).advanceBy(advance)`. A window holds start <= time < end;
    starts are multiples of `advance` and never negative.

    Parameters
    ----------
    size : timedelta or int (ms)
        Length of a window.
    advance : timedelta or int (ms), default `size`
        Distance between starts, at most `size`.
    grace : timedelta or int (ms), default 0
        How long after its end, in stream time, a window still takes late records.

    Raises
    ------
    ValueError
        When a duration is out of bounds.

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
        """The starts of all windows that hold a time, ascending."""
        first = max(0, timestamp_ms - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return range(first, timestamp_ms + 1, self.advance_ms)

    def starts_ending_until(self, end_ms: int) -> int:
        """The greatest start of a window that ends at or before a time; negative when there is none."""
        return (end_ms - self.size_ms) // self.advance_ms * self.advance_ms

    @property
    def retention_ms(self) -> int:
        """How long a store must keep a window."""
        return self.size_ms + self.grace_ms

    @property
    def closes_after_ms(self) -> int:
        """How long after its end a window still takes records."""
        return self.grace_ms

    @property
    def fixed_size_ms(self) -> int:
        """The length of every window."""
        return self.size_ms


@dataclass(frozen=True, slots=True, init=False)
class UnlimitedWindows(Windows):
    """One window from `start` on, without an end. Kafka Streams: `UnlimitedWindows.of().startOn(start)`.

    Parameters
    ----------
    start : timedelta or int (ms since the epoch), default 0
        Records before it fall into no window.
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "of": "UnlimitedWindows()",
        "start_on": "UnlimitedWindows(start=...)",
    }

    start_ms: int

    def __init__(self, *, start: Duration = 0) -> None:
        object.__setattr__(self, "start_ms", _not_negative(start, "the start of the window"))

    def starts_at(self, timestamp_ms: int) -> range:
        """The starts of all windows that hold a time: one, or none before it starts."""
        return range(self.start_ms, self.start_ms + (timestamp_ms >= self.start_ms))

    def starts_ending_until(self, end_ms: int) -> int:
        """Negative: it never ends."""
        return -1

    @property
    def size_ms(self) -> int:
        """Up to the end of time."""
        return END_OF_TIME_MS - self.start_ms

    @property
    def advance_ms(self) -> int:
        """No other follows; any distance but its size."""
        return END_OF_TIME_MS

    @property
    def grace_ms(self) -> int:
        """None is needed."""
        return 0

    @property
    def retention_ms(self) -> int:
        """How long a store must keep the window."""
        return END_OF_TIME_MS

    @property
    def least_retention_ms(self) -> int:
        """Any retention is accepted, as in Kafka Streams."""
        return 0

    @property
    def closes_after_ms(self) -> int:
        """It has no end to wait for."""
        return 0

    @property
    def closes(self) -> bool:
        """The window has no end."""
        return False


@dataclass(frozen=True, slots=True, init=False)
class SlidingWindows(Windows):
    """Windows around records whose times differ by at most `difference`; both ends belong to a window.

    There is one window for each set of such records: see `kstreams.windows.sliding`.
    Kafka Streams: `SlidingWindows.ofTimeDifferenceAndGrace(difference, grace)`.

    Parameters
    ----------
    difference : timedelta or int (ms)
        The greatest distance of two records in one window.
    grace : timedelta or int (ms), default 0
        How long after its end, in stream time, a window still takes late records.

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
        """How long a store must keep a window."""
        return 2 * self.difference_ms + self.grace_ms

    @property
    def size_ms(self) -> int:
        """From a window's start to its end."""
        return self.difference_ms

    @property
    def fixed_size_ms(self) -> int:
        """The length of every window."""
        return self.difference_ms

    @property
    def closes_after_ms(self) -> int:
        """How long after its end a window still takes records."""
        return self.grace_ms


@dataclass(frozen=True, slots=True, init=False)
class SessionWindows(Windows):
    """Windows that grow while records of a key come within `gap` of each other; both ends belong to a session.

    Kafka Streams: `SessionWindows.ofInactivityGapAndGrace(gap, grace)`.

    Parameters
    ----------
    gap : timedelta or int (ms)
        How far apart two records of one session may lie, this included.
    grace : timedelta or int (ms), default 0
        How long after its end and the gap, in stream time, a session still takes late records.

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
        """How long a store must keep a session."""
        return self.gap_ms + self.grace_ms

    @property
    def closes_after_ms(self) -> int:
        """How long after its end a session still takes records: it may grow by its gap."""
        return self.gap_ms + self.grace_ms

    @property
    def merges(self) -> bool:
        """A record between two sessions merges them."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class JoinWindows(Advised, metaclass=Advising):
    """Which records of two streams meet: other.time in [time - before, time + after], both ends included.

    Kafka Streams: `JoinWindows.ofTimeDifferenceAndGrace(difference, grace).before(before).after(after)`.

    Parameters
    ----------
    before, after : timedelta or int (ms)
        Seen from the left stream; one may be negative as long as before + after >= 0.
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
        """Records whose times differ by at most `difference`, either way."""
        return cls(before=difference, after=difference, grace=grace)

    def swapped(self) -> JoinWindows:
        """The same window seen from the right stream."""
        return JoinWindows(before=self.after_ms, after=self.before_ms, grace=self.grace_ms)

    @property
    def size_ms(self) -> int:
        """Length of the window."""
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        """How long the stores of a join must keep a record."""
        return self.size_ms + self.grace_ms
