"""The queries of relational sub-topologies for which Spark keeps state: their streams, and `WindowedSteps`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.runtime.spark.code.windowed_query import follows_time, waits_for_the_end
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.exchange.reports import TaskReport, taken_reports
from kstreams.runtime.spark.exchange.rows import FAR_FUTURE_MS, Offsets
from kstreams.runtime.spark.io.control_blocks import reports_of_reading
from kstreams.runtime.spark.io.deleted_input import skippable_topics
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import read_stream, rows_until_now, share_of
from kstreams.runtime.spark.program import Program, source_partitions
from kstreams.runtime.spark.relational.frame import EVENT_TIME
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.rows import rows_of_branches, rows_of_query
from kstreams.runtime.spark.relational.states_in_query import delay_of_query
from kstreams.runtime.spark.relational.written_rows import written_rows
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import AppliedStep

OutputMode = Literal["append", "update"]


class WindowedSteps:
    """The `StepExecutor` of a stateful query, whose rows Spark computes before the step begins.

    Parameters
    ----------
    plan : PathPlan
    number : int
        The sub-topology.
    program : Program
    """

    def __init__(self, plan: PathPlan, number: int, program: Program) -> None:
        self._plan = plan
        self._number = number
        self._program = program

    def run(self, step_input: StepInput) -> tuple[DataFrame, list[TaskReport], AppliedStep]:
        """Write the rows of a batch."""
        input_rows = step_input.required_rows()
        plan = self._plan
        number = self._number
        program = self._program
        home = HomeAddress.of(program.config)
        all_records = partial(rows_until_now, input_rows.sparkSession, home)
        rows = rows_of_branches(plan, number, input_rows, all_records, program, step_input.persisted)
        written = written_rows(rows, plan, number, program, step_input.output)
        if program.delta:
            written = step_input.persisted(written)
        topics = sorted({source.topic for source in step_input.ranges})
        read = reports_of_reading(input_rows.sparkSession, home, topics, step_input.ranges, topics)
        return written, taken_reports(reduce(DataFrame.union, read, written)), AppliedStep(step_input.number)


def output_mode(plan: PathPlan, number: int) -> OutputMode:
    """Return the output mode of a query: `append` for closed windows, `update` for all windows that changed."""
    return "update" if plan.emits_updates(number) else "append"


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
    """Return the rows of a stateful sub-topology as a stream.

    Parameters
    ----------
    number : int
        The sub-topology.
    starts : mapping
        The first offsets of sources that are not read from their beginning.
    until_end : bool
        True to close all windows after the last row. Windows whose updates are emitted need not close.
    """
    windowed = [node for node in plan.nodes[number] if follows_time(node)]
    typed = plan.typed
    all_topics = sorted({source.topic for source in source_partitions(program, plan.members(number))})

    def read(topics: Sequence[str], *, ends: bool) -> DataFrame:
        return read_stream(
            session,
            HomeAddress.of(program.config),
            topics,
            share_of(settings.max_records, topics, all_topics),
            starts,
            admissions=[Admission(tuple(topics))],  # a batch ends at one time in all topics: they share a watermark
            ends=ends,
            latest_ms=FAR_FUTURE_MS - 1,
            skippable=skippable_topics(program),
        )

    def with_times(topics: list[str]) -> DataFrame:
        rows = read(topics, ends=until_end and any(waits_for_the_end(node, typed) for node in windowed))
        timed = rows.withColumn(EVENT_TIME, F.timestamp_millis("timestamp"))
        timed = timed.withWatermark(EVENT_TIME, f"{delay_of_query(windowed, typed)} milliseconds")
        # The row that ends the input has moved the watermark; operators must not process it.
        return timed.where(F.col(EVENT_TIME) < F.timestamp_millis(F.lit(FAR_FUTURE_MS)))

    all_records = partial(rows_until_now, session, HomeAddress.of(program.config))
    if windowed:
        return rows_of_query(plan, number, with_times, all_records, program)
    # One stream reads all topics, so that a batch ends at one time in each of them.
    rows = read(all_topics, ends=False)
    return rows_of_query(plan, number, lambda topics: rows.where(F.col("topic").isin(topics)), all_records, program)
