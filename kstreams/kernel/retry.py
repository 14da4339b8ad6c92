"""`Retry`: how often, when and after which errors a failed call is repeated. `Attempts`: the failed calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kstreams.errors import TopologyError
from kstreams.kernel.durations import DurationText, text_to_ms


class Attempts(NamedTuple):
    """The failed calls for a record: their number, and the wall-clock times (ms) of the first and the last one."""

    calls: int
    first_ms: int
    last_ms: int

    def failed_at(self, now_ms: int) -> Attempts:
        """Return these calls and another one.

        Examples
        --------
        >>> NEVER_CALLED.failed_at(5).failed_at(9)
        Attempts(calls=2, first_ms=5, last_ms=9)
        """
        return Attempts(self.calls + 1, self.first_ms if self.calls else now_ms, now_ms)


NEVER_CALLED = Attempts(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How an operator repeats a call that failed, or a sink writes refused rows again.

    Kafka Connect: `errors.retry.timeout`, `errors.retry.delay.max.ms`.

    Parameters
    ----------
    backoff : timedelta, int (ms) or str
        The time from the first failure to the second attempt, such as "1s".
    factor : float
        Each further wait is longer by this factor; 1 or more.
    max_delay : timedelta, int (ms) or str
        The longest wait between two attempts.
    attempts : int
        The greatest number of calls for a record, the first one included.
    on : exception type, or tuple of exception types
        The errors after which the call is repeated. Any other error is handled as without `retry=`.

    Raises
    ------
    TopologyError
        If a value makes no sense.

    Examples
    --------
    >>> retry = Retry(backoff="1s", factor=2, max_delay="5s", attempts=5, on=(TimeoutError,))
    >>> [retry.delay_ms(failures) for failures in (1, 2, 3, 4)]
    [1000, 2000, 4000, 5000]
    """

    backoff: DurationText = "1s"
    factor: int | float = 2
    max_delay: DurationText = "5m"
    attempts: int = 8
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or self.attempts < 1:
            raise TopologyError(f"Retry(attempts={self.attempts!r}) makes no call: give 1 or more")
        if not self.factor >= 1:
            raise TopologyError(f"Retry(factor={self.factor!r}) would shorten the waits: give 1 or more")
        for name, duration in (("backoff", self.backoff), ("max_delay", self.max_delay)):
            try:
                too_short = text_to_ms(duration) < 1
            except (TypeError, ValueError) as error:
                raise TopologyError(f"Retry({name}={duration!r}): {error}") from error
            if too_short:
                raise TopologyError(f"Retry({name}={duration!r}) is no wait: give 1 ms or more")
        errors = self.on if isinstance(self.on, tuple) else (self.on,)
        if not errors or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in errors):
            raise TopologyError(f"Retry(on={self.on!r}) names no errors: give exception types, as on=(TimeoutError,)")

    def delay_ms(self, failures: int) -> int:
        """Return the wait after so many failures, in milliseconds."""
        longest_ms = text_to_ms(self.max_delay)
        try:
            return int(min(text_to_ms(self.backoff) * self.factor ** (failures - 1), longest_ms))
        except OverflowError:
            return longest_ms

    def repeats(self, error: Exception, attempts: Attempts) -> bool:
        """Return whether there is another call after an error.

        Examples
        --------
        >>> retry = Retry(attempts=2, on=TimeoutError)
        >>> once = NEVER_CALLED.failed_at(0)
        >>> retry.repeats(TimeoutError(), once), retry.repeats(TimeoutError(), once.failed_at(1))
        (True, False)
        >>> retry.repeats(ValueError(), once)
        False
        """
        return attempts.calls < self.attempts and isinstance(error, self.on)
