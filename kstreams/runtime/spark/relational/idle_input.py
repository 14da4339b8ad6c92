"""`IdleInput`: moves the watermarks of idle partitions of one query while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryProgress

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.runtime.spark.relational.idle_partitions import IdlePartitions
from kstreams.runtime.spark.relational.partition_clocks import PartitionClocks

CHECK_MS = 1_000
"""The time between two looks at the ends of the partitions."""


class Backlog(NamedTuple):
    """Where partitions end, and the offsets up to which a query has read them."""

    ends: Mapping[TopicPartition, int]
    positions: Mapping[TopicPartition, int]


class IdleInput:
    """The idle partitions of one query, whose clocks it moves.

    Parameters
    ----------
    clocks : PartitionClocks
    limits_ms : mapping of TopicPartition to int
        After how long without records each partition that the query reads is idle; -1 for never.
    backlog : callable
        Returns the backlog of these partitions.
    clock : Clock
    """

    def __init__(
        self,
        clocks: PartitionClocks,
        limits_ms: Mapping[TopicPartition, int],
        backlog: Callable[[], Backlog],
        clock: Clock,
    ) -> None:
        self._clocks = clocks
        self._backlog = backlog
        self._clock = clock
        self._partitions = IdlePartitions(limits_ms, clocks.stream_times(), clock.uptime_ms())
        self._by_name = {str(source): source for source in limits_ms}
        self._last_ends: Mapping[TopicPartition, int] = {}
        self._checked_ms = clock.uptime_ms()
        self._open_rows = 1
        self._has_moved = True  # an earlier run may have left times

    def follow(self, progress: StreamingQueryProgress) -> None:
        """Note the times of the records of a batch, and how many rows wait in Spark's state."""
        observed = progress.observedMetrics.items()
        times = {name: row["ms"] for name, row in observed if "ms" in row and row["ms"] is not None}
        for name, time_ms in times.items():
            self._partitions.processed(self._by_name[name.partition("#")[0]], time_ms)
        if times:
            self._clocks.save(self._partitions.stream_times)
        if self._has_moved:
            self._has_moved = False
            self._clocks.delete_before(int(datetime.fromisoformat(progress.timestamp).timestamp() * 1_000_000_000))
        self._open_rows = sum(state.numRowsTotal for state in progress.stateOperators)

    def move_clocks(self) -> None:
        """Move the clocks of idle partitions, if any window is open that waits for them."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._checked_ms < CHECK_MS:
            return
        self._checked_ms = now_ms
        ends, positions = self._backlog()
        waiting = {source for source, end in ends.items() if end > positions.get(source, 0)}
        arrived = {source for source, end in ends.items() if end > self._last_ends.get(source, end)}
        self._last_ends = ends
        self._partitions.seen(waiting | arrived, now_ms)
        times_ms = self._partitions.times_at(now_ms) if self._open_rows else {}
        if times_ms:
            self._has_moved = True
            self._clocks.move(times_ms)
