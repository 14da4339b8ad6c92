"""`RowCollector`: what a task's sinks write goes to the log at once, or to other tasks of the step in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from kstreams.errors import LogError
from kstreams.log.partitioning import split_by_partition
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.runtime.spark.exchange.blocks import Block, blocks_of
from kstreams.runtime.spark.io.output_topics import RowWriter
from kstreams.runtime.spark.program import Program


class RowCollector:
    """The collector of one task in one step.

    Parameters
    ----------
    program : Program
        Says how many partitions a topic has, and which rows go where.
    writer : RowWriter
        Writes to the user's topics.
    sub_topology, partition : int
        Name the task in the rows; records without a key go to its own partition, as on the native engine.
    round_number : int
        The round of the step: rows of a later one have greater numbers.
    """

    def __init__(
        self, program: Program, writer: RowWriter, sub_topology: int, partition: int, round_number: int = 0
    ) -> None:
        self._program = program
        self._routes = program.routes
        self._writer = writer
        self._own = partition
        self._origin = sub_topology << 20 | partition
        self._first = round_number << 40
        self._sent: Counter[str] = Counter()
        self._blocks: list[Block] = []

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, or will have."""
        return self._program.partitions_of(topic)

    def refused(self, topic: str, rows: EncodedRows) -> Mapping[int, LogError]:
        """The rows that a topic of the user's would never take; repartition topics take all."""
        return self._writer.refused(rows.as_batch(topic)) if self._routes.to_log(topic) else {}

    def merges(self, topic: str) -> bool:
        """Whether the rows of several tasks meet in a shuffle: what goes to the log alone is in no order among them."""
        return topic in self._routes.internal

    def send(self, topic: str, rows: EncodedRows) -> None:
        """Take rows of one topic."""
        chosen = rows.chosen(self.partitions(topic), self._own)
        first = self._first + self._sent[topic]
        if self._routes.to_spark(topic):
            offsets = np.arange(first, first + len(chosen), dtype=np.int64)
            self._blocks += blocks_of(topic, self._origin, offsets, rows, chosen)
        self._sent[topic] += len(chosen)
        if self._routes.to_log(topic):
            for batch, _ in split_by_partition(topic, chosen, *rows[:4]):
                self._writer.send(batch)

    @property
    def written(self) -> dict[str, int]:
        """How many rows went to each topic of the user's so far."""
        return {topic: count for topic, count in self._sent.items() if self._routes.to_log(topic)}

    @property
    def handed_over(self) -> list[str]:
        """The topics whose rows other tasks of the step read."""
        return sorted(self._routes.internal & self._sent.keys())

    def drain(self) -> list[Block]:
        """What was handed over since the last call."""
        blocks, self._blocks = self._blocks, []
        return blocks
