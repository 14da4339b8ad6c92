"""`LogSink`: commits each step to the log exactly once, and reads the last committed step.

The records that executors wrote in a step, its positions in the source topics, its number and the digest of the
manifest of its state are committed as one. The metadata of the committed offsets hold the number and the digest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.steps import AppliedStep


class StepCommits(Protocol):
    """The commits of steps, each of which makes the records of a step visible exactly once."""

    def output(self, step: int) -> StepOutput:
        """Return the output of a step, which its commit makes visible."""
        ...

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Commit a step. Its records become visible now, or some time before the next commit ends."""
        ...

    def settle(self) -> None:
        """Wait until the records of the last commit are visible."""
        ...

    def close(self) -> None:
        """Discard uncommitted output."""
        ...


class LogSink:
    """The output of one query to one log.

    Parameters
    ----------
    steps : CommittedSteps
        The committed steps of the query.
    commits : StepCommits
    """

    def __init__(self, steps: CommittedSteps, commits: StepCommits) -> None:
        self._steps = steps
        self._commits = commits

    def last_step(self) -> AppliedStep:
        """Return the last committed step."""
        return self._steps.last()

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of every source after the last step."""
        return self._steps.positions()

    def output(self, step: int) -> StepOutput:
        """Return the output of a step for the executors."""
        return self._commits.output(step)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Commit a step. Its records are visible after `settle`, or once the next step is committed.

        Parameters
        ----------
        step : AppliedStep
            The step, with the manifest of its state if it has any.
        written : collection of str
            The transactions or objects that the reports of the step name. All other output since the last commit is
            discarded.
        positions : mapping
            The next offset of every source after this step.

        Raises
        ------
        FencedError
            If a newer driver runs the application, or writing took longer than the timeout of a transaction.
        """
        self._commits.commit(step, written, positions)

    def settle(self) -> None:
        """Wait until the records of the last step are visible. Raises the error that prevents it."""
        self._commits.settle()

    def close(self) -> None:
        """Discard uncommitted output."""
        self._commits.close()
