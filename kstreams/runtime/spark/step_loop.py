"""`StepLoop`: the steps of the task path, one after the other, as long as there is input.

The driver plans them itself, from the log: what Spark would keep for a streaming query (where a step ends, which one
was the last) stands in the plans of steps and in the log. A streaming query would start a Python process of its own to
plan its input.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Protocol

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadLimit

from kstreams.errors import KStreamsError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.exchange.reports import as_kstreams_error
from kstreams.runtime.spark.exchange.rows import Offsets, offsets_of, positions_of
from kstreams.runtime.spark.query import AppliedOnce
from kstreams.runtime.spark.steps import NO_STEP, AppliedStep, batch_step, end_step

logger = logging.getLogger(__name__)

PlannedEnds = Callable[[int, AppliedStep], Mapping[TopicPartition, int] | None]
"""Where a step ends that was planned before, by its number and its parent; None for a new one."""

RowsBetween = Callable[[Offsets, Offsets], DataFrame | None]
"""The rows between two offsets, where any sub-topology wants them as a DataFrame."""


class StepOffsets(Protocol):
    """Says where steps end, as a stream reader of Spark does."""

    def prepareForTriggerAvailableNow(self) -> None:
        """Let input end where it ends now."""
        ...

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Where the step ends that begins there."""
        ...

    def stop(self) -> None:
        """Release what it holds."""
        ...


class StepLoop:
    """Runs in a thread of its own.

    Parameters
    ----------
    session : SparkSession
    reader : StepOffsets
    limit : ReadLimit
        Of a step.
    planned : callable
    rows : callable
    steps : AppliedOnce
    """

    def __init__(
        self,
        session: SparkSession,
        reader: StepOffsets,
        limit: ReadLimit,
        planned: PlannedEnds,
        rows: RowsBetween,
        steps: AppliedOnce,
    ) -> None:
        self._spark = session.sparkContext
        self._reader = reader
        self._limit = limit
        self._steps = steps
        self._planned = planned
        self._rows = rows
        self._stopped = threading.Event()
        self._jobs = f"kstreams-{uuid.uuid4()}"
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self, *, bounded: bool, pause_ms: int) -> None:
        """Begin to run; a bounded run ends where its topics end now, another looks for input at intervals."""
        if bounded:
            self._reader.prepareForTriggerAvailableNow()
        self._thread = InheritableThread(target=self._run, args=(bounded, pause_ms / 1000), daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Wait a little; whether the run has ended. Raises what ended it."""
        thread = self._thread
        if thread is None:
            return False
        thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not thread.is_alive()

    def stop(self) -> None:
        """End the run, in the middle of a step if need be, and release what it holds."""
        self._stopped.set()
        while self._thread is not None and self._thread.is_alive():
            self._spark.cancelJobGroup(self._jobs)
            self._thread.join(CANCEL_SECONDS)
        self._reader.stop()
        self._steps.sink.close()

    def end_input(self) -> None:
        """Run the step that ends bounded input, if there was any and it was not ended before."""
        last = self._steps.sink.last_step()
        if last.number not in (NO_STEP, end_step(last.number)):
            self._steps.apply(end_step(last.number), last, None, self._steps.sink.positions())

    def _run(self, bounded: bool, pause_seconds: float) -> None:
        self._spark.setJobGroup(self._jobs, "steps of kstreams")
        try:
            while not self._stopped.is_set():
                if not self._next() and (bounded or self._stopped.wait(pause_seconds)):
                    return
        except KStreamsError as error:
            self._error = error
        except Exception as error:
            if not self._stopped.is_set():
                self._error = as_kstreams_error(error)
                self._error.__cause__ = error

    def _next(self) -> bool:
        """Run the next step; False when there is no input for it."""
        last = self._steps.sink.last_step()
        begin = self._steps.sink.positions()
        step = batch_step((last.number >> 1) + 1)
        start = offsets_of(begin)
        ends = self._planned(step, last)
        if ends is None:
            ends = positions_of(self._reader.latestOffset(start, self._limit))
        if all(ends[source] <= at for source, at in begin.items()):
            return False
        self._apply(step, last, start, ends)
        return True

    def _apply(self, step: int, last: AppliedStep, start: Offsets, ends: Mapping[TopicPartition, int]) -> None:
        """Run a step; again where Spark has given up because it would have to do all of it again.

        A lost executor takes rows along that other tasks have partly read. Its tasks run again, and what they write
        differs, at least in the transactions that reports name: so Spark does not let the rest be read.
        """
        for attempts_left in reversed(range(MOST_ATTEMPTS)):
            try:
                return self._steps.apply(step, last, self._rows(start, offsets_of(ends)), ends)
            except KStreamsError:
                raise
            except Exception as error:
                if not attempts_left or _GIVEN_UP not in str(error):
                    raise
                logger.warning("A lost executor had rows that were read in part: step %d is run again", step)


MOST_ATTEMPTS = 4
"""Of a step, as many as Spark makes at a task by default."""

_GIVEN_UP = "stage with indeterminate output was failed and retried"

CANCEL_SECONDS = 0.5
"""Between two attempts to end the jobs of a step: one may just be starting."""
