"""Times of schedules: every so often, or by a cron expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kstreams.errors import TopologyError
from kstreams.kernel.durations import DurationText, text_to_ms, time_ms
from kstreams.kernel.source_line import declared_at


@dataclass(frozen=True, slots=True)
class Every:
    """The multiples of a time since 1970.

    Examples
    --------
    >>> Every(60_000)(59_999), Every(60_000)(60_000)
    (60000, 120000)
    """

    every_ms: int

    def __call__(self, time_ms: int) -> int:
        return (time_ms // self.every_ms + 1) * self.every_ms


@dataclass(frozen=True, slots=True)
class Cron:
    """The times of a cron expression in a time zone.

    Examples
    --------
    >>> Cron("0 6 * * *", "UTC")(0)  # six hours after the beginning of 1970
    21600000
    """

    expression: str
    zone: str

    def __call__(self, time_ms_: int) -> int:
        after = datetime.fromtimestamp(time_ms_ / 1000, UTC).astimezone(ZoneInfo(self.zone))
        cronsim = import_module("cronsim")
        return time_ms(next(cronsim.CronSim(self.expression, after)))


def next_time(every: DurationText | None, at: str | None, zone: str) -> Callable[[int], int]:
    """Return the function from a time to the next time of a schedule, both in milliseconds.

    Raises
    ------
    TopologyError
        If neither or both of `every` and `at` are given, or one of them makes no sense.
    ImportError
        If a cron expression is given, and cronsim is not installed.
    """
    place = f"schedule() at {declared_at()}"
    if (every is None) == (at is None):
        raise TopologyError(f'{place} takes either every=, such as "1m", or at=, a cron expression such as "0 6 * * *"')
    if at is not None:
        return _cron(at, zone, place)
    every_ms = duration_of(every, "every", place)
    return Every(every_ms)


def duration_of(duration: DurationText | None, name: str, place: str) -> int:
    """Return the milliseconds of an argument; raise a TopologyError unless it is 1 ms or more."""
    try:
        duration_ms = text_to_ms(duration)  # type: ignore[arg-type]  # it raises a TypeError for others
    except (TypeError, ValueError) as error:
        raise TopologyError(f"{place} is given {name}={duration!r}: {error}") from error
    if duration_ms < 1:
        raise TopologyError(f"{place} is given {name}={duration!r}: give 1 ms or more")
    return duration_ms


def _cron(expression: str, zone: str, place: str) -> Cron:
    try:
        import_module("cronsim")
    except ImportError as error:
        raise ImportError(
            f"{place} has a cron expression, which needs cronsim: pip install 'kstreams-dsl[schedule]'", name="cronsim"
        ) from error
    cron = Cron(expression, zone)
    try:
        cron(0)
    except ZoneInfoNotFoundError as error:
        raise TopologyError(f"{place} is given zone={zone!r}, which is no time zone, such as Europe/Berlin") from error
    except StopIteration as error:
        raise TopologyError(f"{place} is given at={expression!r}, which no time is") from error
    except Exception as error:
        raise TopologyError(f"{place} is given at={expression!r}, which is no cron expression: {error}") from error
    return cron
