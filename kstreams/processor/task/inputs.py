"""`TaskInputs`: the input topics of a task; gives batches their event times, and decodes their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import ProcessingError, RegistryError, RegistryUnavailableError, SerdeError, UnknownTopicError
from kstreams.kernel.batch import Batch
from kstreams.kernel.source_line import operator_at
from kstreams.kernel.timestamps import (
    LATEST_MS,
    FailOnInvalidTimestamp,
    InvalidTimestampError,
    are_valid,
    extracted,
    extractor_of,
)
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.context.operator_context import TaskContext
from kstreams.processor.topology.nodes import SourceNode, reader_of
from kstreams.processor.topology.operator import Forward
from kstreams.record import Record
from kstreams.schemas.retrying import without_waiting
from kstreams.serdes import BytesSerde, Serde
from kstreams.serdes.base import failing_rows

NEGATIVE_TIMESTAMP = "negative timestamp"
OUT_OF_RANGE = "timestamp out of range"
TOO_FAR_AHEAD = "timestamp too far ahead of the clock"
_CURE = (
    "give the source a timestamp_extractor, such as LogAndSkipOnInvalidTimestamp, or a function that returns the time "
    "of a record"
)


DecodedRows: TypeAlias = tuple[list[object], list[object]]
"""Keys and values of records as objects."""


class RecordDecoder:
    """Decodes the keys and values of a source; errors name the record and the operator.

    Parameters
    ----------
    source : SourceNode
    """

    def __init__(self, source: SourceNode) -> None:
        self._source = source

    def decode(self, batch: Batch) -> DecodedRows:
        """Return keys and values as objects. Raises SerdeError for the first record that does not decode."""
        return batch.decoded or (
            self._column(batch, "key", *self.side(batch, "key")),
            self._column(batch, "value", *self.side(batch, "value")),
        )

    def side(self, batch: Batch, side: str) -> tuple[pa.Array, Serde]:
        """Return the bytes of keys or values with the parts from their headers, and their serde."""
        serde = (self._source.key if side == "key" else self._source.value) or BytesSerde()
        return serde.framed(batch.keys if side == "key" else batch.values, batch.headers), serde

    def failing_rows(self, batch: Batch) -> dict[int, SerdeError]:
        """Return the error of each row that does not decode."""
        errors: dict[int, SerdeError] = {}
        for side in ("value", "key"):
            column, serde = self.side(batch, side)
            for row, cause in failing_rows(serde.decode_rows, column):
                errors[row] = self._failure(batch, side, row, serde, cause)
        return errors

    def _column(self, batch: Batch, side: str, column: pa.Array, serde: Serde[object]) -> list[object]:
        try:
            return serde.decode_rows(column)
        except RegistryError:
            raise  # not the fault of the record: a handler must not drop it
        except Exception as error:
            raise self._first_failure(batch, side, column, serde, error) from error

    def _first_failure(
        self, batch: Batch, side: str, column: pa.Array, serde: Serde[object], error: Exception
    ) -> SerdeError:
        row, cause = next(failing_rows(serde.decode_rows, column), (0, error))
        return self._failure(batch, side, row, serde, cause)

    def _failure(self, batch: Batch, side: str, row: int, serde: Serde[object], cause: Exception) -> SerdeError:
        source = operator_at(self._source.name, self._source.declared_at)
        return SerdeError(f"{source} cannot decode the {side} of {_place(batch, row)} with {serde}: {cause}")


class TopicInput:
    """One input topic of a task: its source, and the closure after the source.

    `partition_time` is the highest timestamp (ms) stamped so far, -1 at first; extractors may fall back to it.
    `records_in` counts the processed and the skipped records.
    """

    __slots__ = (
        "_asking",
        "_clock",
        "_decoder",
        "_extract",
        "_failures",
        "_most_ahead_ms",
        "_rows",
        "_skipped",
        "_task_id",
        "_whole",
        "forward",
        "partition_time",
        "records_in",
        "source",
    )

    def __init__(
        self, source: SourceNode, forward: Forward, context: TaskContext, partition_time: int, most_ahead_ms: int
    ) -> None:
        self.source = source
        self.forward = forward
        self._decoder = RecordDecoder(source)
        self.partition_time = partition_time
        self.records_in = 0
        self._failures = context.failures
        self._clock = context.application.clock
        self._task_id = context.task_id
        default = context.application.settings.timestamp_extractor
        self._extract = source.timestamp_extractor or extractor_of(default) or FailOnInvalidTimestamp()
        self._most_ahead_ms = most_ahead_ms  # negative: any distance ahead of the clock
        sides = (("key", source.key), ("value", source.value))
        self._asking = [side for side, serde in sides if serde is not None and serde.asks_registry]
        self._whole: Batch | None = None  # the batch whose decoded rows are cached for its next slices
        self._rows: DecodedRows | None = None
        self._skipped: list[tuple[int, Callable[[], None]]] = []  # by offset, the report of a skipped row

    def stamp(self, batch: Batch) -> Batch:
        """Return the batch with its event times, without rows that have none or do not decode, which are skipped."""
        if self._failures.guards_deserialization:
            batch = self._decodable(batch)
        batch = self._timed(batch)
        latest = _latest(batch)
        limit_ms = self._limit_ms()
        if latest > limit_ms:
            batch = self._valid(batch, limit_ms)
            latest = _latest(batch)
        self.partition_time = max(self.partition_time, latest)
        return batch

    @property
    def has_skipped(self) -> bool:
        """True if skipped rows are not reported yet."""
        return bool(self._skipped)

    def report_skipped(self, offset: int) -> bool:
        """Report the skipped rows up to and including an offset; return whether there were any."""
        reported = False
        while self._skipped and self._skipped[0][0] <= offset:
            self._skipped.pop(0)[1]()
            self.records_in += 1
            reported = True
        return reported

    def missing_schema(self, batch: Batch) -> tuple[int, RegistryUnavailableError] | None:
        """Return the first row whose schema is not cached while the registry is away, and the error; else None.

        The caller retries: a request to the registry does not wait.
        """
        missing_schemas = []
        for side in self._asking:
            column, serde = self._decoder.side(batch, side)
            with without_waiting():
                missing_schemas.append(serde.missing_schema(column))
        return min(filter(None, missing_schemas), key=itemgetter(0), default=None)

    def count_processed(self, count: int) -> None:
        """Count processed records."""
        self.records_in += count

    def decoded(self, batch: Batch) -> DecodedRows:
        """Return keys and values as objects. A batch that is taken in short runs is decoded once."""
        rows = batch.decoded if batch.whole is None else self._decoded_whole(batch.whole, batch)
        if rows is None:
            return self._decoder.decode(batch)
        stop = batch.start + len(batch)
        return rows[0][batch.start : stop], rows[1][batch.start : stop]

    def _decoded_whole(self, whole: Batch, part: Batch) -> DecodedRows | None:
        """Return the rows of the batch of a slice; None if a row of the batch does not decode."""
        if self._whole is not whole:
            self._whole = whole
            try:
                self._rows = self._decoder.decode(whole)
            except SerdeError:
                self._rows = None  # the rows before the bad one are still processed
        rows = self._rows
        if part.start + len(part) == len(whole):
            self._whole = self._rows = None
        return rows

    def _timed(self, batch: Batch) -> Batch:
        """Return the batch with the times from the extractor."""
        if not isinstance(self._extract, FailOnInvalidTimestamp):
            return self._extracted(batch)
        timestamps = batch.timestamps.to_numpy()
        times = self._extract.times(timestamps, self.partition_time, self._clock)
        return batch if times is timestamps else _with_times(batch, pa.array(times), batch.decoded)

    def _limit_ms(self) -> int:
        """Return the latest time that is accepted now."""
        ahead_ms = self._most_ahead_ms
        return LATEST_MS if ahead_ms < 0 else min(self._clock.wall_ms() + ahead_ms, LATEST_MS)

    def _valid(self, batch: Batch, limit_ms: int) -> Batch:
        """Return the rows with a valid time. Without a handler, an invalid time ends the task before other rows."""
        times = batch.timestamps.to_numpy()
        report = partial(self._invalid, batch)
        valid = are_valid(times)
        if not self._failures.guards_deserialization:
            for row in np.flatnonzero(~valid).tolist():
                if self._is_failure(batch.timestamps[row].as_py()):
                    report(row)
        return self._only(batch, valid & (times <= limit_ms), report)

    def _is_failure(self, time_ms: int) -> bool:
        """Return whether an invalid time is a failure. A function returns a negative time to drop the record."""
        return getattr(self._extract, "fails", time_ms >= 0)

    def _extracted(self, batch: Batch) -> Batch:
        keys, values = self._decoder.decode(batch)
        rows = zip(keys, values, batch.timestamps.to_pylist(), batch.header_rows(), strict=True)
        records = (Record(key=key, value=value, timestamp=time, headers=headers) for key, value, time, headers in rows)
        outcomes: list[int | InvalidTimestampError] = []
        try:
            outcomes.extend(extracted(self._extract, records, self.partition_time))
        except Exception as error:
            place = _place(batch, len(outcomes))
            raise ProcessingError(self.source.name, self.source.declared_at, place, error) from error
        errors = {row: time for row, time in enumerate(outcomes) if isinstance(time, InvalidTimestampError)}
        times = pa.array([-1 if row in errors else time for row, time in enumerate(outcomes)], pa.int64())
        timed = _with_times(batch, times, (keys, values))
        return self._only_timed(timed, batch, errors) if errors else timed

    def _only_timed(self, timed: Batch, batch: Batch, errors: Mapping[int, InvalidTimestampError]) -> Batch:
        """Return the rows with a time from the extractor; the others are reported with the time they were read with."""
        report = partial(self._untimed, batch, errors)
        if not self._failures.guards_deserialization:
            report(min(errors))
        return self._only(timed, np.array([row not in errors for row in range(len(batch))]), report)

    def _untimed(self, batch: Batch, errors: Mapping[int, InvalidTimestampError], row: int) -> None:
        context = self._context_of(batch, row)
        self._failures.invalid_time(context, _raw(context), errors[row])

    def _decodable(self, batch: Batch) -> Batch:
        """Return the rows that decode, with their objects; the handler decides about the others."""
        batch = batch.alone()
        try:
            batch.decoded = self._decoder.decode(batch)
            return batch
        except SerdeError:
            errors = self._decoder.failing_rows(batch)
        is_valid = np.array([row not in errors for row in range(len(batch))])
        good = self._only(batch, is_valid, partial(self._undecodable, batch, errors))
        good.decoded = self._decoder.decode(good)
        return good

    def _undecodable(self, batch: Batch, errors: Mapping[int, SerdeError], row: int) -> None:
        context = self._context_of(batch, row)
        self._failures.deserialization(context, _raw(context), errors[row])

    def _invalid(self, batch: Batch, row: int) -> None:
        context = self._context_of(batch, row)
        failures = self._failures
        if 0 <= context.timestamp <= LATEST_MS:
            failures.dropped(context, TOO_FAR_AHEAD)
        elif self._is_failure(context.timestamp):
            failures.invalid_time(context, _raw(context), InvalidTimestampError.out_of_range(context.timestamp, _CURE))
        else:
            failures.dropped(context, NEGATIVE_TIMESTAMP if context.timestamp < 0 else OUT_OF_RANGE)

    def _context_of(self, batch: Batch, row: int) -> ErrorHandlerContext:
        return ErrorHandlerContext.of_row(batch, row, self.source.name, self._task_id)

    def _only(self, batch: Batch, is_valid: np.typing.NDArray[np.bool_], report: Callable[[int], None]) -> Batch:
        """Return some rows of a batch; `report` is called with each other row when the task reaches it."""
        self._skipped += [(int(batch.offsets[row]), partial(report, int(row))) for row in np.flatnonzero(~is_valid)]
        self._skipped.sort(key=itemgetter(0))
        return batch.filter(is_valid)


class TaskInputs:
    """The inputs of one task by the real name of the topic."""

    def __init__(
        self,
        sources: Collection[SourceNode],
        forwards: Mapping[str, Forward],
        context: TaskContext,
        metadata: Mapping[str, int],
    ) -> None:
        self._sources = sources
        self._forwards = forwards
        self._context = context
        self._metadata = metadata
        self._by_topic: dict[str, TopicInput] = {}
        topic_names = context.application.topic_names
        self._internal = frozenset(topic_names.values())
        for source in sources:
            for topic in source.topics:
                self._add(topic_names.get(topic, topic), source)

    def __iter__(self) -> Iterator[TopicInput]:
        return iter(self._by_topic.values())

    def of(self, topic: str) -> TopicInput:
        """Return the input from a topic. Raises UnknownTopicError if no source reads it."""
        if topic not in self._by_topic:
            self._add(topic, self._matching(topic))
        return self._by_topic[topic]

    def records_in(self) -> int:
        """Return the number of processed records of the user's topics; internal ones were counted before."""
        by_topic = list(self._by_topic.items())  # the task may add to them meanwhile
        return sum(entry.records_in for topic, entry in by_topic if topic not in self._internal)

    def records_by_source(self) -> Counter[str]:
        """Return the number of processed records by source node."""
        counts = Counter[str]()
        for entry in list(self._by_topic.values()):
            counts[entry.source.name] += entry.records_in
        return counts

    def partition_times(self) -> dict[str, int]:
        """Return the part of the task metadata about the inputs."""
        return {f"partition_time:{topic}": entry.partition_time for topic, entry in self._by_topic.items()}

    def _add(self, topic: str, source: SourceNode) -> None:
        partition_time = self._metadata.get(f"partition_time:{topic}", -1)
        # Records of internal topics were checked when they entered the application.
        most_ahead_ms = -1 if topic in self._internal else self._context.application.settings.most_ahead_ms
        forward = self._forwards[source.name]
        self._by_topic[topic] = TopicInput(source, forward, self._context, partition_time, most_ahead_ms)

    def _matching(self, topic: str) -> SourceNode:
        source = reader_of(self._sources, topic)
        if source is not None:
            return source
        topics = ", ".join(sorted(self._by_topic)) or "none"
        raise UnknownTopicError(f"No source of task {self._context.task_id} reads topic {topic!r}; it reads: {topics}.")


def _latest(batch: Batch) -> int:
    """Return the highest time of a batch (ms), where a negative time counts as the highest; -1 for an empty batch."""
    return int(batch.timestamps.to_numpy().view(np.uint64).max()) if len(batch) else -1


def _raw(context: ErrorHandlerContext) -> Record[bytes | None, bytes | None]:
    """Return the input record as it was read."""
    key = context.source_raw_key
    value = context.source_raw_value
    time = context.timestamp
    return Record(key=key, value=value, timestamp=time, headers=context.headers)


def _with_times(batch: Batch, times: pa.Array, decoded: DecodedRows | None) -> Batch:
    new = batch.at_times(times)
    new.decoded = decoded
    return new


def _place(batch: Batch, row: int) -> str:
    return f"{batch.source}@{batch.offsets[row]}"
