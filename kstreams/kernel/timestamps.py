"""Timestamp extractors, which determine the event times of records; the range of valid times; stream time.

An extractor of a user is a function `(record, partition_time)` that returns milliseconds or an aware datetime. A
negative result drops the record. The extractors of this module take whole columns: they read no keys and values.
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
"""Takes the record and the partition time (ms, -1 if unknown). Returns the event time: an aware datetime, or ms."""

Times: TypeAlias = "np.typing.NDArray[np.int64]"

LATEST_MS = 2**62 - 1
"""The last valid time; the first is 0. The sum of a time and several durations stays below 2^63."""


class InvalidTimestampError(ValueError):
    """A time outside the valid range, or a value that is no time."""

    @classmethod
    def out_of_range(cls, time_ms: int, cure: str, last: str = "2^62 - 1") -> InvalidTimestampError:
        """Return the error for a time that is negative or too late.

        Parameters
        ----------
        time_ms : int
        cure : str
            What the user can do.
        last : str
            The last valid time.
        """
        range_ = "negative" if time_ms < 0 else f"after the last valid one, {last}"
        return cls(f"its time is {range_} ({time_ms} ms): {cure}")


def are_valid(times: Times) -> np.typing.NDArray[np.bool_]:
    """Return a mask of the times that are valid.

    Examples
    --------
    >>> are_valid(np.array([-1, 0, LATEST_MS, LATEST_MS + 1])).tolist()
    [False, True, True, False]
    """
    return times.view(np.uint64) <= LATEST_MS  # as unsigned integers, negative times are the greatest


def stream_times(timestamps: Times, before: int) -> Times:
    """Return the stream time (ms) at each record: the highest timestamp up to this record, at least `before`.

    Examples
    --------
    >>> stream_times(np.array([3, 9, 4]), 5).tolist()
    [5, 9, 9]
    """
    times = np.maximum.accumulate(timestamps)
    return np.maximum(times, before)


def extracted(
    extract: TimestampExtractor, records: Iterable[object], partition_time: int
) -> Iterator[int | InvalidTimestampError]:
    """Call a timestamp extractor with each record and the partition time before it, and return the times.

    If a result is no time, the item is an error.

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
    """The timestamp of the record. The default. Kafka Streams: `FailOnInvalidTimestamp`.

    An invalid time is a failure, which ends the run unless the deserialization exception handler decides otherwise.
    """

    fails: ClassVar[bool] = True
    """True if an invalid time is a failure, False if the record is dropped."""

    def __call__(self, record: Any, partition_time: int) -> int:
        """Return the time of one record."""
        return int(self.times(np.array([record.timestamp]), partition_time, SystemClock())[0])

    def times(self, times: Times, partition_time: int, clock: Clock) -> Times:
        """Return the event times of a batch.

        Parameters
        ----------
        times : numpy int64 array, shape (n,)
            The timestamps (ms) of the records.
        partition_time : int
            The highest time (ms) before the batch in the partition, -1 at first.
        clock : Clock
        """
        return times


class LogAndSkipOnInvalidTimestamp(FailOnInvalidTimestamp):
    """The timestamp of the record. A record with an invalid time is dropped, with a line in the log.

    Kafka Streams: `LogAndSkipOnInvalidTimestamp`.
    """

    fails: ClassVar[bool] = False


class UsePartitionTimeOnInvalidTimestamp(FailOnInvalidTimestamp):
    """The timestamp of the record, or the highest time before it in the partition if the timestamp is invalid.

    If there is no time before it, that is a failure. Kafka Streams: `UsePartitionTimeOnInvalidTimestamp`.

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
    """Return whether event times are the timestamps in the log, if those are valid.

    Examples
    --------
    >>> keeps_valid_times(LogAndSkipOnInvalidTimestamp()), keeps_valid_times(lambda record, partition_time: 5)
    (True, False)
    """
    return extractor is None or type(extractor) in _KEEPING_VALID


def extractor_of(extractor: Any) -> TimestampExtractor | None:
    """Return the extractor for a function, a class, or the name of a class of this module.

    Raises
    ------
    ConfigError
        If it is none of these.

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
