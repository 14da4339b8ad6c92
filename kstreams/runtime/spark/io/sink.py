"""`LogSink`: writes the rows of a step to topics of the log, once, and keeps which step was the last.

Rows, positions in the source topics and the number of the step become visible in one transaction: the number lies in
the metadata of the committed offsets. A step that was applied before is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import Log, OffsetAndMetadata
from kstreams.log.topic_types import TopicTypes, create_typed, note_types
from kstreams.runtime.spark.io.rows import batches_of, ranges
from kstreams.runtime.spark.steps import NO_STEP

_ROWS = 50_000  # the producer's buffer is bounded


class LogSink:
    """The output of one application to one log.

    Parameters
    ----------
    log : Log
    group : str
        The consumer group that holds the positions; also the transactional id, so that of two drivers only the newer
        one can commit.
    sources : collection of TopicPartition
        What the application reads.
    prefix : str
        Stands before the names of the topics written to.
    checkpoint_id : str
        Names the history of steps that the numbers belong to: another checkpoint starts another one.
    partitions : mapping of str to int
        Number of partitions that a topic (without the prefix) gets when it is made; `default` for all others.
    types : mapping of str to TopicTypes, optional
        What is written to a topic (without the prefix), as far as it is known.
    starts : mapping of TopicPartition to int, optional
        Where the first step begins, of sources that are not read from their beginning.
    """

    def __init__(
        self,
        log: Log,
        group: str,
        sources: Collection[TopicPartition],
        prefix: str,
        checkpoint_id: str,
        partitions: Mapping[str, int],
        default: int = 1,
        starts: Mapping[TopicPartition, int] | None = None,
        types: Mapping[str, TopicTypes] | None = None,
    ) -> None:
        self._types = types or {}
        self._log, self._group, self._sources = log, group, sorted(sources)
        self._prefix, self._partitions, self._default = prefix, partitions, default
        self._mark, self._starts = f"{checkpoint_id} step ", starts or {}
        self._producer = log.producer({"transactional.id": group})

    def last_step(self) -> int:
        """The step applied last; `NO_STEP` when there was none."""
        steps = (int(at.metadata.removeprefix(self._mark)) for at in self._committed().values())
        return max(steps, default=NO_STEP)

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every source, as of the last step."""
        committed = self._committed()
        with self._log.admin() as admin:
            begin = admin.beginning_offsets(self._sources)
        first = {source: max(begin[source], self._starts.get(source, 0)) for source in self._sources}
        return first | {source: at.offset for source, at in committed.items()}

    def _committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What steps of this checkpoint have committed; another one's are of no concern."""
        with self._log.admin() as admin:
            committed = admin.committed(self._group, self._sources)
        return {source: at for source, at in committed.items() if at.metadata.startswith(self._mark)}

    def apply(self, step: int, rows: pa.Table, positions: Mapping[TopicPartition, int]) -> Counter[str]:
        """Write the rows and commit the step; the number of rows by topic (without the prefix), none if it was applied.

        Parameters
        ----------
        rows : pyarrow Table
            Columns as in `ARROW_OUT_SCHEMA`.
        positions : mapping
            Next offset of every source after this step.
        """
        written: Counter[str] = Counter()
        if step <= self.last_step():
            return written
        self.create_topics(pc.unique(rows["topic"]).to_pylist())
        self._producer.begin_transaction()
        try:
            for batch in batches_of(rows):
                self._send(batch)
                written[batch.source.topic] += len(batch)
            offsets = {source: OffsetAndMetadata(at, f"{self._mark}{step}") for source, at in positions.items()}
            self._producer.commit_transaction(offsets, self._group)
        except LogError:
            self._producer.abort_transaction()
            raise
        return written

    def create_topics(self, topics: Collection[str]) -> None:
        """Make the topics that do not exist yet; names without the prefix."""
        with self._log.admin() as admin:
            existing = admin.topics()
            for topic in topics:
                if self._prefix + topic not in existing:
                    partitions = self._partitions.get(topic, self._default)
                    create_typed(admin, self._prefix + topic, partitions, types=self._types.get(topic))

    def note_types(self, topics: Collection[str]) -> None:
        """Note in the settings of topics what is written to them; names without the prefix."""
        with self._log.admin() as admin:
            for topic in topics:
                note_types(admin, self._prefix + topic, self._types.get(topic, TopicTypes()))

    def close(self) -> None:
        """Release the producer."""
        self._producer.close()

    def _send(self, batch: Batch) -> None:
        source = TopicPartition(self._prefix + batch.source.topic, batch.source.partition)
        named = Batch(source, batch.offsets, batch.keys, batch.values, batch.timestamps, batch.headers)
        for start, stop in ranges(0, len(named), _ROWS):
            self._producer.send_batch(named.slice(start, stop))
