"""`Suppressed`: how long `suppress` holds updates of a table back, and the limits of its buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kstreams.dsl.naming import validate_name
from kstreams.kernel.advice import Advised, Advising
from kstreams.kernel.durations import Duration, to_ms

WhenFull = Literal["emit_early", "shut_down"]


@dataclass(frozen=True, slots=True)
class Suppressed(Advised, metaclass=Advising):
    """The settings of `KTable.suppress`, from `until_window_closes` or `until_time_limit`. Kafka Streams: `Suppressed`.

    Examples
    --------
    >>> Suppressed.until_time_limit(60_000, max_records=1_000).time_limit_ms
    60000
    """

    time_limit_ms: int | None
    """None holds updates back until the window closes."""
    max_records: int | None = None
    max_bytes: int | None = None
    when_full: WhenFull = "shut_down"
    name: str | None = None

    @staticmethod
    def until_window_closes(
        *, max_records: int | None = None, max_bytes: int | None = None, name: str | None = None
    ) -> Suppressed:
        """Emit one final result per window, when stream time has passed its end plus its grace.

        Kafka Streams: `Suppressed.untilWindowCloses`.

        Parameters
        ----------
        max_records, max_bytes : int, optional
            Limits of the buffer; if one is exceeded, the application stops with an error. No limit by default.
        name : str, optional
            Names the operator and its buffer.

        Examples
        --------
        >>> import kstreams as ks
        >>> ks.Suppressed.until_window_closes(max_bytes=10_000_000).when_full
        'shut_down'
        """
        return _checked(Suppressed(None, max_records, max_bytes, "shut_down", name))

    @staticmethod
    def until_time_limit(
        limit: Duration,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: WhenFull = "emit_early",
        name: str | None = None,
    ) -> Suppressed:
        """Emit at most one update per key and `limit` of stream time: the last one.

        The time starts with the first update that is held back. Kafka Streams: `Suppressed.untilTimeLimit`.

        Parameters
        ----------
        limit : timedelta or int (ms)
        max_records, max_bytes : int, optional
            Limits of the buffer.
        when_full : {"emit_early", "shut_down"}
            If a limit is exceeded: emit the oldest updates early, or stop the application with an error.
        name : str, optional
            Names the operator and its buffer.

        Examples
        --------
        >>> import kstreams as ks
        >>> ks.Suppressed.until_time_limit(60_000, max_records=1_000).when_full
        'emit_early'
        """
        return _checked(Suppressed(to_ms(limit), max_records, max_bytes, when_full, name))


def _checked(suppressed: Suppressed) -> Suppressed:
    if suppressed.time_limit_ms is not None and suppressed.time_limit_ms < 0:
        raise ValueError(f"the time limit of suppress must not be negative, but is {suppressed.time_limit_ms} ms")
    for bound in ("max_records", "max_bytes"):
        most = getattr(suppressed, bound)
        if most is not None and (not isinstance(most, int) or most < 0):
            raise ValueError(f"{bound} is a whole number that is not negative, not {most!r}")
    if suppressed.when_full not in {"emit_early", "shut_down"}:
        raise ValueError(f'when_full is "emit_early" or "shut_down", not {suppressed.when_full!r}')
    if suppressed.name is not None:
        validate_name(suppressed.name)
    return suppressed
