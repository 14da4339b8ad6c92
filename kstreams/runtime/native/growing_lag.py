"""`GrowingLag`: says that an application falls behind its input."""

from __future__ import annotations

import logging
from collections import deque
from itertools import pairwise

logger = logging.getLogger(__name__)

_LOOKS = 4
_LEAST = 10_000


class GrowingLag:
    """Compares the lag from look to look.

    Examples
    --------
    >>> lag = GrowingLag()
    >>> [lag.is_growing(records) for records in (20_000, 30_000, 50_000, 80_000, 60_000)]
    [False, False, False, True, False]
    """

    def __init__(self) -> None:
        self._seen: deque[int] = deque(maxlen=_LOOKS)

    def is_growing(self, lag: int) -> bool:
        """Whether the lag has grown from each of the last looks to the next, and matters."""
        self._seen.append(lag)
        lags = list(self._seen)
        grows = all(before < after for before, after in pairwise(lags))
        return len(lags) == _LOOKS and grows and lag >= _LEAST

    def look(self, lag: int) -> None:
        """Log that the lag is growing."""
        if self.is_growing(lag):
            logger.warning(
                "the lag has grown from %d to %d records: the input is faster than the application; more processes "
                "(`--workers`) or threads (`num.stream.threads`) share the tasks",
                *(self._seen[0], lag),
            )
            self._seen.clear()
