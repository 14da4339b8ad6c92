"""Steps where a coordinator of the home commits several transactions as one: each attempt of a task writes in its own.

The driver commits exactly the transactions that the reports of the step name. Those of all other attempts are aborted:
of attempts that died, that were run again, or that Spark had run beside another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Log
from kstreams.runtime.spark.exchange.rows import ranges
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.output_topics import OpenedTopics, OutputTopics, RowWriter
from kstreams.runtime.spark.steps import AppliedStep

_ROWS = 50_000  # the producer's buffer is bounded


@dataclass(frozen=True)
class CoordinatedOutput:
    """See `StepOutput`.

    Parameters
    ----------
    topics : OutputTopics
    timeout_ms : int
        After this time a transaction that nobody has committed is aborted.
    token : str
        Of the coordinator that commits the step.
    """

    topics: OutputTopics
    timeout_ms: int
    token: str

    def writer(self, name: str) -> RowWriter:
        """What one attempt of a task writes with."""
        joined = {"transaction.coordinator": self.token, "transaction.timeout.ms": self.timeout_ms, "linger.ms": -1}
        return _TransactionWriter(OpenedTopics(self.topics, joined))


class _TransactionWriter:
    """Begins its transaction with the first row; aborts it when it is left before it is prepared."""

    def __init__(self, topics: OpenedTopics) -> None:
        self._topics = topics
        self._begun = False

    def send(self, batch: Batch) -> None:
        """Write rows of one partition; makes the topic if need be."""
        named = self._topics.named(batch)
        if not self._begun:
            self._topics.producer.begin_transaction()
            self._begun = True
        for start, stop in ranges(0, len(named), _ROWS):
            self._topics.producer.send_batch(named.slice(start, stop))

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        return self._topics.refused(self._topics.named(batch))

    def prepare(self) -> list[str]:
        """Write all out; the transaction for the driver to commit."""
        return [self._topics.producer.prepare_transaction()] if self._begun else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._topics.close()


class CoordinatedCommits:
    """See `StepCommits`.

    Parameters
    ----------
    log : Log
    steps : CommittedSteps
        Its group is the transactional id too, so that of two drivers only the newer one can commit.
    topics : OutputTopics
    timeout_ms : int
        Longest time from the first row of a step to its commit.
    """

    def __init__(self, log: Log, steps: CommittedSteps, topics: OutputTopics, timeout_ms: int) -> None:
        self._steps = steps
        self._topics = topics
        self._timeout_ms = timeout_ms
        self._coordinator = log.coordinator(steps.group)

    def output(self, step: int) -> CoordinatedOutput:
        """Where executors write what the next commit makes visible."""
        return CoordinatedOutput(self._topics, self._timeout_ms, self._coordinator.token)

    def commit(self, step: AppliedStep, written: Collection[str], positions: Mapping[TopicPartition, int]) -> None:
        """Commit these transactions; all others since the last commit are aborted.

        Raises
        ------
        FencedError
            When a newer driver runs the application, or a transaction took longer than its timeout.
        """
        self._coordinator.commit(written, self._steps.offsets(step, positions), self._steps.group)

    def close(self) -> None:
        """Abort what is not committed."""
        self._coordinator.close()
