"""The task path of one step: all sub-topologies one after the other, as one Spark plan.

A task reads its own partitions of source topics itself, straight from the log. What tasks write to a repartition topic
is shuffled to the tasks of the next sub-topology within the same step. Sub-topologies that feed each other in a circle
run in rounds, and each round is a job of its own: only its rows show whether another one is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.processor.topology.processing_order import in_cycles, processing_order
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges, encode_ranges, ranges_of_task
from kstreams.runtime.spark.io.reports import CONTROL_TOPIC, raise_first, split_reports
from kstreams.runtime.spark.io.rows import OUT_SCHEMA
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.relational.rows import relational_rows
from kstreams.runtime.spark.steps import Step
from kstreams.runtime.spark.tasks.rounds import run_rounds
from kstreams.runtime.spark.tasks.task_run import tasks_in_arrow


class SubTopologyChain:
    """The sub-topologies of an application in the order in which they feed each other.

    Parameters
    ----------
    session : SparkSession
    program : Program
    packed : bytes
        The same program, packed for the workers.
    plan : PathPlan
        Names the sub-topologies on the relational path.
    """

    def __init__(self, session: SparkSession, program: Program, packed: bytes, plan: PathPlan) -> None:
        self._session, self._program, self._packed, self._plan = session, program, packed, plan
        self._stages = [sorted(stage) for stage in processing_order(program.upstream) if not stage & plan.streaming]
        self._circles = in_cycles(program.upstream)
        self._slots = session.sparkContext.defaultParallelism
        self._read_twice = frozenset().union(*program.upstream.values())
        relational = [number for stage in self._stages for number in stage if number in plan.nodes]
        self._several_read = sum(bool(self._external(number)) for number in relational) > 1
        repartition = frozenset(program.topic_names.values())
        self.past_tasks = [t for number in relational for t in program.inputs[number] if t not in repartition]
        """The user's topics whose records no task reads, one entry for each sub-topology that reads them."""

    def outputs(
        self, rows: DataFrame | None, ranges: OffsetRanges, step: Step, resources: ExitStack
    ) -> tuple[DataFrame, dict[int, int]]:
        """The rows that one step writes, with the reports of its tasks; and how many rounds those in circles took.

        Parameters
        ----------
        rows : DataFrame or None
            The new rows of all source topics, for what is relational; None when there are none.
        ranges : mapping
            The offsets of those rows, for tasks: each reads its own partitions itself.
        resources : ExitStack
            Closed when the rows have been taken.
        """
        if rows is not None and self._several_read:
            rows = _persisted(rows, resources)
        written: dict[int, DataFrame] = {}
        rounds: dict[int, int] = {}
        for stage in self._stages:
            if self._circles.isdisjoint(stage):
                written[stage[0]] = self._once(stage[0], rows, ranges, written, step, resources)
            else:
                taken = self._in_rounds(stage, ranges, written, step, resources)
                written |= {number: _united(frames) for number, frames in taken.items()}
                rounds |= {number: len(frames) for number, frames in taken.items()}
        visible = [frame.where(~F.col("topic").isin(*self._hidden())) for frame in written.values()]
        return _united(visible), rounds

    def _once(
        self,
        number: int,
        rows: DataFrame | None,
        ranges: OffsetRanges,
        written: Mapping[int, DataFrame],
        step: Step,
        resources: ExitStack,
    ) -> DataFrame:
        handed_over = self._handed_over(number, written)
        if number in self._plan.nodes:
            frame = self._relational(number, rows, handed_over)
        else:
            frame = self._in_tasks(number, ranges, handed_over, step)
        return _persisted(frame, resources) if number in self._read_twice else frame

    def _in_rounds(
        self,
        members: list[int],
        ranges: OffsetRanges,
        written: Mapping[int, DataFrame],
        step: Step,
        resources: ExitStack,
    ) -> dict[int, list[DataFrame]]:
        """The rows of sub-topologies that feed each other, round by round."""
        first = {number: self._handed_over(number, written) for number in members}

        def run(number: int, round_number: int, waiting: Sequence[DataFrame]) -> tuple[DataFrame, set[str]]:
            mine = [frame.where(F.col("topic").isin(*self._program.read_within(number))) for frame in waiting]
            given, read = ([*mine, *first[number]], ranges) if round_number == 0 else (mine, {})
            rows = self._in_tasks(number, read, given, step._replace(round_number=round_number))
            frame = _persisted(rows, resources)
            _, reports = split_reports(frame.where(F.col("topic") == CONTROL_TOPIC).toArrow())
            raise_first(reports)
            return frame, {topic for report in reports for topic in report.wrote}

        return run_rounds(members, {number: self._program.read_within(number) for number in members}, run)

    def _relational(self, number: int, rows: DataFrame | None, handed_over: list[DataFrame]) -> DataFrame:
        zero = F.lit(0).cast("bigint")
        external = [] if rows is None else [rows.withColumns({"origin": zero, "stream_time": zero})]
        given = [*external, *handed_over] or [self._control_rows(number, {}).limit(0)]
        united = _united(given)
        return relational_rows(
            self._plan, number, lambda topics: united.where(F.col("topic").isin(topics)), self._program
        )

    def _in_tasks(self, number: int, ranges: OffsetRanges, handed_over: list[DataFrame], step: Step) -> DataFrame:
        control, slots = self._control_rows(number, ranges), min(self._slots, self._program.tasks[number])
        if handed_over:
            control = _united([control, *handed_over]).repartitionById(slots, F.col("partition") % slots)
        return control.mapInArrow(tasks_in_arrow(self._packed, number, step), OUT_SCHEMA)

    def _handed_over(self, number: int, written: Mapping[int, DataFrame]) -> list[DataFrame]:
        """The rows of repartition topics that sub-topologies before this one wrote in this step."""
        internal = self._program.read_within(number)
        writers = [writer for writer in sorted(self._program.upstream[number]) if writer in written]
        return [written[writer].where(F.col("topic").isin(*internal)) for writer in writers]

    def _control_rows(self, number: int, ranges: OffsetRanges) -> DataFrame:
        """A control row for every task, so that it runs; holds the offset ranges that the task reads from the log."""
        count, topics = self._program.tasks[number], self._external(number)
        encoded = [F.lit(bytearray(encode_ranges(ranges_of_task(ranges, topics, p)))) for p in range(count)]
        slots = min(self._slots, count)
        nothing, zero = F.lit(None).cast("binary"), F.lit(0).cast("bigint")
        columns = {
            "topic": F.lit(CONTROL_TOPIC),
            "partition": F.col("id").cast("int"),
            "offset": zero,
            "timestamp": zero,
            "key": nothing,
            "value": F.element_at(F.array(*encoded), F.col("id").cast("int") + 1),
            "headers": F.lit(None).cast("array<struct<name: string, value: binary>>"),
            "origin": zero,
            "stream_time": zero,
        }
        return self._session.range(0, count, 1, slots).select(*(c.alias(name) for name, c in columns.items()))

    def _external(self, number: int) -> list[str]:
        return [topic for topic in self._program.inputs[number] if topic not in self._program.internal]

    def _hidden(self) -> list[str]:
        return [*self._program.topic_names.values(), "\0"]  # isin() wants at least one


def _united(frames: Collection[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.union(right), frames)


def _persisted(frame: DataFrame, resources: ExitStack) -> DataFrame:
    resources.callback(frame.unpersist)
    return frame.persist()
