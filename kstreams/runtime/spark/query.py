"""`AppliedOnce`: steps that count once; and `StepQuery`, a streaming query whose every micro-batch is such a step.

A step counts when the log has committed what executors wrote in it, its positions and its number as one. Whatever
happens before that, the step runs again from the same parent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from time import monotonic
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kstreams.errors import KStreamsError, StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.exchange.reports import TaskReport, as_kstreams_error, raise_first, written_records
from kstreams.runtime.spark.io.deleted_input import DeletedInput, NothingDeleted
from kstreams.runtime.spark.io.delta import DeltaSink
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.sink import LogSink
from kstreams.runtime.spark.measured.step_sensors import StepSensors
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import NO_STEP, AppliedStep, batch_step
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage

logger = logging.getLogger(__name__)

MOST_STARTS = 5
_TOO_SLOW = "Python worker failed to connect back"
"""What Spark says when the process that plans the input of a query took more than ten seconds to start."""


class StepExecutor(Protocol):
    """What runs a step: tasks, or a windowed relational query."""

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Have executors read, work and write.

        The rows that they hand to Spark, reports of what they did, and the step with the manifest of its state.
        """
        ...


OnStep = Callable[[list[TaskReport]], None]
"""Called after every step with the reports of its tasks."""


OnBegin = Callable[[int, OffsetRanges], None]
"""Called before every step with its number and its input."""


class AppliedOnce:
    """Applies steps: has executors work, brings the results into Delta tables, commits.

    Parameters
    ----------
    work : StepExecutor
    sink : LogSink
        Commits the steps, and knows which one was the last.
    delta : DeltaSink or None
        Takes the results too.
    deleted : DeletedInput or AllThere
    on_step : callable
    on_begin : callable
    sensors : StepSensors, optional
        Measure the steps.
    """

    def __init__(
        self,
        work: StepExecutor,
        sink: LogSink,
        delta: DeltaSink | None,
        deleted: DeletedInput | NothingDeleted,
        on_step: OnStep,
        on_begin: OnBegin,
        *,
        sensors: StepSensors | None = None,
    ) -> None:
        self._work = work
        self.sink = sink
        self._delta = delta
        self._deleted = deleted
        self._on_step = on_step
        self._on_begin = on_begin
        self._sensors = sensors

    def apply(
        self, step: int, parent: AppliedStep, rows: DataFrame | None, positions: Mapping[TopicPartition, int]
    ) -> None:
        """Run a step that goes on from its parent and ends at these positions, and commit it."""
        started_at = monotonic()
        before = self.sink.positions()
        ranges, missed = self._deleted.present({source: (before[source], at) for source, at in positions.items()})
        self._on_begin(step, ranges)
        with ExitStack() as resources:
            step_input = StepInput(step, parent, rows, ranges, self.sink.output(step), resources)
            frame, reports, applied = self._work.run(step_input)
            raise_first(reports)
            if self._delta is not None:
                self._delta.apply(step, frame, written_records(reports))
        committing = monotonic()
        self.sink.commit(applied, [name for report in reports for name in report.outputs], positions)
        if self._sensors is not None:
            self._sensors.applied(started_at, committing, [*reports, missed])
        self._on_step([*reports, missed])


class StepQuery:
    """A streaming query of Spark whose every micro-batch is a step.

    Parameters
    ----------
    storage : CheckpointStorage
        Holds the checkpoint of the application.
    name : str
        Folder of Spark's own checkpoint in it.
    rows : DataFrame
        The stream whose micro-batches are the steps.
    steps : AppliedOnce
    positions : callable
        The positions to commit with a batch, by its id.
    called : str
        Its name for Spark.
    mode : str
        The output mode: which rows of a batch Spark hands over.
    explained : callable
        What an exception of Spark means.
    """

    def __init__(
        self,
        storage: CheckpointStorage,
        name: str,
        rows: DataFrame,
        steps: AppliedOnce,
        positions: Callable[[int], Mapping[TopicPartition, int]],
        *,
        called: str,
        mode: str = "append",
        explained: Callable[[Exception], KStreamsError] = as_kstreams_error,
    ) -> None:
        self._storage = storage
        self._name = name
        self._rows = rows
        self._steps = steps
        self._positions = positions
        self._called = called
        self._mode = mode
        self._explained = explained
        self._query: StreamingQuery | None = None
        self._error: KStreamsError | None = None
        self._starts = 0

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Begin to run; a bounded query ends where its topics ended when it was started."""
        location = self._storage.for_spark(self._name)
        writer = (
            self._rows.writeStream.queryName(self._called)
            .outputMode(self._mode)
            .foreachBatch(self._batch)
            .option("checkpointLocation", location)
        )
        pace = {"availableNow": True} if bounded else {"processingTime": f"{pause_ms} milliseconds"}
        self._writer = writer.trigger(**pace)
        self._begin()

    def _begin(self) -> None:
        self._starts += 1
        self._query = self._writer.start()

    def ended(self, seconds: float) -> bool:
        """Wait a little; whether the query has ended. Raises what ended it."""
        query = self._query
        if query is None:
            return False
        try:
            return bool(query.awaitTermination(seconds))
        except Exception as error:
            if self._error is None and self._starts < MOST_STARTS and _TOO_SLOW in str(error):
                logger.warning("%s; the query is started again", _TOO_SLOW)
                self._begin()
                return False
            raise (self._error or self._explained(error)) from error

    def stop(self) -> None:
        """End the query, in the middle of a step if need be, and release what it holds."""
        if self._query is not None:
            self._query.stop()
        self._steps.sink.close()

    def _batch(self, rows: DataFrame, batch_id: int) -> None:
        """What Spark calls for every micro-batch, again for one that it does not know to be done."""
        step = batch_step(batch_id)
        last = self._steps.sink.last_step()
        try:
            if step <= last.number:
                return
            if last.number >> 1 != batch_id - 1:
                last_number = "none" if last.number == NO_STEP else last.number
                raise StateError(
                    f"The checkpoint {self._storage.location} goes on with step {step}, "
                    f"but the log knows of {last_number} before it: one of them was replaced. Run with --reset."
                )
            self._steps.apply(step, last, rows, self._positions(batch_id))
        except KStreamsError as error:
            self._error = error
            raise
