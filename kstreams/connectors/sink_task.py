"""`SinkTask` of a worker: reads one partition of a topic, and lets the sink commit rows and offset as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import RefusedRow, SinkBatch, SinkTask
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.connector import SinkConnector
from kstreams.connectors.dead_letters import DeadLetter, DeadLetters
from kstreams.errors import LogError, SerdeError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Log
from kstreams.serdes.base import failing_rows

_POLL_S = 0.5
_BYTES_AT_ONCE = 8 << 20
RecordsAt: TypeAlias = "Callable[[Collection[int]], Iterator[Batch]]"


def read_records_at(log: Log, source: TopicPartition, offsets: Collection[int]) -> Iterator[Batch]:
    """Yield the records of a partition at some offsets.

    Raises
    ------
    LogError
        If one of them was deleted meanwhile.
    """
    if not offsets:
        return
    wanted = np.unique(np.fromiter(offsets, np.int64))
    with log.consumer() as consumer:
        consumer.assign([source])
        consumer.seek(source, int(wanted[0]))
        while len(wanted):
            for batch in consumer.poll(_POLL_S):
                records = batch.filter(np.isin(batch.offsets, wanted))
                if len(records):
                    yield records
                next_offset = int(batch.offsets[-1]) + 1
                if len(records) < np.searchsorted(wanted, next_offset):
                    raise LogError(f"records of {source} that the target has refused were deleted: read it again")
                wanted = wanted[wanted >= next_offset]


class Refusals(Protocol):
    """Takes the rows of one task that its target refuses."""

    def earlier(self, first_offset: int) -> Collection[int]:
        """Return the rows from an offset on that were taken before a crash. The target is not asked again for them."""
        ...

    def take(self, records: Batch, errors: Mapping[int, Exception]) -> None:
        """Take records, with the error for each of their offsets."""
        ...

    def flush(self) -> None:
        """Wait until all rows so far are durable."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class DeadLettersOfTask:
    """Dead letters as `Refusals`. A crash before the commit repeats some."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def earlier(self, first_offset: int) -> Collection[int]:
        return ()

    def take(self, records: Batch, errors: Mapping[int, Exception]) -> None:
        for index, offset in enumerate(records.offsets.tolist()):
            self._letters.add(DeadLetter.of_record(records, index, "TASK_PUT", errors[offset]))

    def flush(self) -> None:
        self._letters.flush()

    def close(self) -> None:
        """Do nothing: all tasks of the connector share the producer."""


class SinkPartition:
    """See `ConnectorTask`.

    Parameters
    ----------
    connector : SinkConnector
    identity : str
        The name under which the target keeps offsets.
    partition : int
    first_offset : callable
        Returns the offset at which to start if the target holds none: for a sink that is at least once, the one that
        the group has committed.
    letters : DeadLetters
        Takes rows that do not decode or that the target refuses.
    on_commit : callable
        Called with the next offset after a commit.
    records_at : callable
        Returns the records at some offsets of the partition. Only refused ones are read again, so that those of a
        commit need not be held in memory.
    open_refusals : callable
        Returns what takes the rows that the target refuses.
    """

    def __init__(
        self,
        connector: SinkConnector,
        identity: str,
        partition: int,
        first_offset: Callable[[], int],
        letters: DeadLetters,
        on_commit: Callable[[int], None],
        *,
        records_at: RecordsAt,
        open_refusals: Callable[[], Refusals],
    ) -> None:
        topic = connector.topic
        self._letters = letters
        self._on_commit = on_commit
        self._records_at = records_at
        self._keys = ValueColumns(topic.key)
        self._values = ValueColumns(topic.value)
        self._next_offset: int | None = None
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        task = SinkTask(identity, topic.name, partition, self._values.type or pa.null())
        self._writer = connector.sink.open(task)
        try:
            of_target = self._writer.next_offset()
            self.start_offset = first_offset() if of_target is None else of_target
            self._refusals = open_refusals()
            self._refused_before = list(self._refusals.earlier(self.start_offset))
        except BaseException:
            self._writer.close()
            raise

    @property
    def has_uncommitted(self) -> bool:
        """True if there are rows since the last commit."""
        return self._next_offset is not None

    def take(self, batch: Batch) -> None:
        """Decode rows and hand them to the sink, some megabytes at a time: decoded rows take several times as much."""
        size = batch.keys.nbytes + batch.values.nbytes
        self.uncommitted_rows += len(batch)
        self.uncommitted_bytes += size
        self._next_offset = int(batch.offsets[-1]) + 1
        if self._refused_before:
            batch = batch.filter(~np.isin(batch.offsets, self._refused_before))
        rows = max(len(batch) * _BYTES_AT_ONCE // max(size, 1), 1)
        for begin in range(0, len(batch), rows):
            decoded = self._decoded(batch.slice(begin, begin + rows))
            if len(decoded):
                self._writer.write(decoded)

    def step(self) -> bool:
        """Do nothing: a sink reads its topic only."""
        return False

    def commit(self) -> int | None:
        """Let the target commit. Rows that it refuses become dead letters first."""
        next_offset = self._next_offset
        if next_offset is None:
            return None
        self._hand_over(self._writer.flush())
        self._writer.commit(next_offset)
        self._next_offset = None
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        self._on_commit(next_offset)
        return next_offset

    def close(self) -> None:
        """Close the writer, which discards what is not committed."""
        try:
            self._refusals.close()
        finally:
            self._writer.close()

    def _decoded(self, batch: Batch) -> SinkBatch:
        """Decode the rows. Those that do not decode become dead letters."""
        try:
            return self._columns(batch)
        except (SerdeError, pa.ArrowException):
            return self._columns(self._without_undecodable(batch))

    def _columns(self, batch: Batch) -> SinkBatch:
        keys = self._keys.decode(batch.keys)
        values = self._values.decode(batch.values)
        return SinkBatch(batch.source.partition, batch.offsets, keys, values, batch.timestamps)

    def _without_undecodable(self, batch: Batch) -> Batch:
        errors = dict(failing_rows(self._keys.decode, batch.keys))
        errors |= dict(failing_rows(self._values.decode, batch.values))
        for index, error in sorted(errors.items()):
            self._letters.add(DeadLetter.of_record(batch, index, "VALUE_CONVERTER", error))
        return batch.filter(np.array([index not in errors for index in range(len(batch))]))

    def _hand_over(self, refused_rows: Sequence[RefusedRow]) -> None:
        """Hand over the rows that the target refuses. Their records are read again."""
        errors = {row.offset: row.error for row in refused_rows}
        for records in self._records_at(list(errors)):
            self._refusals.take(records, errors)
        self._refusals.flush()
        self._letters.flush()
