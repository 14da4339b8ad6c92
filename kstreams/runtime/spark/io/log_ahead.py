"""`LogAhead`: what lies ahead in the log, seen from its headers; and the times of the records that are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kstreams.batch import TopicPartition
from kstreams.log.api import Log, Span
from kstreams.runtime.spark.exchange.rows import Longs
from kstreams.timestamps import LATEST_MS

NO_TIME = -1


class LogAhead:
    """Spans and times of records. A time that is not valid counts as none: its record moves no stream time.

    Usable as a context manager.

    Parameters
    ----------
    log : Log
    """

    def __init__(self, log: Log) -> None:
        self._admin, self._skimming, self._reading = log.admin(), log.consumer(), log.consumer()

    def spans(self, source: TopicPartition, start: int, end: int) -> Iterator[Span]:
        """The records [start, end) of a partition, as far as they are there; one pass at a time over each."""
        begin = self._admin.beginning_offsets([source])[source]
        self._skimming.assign([*self._skimming.assignment(), source])
        self._skimming.seek(source, max(start, begin))
        while (span := self._skimming.skim(source, end)) is not None:
            if span.latest_ms > LATEST_MS:
                _, times = self.times(source, span.start, span.end)
                span = span._replace(latest_ms=int(times.max(initial=NO_TIME)))
            yield span

    def times(self, source: TopicPartition, start: int, end: int) -> tuple[Longs, Longs]:
        """Offsets and timestamps of the records [start, end)."""
        self._reading.assign([source])
        self._reading.seek(source, start)
        offsets, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        while self._reading.position(source) < end and (batches := self._reading.poll(max_records=end - start)):
            offsets += [batch.offsets for batch in batches]
            times += [batch.timestamps.to_numpy() for batch in batches]
        found, valid = np.concatenate(offsets), np.concatenate(times)
        count = int(np.searchsorted(found, end))
        return found[:count], np.where(valid > LATEST_MS, NO_TIME, valid)[:count]

    def __enter__(self) -> LogAhead:
        return self

    def __exit__(self, *exc: object) -> None:
        for each in (self._reading, self._skimming, self._admin):
            each.close()
