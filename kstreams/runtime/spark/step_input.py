"""`StepInput`: the input of one step: its number, its parent, the new rows, and the output of the executors."""

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
        The number of the step.
    parent : AppliedStep
        The committed step whose state this step continues.
    rows : DataFrame or None
        The new rows of all source topics, for relational operators. None if tasks read all partitions.
    ranges : mapping
        The offsets of the new rows. Each task reads its own partitions by them.
    output : StepOutput
    resources : ExitStack
        Closed at the end of the step.
    """

    number: int
    parent: AppliedStep
    rows: DataFrame | None
    ranges: OffsetRanges
    output: StepOutput
    resources: ExitStack

    def required_rows(self) -> DataFrame:
        """Return the rows of the step. Raises ValueError if there are none because tasks read the partitions."""
        if self.rows is None:
            raise ValueError(f"step {self.number} has no rows: tasks read their partitions themselves")
        return self.rows

    def persisted(self, frame: DataFrame) -> DataFrame:
        """Return the frame, persisted on the executors until the end of the step."""
        self.resources.callback(frame.unpersist)
        return frame.persist()
