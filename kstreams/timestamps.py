"""Timestamp extractors: where the event time of a record comes from, and what a negative one means.

One's own extractor is a function `(record, partition_time) -> ms`: a negative result drops the record. Those here are
called with whole columns, since they do not look at keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from kstreams.clock import Clock, SystemClock
from kstreams.errors import ConfigError

TimestampExtractor: TypeAlias = Callable[[Any, int], int]
"""Takes the record and the partition time (ms, -1 when unknown); gives the event time in ms."""

Times: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


class FailOnInvalidTimestamp:
    """The record's own time; a negative one ends the run. The default. Kafka Streams: `FailOnInvalidTimestamp`."""

    fails: ClassVar[bool] = True
    """Whether a time that stays negative is an error; else the record is dropped."""

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
    """The record's own time; a record with a negative one is dropped, which the log tells.

    Kafka Streams: `LogAndSkipOnInvalidTimestamp`.
    """

    fails: ClassVar[bool] = False


class UsePartitionTimeOnInvalidTimestamp(FailOnInvalidTimestamp):
    """The record's own time; instead of a negative one, the highest time before it in its partition.

    Without a time before it, it ends the run. Kafka Streams: `UsePartitionTimeOnInvalidTimestamp`.

    Examples
    --------
    >>> UsePartitionTimeOnInvalidTimestamp().times(np.array([5, -1, 3, -1]), -1, SystemClock()).tolist()
    [5, 5, 3, 5]
    """

    def times(self, times: Times, partition_time: int, clock: Clock) -> Times:
        return np.where(times < 0, np.maximum(np.maximum.accumulate(times), partition_time), times)


class WallclockTimestampExtractor(FailOnInvalidTimestamp):
    """The wall-clock time at which a record is read. Kafka Streams: `WallclockTimestampExtractor`."""

    def times(self, times: Times, partition_time: int, clock: Clock) -> Times:
        return np.full(len(times), clock.now_ms(), dtype=np.int64)


BUILT_IN: dict[str, type[FailOnInvalidTimestamp]] = {
    kind.__name__: kind
    for kind in (
        FailOnInvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        UsePartitionTimeOnInvalidTimestamp,
        WallclockTimestampExtractor,
    )
}


def extractor_of(given: Any) -> TimestampExtractor | None:
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
    if isinstance(given, str):
        given = BUILT_IN.get(given.rpartition(".")[2], given)
    made: TimestampExtractor | None = given() if isinstance(given, type) else given
    if made is not None and not callable(made):
        known = ", ".join(BUILT_IN)
        raise ConfigError(f"{given!r} is no timestamp extractor: give a function of record and time, or one of {known}")
    return made
