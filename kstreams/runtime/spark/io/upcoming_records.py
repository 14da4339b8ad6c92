"""`UpcomingRecords`: the numbers and times of upcoming records, which decide where a step ends.

A home whose frames have headers returns them without reading records (`UpcomingFrames`). In other homes each record is
read once, and its time is buffered (`UpcomingRows`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, Integers, TopicPartition
from kstreams.kernel.timestamps import LATEST_MS
from kstreams.log.api import Log, Span
from kstreams.runtime.spark.io.reading import MAX_EMPTY_POLLS, POLL_SECONDS, read_up_to

NO_TIME = -1
"""The time in place of an invalid timestamp."""


class UpcomingRecords(Protocol):
    """Spans and times of records. An invalid time becomes `NO_TIME`: its record does not advance stream time."""

    def spans(self, source: TopicPartition, start: int, end: int) -> Iterator[Span]:
        """Yield spans of the existing records [start, end) of a partition; only one pass at a time per partition."""
        ...

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Integers, Integers]:
        """Return offsets and timestamps of the records [start, end) of a yielded span."""
        ...


class UpcomingFrames:
    """The `UpcomingRecords` of a home whose frames have headers. Usable as a context manager.

    Parameters
    ----------
    log : Log
    """

    def __init__(self, log: Log) -> None:
        self._admin = log.admin()
        self._skimming = log.consumer()
        self._reading = log.consumer()

    def spans(self, source: TopicPartition, start: int, end: int) -> Iterator[Span]:
        """Yield spans of the existing records [start, end) of a partition; only one pass at a time per partition."""
        begin = self._admin.beginning_offsets([source])[source]
        self._skimming.assign([*self._skimming.assignment(), source])
        self._skimming.seek(source, max(start, begin))
        while (span := self._skimming.skim(source, end)) is not None:
            if span.latest_ms > LATEST_MS:
                _, times = self.times(source, span.start, span.end)
                span = span._replace(latest_ms=int(times.max(initial=NO_TIME)))
            yield span

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Integers, Integers]:
        """Return offsets and timestamps of the records [start, end)."""
        offsets = [np.zeros(0, np.int64)]
        times = [np.zeros(0, np.int64)]
        for batch in read_up_to(self._reading, source, start, end):
            offsets.append(batch.offsets)
            times.append(batch.timestamps.to_numpy())
        all_times = np.concatenate(times)
        return np.concatenate(offsets), np.where(all_times > LATEST_MS, NO_TIME, all_times)

    def __enter__(self) -> UpcomingFrames:
        return self

    def __exit__(self, *exc: object) -> None:
        for client in (self._reading, self._skimming, self._admin):
            client.close()


_MAX_BUFFERED = 500_000
"""The maximum number of buffered records of a partition, at 16 bytes each."""

_POLL_ROWS = 50_000


class UpcomingRows:
    """The `UpcomingRecords` of a home without frame headers. All partitions are read together and buffered.

    Parameters
    ----------
    log : Log
    """

    def __init__(self, log: Log) -> None:
        self._admin = log.admin()
        self._consumer = log.consumer()
        self._buffers: dict[TopicPartition, deque[tuple[Integers, Integers]]] = {}
        self._begins: dict[TopicPartition, int] = {}

    def spans(self, source: TopicPartition, start: int, end: int) -> Iterator[Span]:
        """Yield spans of the existing records [start, end) of a partition, and drop buffered records before them."""
        next_offset = max(start, self._admin.beginning_offsets([source])[source])
        self._begin(source, next_offset)
        index = 0
        while next_offset < end:
            buffer = self._buffers[source]
            while index == len(buffer) and self._consumer.position(source) < end:
                self._read(source)
            if index == len(buffer):
                return
            offsets, times = _between(buffer[index], next_offset, end)
            if len(offsets):
                next_offset = int(offsets[-1]) + 1
                yield Span(int(offsets[0]), next_offset, len(offsets), int(times.max()))
            index += 1

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Integers, Integers]:
        """Return offsets and timestamps of the records [start, end) of a yielded span."""
        parts = [_between(batch, start, end) for batch in self._buffers[source]]
        offsets, times = zip(*parts, strict=True)
        return np.concatenate(offsets), np.concatenate(times)

    def close(self) -> None:
        """Close consumer and admin client."""
        self._consumer.close()
        self._admin.close()

    def _begin(self, source: TopicPartition, start: int) -> None:
        """Let the buffer of a partition begin at an offset."""
        if source not in self._buffers or not self._begins[source] <= start <= self._consumer.position(source):
            self._buffers[source] = deque()
            self._consumer.assign([*self._consumer.assignment(), source])
            self._consumer.seek(source, start)
        buffer = self._buffers[source]
        self._begins[source] = start
        while buffer and buffer[0][0][-1] < start:
            buffer.popleft()

    def _read(self, source: TopicPartition) -> None:
        """Poll until the buffer of a partition grows. Raises LogError if the partition ends too early."""
        self._consumer.resume([source])
        position = self._consumer.position(source)
        empty_polls = 0
        while empty_polls < MAX_EMPTY_POLLS:
            for batch in self._consumer.poll(POLL_SECONDS, _POLL_ROWS):
                self._buffer(batch, pause_if_full=batch.source != source)
            if self._consumer.position(source) > position:
                return
            empty_polls += int(not self._consumer.throttling().remaining_ms)
        raise LogError(
            f"{source} has no records from offset {position} on, although its home reports a later end: the topic may "
            "have been replaced. Start the application again."
        )

    def _buffer(self, batch: Batch, *, pause_if_full: bool) -> None:
        buffer = self._buffers[batch.source]
        times = batch.timestamps.to_numpy()
        buffer.append((batch.offsets, np.where(times > LATEST_MS, NO_TIME, times)))
        if pause_if_full and sum(len(offsets) for offsets, _ in buffer) > _MAX_BUFFERED:
            self._consumer.pause([batch.source])


_FIRST_RECORDS = {"queued.min.messages": 1, "queued.max.messages.kbytes": 64, "fetch.message.max.bytes": 16_384}
"""The settings of a Kafka consumer that reads a few records."""


def are_records(log: Log, offsets: Mapping[TopicPartition, int]) -> bool:
    """Return True if there is a readable record at each of these offsets, which are before the ends of partitions."""
    if not offsets:
        return True
    unseen = dict(offsets)
    with log.consumer(_FIRST_RECORDS) as consumer:
        consumer.assign(list(offsets))
        for source, offset in offsets.items():
            consumer.seek(source, offset)
        empty_polls = 0
        while unseen and empty_polls < MAX_EMPTY_POLLS:
            batches = consumer.poll(POLL_SECONDS)
            empty_polls += not batches
            for batch in batches:
                if batch.offsets[0] > unseen.pop(batch.source, batch.offsets[0]):
                    return False
                consumer.pause([batch.source])
            if any(consumer.position(source) > offset for source, offset in unseen.items()):
                return False  # only a marker was there
    return not unseen


def _between(batch: tuple[Integers, Integers], start: int, end: int) -> tuple[Integers, Integers]:
    """Return the part of a buffered batch with the offsets [start, end)."""
    offsets, times = batch
    first, stop = np.searchsorted(offsets, [start, end])
    return offsets[first:stop], times[first:stop]
