"""`UpcomingRows`: the times of upcoming records in a home without frame headers, which reads each record once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.timestamps import LATEST_MS
from kstreams.log.api import Log, Span
from kstreams.runtime.spark.exchange.rows import Longs
from kstreams.runtime.spark.io.upcoming.frames import NO_TIME

_MOST_HELD = 500_000
"""The most buffered records of a partition, at 16 bytes each."""

_ROWS_AT_ONCE = 50_000
_POLL_SECONDS = 0.1
_MOST_SILENT_POLLS = 300


class UpcomingRows:
    """The `UpcomingRecords` of a home without frame headers. All partitions are read together and buffered.

    Parameters
    ----------
    log : Log
    """

    def __init__(self, log: Log) -> None:
        self._admin = log.admin()
        self._consumer = log.consumer()
        self._held: dict[TopicPartition, deque[tuple[Longs, Longs]]] = {}
        self._begins: dict[TopicPartition, int] = {}

    def spans(self, source: TopicPartition, start: int, end: int) -> Iterator[Span]:
        """Yield spans of the existing records [start, end) of a partition, and drop buffered records before them."""
        at = max(start, self._admin.beginning_offsets([source])[source])
        self._begin(source, at)
        place = 0
        while at < end:
            buffered = self._held[source]
            while place == len(buffered) and self._consumer.position(source) < end:
                self._read(source)
            if place == len(buffered):
                return
            offsets, times = _between(buffered[place], at, end)
            if len(offsets):
                at = int(offsets[-1]) + 1
                yield Span(int(offsets[0]), at, len(offsets), int(times.max()))
            place += 1

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Longs, Longs]:
        """Offsets and timestamps of the records [start, end), which a span has told of."""
        parts = [_between(buffered, start, end) for buffered in self._held[source]]
        offsets, times = zip(*parts, strict=True)
        return np.concatenate(offsets), np.concatenate(times)

    def close(self) -> None:
        """Close consumer and admin client."""
        self._consumer.close()
        self._admin.close()

    def _begin(self, source: TopicPartition, start: int) -> None:
        """Buffer the records of a partition from an offset on."""
        if source not in self._held or not self._begins[source] <= start <= self._consumer.position(source):
            self._held[source] = deque()
            self._consumer.assign([*self._consumer.assignment(), source])
            self._consumer.seek(source, start)
        buffered = self._held[source]
        self._begins[source] = start
        while buffered and buffered[0][0][-1] < start:
            buffered.popleft()

    def _read(self, source: TopicPartition) -> None:
        """Poll until the buffer of a partition grows. Raises LogError if the partition ends too early."""
        self._consumer.resume([source])
        before = self._consumer.position(source)
        for _ in range(_MOST_SILENT_POLLS):
            for batch in self._consumer.poll(_POLL_SECONDS, _ROWS_AT_ONCE):
                self._hold(batch, is_wanted=batch.source == source)
            if self._consumer.position(source) > before:
                return
        raise LogError(f"{source} ends before offset {before}, where its home says that it goes on")

    def _hold(self, batch: Batch, *, is_wanted: bool) -> None:
        buffered = self._held[batch.source]
        times = batch.timestamps.to_numpy()
        buffered.append((batch.offsets, np.where(times > LATEST_MS, NO_TIME, times)))
        if not is_wanted and sum(len(offsets) for offsets, _ in buffered) > _MOST_HELD:
            self._consumer.pause([batch.source])


def _between(buffered: tuple[Longs, Longs], start: int, end: int) -> tuple[Longs, Longs]:
    offsets, times = buffered
    first, stop = np.searchsorted(offsets, [start, end])
    return offsets[first:stop], times[first:stop]
