"""`StagedCommits`: a step counts by one commit of its positions; what it wrote is published after that, and once.

- Until the commit, what attempts have written is staged in the checkpoint: no reader of a topic sees or waits for it.
- The commit names the list of the rows that count, by its digest, beside the step's number and manifest.
- The rows of a step are all in their topics before the next one is committed. A driver that starts publishes those of
  the last step first: where that had been done, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import OpenedTopics, OutputTopics, RowWriter
from kstreams.runtime.spark.io.position_commits import PositionCommits
from kstreams.runtime.spark.io.staged.rows import StagedRows, dealt
from kstreams.runtime.spark.steps import AppliedStep

_MOST_BYTES = 32 * 1024 * 1024
"""In an object, about."""


@dataclass(frozen=True)
class StagedOutput:
    """See `StepOutput`.

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
        """What one attempt of a task writes with."""
        return _StagingWriter(OpenedTopics(self.topics, {}), self.rows, self.step, name)


class _StagingWriter:
    """Stages rows piece by piece. What their topic would never take is refused here: later is too late."""

    def __init__(self, topics: OpenedTopics, rows: StagedRows, step: int, name: str) -> None:
        self._topics = topics
        self._rows = rows
        self._step = step
        self._name = name
        self._gathered = list[Batch]()
        self._num_bytes = 0
        self._written = list[str]()

    def send(self, batch: Batch) -> None:
        """Take rows of one partition; makes the topic if need be."""
        named = self._topics.named(batch)
        for error in self._topics.refused(named).values():
            raise error
        self._gathered.append(named)
        self._num_bytes += named.keys.nbytes + named.values.nbytes
        if self._num_bytes >= _MOST_BYTES:
            self._stage()

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        return self._topics.refused(self._topics.named(batch))

    def prepare(self) -> list[str]:
        """Stage all that is left; the objects that hold what was written."""
        if self._gathered:
            self._stage()
        return self._written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._topics.close()

    def _stage(self) -> None:
        self._written.append(self._rows.write(self._step, self._name, self._gathered))
        self._gathered = []
        self._num_bytes = 0


_TIDIED_EVERY = 128
"""Numbers of steps: then what dead attempts have left is looked for."""

Publish = Callable[[int, Sequence[Sequence[str]]], None]
"""Publishes the rows of a step, by its number and the names of the objects that hold them, by publisher."""


class StagedCommits:
    """See `StepCommits`.

    Parameters
    ----------
    commits : PositionCommits
    steps : CommittedSteps
    topics : OutputTopics
    rows : StagedRows
    publish : callable
    publishers : int
        How many share the rows of a step.
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
        self._follow(steps.last())

    def output(self, step: int) -> StagedOutput:
        """Where executors stage what they write in a step."""
        return StagedOutput(self._topics, self._rows, step)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Decide a step, then publish what it has written.

        Raises
        ------
        FencedError
            When a newer driver runs the application.
        """
        applied = step._replace(outputs=self._rows.announce(step.number, dealt(written, self._publishers)))
        self._commits.commit(self._steps.offsets(applied, positions))
        self._follow(applied, tidy=applied.number % _TIDIED_EVERY == 0)

    def close(self) -> None:
        """Release what it holds; what is staged is of no step that counts."""
        self._commits.close()

    def _follow(self, applied: AppliedStep, *, tidy: bool = True) -> None:
        """Publish the rows of a step that counts; then nobody needs them any more."""
        shares = self._rows.announced(applied)
        self._publish(applied.number, shares)
        self._rows.drop(name for names in shares for name in names)
        if tidy:
            self._rows.tidy(applied)
