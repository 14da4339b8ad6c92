"""Windowed sub-topologies on the relational path: each a query of its own, for which Spark keeps the state."""

from __future__ import annotations

from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.dsl import graph as g
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.exchange.reports import TaskReport, taken_reports
from kstreams.runtime.spark.exchange.rows import FAR_FUTURE_MS, Offsets
from kstreams.runtime.spark.io.control_blocks import reports_of_reading
from kstreams.runtime.spark.io.deleted_input import topics_to_miss
from kstreams.runtime.spark.io.open_homes import HomePlace
from kstreams.runtime.spark.io.source import read_stream
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.frame import EVENT_TIME
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.rows import relational_rows
from kstreams.runtime.spark.relational.rules.windowed import gives_final_results
from kstreams.runtime.spark.relational.windowed_query import window_of
from kstreams.runtime.spark.relational.written_rows import written_rows
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import AppliedStep

OutputMode = Literal["append", "update"]


class WindowedSteps:
    """See `StepExecutor`: Spark has done the work when it hands over the rows.

    Parameters
    ----------
    plan : PathPlan
    number : int
        The sub-topology.
    program : Program
    """

    def __init__(self, plan: PathPlan, number: int, program: Program) -> None:
        self._plan, self._number, self._program = plan, number, program

    def run(self, given: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Write the rows; the end of input came as data."""
        assert given.rows is not None
        written = written_rows(given.rows, self._plan, self._number, self._program, given.output)
        if self._program.delta:
            written = given.persisted(written)
        topics = sorted({source.topic for source in given.ranges})
        home = HomePlace.of(self._program.config)
        read = reports_of_reading(given.rows.sparkSession, home, topics, given.ranges, topics)
        return written, taken_reports(reduce(DataFrame.union, read, written)), AppliedStep(given.number)


def output_mode(plan: PathPlan, number: int) -> OutputMode:
    """What Spark hands over of a windowed sub-topology: windows that are over, or with each step those that changed."""
    assert plan.facts is not None
    aggregates = [node for node in plan.nodes[number] if isinstance(node, g.WindowedAggregate)]
    return "append" if all(gives_final_results(node, plan.facts) for node in aggregates) else "update"


def windowed_stream(
    session: SparkSession,
    plan: PathPlan,
    number: int,
    program: Program,
    settings: SparkSettings,
    starts: Offsets,
    *,
    until_end: bool,
) -> DataFrame:
    """The rows that a windowed sub-topology writes, as a stream.

    Parameters
    ----------
    number : int
        The sub-topology.
    starts : mapping
        Where its sources begin, if that is not their beginning.
    until_end : bool
        Whether all windows close after the last row; those whose updates are asked for have no need to.
    """
    windows = [window_of(node) for node in plan.nodes[number]]
    # A window is final when the greatest time seen is its end and the grace: the grace is the watermark's delay.
    ends = until_end and output_mode(plan, number) == "append"
    grace_ms = max(window.grace_ms for window in windows if window is not None)

    def source(topics: list[str]) -> DataFrame:
        limits = session, HomePlace.of(program.config), topics, settings.max_records, starts
        missing = topics_to_miss(program)
        cut = [Admission(tuple(topics))]  # one watermark for all: it follows the time up to which they are cut
        rows = read_stream(*limits, admissions=cut, ends=ends, latest_ms=FAR_FUTURE_MS - 1, missing=missing)
        timed = rows.withColumn(EVENT_TIME, F.timestamp_millis("timestamp"))
        return timed.withWatermark(EVENT_TIME, f"{grace_ms} milliseconds")

    return relational_rows(plan, number, source, program)
