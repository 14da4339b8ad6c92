"""How a run on Spark is doing: counters of what it read, wrote and dropped, and how far it lags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kstreams.runtime.spark.exchange.reports import StoreSize


@dataclass
class SparkProgress:
    """What a run did since its start, counted as on the native engine.

    Parameters
    ----------
    records_in : int
        Records of source topics that are done, those that were dropped among them.
    records_out : mapping of str to int
        Records written, by the topology's name of the topic: in the log it has `spark.kstreams.prefix` before it.
    dropped : mapping of (operator, reason) to int
        Records skipped, late ones among them.
    commits : int
        Steps that were applied.
    lag : int
        Records that exist and are not processed yet.
    stores : mapping of str to StoreSize
        By store: how much it holds in all tasks together.
    stream_time : int
        The lowest stream time (ms) of the tasks that have one, which stands in for a watermark; else -1.
    """

    records_in: int = 0
    records_out: Counter[str] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    commits: int = 0
    lag: int = 0
    stores: dict[str, StoreSize] = field(default_factory=dict)
    stream_time: int = -1


OnProgress = Callable[[SparkProgress], None]
