"""`Publication`: the rows of a step that counts are written to their topics, each once.

The rows are dealt to some publishers. Each writes its own in one transaction of Kafka, and with them, in the same
transaction, the number of the step as the position of a group of its own. Who finds the number there does nothing: so a
publication may be repeated, by anybody, at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from kstreams.errors import KStreamsError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log.api import Log
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, Block, blocks_in, in_arrow
from kstreams.runtime.spark.exchange.reports import TaskReport, describe, raise_first, report, taken_reports
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.control_blocks import control_blocks
from kstreams.runtime.spark.io.open_homes import HomePlace
from kstreams.runtime.spark.io.position_commits import MOST_ATTEMPTS, PAUSE_SECONDS
from kstreams.runtime.spark.io.staged.rows import StagedRows
from kstreams.runtime.spark.steps import AppliedStep

PUBLISHED = "-out"
"""Ends the name of the group that knows what was published."""


_CALL_MS = 30_000
"""How long a call may take, such as the one that waits until all rows are written."""

_MOST_TIMEOUT_MS = 900_000
"""What brokers allow by default."""


class Publication(NamedTuple):
    """What publishers of an application share; it is sent to the executors.

    Parameters
    ----------
    home : HomePlace
    rows : StagedRows
    group : str
        Of the application; publishers have one of their own, and transactional ids.
    checkpoint_id : str
        Names the history of steps.
    anchors : tuple of TopicPartition
        Partitions as whose positions the numbers of steps are kept, one for each publisher.
    timeout_ms : int
        After this time the home aborts what a dead publisher has left, if nobody has done it before.
    """

    home: HomePlace
    rows: StagedRows
    group: str
    checkpoint_id: str
    anchors: tuple[TopicPartition, ...]
    timeout_ms: int

    def publish(self, step: int, publisher: int, names: Sequence[str]) -> None:
        """Write what one publisher has to write in a step, unless that is done.

        Raises
        ------
        LogError
            When the home does not take it, also when tried again.
        StateError
            When rows are missing or damaged.
        """
        with self.home.opened() as log:
            for attempts_left in reversed(range(MOST_ATTEMPTS)):
                try:
                    return self._attempt(log, step, publisher, names)
                except LogError:  # fenced by another attempt, perhaps: then the number of the step is there
                    if not attempts_left:
                        raise
                SystemClock().sleep(PAUSE_SECONDS)

    def _attempt(self, log: Log, step: int, publisher: int, names: Sequence[str]) -> None:
        group = f"{self.group}{PUBLISHED}"
        anchor = self.anchors[publisher]
        # The new producer ends what another one with its id has left open. Only then the number is looked at.
        own = {"transactional.id": f"{group}-{publisher}", "max.block.ms": _CALL_MS}
        own["transaction.timeout.ms"] = min(self.timeout_ms, _MOST_TIMEOUT_MS)
        with log.producer(own) as producer:
            committed = CommittedSteps(log, group, [anchor], self.checkpoint_id)
            if committed.last().number >= step:
                return
            producer.begin_transaction()
            for name in names:
                for batch in self.rows.read(name):
                    producer.send_batch(batch)
            producer.commit_transaction(committed.offsets(AppliedStep(step), {anchor: step}), group)


def publish(session: SparkSession, publication: Publication, step: int, shares: Sequence[Sequence[str]]) -> None:
    """Have executors publish the rows of a step, those of each publisher.

    Raises
    ------
    KStreamsError
        What ended a publisher.
    """
    if shares:
        blocks = control_blocks(session, len(shares), len(shares))
        raise_first(taken_reports(blocks.mapInArrow(_published_in_arrow(publication, step, shares), BLOCK_SCHEMA)))


def _published_in_arrow(
    publication: Publication, step: int, shares: Sequence[Sequence[str]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        for control in blocks_in(batches):
            task_report = TaskReport()
            try:
                publication.publish(step, control.partition, shares[control.partition])
            except KStreamsError as error:
                task_report = TaskReport(error=describe(error))
            yield report(control.partition, task_report)

    return lambda batches: in_arrow(run(batches))
