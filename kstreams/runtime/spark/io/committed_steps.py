"""`CommittedSteps`: the last committed step of a query and its positions, read from the log."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log, OffsetAndMetadata
from kstreams.runtime.spark.steps import AppliedStep


class CommittedSteps:
    """The steps of one query. The metadata of committed offsets hold number and manifest of the last step.

    Parameters
    ----------
    log : Log
    group : str
        The consumer group that holds the positions.
    sources : collection of TopicPartition
        The partitions that the query reads.
    checkpoint_id : str
        The id of the checkpoint. Steps of another checkpoint are ignored.
    starts : mapping of TopicPartition to int, optional
        The first offsets of sources that are not read from their beginning.
    """

    def __init__(
        self,
        log: Log,
        group: str,
        sources: Collection[TopicPartition],
        checkpoint_id: str,
        starts: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._log = log
        self.group = group
        self._sources = sorted(sources)
        self._mark = f"{checkpoint_id} step "
        self._starts = starts or {}
        self._last_committed: dict[TopicPartition, OffsetAndMetadata] = {}

    def last(self) -> AppliedStep:
        """Return the last committed step."""
        marks = (committed.metadata.removeprefix(self._mark).split(" ") for committed in self._committed().values())
        return max((AppliedStep(int(number), *digests) for number, *digests in marks), default=AppliedStep())

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of every source after the last step."""
        committed = self._committed()
        without_commit = [source for source in self._sources if source not in committed]
        with self._log.admin() as admin:
            begin = admin.beginning_offsets(without_commit)
        first = {source: max(begin[source], self._starts.get(source, 0)) for source in without_commit}
        return first | {source: offset_and_metadata.offset for source, offset_and_metadata in committed.items()}

    def offsets(
        self, step: AppliedStep, positions: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets and metadata that a step commits."""
        mark = f"{self._mark}{step.number} {step.manifest} {step.outputs}".rstrip()
        return {source: OffsetAndMetadata(offset, mark) for source, offset in positions.items()}

    def advance(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Take over the offsets that this process has just committed.

        Reading them from the log again would wait until all markers of the transaction are written.
        """
        self._last_committed = {**self._committed(), **offsets}

    def _committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that steps of this checkpoint have committed.

        After the first commit of this process they are known: a commit by another process fences this one.
        """
        if self._last_committed:
            return self._last_committed
        with self._log.admin() as admin:
            of_group = admin.committed(self.group, self._sources)
        return {
            source: committed for source, committed in of_group.items() if committed.metadata.startswith(self._mark)
        }
