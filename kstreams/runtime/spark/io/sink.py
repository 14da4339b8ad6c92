"""`LogSink`: commits steps to the log, each once, and keeps which one was the last.

What executors wrote in a step, its positions in the source topics, its number and the manifest of its state are decided
as one: number and manifest lie in the metadata of the committed offsets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.steps import AppliedStep


class StepCommits(Protocol):
    """How what executors write in a step becomes visible, once."""

    def output(self, step: int) -> StepOutput:
        """Where executors write what the commit of a step makes visible."""
        ...

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Decide a step, and make visible what was written."""
        ...

    def close(self) -> None:
        """Drop what is not committed."""
        ...


class LogSink:
    """The output of one query to one log.

    Parameters
    ----------
    steps : CommittedSteps
        What is committed so far.
    commits : StepCommits
    """

    def __init__(self, steps: CommittedSteps, commits: StepCommits) -> None:
        self._steps = steps
        self._commits = commits

    def last_step(self) -> AppliedStep:
        """The step committed last."""
        return self._steps.last()

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every source, as of the last step."""
        return self._steps.positions()

    def output(self, step: int) -> StepOutput:
        """Where executors write in a step."""
        return self._commits.output(step)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Make a step visible.

        Parameters
        ----------
        step : AppliedStep
            With the manifest of the state that it leaves, if it leaves any.
        written : collection of str
            What the reports of the step name; whatever else was written since the last commit is never seen.
        positions : mapping
            Next offset of every source after this step.

        Raises
        ------
        FencedError
            When a newer driver runs the application, or writing took longer than it may.
        """
        self._commits.commit(step, written, positions)

    def close(self) -> None:
        """Drop what is not committed."""
        self._commits.close()
