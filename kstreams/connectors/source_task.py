"""`SourceTask`: reads some splits of a source, and writes records and positions in one transaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.connectors.api import Position, SourceBatch, SourceReader, UnreadableRow
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.connector import SourceConnector
from kstreams.connectors.dead_letters import DeadLetter, DeadLetters
from kstreams.connectors.positions import positions_batch, read_positions, task_of
from kstreams.connectors.source_columns import json_of, without_rows
from kstreams.errors import SerdeError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.serdes.base import failing_rows

_SPLITS_EVERY_MS = 1_000
_LISTING_SHARE = 20  # a list of splits that takes a second is made every twenty seconds


class SourceTask:
    """See `ConnectorTask`.

    The transactional id of its producer belongs to the task. So a task that was taken over elsewhere can write nothing
    more, and its transactions are complete when the new owner reads the positions.

    Parameters
    ----------
    connector : SourceConnector
    number : int
        The number of the task, and the partition of its positions.
    log : Log
    clock : Clock
    dead_letter_topic : str
        The topic for rows that do not fit the types. Empty to end with an error.
    """

    start_offset = None
    waiting_rows = 0
    oldest_wait_ms = 0

    def __init__(
        self, connector: SourceConnector, number: int, log: Log, clock: Clock, dead_letter_topic: str = ""
    ) -> None:
        self._source = connector.source
        self._topic = connector.topic.name
        self._own_positions = TopicPartition(connector.positions_topic, number)
        self._clock = clock
        self._keys = ValueColumns(connector.topic.key)
        self._values = ValueColumns(connector.topic.value)
        self._known_splits: set[str] = set()
        self._waiting_splits: deque[str] = deque()
        self._readers: dict[str, SourceReader] = {}
        self._ended_readers: dict[str, SourceReader] = {}
        self._moved: dict[str, Position] = {}
        self._next_listing_ms = clock.uptime_ms()
        self._batches = number
        self._is_open = False
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        with ExitStack() as opening:
            settings = {"transactional.id": connector.transactional_id(number), "delivery.report.only.error": True}
            self._producer = opening.enter_context(log.producer(settings))
            self._letters = DeadLetters(connector.name, dead_letter_topic, self._producer)
            with log.admin() as admin:
                self._partitions = admin.describe_topic(self._topic).partitions
                self._tasks = admin.describe_topic(connector.positions_topic).partitions
            self._positions = read_positions(log, self._own_positions)
            self._resources = opening.pop_all()

    @property
    def has_uncommitted(self) -> bool:
        """True if a split has moved since the last commit."""
        return bool(self._moved)

    def take(self, batch: Batch) -> None:
        """Do nothing: a source reads no topic."""

    def step(self) -> bool:
        """Read once from each split, or from the first that has something. Return whether there was something."""
        self._find_new_splits()
        has_read = False
        for split in self._splits_in_turn():
            has_read = self._read(split) or has_read
            if has_read and self._source.is_finished_in_turn:
                break
        return has_read

    def commit(self) -> None:
        """Commit the records and the positions as one, and tell the other system."""
        if not self._moved:
            return
        self._begin()
        self._producer.send_batch(positions_batch(self._own_positions, self._moved, self._clock.wall_ms()))
        self._producer.commit_transaction()
        self._is_open = False
        committed = self._moved
        self._positions |= committed
        self._moved = {}
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        readers = self._readers | self._ended_readers
        for split, position in committed.items():
            readers[split].committed(position)
        for reader in self._ended_readers.values():
            reader.close()
        self._ended_readers = {}

    def close(self) -> None:
        """Abort the open transaction, and close the splits."""
        with self._resources:
            for reader in [*self._readers.values(), *self._ended_readers.values()]:
                self._resources.callback(reader.close)

    def _find_new_splits(self) -> None:
        begin_ms = self._clock.uptime_ms()
        if begin_ms < self._next_listing_ms:
            return
        new_splits = [split for split in self._source.splits() if split not in self._known_splits]
        self._known_splits.update(new_splits)
        own_number = self._own_positions.partition
        self._waiting_splits.extend(split for split in new_splits if task_of(split, self._tasks) == own_number)
        end_ms = self._clock.uptime_ms()
        self._next_listing_ms = end_ms + max(_SPLITS_EVERY_MS, _LISTING_SHARE * (end_ms - begin_ms))

    def _splits_in_turn(self) -> Iterator[str]:
        """Yield the open splits, then open each one that waits."""
        yield from list(self._readers)
        while self._waiting_splits:
            split = self._waiting_splits.popleft()
            self._readers[split] = self._source.open(split, self._positions.get(split))
            yield split

    def _read(self, split: str) -> bool:
        """Read once from a split. Return whether there was something."""
        batch = self._readers[split].read()
        if batch is None:
            return False
        self._write(split, batch)
        if batch.is_end:
            self._end(split)
        return True

    def _end(self, split: str) -> None:
        """Read no more from a split. Its reader is needed for the commit, if there is one."""
        reader = self._readers.pop(split)
        if split in self._moved:
            self._ended_readers[split] = reader
        else:
            reader.close()

    def _begin(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True

    def _write(self, split: str, batch: SourceBatch) -> None:
        self._write_letters(split, batch.unreadable)
        if len(batch.values):
            try:
                parts = self._encoded(batch)
            except (SerdeError, pa.ArrowException):
                readable = self._readable(batch)
                self._write_letters(split, readable.unreadable)
                parts = self._encoded(readable) if len(readable.values) else []
            self._begin()
            for part in parts:
                self._producer.send_batch(part)
                self.uncommitted_bytes += part.keys.nbytes + part.values.nbytes
        if batch.position != self._moved.get(split, self._positions.get(split)):
            self._moved[split] = batch.position
        self.uncommitted_rows += len(batch.values)

    def _write_letters(self, split: str, rows: Sequence[UnreadableRow]) -> None:
        for row in rows:
            self._begin()
            task = TopicPartition(self._topic, self._own_positions.partition)
            self._letters.add(DeadLetter.of_unreadable(row, split, task, self._clock.wall_ms()))

    def _readable(self, batch: SourceBatch) -> SourceBatch:
        """Return the rows that the serdes of the topic can write; the others are unreadable."""
        errors = dict(
            failing_rows(lambda rows: self._encoded(_taken(batch, rows)), pa.array(np.arange(len(batch.values))))
        )
        unreadable = [
            UnreadableRow(json_of(batch.values[index]), batch.position, error) for index, error in errors.items()
        ]
        numbers = without_rows(pa.array(np.arange(len(batch.values))), errors)
        return replace(_taken(batch, numbers), unreadable=unreadable)

    def _encoded(self, batch: SourceBatch) -> list[Batch]:
        count = len(batch.values)
        keys = pa.nulls(count, pa.binary()) if batch.keys is None else self._keys.encode(batch.keys)
        values = self._values.encode(batch.values)
        partitions = partitions_of(keys, self._partitions)
        self._batches += 1
        partitions = np.where(partitions < 0, self._batches % self._partitions, partitions)
        times = _milliseconds(batch.timestamps, count, self._clock.wall_ms())
        return [part for part, _ in split_by_partition(self._topic, partitions, keys, values, times, None)]


def _taken(batch: SourceBatch, rows: pa.Array) -> SourceBatch:
    """Return some rows of a batch."""
    keys = None if batch.keys is None else batch.keys.take(rows)
    timestamps = None if batch.timestamps is None else batch.timestamps.take(rows)
    return SourceBatch(batch.values.take(rows), batch.position, keys, timestamps)


def _milliseconds(timestamps: pa.Array | None, count: int, now_ms: int) -> pa.Array:
    """Return the timestamps of records in milliseconds; those without a time get the present time."""
    if timestamps is None:
        return pa.repeat(pa.scalar(now_ms, pa.int64()), count)
    if pa.types.is_timestamp(timestamps.type):
        timestamps = timestamps.cast(pa.timestamp("ms", timestamps.type.tz), safe=False)
    return pc.fill_null(timestamps.cast(pa.int64()), now_ms)
