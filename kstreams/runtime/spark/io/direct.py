"""`DirectCommits`: steps at least once: rows are in their topics before the positions of the step are committed.

A step that fails before the commit runs again, and its rows are in the topics twice. Nothing is staged, and there is no
transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import OpenedTopics, OpenedTopicsWriter, OutputTopics, RowWriter
from kstreams.runtime.spark.io.position_commits import PositionCommits
from kstreams.runtime.spark.steps import AppliedStep


@dataclass(frozen=True)
class DirectOutput:
    """The `StepOutput` whose writers write to the topics.

    Parameters
    ----------
    topics : OutputTopics
    """

    topics: OutputTopics

    def writer(self, name: str) -> RowWriter:
        """Create the writer of one attempt of a task."""
        return _DirectWriter(OpenedTopics(self.topics, {}))


class _DirectWriter(OpenedTopicsWriter):
    """A `RowWriter` whose rows are in the topics when it is prepared."""

    def send(self, batch: Batch) -> None:
        """Write rows of one partition, and create the topic if necessary."""
        renamed = self._topics.with_name_in_log(batch)
        self._topics.producer.send_batch(renamed)
        self._begun = True

    def prepare(self) -> list[str]:
        """Wait until the rows are in the topics. There is nothing to commit."""
        if self._begun:
            self._topics.producer.flush()
        return []


class DirectCommits:
    """The `StepCommits` that commit positions only.

    Parameters
    ----------
    commits : PositionCommits
    steps : CommittedSteps
    topics : OutputTopics
    """

    def __init__(self, commits: PositionCommits, steps: CommittedSteps, topics: OutputTopics) -> None:
        self._commits = commits
        self._steps = steps
        self._topics = topics

    def output(self, step: int) -> DirectOutput:
        """Return the output of a step."""
        return DirectOutput(self._topics)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Commit a step. Its rows are in the topics.

        Raises
        ------
        FencedError
            If a newer driver runs the application.
        """
        offsets = self._steps.offsets(step, positions)
        self._commits.commit(offsets)
        self._steps.advance(offsets)

    def settle(self) -> None:
        """Do nothing: the records are visible when the commit returns."""

    def close(self) -> None:
        """Close the producer."""
        self._commits.close()
