"""`StepLoop`: the thread that runs the steps of the task path one after the other while there is input.

The driver plans the steps itself, without a streaming query, which would start a Python process to plan its input. The
plans of steps replace Spark's log of offsets, and the log of records replaces Spark's log of commits.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadLimit

from kstreams.errors import KStreamsError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.exchange.reports import is_interrupt
from kstreams.runtime.spark.exchange.rows import Offsets, offsets_of, positions_of
from kstreams.runtime.spark.query import ExactlyOnceSteps
from kstreams.runtime.spark.query_thread import QueryThread
from kstreams.runtime.spark.steps import NO_STEP, AppliedStep, batch_step, end_step

logger = logging.getLogger(__name__)

PlannedEnds = Callable[[int, AppliedStep], Mapping[TopicPartition, int] | None]
"""Returns where a step ends, by its number and its parent, if an earlier attempt has planned it; else None."""

RowsBetween = Callable[[Offsets, Offsets], DataFrame | None]
"""Returns the rows between two offsets as a DataFrame; None if no sub-topology reads them as one."""


class StepOffsets(Protocol):
    """The ends of steps, in the form of Spark's stream readers."""

    def prepareForTriggerAvailableNow(self) -> None:
        """Let the input end where it ends now."""
        ...

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Return where the step ends that begins at `start`."""
        ...

    def stop(self) -> None:
        """Release resources."""
        ...


class StepLoop:
    """A thread that runs steps.

    Parameters
    ----------
    session : SparkSession
    reader : StepOffsets
    limit : ReadLimit
        The maximum number of rows of a step.
    planned : callable
    rows : callable
    steps : ExactlyOnceSteps
    """

    def __init__(
        self,
        session: SparkSession,
        reader: StepOffsets,
        limit: ReadLimit,
        planned: PlannedEnds,
        rows: RowsBetween,
        steps: ExactlyOnceSteps,
    ) -> None:
        self._spark = session.sparkContext
        self._reader = reader
        self._limit = limit
        self._steps = steps
        self._planned = planned
        self._rows = rows
        self._job_group = f"kstreams-{uuid.uuid4()}"
        self._thread = QueryThread()

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Start the thread. A bounded run ends where its topics end now; another run polls every `pause_ms`."""
        if bounded:
            self._reader.prepareForTriggerAvailableNow()
        self._thread.start(partial(self._run, bounded, pause_ms / 1000))

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the run has ended. Raises the error that ended it."""
        return self._thread.ended(seconds)

    def stop(self) -> None:
        """End the run, also within a step, and close its reader and its sink."""
        self._thread.stopped.set()
        while self._thread.is_alive():
            self._spark.cancelJobGroup(self._job_group)
            self._thread.join(CANCEL_SECONDS)
        self._reader.stop()
        self._steps.sink.close()

    def end_input(self) -> None:
        """Run the end step of bounded input, unless there was no input or it is ended already."""
        last = self._steps.sink.last_step()
        if last.number not in (NO_STEP, end_step(last.number)):
            self._steps.apply(end_step(last.number), last, None, self._steps.sink.positions())
            self._steps.sink.settle()

    def _run(self, bounded: bool, pause_seconds: float) -> None:
        self._spark.setJobGroup(self._job_group, "steps of kstreams")
        stopped = self._thread.stopped
        is_ended = False
        while not (is_ended or stopped.is_set()):
            if not self._next():
                self._steps.sink.settle()
                is_ended = bounded or stopped.wait(pause_seconds)

    def _next(self) -> bool:
        """Run the next step. Return False if there is no input for it."""
        last = self._steps.sink.last_step()
        begin = self._steps.sink.positions()
        step = batch_step((last.number >> 1) + 1)
        start = offsets_of(begin)
        ends = self._planned(step, last)
        if ends is None:
            ends = positions_of(self._reader.latestOffset(start, self._limit))
        if all(ends[source] <= offset for source, offset in begin.items()):
            return False
        self._apply(step, last, start, ends)
        return True

    def _apply(self, step: int, last: AppliedStep, start: Offsets, ends: Mapping[TopicPartition, int]) -> None:
        """Run a step, and run it again if an executor was lost, or the user has interrupted other work of the session.

        The rows of a lost executor are lost, and other tasks may have read some of them. If its tasks run again, their
        rows differ, since reports name the transactions. Spark regards such output as indeterminate, and fails the job
        instead of repeating the stage.
        """
        for attempts_left in reversed(range(MAX_ATTEMPTS)):
            try:
                return self._steps.apply(step, last, self._rows(start, offsets_of(ends)), ends)
            except KStreamsError:
                raise
            except Exception as error:
                reason = _reason_to_repeat(error)
                if not attempts_left or reason is None or self._thread.stopped.is_set():
                    raise
                logger.warning("Step %d is run again: %s", step, reason)


def _reason_to_repeat(error: Exception) -> str | None:
    if is_interrupt(error):
        return "Spark has cancelled all jobs of the session"
    return "an executor was lost whose rows had been read in part" if _INDETERMINATE in str(error) else None


MAX_ATTEMPTS = 4
"""Attempts at a step: the default of Spark's `spark.task.maxFailures`."""

_INDETERMINATE = "stage with indeterminate output was failed and retried"

CANCEL_SECONDS = 0.5
"""The time between two attempts to cancel the jobs of a step, since another job may just be starting."""
