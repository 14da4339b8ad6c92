"""`JavaPartitionGroup`: takes partitions whose next timestamps are equal in the order of Kafka Streams.

A record that is repartitioned for several branches, as before a join, comes back in several topics at one time. Kafka
Streams keeps its partitions in a Java `PriorityQueue`: its order of ties is not specified, but always the same.
"""

from __future__ import annotations

from kstreams.kernel import java_priority_queue
from kstreams.processor.task.partition_group import PartitionGroup, Queue


class JavaPartitionGroup(PartitionGroup):
    """The partitions of a test driver, in a binary heap that moves them as Java does."""

    def _offer(self, queue: Queue) -> None:
        java_priority_queue.push(self._heads, (queue.head_ms(), queue.rank, queue))

    def _next_queue(self) -> Queue:
        return java_priority_queue.pop(self._heads)[2]
