"""`DatabaseSensors`: what RocksDB counts and times in the files of one task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic

from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.state.column_family import Statistic

RATES = {
    "bytes-written": "bytes.written",
    "bytes-read": "bytes.read",
    "memtable-bytes-flushed": "flush.write.bytes",
    "bytes-written-compaction": "compact.write.bytes",
    "bytes-read-compaction": "compact.read.bytes",
}
RATIOS = {
    "memtable-hit-ratio": ("memtable.hit", "memtable.miss"),
    "block-cache-data-hit-ratio": ("block.cache.data.hit", "block.cache.data.miss"),
    "block-cache-index-hit-ratio": ("block.cache.index.hit", "block.cache.index.miss"),
    "block-cache-filter-hit-ratio": ("block.cache.filter.hit", "block.cache.filter.miss"),
}
TIMES = {"memtable-flush-time": "db.flush.micros", "compaction-time": "compaction.times.micros"}
_LOOK_S = 1.0  # reading all statistics takes half a millisecond
_NONE = Statistic(0)


class DatabaseSensors:
    """What a database says of itself, look by look; called by the thread that owns it.

    Parameters
    ----------
    windows : SampleWindows

    Examples
    --------
    >>> sensors = DatabaseSensors(SampleWindows(30, 2))
    >>> sensors.look({"bytes.read": Statistic(70), "memtable.hit": Statistic(3), "memtable.miss": Statistic(1)})
    >>> found = dict(sensors.values(monotonic()))
    >>> found["bytes-read-total"], found["memtable-hit-ratio"]
    (70, 0.75)
    """

    def __init__(self, windows: SampleWindows) -> None:
        self._rates = {name: windows.samples() for name in RATES}
        self._ratios = {name: windows.samples() for name in RATIOS}
        self._times = {name: windows.samples() for name in TIMES}
        self._latest: Mapping[str, Statistic] = {}
        self._due_s = 0.0

    def is_due(self) -> bool:
        """Whether the last look is long ago."""
        return monotonic() >= self._due_s

    def look(self, statistics: Mapping[str, Statistic]) -> None:
        """Take what the database says now."""
        now, before, self._latest, self._due_s = monotonic(), self._latest, statistics, monotonic() + _LOOK_S

        def grown(name: str) -> int:
            return statistics.get(name, _NONE).times - before.get(name, _NONE).times

        for name, ticker in RATES.items():
            self._rates[name].record(grown(ticker), now)
        for name, (hit, missed) in RATIOS.items():
            hits = grown(hit)
            lookups = grown(hit) + grown(missed)
            if lookups:
                self._ratios[name].record_many(lookups, hits, hits / lookups, hits / lookups, now)
        for name, timed in TIMES.items():
            count = grown(timed)
            total = statistics.get(timed, _NONE).total - before.get(timed, _NONE).total
            if count:
                self._times[name].record_many(count, total / 1000, 0, statistics[timed].highest / 1000, now)

    def values(self, now: float) -> Iterator[tuple[str, float | None]]:
        """Metrics by name."""
        for name, ticker in RATES.items():
            yield f"{name}-rate", self._rates[name].sum_rate(now)
            yield f"{name}-total", self._latest.get(ticker, _NONE).times
        for name, ratio in self._ratios.items():
            yield name, ratio.average(now)
        for name, times in self._times.items():
            yield f"{name}-avg", times.average(now)
            yield f"{name}-max", times.highest(now)
        yield "write-stall-duration-total", self._latest.get("stall.micros", _NONE).times / 1000
        yield "number-file-errors-total", self._latest.get("no.file.errors", _NONE).times
