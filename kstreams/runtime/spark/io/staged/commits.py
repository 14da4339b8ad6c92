"""`StagedCommits`: commits the positions of a step, and then publishes its rows exactly once.

- Until the commit, the rows of attempts are staged in the checkpoint. Readers of topics neither see them nor wait for
  them.
- The commit contains the number of the step and the digests of its manifest and of the list of its valid objects.
- All rows of a step are in their topics before the next step is committed: they are published while the next step runs.
  A driver that starts publishes the rows of the last step first, unless they are published.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import OpenedTopics, OpenedTopicsWriter, OutputTopics, RowWriter
from kstreams.runtime.spark.io.position_commits import PositionCommits
from kstreams.runtime.spark.io.staged.rows import StagedRows, shares_of
from kstreams.runtime.spark.steps import AppliedStep

_OBJECT_BYTES = 32 * 1024 * 1024
"""The number of bytes of keys and values at which an object is written."""


@dataclass(frozen=True)
class StagedOutput:
    """The `StepOutput` whose writers stage rows in the checkpoint.

    Parameters
    ----------
    topics : OutputTopics
    rows : StagedRows
    step : int
    """

    topics: OutputTopics
    rows: StagedRows
    step: int

    def writer(self, name: str) -> RowWriter:
        """Create the writer of one attempt of a task."""
        return _StagingWriter(OpenedTopics(self.topics, {}), self.rows, self.step, name)


class _StagingWriter(OpenedTopicsWriter):
    """A `RowWriter` that stages rows object by object. It refuses rows that the topic would refuse after the commit."""

    def __init__(self, topics: OpenedTopics, rows: StagedRows, step: int, name: str) -> None:
        super().__init__(topics)
        self._rows = rows
        self._step = step
        self._name = name
        self._buffered = list[Batch]()
        self._num_bytes = 0
        self._written = list[str]()

    def send(self, batch: Batch) -> None:
        """Buffer rows of one partition, and create the topic if necessary."""
        renamed = self._topics.with_name_in_log(batch)
        for error in self._topics.refused(renamed).values():
            raise error
        self._buffered.append(renamed)
        self._num_bytes += renamed.keys.nbytes + renamed.values.nbytes
        if self._num_bytes >= _OBJECT_BYTES:
            self._stage()

    def prepare(self) -> list[str]:
        """Stage the buffered rows, and return the objects that hold all rows."""
        if self._buffered:
            self._stage()
        return self._written

    def _stage(self) -> None:
        self._written.append(self._rows.write(self._step, self._name, self._buffered))
        self._buffered = []
        self._num_bytes = 0


_CLEANUP_INTERVAL = 128
"""The interval in step numbers at which objects of failed attempts are deleted."""

Publish = Callable[[int, Sequence[Sequence[str]]], None]
"""Publishes the rows of a step; the arguments are its number and the names of its objects by publisher."""


class StagedCommits:
    """The `StepCommits` of a home without a transaction coordinator.

    Parameters
    ----------
    commits : PositionCommits
    steps : CommittedSteps
    topics : OutputTopics
    rows : StagedRows
    publish : callable
    publishers : int
        The maximum number of publishers of a step.
    """

    def __init__(
        self,
        commits: PositionCommits,
        steps: CommittedSteps,
        topics: OutputTopics,
        rows: StagedRows,
        publish: Publish,
        publishers: int,
    ) -> None:
        self._commits = commits
        self._steps = steps
        self._topics = topics
        self._rows = rows
        self._publish = publish
        self._publishers = publishers
        self._thread = ThreadPoolExecutor(1, "kstreams-publication")
        self._publication = self._thread.submit(self._finish, steps.last())
        self.settle()

    def output(self, step: int) -> StagedOutput:
        """Return the output of a step, whose writers stage rows."""
        return StagedOutput(self._topics, self._rows, step)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Commit a step, and begin to publish its rows once those of the step before are published.

        Raises
        ------
        FencedError
            If a newer driver runs the application.
        """
        applied = step._replace(outputs=self._rows.announce(step.number, shares_of(written, self._publishers)))
        offsets = self._steps.offsets(applied, positions)
        self.settle()
        self._commits.commit(offsets)
        self._steps.advance(offsets)
        is_due = applied.number % _CLEANUP_INTERVAL == 0
        self._publication = self._thread.submit(self._finish, applied, clean_up=is_due)

    def settle(self) -> None:
        """Wait until the rows of the last step are published. Raises the error that prevents it."""
        self._publication.result()

    def close(self) -> None:
        """Wait for the publication, and close the producer. Other rows that are staged belong to no committed step."""
        self._thread.shutdown()
        self._commits.close()

    def _finish(self, applied: AppliedStep, *, clean_up: bool = True) -> None:
        """Publish the rows of a committed step, and delete its staged objects."""
        shares = self._rows.announced(applied)
        self._publish(applied.number, shares)
        self._rows.delete_published(applied.number, shares)
        if clean_up:
            self._rows.clean_up(applied)
