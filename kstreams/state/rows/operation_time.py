"""`OperationTime`: how often a store was asked to do something, and how long that took."""

from __future__ import annotations


class OperationTime:
    """Kept by the thread that owns the store.

    Attributes
    ----------
    count : int
        Keys that were looked up or written, scans, or batches.
    seconds : float
        Of all of them together.
    longest_s : float
        Of one of them, since somebody has set it to 0.

    Examples
    --------
    >>> time = OperationTime()
    >>> time.took(0.5), time.took(0.25, count=5)
    (None, None)
    >>> time.count, time.seconds, time.longest_s
    (6, 0.75, 0.5)
    """

    __slots__ = ("count", "longest_s", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.longest_s = 0.0

    def took(self, seconds: float, count: int = 1) -> None:
        """So many of them took so long together."""
        self.count += count
        self.seconds += seconds
        if count and seconds / count > self.longest_s:
            self.longest_s = seconds / count
