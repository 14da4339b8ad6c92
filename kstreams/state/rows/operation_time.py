"""`OperationTime`: how often an operation of a store was called, and how long the calls took."""

from __future__ import annotations

from enum import Enum


class StoreOperation(Enum):
    """An operation of stores, named as in the metrics of Kafka Streams."""

    GET = "get"
    PUT = "put"
    PUT_IF_ABSENT = "put-if-absent"
    PUT_ALL = "put-all"
    DELETE = "delete"
    REMOVE = "remove"
    RANGE = "range"
    PREFIX_SCAN = "prefix-scan"
    ALL = "all"
    FETCH = "fetch"
    FLUSH = "flush"
    RESTORE = "restore"


class OperationTime:
    """The running totals of an operation. Only the thread that owns the store records.

    Attributes
    ----------
    count : int
        Keys that were looked up or written, scans, or batches.
    seconds : float
        The sum of the durations.
    longest_s : float
        The longest duration since a reader set it to 0.

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
        """Record `count` operations that took `seconds` together."""
        self.count += count
        self.seconds += seconds
        if count and seconds / count > self.longest_s:
            self.longest_s = seconds / count
