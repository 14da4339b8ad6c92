"""`SinkTask` of a worker: reads one partition of a topic, and lets the sink commit rows and offset as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from kstreams.connectors.api import RefusedRow, SinkTask
from kstreams.connectors.connector import SinkConnector
from kstreams.connectors.dead_letters import DeadLetters
from kstreams.connectors.readable_rows import ReadableRows
from kstreams.connectors.refusals import Refusals
from kstreams.kernel.batch import Batch

RecordsAt: TypeAlias = "Callable[[Collection[int]], Iterator[Batch]]"


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

    waiting_rows = 0
    oldest_wait_ms = 0

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
        self._rows = ReadableRows(topic, letters)
        self._next_offset: int | None = None
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        task = SinkTask(identity, topic.name, partition, self._rows.value_type)
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
        """Decode rows and hand them to the sink."""
        self.uncommitted_rows += len(batch)
        self.uncommitted_bytes += batch.keys.nbytes + batch.values.nbytes
        self._next_offset = int(batch.offsets[-1]) + 1
        if self._refused_before:
            batch = batch.filter(~np.isin(batch.offsets, self._refused_before))
        for rows in self._rows.of(batch):
            self._writer.write(rows)

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

    def _hand_over(self, refused_rows: Sequence[RefusedRow]) -> None:
        """Hand over the rows that the target refuses. Their records are read again."""
        errors = {row.offset: row.error for row in refused_rows}
        for records in self._records_at(list(errors)):
            self._refusals.take(records, errors)
        self._refusals.flush()
        self._letters.flush()
