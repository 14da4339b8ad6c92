"""`Publication`: writes the staged rows of a committed step to their topics exactly once.

The rows are divided among publishers. Each publisher writes its rows in one Kafka transaction, which also commits the
number of the step as the position of the publisher's group. A publisher that reads this number does nothing, so any
process may repeat a publication at any time.

Each process has a producer with a transactional id of its own, which stays open from step to step. The first attempt at
a share claims it for this id. Later attempts open a producer with the claimed id, which ends the transaction of the
first attempt before they read the number. So a share is published with one transactional id only.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pyarrow as pa

from kstreams.errors import FencedError, KStreamsError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log.api import Log
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA, Block, blocks_in, in_arrow
from kstreams.runtime.spark.exchange.reports import (
    TaskReport,
    describe,
    is_interrupt,
    raise_first,
    report,
    taken_reports,
)
from kstreams.runtime.spark.exchange.rows import ArrowFunction, titled
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.control_blocks import ControlBlocks
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.position_commits import MAX_ATTEMPTS, PAUSE_SECONDS
from kstreams.runtime.spark.io.staged.rows import StagedRows
from kstreams.runtime.spark.steps import AppliedStep

PUBLISHED = "-out"
"""The suffix of the consumer group whose positions are the numbers of published steps."""

_CALL_MS = 30_000
"""The longest time of a call, such as a flush of all rows."""

_MAX_TIMEOUT_MS = 900_000
"""The default of `transaction.max.timeout.ms` of brokers."""


class Publication(NamedTuple):
    """The parameters of an application's publishers, which are sent to the executors.

    Parameters
    ----------
    home : HomeAddress
    rows : StagedRows
    group : str
        The consumer group of the application, from which group and transactional ids of publishers are derived.
    checkpoint_id : str
        The id of the checkpoint whose steps are published.
    anchors : tuple of TopicPartition
        By publisher: the partition whose committed position is the number of the last published step.
    timeout_ms : int
        The time after which the home aborts the transaction of a dead publisher.
    """

    home: HomeAddress
    rows: StagedRows
    group: str
    checkpoint_id: str
    anchors: tuple[TopicPartition, ...]
    timeout_ms: int

    def publish(self, step: int, publisher: int, names: Sequence[str]) -> None:
        """Write the rows of one publisher in a step, unless they are published.

        Raises
        ------
        LogError
            If every attempt fails.
        StateError
            If rows are missing or damaged.
        """
        with self.home.opened() as log:
            for attempts_left in reversed(range(MAX_ATTEMPTS)):
                try:
                    return self._attempt(log, step, publisher, names)
                except FencedError:  # by another attempt, which may have published the step, or an earlier step
                    if not attempts_left:
                        raise
                except LogError:
                    if not attempts_left:
                        raise
                    SystemClock().sleep(PAUSE_SECONDS)

    def _attempt(self, log: Log, step: int, publisher: int, names: Sequence[str]) -> None:
        group = f"{self.group}{PUBLISHED}"
        anchor = self.anchors[publisher]
        # Opening the producer ends an open transaction of its id, so the number of the step is read afterwards. If a
        # later attempt has taken the id of a producer that has stayed open, that producer is fenced: its commit fails.
        transactional_id = self.rows.claim(step, publisher, f"{group}-{_process_id(os.getpid())}")
        settings = {
            "transactional.id": transactional_id,
            "max.block.ms": _CALL_MS,
            "transaction.timeout.ms": min(self.timeout_ms, _MAX_TIMEOUT_MS),
        }
        with self.home.writer(settings) as producer:
            committed = CommittedSteps(log, group, [anchor], self.checkpoint_id)
            if committed.last().number >= step:
                return
            producer.begin_transaction()
            for name in names:
                for batch in self.rows.read(name):
                    producer.send_batch(batch)
            producer.commit_transaction(committed.offsets(AppliedStep(step), {anchor: step}), group)


@cache
def _process_id(pid: int) -> str:
    """Return a unique id of this process."""
    return uuid.uuid4().hex


def publish(controls: ControlBlocks, publication: Publication, step: int, shares: Sequence[Sequence[str]]) -> None:
    """Publish the rows of a step on the executors, by publisher; once more if the user has interrupted other work.

    Raises
    ------
    KStreamsError
        The error of a publisher.
    """
    if not shares:
        return
    publish_rows = titled(_publish_in_arrow(publication, step, shares), f"publish step {step // 2}")
    published = controls.of(len(shares), len(shares)).mapInArrow(publish_rows, BLOCK_SCHEMA)
    while True:
        try:
            return raise_first(taken_reports(published))
        except Exception as error:
            if not is_interrupt(error):
                raise


def _publish_in_arrow(publication: Publication, step: int, shares: Sequence[Sequence[str]]) -> ArrowFunction:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        for control in blocks_in(batches):
            task_report = TaskReport()
            try:
                publication.publish(step, control.partition, shares[control.partition])
            except KStreamsError as error:
                task_report = TaskReport(error=describe(error))
            yield report(control.partition, task_report)

    return lambda batches: in_arrow(run(batches))
