"""`LogSink`: commits steps to the log, each once, and keeps which one was the last.

What executors wrote in a step, its positions in the source topics, its number and the manifest of its state become
visible as one: number and manifest lie in the metadata of the committed offsets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from kstreams.batch import TopicPartition
from kstreams.log.api import Log
from kstreams.log.topic_types import TopicTypes, note_types
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import OutputTopics
from kstreams.runtime.spark.steps import AppliedStep


class LogSink:
    """The output of one query to one log.

    Parameters
    ----------
    log : Log
    steps : CommittedSteps
        What is committed so far. Its group is the transactional id too, so that of two drivers only the newer one can
        commit.
    topics : OutputTopics
        What the query writes.
    """

    def __init__(self, log: Log, steps: CommittedSteps, topics: OutputTopics) -> None:
        self._log, self._steps, self._topics = log, steps, topics
        self._coordinator = log.coordinator(steps.group)

    def last_step(self) -> AppliedStep:
        """The step committed last."""
        return self._steps.last()

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset of every source, as of the last step."""
        return self._steps.positions()

    def output(self) -> OutputTopics:
        """Where executors write what the next commit makes visible."""
        return replace(self._topics, token=self._coordinator.token)

    def commit(self, step: AppliedStep, transactions: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Make a step visible.

        Parameters
        ----------
        step : AppliedStep
            With the manifest of the state that it leaves, if it leaves any.
        transactions : collection of str
            Those that the reports of the step name; all others since the last commit are aborted.
        positions : mapping
            Next offset of every source after this step.

        Raises
        ------
        FencedError
            When a newer driver runs the application, or a transaction took longer than its timeout.
        """
        self._coordinator.commit(transactions, self._steps.offsets(step, positions), self._steps.group)

    def prepare_topics(self, topics: Collection[str]) -> None:
        """Make the topics that do not exist yet, and note in their settings what is written; without the prefix."""
        with self._log.admin() as admin:
            for topic in topics:
                self._topics.create(admin, topic)
                note_types(admin, self._topics.prefix + topic, self._topics.types.get(topic, TopicTypes()))

    def close(self) -> None:
        """Abort what is not committed."""
        self._coordinator.close()
