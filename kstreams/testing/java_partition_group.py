"""`JavaPartitionGroup`: takes partitions whose next timestamps are equal in the order of Kafka Streams.

A record that is repartitioned for several branches, as before a join, comes back in several topics at one time. Kafka
Streams keeps its partitions in a Java `PriorityQueue`: its order of ties is not specified, but always the same.
"""

from __future__ import annotations

from kstreams.processor.task.partition_group import PartitionGroup, Queue


class JavaPartitionGroup(PartitionGroup):
    """The partitions of a test driver, in a binary heap that moves them as Java does."""

    def _offer(self, queue: Queue) -> None:
        heads, at = self._heads, len(self._heads)
        entry = (queue.head_ms(), queue.rank, queue)
        heads.append(entry)
        while at and entry[0] < heads[above := (at - 1) // 2][0]:
            heads[at], at = heads[above], above
        heads[at] = entry

    def _next_queue(self) -> Queue:
        heads = self._heads
        first, last = heads[0], heads.pop()
        if heads:
            at = 0
            while (below := self._lower_child(at)) is not None and heads[below][0] < last[0]:
                heads[at], at = heads[below], below
            heads[at] = last
        return first[2]

    def _lower_child(self, at: int) -> int | None:
        """The child that comes first; of equal ones the left one."""
        children = range(2 * at + 1, min(2 * at + 3, len(self._heads)))
        return min(children, key=lambda child: self._heads[child][0], default=None)
