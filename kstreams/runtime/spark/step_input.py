"""`StepInput`: what one step is given: its number, its parent, the new rows, and where executors write."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from pyspark.sql import DataFrame

from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.steps import AppliedStep


class StepInput(NamedTuple):
    """The input of one step.

    Parameters
    ----------
    number : int
        Of the step.
    parent : AppliedStep
        The step that it goes on from.
    rows : DataFrame or None
        The new rows of all source topics, for what is relational; None when there are none.
    ranges : mapping
        The offsets of those rows, for tasks: each reads its own partitions itself.
    output : StepOutput
    resources : ExitStack
        Closed when the step is over.
    """

    number: int
    parent: AppliedStep
    rows: DataFrame | None
    ranges: OffsetRanges
    output: StepOutput
    resources: ExitStack

    def required_rows(self) -> DataFrame:
        """Return the rows of a step that has some. Raises ValueError for a step of tasks, which read by themselves."""
        if self.rows is None:
            raise ValueError(f"step {self.number} has no rows: tasks read their partitions themselves")
        return self.rows

    def persisted(self, frame: DataFrame) -> DataFrame:
        """The frame, kept on the executors until the step is over."""
        self.resources.callback(frame.unpersist)
        return frame.persist()
