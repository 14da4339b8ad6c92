"""`ExactlyOnceSteps`: steps that are committed exactly once; `StepQuery`: a streaming query whose batches are steps.

The log commits the records that executors wrote in a step, its positions and its number as one. If a step fails before
this commit, it runs again from the same parent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from time import monotonic
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress

from kstreams.errors import KStreamsError, StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.batch_measures import BatchMeasures
from kstreams.runtime.spark.exchange.reports import (
    TaskReport,
    as_kstreams_error,
    is_interrupt,
    raise_first,
    written_records,
)
from kstreams.runtime.spark.io.deleted_input import DeletedInput, NothingDeleted
from kstreams.runtime.spark.io.delta import DeltaSink
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.sink import LogSink
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.step_sensors import StepSensors
from kstreams.runtime.spark.steps import NO_STEP, AppliedStep, batch_step
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage

logger = logging.getLogger(__name__)

MAX_STARTS = 5
_WORKER_TIMED_OUT = "Python worker failed to connect back"
"""Spark's message if the process that plans the input of a query took more than ten seconds to start."""


class PartitionsAdded(KStreamsError):
    """Topics have got more partitions than those for which a query was made."""


class StepExecutor(Protocol):
    """The work of a step: of tasks, of a query that a program computes, or of a feed."""

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Run a step on the executors.

        Return the rows that the executors hand to Spark, the reports of their tasks, and the step with the digest of
        the manifest of its state.
        """
        ...


OnStep = Callable[[list[TaskReport]], None]
"""Called after every step with the reports of its tasks."""


OnBegin = Callable[[int, OffsetRanges], None]
"""Called before every step with its number and its input."""


class ExactlyOnceSteps:
    """The steps of one query: runs the work of a step, writes Delta tables, and commits.

    Parameters
    ----------
    work : StepExecutor
    sink : LogSink
        Commits the steps, and reads the last committed one.
    delta : DeltaSink or None
        Also writes the results to Delta tables.
    deleted : DeletedInput or NothingDeleted
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
        """Run the step that follows `parent` and ends at these positions, and commit it.

        Raises
        ------
        PartitionsAdded
            If there is a position of a partition that the query does not read.
        """
        started_at = monotonic()
        starts = self.sink.positions()
        if added := positions.keys() - starts.keys():
            raise PartitionsAdded(f"partitions were added: {', '.join(map(str, sorted(added)))}")
        ranges, missed = self._deleted.present({source: (starts[source], end) for source, end in positions.items()})
        self._on_begin(step, ranges)
        with ExitStack() as resources:
            step_input = StepInput(step, parent, rows, ranges, self.sink.output(step), resources)
            frame, reports, applied = self._work.run(step_input)
            raise_first(reports)
            if self._delta is not None:
                self._delta.apply(step, frame, written_records(reports))
        commit_started_at = monotonic()
        self.sink.commit(applied, [name for report in reports for name in report.outputs], positions)
        if self._sensors is not None:
            self._sensors.applied(started_at, commit_started_at, [*reports, missed])
        self._on_step([*reports, missed])


class StepQuery:
    """A streaming query of Spark whose micro-batches are steps.

    Parameters
    ----------
    storage : CheckpointStorage
        The checkpoint of the application.
    name : str
        The folder of Spark's own checkpoint in the application's checkpoint.
    rows : DataFrame
        The stream whose micro-batches are the steps.
    steps : ExactlyOnceSteps
    positions : callable
        Returns the positions to commit with the batch of an id.
    query_name : str
        The name of the query in Spark.
    output_mode : str
        Spark's output mode: which rows of a batch Spark passes on.
    translate_error : callable
        Converts an exception of Spark to a KStreamsError.
    """

    def __init__(
        self,
        storage: CheckpointStorage,
        name: str,
        rows: DataFrame,
        steps: ExactlyOnceSteps,
        positions: Callable[[int], Mapping[TopicPartition, int]],
        *,
        query_name: str,
        output_mode: str = "append",
        translate_error: Callable[[Exception], KStreamsError] = as_kstreams_error,
    ) -> None:
        self._storage = storage
        self._name = name
        self._rows = rows
        self._steps = steps
        self._positions = positions
        self._query_name = query_name
        self._output_mode = output_mode
        self._translate_error = translate_error
        self._query: StreamingQuery | None = None
        self._last_batches = dict[str, BatchMeasures]()
        self._error: KStreamsError | None = None
        self._starts = 0

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Start the query. A bounded query ends where its topics end now."""
        location = self._storage.for_spark(self._name)
        writer = (
            self._rows.writeStream.queryName(self._query_name)
            .outputMode(self._output_mode)
            .foreachBatch(self._batch)
            .option("checkpointLocation", location)
        )
        trigger = {"availableNow": True} if bounded else {"processingTime": f"{pause_ms} milliseconds"}
        self._writer = writer.trigger(**trigger)
        self._begin()

    def _begin(self) -> None:
        self._starts += 1
        self._query = self._writer.start()

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the query has ended. Raises the error that ended it."""
        query = self._query
        if query is None:
            return False
        try:
            return bool(query.awaitTermination(seconds))
        except Exception as error:
            if self._error is None and self._is_passing(error):
                logger.warning("%s; the query is started again", str(error).partition("\n")[0])
                self._begin()
                return False
            raise (self._error or self._translate_error(error)) from error

    def _is_passing(self, error: Exception) -> bool:
        """Return True if the query can go on: the user has interrupted other work, or a process started too slowly."""
        return is_interrupt(error) or (self._starts < MAX_STARTS and _WORKER_TIMED_OUT in str(error))

    def progress_after(self, batch_id: int) -> list[StreamingQueryProgress]:
        """Return what Spark reports of the batches after a batch."""
        query = self._query
        last = None if query is None else query.lastProgress
        if query is None or last is None or last.batchId <= batch_id:
            return []
        return [progress for progress in query.recentProgress if progress.batchId > batch_id]

    def batches(self) -> dict[str, BatchMeasures]:
        """Return the measures of the last batch, by the name of the query; empty before the first batch."""
        query = self._query
        progress = None if query is None else query.lastProgress
        if progress is not None:
            self._last_batches[self._query_name] = BatchMeasures.of(progress)
        return self._last_batches

    def stop(self) -> None:
        """End the query, also within a step, and close its sink."""
        if self._query is not None:
            self._query.stop()
            self.batches()
            self._query = None
        self._steps.sink.close()

    def _batch(self, rows: DataFrame, batch_id: int) -> None:
        """Apply a micro-batch unless it is committed. Spark calls this again if it does not know that a batch ended."""
        step = batch_step(batch_id)
        last = self._steps.sink.last_step()
        try:
            if step <= last.number:
                _write_state(rows)
                return
            if last.number >> 1 != batch_id - 1:
                last_number = "none" if last.number == NO_STEP else last.number
                raise StateError(
                    f"The checkpoint {self._storage.location} continues with step {step}, but the last step in the log "
                    f"is {last_number}: the checkpoint or the log was replaced. Run with --reset."
                )
            self._steps.apply(step, last, rows, self._positions(batch_id))
            self._steps.sink.settle()
        except KStreamsError as error:
            self._error = error
            raise


def _write_state(rows: DataFrame) -> None:
    """Compute the rows of a batch that the log has committed, for the state that Spark expects to be written by it.

    The driver was lost before Spark knew of the commit. The state is the same as in the first attempt.
    """
    rows.write.format("noop").mode("overwrite").save()
