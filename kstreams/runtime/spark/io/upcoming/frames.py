"""`UpcomingFrames`: spans of upcoming records from the headers of frames, and the times of single records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.timestamps import LATEST_MS
from kstreams.log.api import Log, Span
from kstreams.runtime.spark.exchange.rows import Longs
from kstreams.runtime.spark.io.reading import read_up_to

NO_TIME = -1


class UpcomingRecords(Protocol):
    """Spans and times of records. An invalid time becomes `NO_TIME`: its record does not advance stream time."""

    def spans(self, source: TopicPartition, start: int, end: int) -> Iterator[Span]:
        """Yield spans of the existing records [start, end) of a partition; only one pass at a time per partition."""
        ...

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Longs, Longs]:
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

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Longs, Longs]:
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
