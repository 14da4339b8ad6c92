"""Measures of a store: the calls of each operation with their time, and the reads that its live rows answer."""

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


class ReadCounts:
    """The counts of lookups in a store. Only the thread that owns the store counts.

    Attributes
    ----------
    look_ups : int
        Lookups by operators, if they are measured (see `MeasuredStore`).
    misses : int
        Lookups that had to read RocksDB.

    Examples
    --------
    >>> reads = ReadCounts()
    >>> reads.look_ups, reads.misses = 4, 1
    >>> reads.hits_since(ReadCounts())
    (4, 3)
    """

    __slots__ = ("look_ups", "misses")

    def __init__(self, look_ups: int = 0, misses: int = 0) -> None:
        self.look_ups = look_ups
        self.misses = misses

    def copy(self) -> ReadCounts:
        """Return a copy of the present counts."""
        return ReadCounts(self.look_ups, self.misses)

    def hits_since(self, before: ReadCounts) -> tuple[int, int]:
        """Return the lookups since earlier counts, and how many of them live rows have answered."""
        look_ups = self.look_ups - before.look_ups
        return look_ups, max(0, look_ups - (self.misses - before.misses))
