"""`IdlePartitions`: which partitions have been without records for long, and the times that their clocks follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.kernel.batch import TopicPartition

NEVER_IDLE = -1


class IdlePartitions:
    """The partitions that one query reads.

    An idle partition follows the one that is furthest behind among those that are not idle. If all are idle, they
    follow the furthest one, whose time goes on with the clock of the machine.

    Parameters
    ----------
    limits_ms : mapping of TopicPartition to int
        After how long without records a partition is idle; -1 for never.
    stream_times : mapping of TopicPartition to int
        The greatest time of the records of partitions.
    now_ms : int
        The uptime now, from which idle time counts.

    Examples
    --------
    >>> slow, fast = TopicPartition("in", 0), TopicPartition("in", 1)
    >>> partitions = IdlePartitions({slow: 30_000, fast: 30_000}, {}, now_ms=0)
    >>> partitions.processed(fast, 1_000_000)
    >>> partitions.seen([fast], now_ms=20_000)
    >>> partitions.times_at(30_000)
    {TopicPartition(topic='in', partition=0): 1000000}
    >>> partitions.times_at(50_500)
    {TopicPartition(topic='in', partition=0): 1030500, TopicPartition(topic='in', partition=1): 1030500}
    """

    def __init__(
        self, limits_ms: Mapping[TopicPartition, int], stream_times: Mapping[TopicPartition, int], now_ms: int
    ) -> None:
        self._limits_ms = limits_ms
        self._stream_times = {source: ms for source, ms in stream_times.items() if source in limits_ms}
        self._clocks = dict[TopicPartition, int]()
        self._since_ms = dict.fromkeys(limits_ms, now_ms)

    @property
    def stream_times(self) -> Mapping[TopicPartition, int]:
        """The greatest time of the records that were processed."""
        return self._stream_times

    def seen(self, partitions: Collection[TopicPartition], now_ms: int) -> None:
        """Note that records of some partitions have come, or wait to be read."""
        self._since_ms.update(dict.fromkeys(partitions, now_ms))

    def processed(self, source: TopicPartition, time_ms: int) -> None:
        """Note that a record with a time was processed."""
        self._stream_times[source] = max(time_ms, self._stream_times.get(source, time_ms))

    def times_at(self, now_ms: int) -> dict[TopicPartition, int]:
        """Return the new times of the clocks that move. Call it once for each moment."""
        idle = [source for source in self._limits_ms if self._is_idle(source, now_ms)]
        active = self._limits_ms.keys() - set(idle)
        time_ms = self._least(active) if active else self._furthest(now_ms)
        if time_ms is None:
            return {}
        moved = dict.fromkeys((source for source in idle if self._time(source) < time_ms), time_ms)
        self._clocks.update(moved)
        return moved

    def _is_idle(self, source: TopicPartition, now_ms: int) -> bool:
        limit_ms = self._limits_ms[source]
        return limit_ms != NEVER_IDLE and now_ms - self._since_ms[source] >= limit_ms

    def _time(self, source: TopicPartition) -> int:
        return max(self._stream_times.get(source, -1), self._clocks.get(source, -1))

    def _least(self, active: Collection[TopicPartition]) -> int | None:
        times = [self._stream_times.get(source) for source in active]
        return None if None in times else min(time for time in times if time is not None)

    def _furthest(self, now_ms: int) -> int | None:
        advanced = (time_ms + now_ms - self._since_ms[source] for source, time_ms in self._stream_times.items())
        return max(advanced, default=None)


def idle_limits_of(upstream: Iterable[Node], default_ms: int) -> dict[str, int]:
    """Return after how long without records the topics of some sources are idle, in ms; -1 for never."""
    sources = [node for node in upstream if isinstance(node, _SOURCES)]
    return {
        topic: default_ms if node.consumed.idle_ms is None else node.consumed.idle_ms
        for node in sources
        for topic in (node.topics if isinstance(node, g.StreamSource) else (node.topic,))
    }


_SOURCES = g.StreamSource | g.TableSource | g.GlobalTableSource
