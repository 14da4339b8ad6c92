"""`ReaderSlices`: rows of repartition topics wait until their slice is complete, and then go to their tasks."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Admin, Consumer
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment
from kstreams.runtime.native.time_alignment.row_tags import untagged
from kstreams.runtime.native.time_alignment.slice_buffer import SliceBuffer
from kstreams.runtime.native.time_alignment.task_input import TaskInput

logger = logging.getLogger(__name__)


class ReaderSlices:
    """The rows that one thread has read of repartition topics, and whose slices are not complete.

    Parameters
    ----------
    alignment : ProcessAlignment
    consumer : Consumer
    admin : Admin
    internal : collection of str
        The repartition topics.
    max_bytes : int
        If the waiting rows of a partition exceed this size, they are processed before their slice is complete.
    """

    def __init__(
        self,
        alignment: ProcessAlignment,
        consumer: Consumer,
        admin: Admin,
        internal: Collection[str],
        max_bytes: int,
    ) -> None:
        self._alignment = alignment
        self._consumer = consumer
        self._admin = admin
        self._internal = internal
        self._max_bytes = max_bytes
        self._input_of: dict[TopicPartition, TaskInput] = {}
        self._buffers: dict[TopicPartition, SliceBuffer] = {}
        self._ends: dict[TopicPartition, tuple[int, int]] = {}  # a slice, and the end offset when it began

    @property
    def num_bytes(self) -> int:
        """The size of the waiting rows."""
        return sum([buffer.num_bytes for buffer in self._buffers.values()])

    @property
    def is_active(self) -> bool:
        """True if writers read history, so that slices follow each other soon."""
        return self._alignment.is_active()

    def assign(self, inputs: Iterable[TaskInput]) -> None:
        """Hold rows for these tasks and no others."""
        before = self._input_of
        self._input_of = {source: task_input for task_input in inputs for source in task_input.plan.inputs}
        for source, task_input in self._input_of.items():
            if before.get(source) is not task_input:
                self._ends.pop(source, None)
                if self._alignment.is_shared and source.topic in self._alignment.topics:
                    self._buffers[source] = SliceBuffer(task_input.positions.unfinished(source))
        self._buffers = {source: buffer for source, buffer in self._buffers.items() if source in self._input_of}

    def add(self, rows: Batch) -> None:
        """Give rows to their task, or hold them until their slice is complete."""
        source = rows.source
        if not self._alignment.is_shared and rows.headers is not None and source.topic in self._internal:
            rows = untagged(rows).placed()
        buffer = self._buffers.get(source)
        if buffer is None:
            return self._input_of[source].add(rows)
        latest = self._alignment.slice_of_topic(source.topic)
        if buffer.is_empty and latest.is_open_ended and rows.headers is None:
            return self._input_of[source].add(rows)
        buffer.add(rows, latest)

    def release(self) -> int:
        """Give the rows of complete slices to their tasks. Return the number of batches."""
        return sum([self._release(source, buffer) for source, buffer in self._buffers.items() if not buffer.is_empty])

    def first_waiting(self, source: TopicPartition) -> int | None:
        """Return the offset of the first waiting row of a partition, or None if no row waits."""
        buffer = self._buffers.get(source)
        return None if buffer is None or buffer.is_empty else buffer.first_offset

    def is_waiting(self, source: TopicPartition) -> bool:
        """Return whether rows of a partition wait, or its writers read history."""
        buffer = self._buffers.get(source)
        if buffer is None:
            return False
        return not buffer.is_empty or not self._alignment.slice_of_topic(source.topic).is_open_ended

    def is_settled(self, source: TopicPartition) -> bool:
        """Return whether the writers of a partition read no history, and all that they wrote of it is read."""
        sub = self._alignment.topics.get(source.topic)
        if sub is None or not self._alignment.is_shared:
            return True
        return self._alignment.is_settled(sub) and self._is_read(source, self._alignment.slice_of(sub).number)

    def _release(self, source: TopicPartition, buffer: SliceBuffer) -> int:
        latest = self._alignment.slice_of_topic(source.topic)
        is_read = buffer.last_slice >= latest.number or self._is_read(source, latest.number)
        ordered_rows = buffer.take(latest, is_read=is_read)
        if not ordered_rows and buffer.num_bytes > self._max_bytes:
            logger.warning("%s: there is no room to wait for the order of its rows", source)
            ordered_rows = buffer.take_all()
        for rows, region in ordered_rows:
            self._input_of[source].add(rows, region)
        return len(ordered_rows)

    def _is_read(self, source: TopicPartition, number: int) -> bool:
        """Return whether all rows are read that were written before a slice began.

        Kafka makes the rows of a transaction visible some time after it has confirmed the commit. So the end offset
        includes open transactions.
        """
        if self._ends.get(source, (-1, 0))[0] < number:
            self._ends[source] = number, self._admin.end_offsets([source], committed_only=False)[source]
        return self._consumer.position(source) >= self._ends[source][1]
