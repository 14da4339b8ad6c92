"""`SparkProgress`: counters of a run on Spark: records read, written and dropped, and its lag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kstreams.runtime.spark.exchange.reports import StoreSize


@dataclass
class SparkProgress:
    """The counters of a run since its start, as on the native engine.

    Parameters
    ----------
    records_in : int
        The processed records of source topics, including dropped ones.
    records_out : mapping of str to int
        The written records, by the name of the topic in the topology, without `spark.kstreams.prefix`.
    dropped : mapping of (operator, reason) to int
        The skipped records, including late ones.
    commits : int
        The committed steps.
    lag : int
        The records of the source topics that are not processed yet.
    stores : mapping of str to StoreSize
        By store: its size in all tasks together.
    stream_time : int
        The lowest stream time (ms) of the tasks, in place of a watermark; -1 if no task has one.
    """

    records_in: int = 0
    records_out: Counter[str] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    commits: int = 0
    lag: int = 0
    stores: dict[str, StoreSize] = field(default_factory=dict)
    stream_time: int = -1


OnProgress = Callable[[SparkProgress], None]
