"""`CoordinatedCommits`: commits of steps by a coordinator of the home, which commits several transactions as one.

Each attempt of a task writes in its own transaction. The driver commits exactly the transactions that the reports of
the step name. The transactions of all other attempts are aborted: attempts that failed, and speculative or repeated
ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Log
from kstreams.runtime.spark.exchange.rows import ranges
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import OpenedTopics, OpenedTopicsWriter, OutputTopics, RowWriter
from kstreams.runtime.spark.steps import AppliedStep

_BATCH_ROWS = 50_000
"""The maximum number of rows that are sent at once, since the producer's buffer is bounded."""


@dataclass(frozen=True)
class CoordinatedOutput:
    """The `StepOutput` whose writers write in transactions of a coordinator.

    Parameters
    ----------
    topics : OutputTopics
    timeout_ms : int
        The time after which an uncommitted transaction is aborted.
    token : str
        The token of the coordinator that commits the step.
    """

    topics: OutputTopics
    timeout_ms: int
    token: str

    def writer(self, name: str) -> RowWriter:
        """Create the writer of one attempt of a task."""
        settings = {"transaction.coordinator": self.token, "transaction.timeout.ms": self.timeout_ms, "linger.ms": -1}
        return _TransactionWriter(OpenedTopics(self.topics, settings))


class _TransactionWriter(OpenedTopicsWriter):
    """A `RowWriter` whose transaction begins with the first row. `__exit__` aborts it unless it is prepared."""

    def send(self, batch: Batch) -> None:
        """Write rows of one partition, and create the topic if necessary."""
        renamed = self._topics.with_name_in_log(batch)
        if not self._begun:
            self._topics.producer.begin_transaction()
            self._begun = True
        for start, stop in ranges(0, len(renamed), _BATCH_ROWS):
            self._topics.producer.send_batch(renamed.slice(start, stop))

    def prepare(self) -> list[str]:
        """Flush the rows, and return the transaction for the driver to commit."""
        return [self._topics.producer.prepare_transaction()] if self._begun else []


class CoordinatedCommits:
    """The `StepCommits` of a home with a transaction coordinator.

    Parameters
    ----------
    log : Log
    steps : CommittedSteps
        Its group is also the transactional id, so that only the newer of two drivers can commit.
    topics : OutputTopics
    timeout_ms : int
        The longest time from the first row of a step to its commit.
    """

    def __init__(self, log: Log, steps: CommittedSteps, topics: OutputTopics, timeout_ms: int) -> None:
        self._steps = steps
        self._topics = topics
        self._timeout_ms = timeout_ms
        self._coordinator = log.coordinator(steps.group)

    def output(self, step: int) -> CoordinatedOutput:
        """Return the output of a step, which its commit makes visible."""
        return CoordinatedOutput(self._topics, self._timeout_ms, self._coordinator.token)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Commit these transactions, and abort all others since the last commit.

        Raises
        ------
        FencedError
            If a newer driver runs the application, or a transaction took longer than its timeout.
        """
        offsets = self._steps.offsets(step, positions)
        self._coordinator.commit(written, offsets, self._steps.group)
        self._steps.advance(offsets)

    def settle(self) -> None:
        """Do nothing: the records are visible when the commit returns."""

    def close(self) -> None:
        """Abort uncommitted transactions."""
        self._coordinator.close()
