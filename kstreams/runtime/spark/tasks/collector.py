"""`RowCollector`: sends the output of a task to the user's topics, or in blocks to other tasks of the step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from kstreams.errors import LogError
from kstreams.log.partitioning import split_by_partition
from kstreams.processor.context.encoded_rows import EncodedRows, Partitions
from kstreams.runtime.spark.exchange.blocks import Block, blocks_of
from kstreams.runtime.spark.io.output_topics import RowWriter
from kstreams.runtime.spark.program import Program


class RowCollector:
    """The collector of one task in one step.

    Parameters
    ----------
    program : Program
        Gives the number of partitions and the route of each topic.
    writer : RowWriter
        Writes to the user's topics.
    sub_topology, partition : int
        Identify the task as the origin of its rows.
    round_number : int
        The round of the step: offsets of a later round are greater.
    """

    def __init__(
        self, program: Program, writer: RowWriter, sub_topology: int, partition: int, round_number: int = 0
    ) -> None:
        self._program = program
        self._routes = program.routes
        self._writer = writer
        self._origin = sub_topology << 20 | partition
        self._first = round_number << 40
        self._sent: Counter[str] = Counter()
        self._blocks: list[Block] = []

    def partitions(self, topic: str) -> int:
        """Return the number of partitions that a topic has or will have."""
        return self._program.partitions_of(topic)

    def refused(self, topic: str, rows: EncodedRows) -> Mapping[int, LogError]:
        """Return the rows that a topic of the user never takes, with the reason; repartition topics take all rows."""
        return self._writer.refused(rows.as_batch(topic)) if self._routes.to_log(topic) else {}

    def merges(self, topic: str) -> bool:
        """Return whether rows of several tasks are sorted by stream time: those of topics that are shuffled are."""
        return topic in self._routes.internal

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Take rows of one topic, with the partition of each row."""
        first = self._first + self._sent[topic]
        if self._routes.to_spark(topic):
            offsets = np.arange(first, first + len(partitions), dtype=np.int64)
            self._blocks += blocks_of(topic, self._origin, offsets, rows, partitions)
        self._sent[topic] += len(partitions)
        if self._routes.to_log(topic):
            for batch, _ in split_by_partition(
                topic, partitions, rows.keys, rows.values, rows.timestamps, rows.headers
            ):
                self._writer.send(batch)

    @property
    def written(self) -> dict[str, int]:
        """Number of rows written to each topic of the user."""
        return {topic: count for topic, count in self._sent.items() if self._routes.to_log(topic)}

    @property
    def handed_over(self) -> list[str]:
        """Internal topics with rows, which other tasks of the step read."""
        return sorted(self._routes.internal & self._sent.keys())

    def drain(self) -> list[Block]:
        """Return the blocks for other tasks since the last call."""
        blocks, self._blocks = self._blocks, []
        return blocks
