"""`SinkTask` of a worker: reads one partition of a topic, and lets the sink commit rows and offset as one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import RefusedRow, SinkBatch, SinkTask
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.connector import SinkConnector
from kstreams.connectors.dead_letters import DeadLetter, DeadLetters
from kstreams.errors import SerdeError
from kstreams.kernel.batch import Batch
from kstreams.serdes.base import failing_rows


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
    """

    def __init__(
        self,
        connector: SinkConnector,
        identity: str,
        partition: int,
        first_offset: Callable[[], int],
        letters: DeadLetters,
        on_commit: Callable[[int], None],
    ) -> None:
        topic = connector.topic
        self._letters = letters
        self._on_commit = on_commit
        self._keys = ValueColumns(topic.key)
        self._values = ValueColumns(topic.value)
        self._next_offset: int | None = None
        self._unconfirmed: list[Batch] = []
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        task = SinkTask(identity, topic.name, partition, self._values.type or pa.null())
        self._writer = connector.sink.open(task)
        try:
            of_target = self._writer.next_offset()
            self.start_offset = first_offset() if of_target is None else of_target
        except BaseException:
            self._writer.close()
            raise

    @property
    def has_uncommitted(self) -> bool:
        """True if there are rows since the last commit."""
        return self._next_offset is not None

    def take(self, batch: Batch) -> None:
        """Decode rows and hand them to the sink."""
        self._unconfirmed.append(batch)
        self.uncommitted_rows += len(batch)
        self.uncommitted_bytes += batch.keys.nbytes + batch.values.nbytes
        self._next_offset = int(batch.offsets[-1]) + 1
        decoded = self._decoded(batch)
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
        for refused in self._writer.flush():
            self._letters.add(self._letter(refused))
        self._letters.flush()
        self._writer.commit(next_offset)
        self._next_offset = None
        self._unconfirmed = []
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        self._on_commit(next_offset)
        return next_offset

    def close(self) -> None:
        """Close the writer, which discards what is not committed."""
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

    def _letter(self, refused: RefusedRow) -> DeadLetter:
        batch = next(batch for batch in self._unconfirmed if batch.offsets[0] <= refused.offset <= batch.offsets[-1])
        index = int(np.searchsorted(batch.offsets, refused.offset))
        return DeadLetter.of_record(batch, index, "TASK_PUT", refused.error)
