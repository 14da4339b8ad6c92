"""`RecordAges`: how old records are, by their timestamps, when they are processed or written."""

from __future__ import annotations

from time import monotonic

import pyarrow as pa

from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.samples import Samples

_LOOKED_AT = 32
"""Of more records at once, as many evenly spaced ones stand for all: it is to cost next to nothing."""


class RecordAges:
    """The ages of the records of each topic that a task reads, or writes; and the time of the last one.

    They are those of all records where no more than 32 come at once, else of evenly spaced ones.

    Examples
    --------
    >>> ages = RecordAges(SampleWindows(30, 2))
    >>> ages.seen("orders", pa.array([1_000, 3_000]), now_ms=5_000)
    >>> found = ages.by_topic["orders"]
    >>> found.lowest(monotonic()), found.average(monotonic()), found.highest(monotonic())
    (2000, 3000.0, 4000)
    """

    __slots__ = ("_windows", "by_topic", "last_ms")

    def __init__(self, windows: SampleWindows) -> None:
        self._windows = windows
        self.by_topic: dict[str, Samples] = {}
        self.last_ms: dict[str, int] = {}

    def seen(self, topic: str, timestamps: pa.Array, now_ms: int) -> None:
        """Records of a topic are processed or written now."""
        times = timestamps.to_numpy()
        count = len(timestamps)
        if not count:
            return
        if topic not in self.by_topic:
            self.by_topic[topic] = self._windows.samples()
        self.last_ms[topic] = int(times[-1])
        step = count // _LOOKED_AT + 1
        sample = times[step // 2 :: step].tolist()  # builtins are faster than numpy for so few
        total = count * (now_ms - sum(sample) / len(sample))
        self.by_topic[topic].record_many(count, total, now_ms - max(sample), now_ms - min(sample), monotonic())
