"""The way into a task: which source takes a topic's batches, how they are stamped with time and decoded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.batch import Batch
from kstreams.errors import ProcessingError, SerdeError, UnknownTopicError
from kstreams.processor.context import TaskContext
from kstreams.processor.nodes import Source
from kstreams.processor.operator import Forward
from kstreams.record import Record
from kstreams.serdes import BytesSerde, Serde

NEGATIVE_TIMESTAMP = "negative timestamp"


class Route:
    """From one topic through its source to the closure behind it.

    `partition_time` is the highest timestamp (ms) stamped so far, -1 at first: extractors may fall back to it.
    """

    __slots__ = ("_rows", "_whole", "context", "forward", "partition_time", "source")

    def __init__(self, source: Source, forward: Forward, context: TaskContext, partition_time: int) -> None:
        self.source, self.forward, self.context, self.partition_time = source, forward, context, partition_time
        self._whole: Batch | None = None  # the batch whose decoded rows are kept for the slices to come
        self._rows: tuple[list[Any], list[Any]] | None = None

    def stamp(self, batch: Batch) -> Batch:
        """The batch under its event times, without the rows whose time is negative."""
        if self.source.timestamp_extractor is not None:
            batch = self._extracted(batch)
        timestamps = batch.timestamps.to_numpy()
        if len(timestamps) and timestamps.min() < 0:
            batch = self._without_negative(batch, timestamps >= 0)
        if len(batch):
            self.partition_time = max(self.partition_time, int(batch.timestamps.to_numpy().max()))
        return batch

    def decoded(self, batch: Batch) -> tuple[list[Any], list[Any]]:
        """Keys and values as live objects. A batch that is taken in short runs is decoded once."""
        rows = None if batch.whole is None else self._decoded_whole(batch.whole, batch)
        if rows is None:
            return self._decode(batch)
        stop = batch.start + len(batch)
        return rows[0][batch.start : stop], rows[1][batch.start : stop]

    def _decoded_whole(self, whole: Batch, part: Batch) -> tuple[list[Any], list[Any]] | None:
        """The rows of the batch that a slice is of; None when there is one that does not decode."""
        if self._whole is not whole:
            self._whole = whole
            try:
                self._rows = self._decode(whole)
            except SerdeError:
                self._rows = None  # the rows before the bad one still have their turn
        rows = self._rows
        if part.start + len(part) == len(whole):
            self._whole = self._rows = None
        return rows

    def _decode(self, batch: Batch) -> tuple[list[Any], list[Any]]:
        return (
            self._column(batch, "key", batch.keys, self.source.key),
            self._column(batch, "value", batch.values, self.source.value),
        )

    def _extracted(self, batch: Batch) -> Batch:
        # One after the other: an extractor may use the partition time that the record before it left.
        extract, partition_time, stamped = self.source.timestamp_extractor, self.partition_time, []
        keys, values = self._decode(batch)
        times = batch.timestamps.to_pylist()
        for row, (key, value, time, headers) in enumerate(zip(keys, values, times, batch.header_rows(), strict=True)):
            record = Record(key=key, value=value, timestamp=time, headers=headers)
            try:
                stamped.append(int(extract(record, partition_time)))  # type: ignore[misc]
            except Exception as error:
                raise ProcessingError(self.source.name, self.source.declared_at, _place(batch, row), error) from error
            partition_time = max(partition_time, stamped[-1])
        return Batch(
            batch.source, batch.offsets, batch.keys, batch.values, pa.array(stamped, pa.int64()), batch.headers
        )

    def _without_negative(self, batch: Batch, kept: np.ndarray[Any, Any]) -> Batch:
        first = _place(batch, int(np.argmin(kept)))
        self.context.drop(self.source.name, NEGATIVE_TIMESTAMP, first, int((~kept).sum()))
        mask = pa.array(kept)
        headers = None if batch.headers is None else batch.headers.filter(mask)
        keys, values, timestamps = (column.filter(mask) for column in (batch.keys, batch.values, batch.timestamps))
        return Batch(batch.source, batch.offsets[kept], keys, values, timestamps, headers)

    def _column(self, batch: Batch, what: str, column: pa.Array, serde: Serde[Any] | None) -> list[Any]:
        serde = serde or BytesSerde()
        try:
            return serde.decode_rows(column)
        except Exception as error:
            raise self._first_failure(batch, what, column, serde, error) from error

    def _first_failure(
        self, batch: Batch, what: str, column: pa.Array, serde: Serde[Any], error: Exception
    ) -> SerdeError:
        declared = f" (declared at {self.source.declared_at})" if self.source.declared_at else ""
        row, cause = _failing_row(column, serde) or (0, error)
        record = _place(batch, row)
        return SerdeError(f"{self.source.name}{declared} cannot decode the {what} of {record} with {serde}: {cause}")


class Routes:
    """The routes of one task by the real name of the topic."""

    def __init__(
        self,
        sources: Collection[Source],
        forwards: Mapping[str, Forward],
        topic_names: Mapping[str, str],
        context: TaskContext,
        memo: Mapping[str, int],
    ) -> None:
        self._sources, self._forwards, self._context, self._memo = sources, forwards, context, memo
        self._by_topic: dict[str, Route] = {}
        for source in sources:
            for topic in source.topics:
                self._add(topic_names.get(topic, topic), source)

    def of(self, topic: str) -> Route:
        """The route of a topic; raises UnknownTopicError when no source reads it."""
        if topic not in self._by_topic:
            self._add(topic, self._matching(topic))
        return self._by_topic[topic]

    def partition_times(self) -> dict[str, int]:
        """What the task's memo keeps of the routes."""
        return {f"partition_time:{topic}": route.partition_time for topic, route in self._by_topic.items()}

    def _add(self, topic: str, source: Source) -> None:
        partition_time = self._memo.get(f"partition_time:{topic}", -1)
        self._by_topic[topic] = Route(source, self._forwards[source.name], self._context, partition_time)

    def _matching(self, topic: str) -> Source:
        for source in self._sources:
            if source.pattern is not None and source.pattern.fullmatch(topic):
                return source
        known = ", ".join(sorted(self._by_topic)) or "none"
        raise UnknownTopicError(f"No source of task {self._context.task_id} reads topic {topic!r}; it reads: {known}.")


def _place(batch: Batch, row: int) -> str:
    return f"{batch.source}@{batch.offsets[row]}"


def _failing_row(column: pa.Array, serde: Serde[Any]) -> tuple[int, Exception] | None:
    for row in range(len(column)):
        try:
            serde.decode_rows(column.slice(row, 1))
        except Exception as cause:
            return row, cause
    return None
