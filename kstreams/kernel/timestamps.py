"""Timestamp extractors: where the event time of a record comes from, which times are valid, and what others mean.

One's own extractor is a function `(record, partition_time)` that returns milliseconds or an aware datetime: a negative
result drops the record. Those here are called with whole columns, since they do not look at keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np

from kstreams.errors import ConfigError
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.kernel.durations import Time
from kstreams.kernel.durations import time_ms as to_time_ms

TimestampExtractor: TypeAlias = Callable[[Any, int], Time]
"""Takes the record and the partition time (ms, -1 when unknown); gives the event time: an aware datetime, or ms."""

Times: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

LATEST_MS = 2**62 - 1
"""The last valid time; the first is 0. A time and all durations that are added to it then stay below 2^63."""


class InvalidTimestampError(ValueError):
    """A time that no record may have, or no time at all."""

    @classmethod
    def out_of_range(cls, time_ms: int, cure: str, last: str = "2^62 - 1") -> InvalidTimestampError:
        """The error for a time that is negative or too late.

        Parameters
        ----------
        time_ms : int
        cure : str
            What to do about it.
        last : str
            The last time that is valid.
        """
        range_ = "negative" if time_ms < 0 else f"after the last valid one, {last}"
        return cls(f"its time is {range_} ({time_ms} ms): {cure}")


def are_valid(times: Times) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which of some times are valid.

    Examples
    --------
    >>> are_valid(np.array([-1, 0, LATEST_MS, LATEST_MS + 1])).tolist()
    [False, True, True, False]
    """
    return times.view(np.uint64) <= LATEST_MS  # negative ones are the greatest of all


def extracted(
    extract: TimestampExtractor, records: Iterable[object], partition_time: int
) -> Iterator[int | InvalidTimestampError]:
    """The times that a function gives to records, one after the other: it may fall back to those before.

    Where it gives no time, that is an error in the place of the time.

    Examples
    --------
    >>> list(extracted(lambda record, highest: record or highest, [5, 0, 2**70], -1))
    [5, 5, 9223372036854775807]
    >>> next(extracted(lambda record, highest: record, [1767225600.5], -1))  # doctest: +ELLIPSIS
    InvalidTimestampError('its timestamp extractor returned 1767225600.5: return milliseconds since 1970 as an int, ...
    """
    for record in records:
        time = extract(record, partition_time)
        try:
            time_ms = max(-(2**63), min(to_time_ms(time), 2**63 - 1))
        except (TypeError, ValueError):
            yield InvalidTimestampError(
                f"its timestamp extractor returned {time!r}: return milliseconds since 1970 as an int, such as "
                "int(seconds * 1000), or a datetime with a time zone"
            )
            continue
        yield time_ms
        if time_ms <= LATEST_MS:
            partition_time = max(partition_time, time_ms)


class FailOnInvalidTimestamp:
    """The record's own time; one that is not valid is a failure, which ends the run unless the handler of
    deserialization answers otherwise. The default. Kafka Streams: `FailOnInvalidTimestamp`."""

    fails: ClassVar[bool] = True
    """Whether a time that stays invalid is a failure; else the record is dropped."""

    def __call__(self, record: Any, partition_time: int) -> int:
        """The time of one record, for who calls an extractor by hand."""
        return int(self.times(np.array([record.timestamp]), partition_time, SystemClock())[0])

    def times(self, times: Times, partition_time: int, clock: Clock) -> Times:
        """Event times of a batch.

        Parameters
        ----------
        times : numpy int64 array, shape (n,)
            Of the records, in ms.
        partition_time : int
            Highest time (ms) before them in the partition, -1 at first.
        clock : Clock
        """
        return times


class LogAndSkipOnInvalidTimestamp(FailOnInvalidTimestamp):
    """The record's own time; a record whose time is not valid is dropped, with a line in the log.

    Kafka Streams: `LogAndSkipOnInvalidTimestamp`.
    """

    fails: ClassVar[bool] = False


class UsePartitionTimeOnInvalidTimestamp(FailOnInvalidTimestamp):
    """The record's own time; instead of one that is not valid, the highest time before it in its partition.

    Without a time before it, that is a failure. Kafka Streams: `UsePartitionTimeOnInvalidTimestamp`.

    Examples
    --------
    >>> UsePartitionTimeOnInvalidTimestamp().times(np.array([5, -1, 3, -1]), -1, SystemClock()).tolist()
    [5, 5, 3, 5]
    """

    def times(self, times: Times, partition_time: int, clock: Clock) -> Times:
        valid = are_valid(times)
        highest = np.maximum.accumulate(np.where(valid, times, -1))
        return np.where(valid, times, np.maximum(highest, partition_time))


class WallclockTimestampExtractor(FailOnInvalidTimestamp):
    """The wall-clock time at which a record is read. Kafka Streams: `WallclockTimestampExtractor`."""

    def times(self, times: Times, partition_time: int, clock: Clock) -> Times:
        return np.full(len(times), clock.wall_ms(), dtype=np.int64)


_KEEPING_VALID = (FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp, UsePartitionTimeOnInvalidTimestamp)

BUILT_IN: dict[str, type[FailOnInvalidTimestamp]] = {
    kind.__name__: kind
    for kind in (
        FailOnInvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        UsePartitionTimeOnInvalidTimestamp,
        WallclockTimestampExtractor,
    )
}


def keeps_valid_times(extractor: TimestampExtractor | None) -> bool:
    """Whether an extractor, or none, leaves valid times as they are: then the log knows the times of its records.

    Examples
    --------
    >>> keeps_valid_times(LogAndSkipOnInvalidTimestamp()), keeps_valid_times(lambda record, partition_time: 5)
    (True, False)
    """
    return extractor is None or type(extractor) in _KEEPING_VALID


def extractor_of(extractor: Any) -> TimestampExtractor | None:
    """The extractor that is meant by a function, a class, or the name of one of those here.

    Raises
    ------
    ConfigError
        When it is none of these.

    Examples
    --------
    >>> type(extractor_of("org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp")).__name__
    'LogAndSkipOnInvalidTimestamp'
    """
    if isinstance(extractor, str):
        extractor = BUILT_IN.get(extractor.rpartition(".")[2], extractor)
    instance: TimestampExtractor | None = extractor() if isinstance(extractor, type) else extractor
    if instance is not None and not callable(instance):
        names = ", ".join(BUILT_IN)
        raise ConfigError(
            f"{extractor!r} is no timestamp extractor: give a function of record and time, or one of {names}"
        )
    return instance
