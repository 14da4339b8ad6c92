"""The task path of one step: all sub-topologies one after the other, as one Spark plan.

A task reads its own partitions of source topics itself, straight from the log. What tasks write to a repartition topic
is shuffled to the tasks of the next sub-topology within the same step. Sub-topologies that feed each other in a circle
take turns, and each turn is a job of its own: only its rows tell whether another one is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.processor.topology.processing_order import feeding_in_circles, stages_of
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges, encode_ranges, ranges_of_task
from kstreams.runtime.spark.io.rows import OUT_SCHEMA
from kstreams.runtime.spark.plan import PathPlan
from kstreams.runtime.spark.program import Program, Step
from kstreams.runtime.spark.relational.rows import relational_rows
from kstreams.runtime.spark.reports import CONTROL_TOPIC, raise_first, split_reports
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
        Says which sub-topologies go the relational way.
    """

    def __init__(self, session: SparkSession, program: Program, packed: bytes, plan: PathPlan) -> None:
        self._session, self._program, self._packed, self._plan = session, program, packed, plan
        self._stages = [sorted(stage) for stage in stages_of(program.upstream) if not stage & plan.streaming]
        self._circles = feeding_in_circles(program.upstream)
        self._slots = session.sparkContext.defaultParallelism
        self._read_twice = frozenset().union(*program.upstream.values())
        relational = [number for stage in self._stages for number in stage if number in plan.nodes]
        self._several_read = sum(bool(self._external(number)) for number in relational) > 1
        repartition = frozenset(program.topic_names.values())
        self.past_tasks = [t for number in relational for t in program.inputs[number] if t not in repartition]
        """The user's topics whose records no task reads, one entry for each sub-topology that reads them."""

    def outputs(
        self, rows: DataFrame | None, moves: OffsetRanges, step: Step, resources: ExitStack
    ) -> tuple[DataFrame, dict[int, int]]:
        """The rows that one step writes to topics with what its tasks report, and the turns of those that took some.

        Parameters
        ----------
        rows : DataFrame or None
            The new rows of all source topics, for what is relational; None when there are none.
        moves : mapping
            Which rows those are, for tasks: each reads its own partitions by itself.
        resources : ExitStack
            To be closed when the rows have been taken.
        """
        if rows is not None and self._several_read:
            rows = _persisted(rows, resources)
        written: dict[int, DataFrame] = {}
        turns: dict[int, int] = {}
        for stage in self._stages:
            if self._circles.isdisjoint(stage):
                written[stage[0]] = self._once(stage[0], rows, moves, written, step, resources)
            else:
                taken = self._in_turns(stage, moves, written, step, resources)
                written |= {number: _united(frames) for number, frames in taken.items()}
                turns |= {number: len(frames) for number, frames in taken.items()}
        visible = [frame.where(~F.col("topic").isin(*self._hidden())) for frame in written.values()]
        return _united(visible), turns

    def _once(
        self,
        number: int,
        rows: DataFrame | None,
        moves: OffsetRanges,
        written: Mapping[int, DataFrame],
        step: Step,
        resources: ExitStack,
    ) -> DataFrame:
        handed_over = self._handed_over(number, written)
        if number in self._plan.nodes:
            frame = self._relational(number, rows, handed_over)
        else:
            frame = self._in_tasks(number, moves, handed_over, step)
        return _persisted(frame, resources) if number in self._read_twice else frame

    def _in_turns(
        self,
        members: list[int],
        moves: OffsetRanges,
        written: Mapping[int, DataFrame],
        step: Step,
        resources: ExitStack,
    ) -> dict[int, list[DataFrame]]:
        """The rows of sub-topologies that feed each other, turn by turn."""
        first = {number: self._handed_over(number, written) for number in members}

        def run(number: int, turn: int, waiting: Sequence[DataFrame]) -> tuple[DataFrame, set[str]]:
            mine = [frame.where(F.col("topic").isin(*self._program.read_within(number))) for frame in waiting]
            given, spans = ([*mine, *first[number]], moves) if turn == 0 else (mine, {})
            frame = _persisted(self._in_tasks(number, spans, given, step._replace(turn=turn)), resources)
            _, told = split_reports(frame.where(F.col("topic") == CONTROL_TOPIC).toArrow())
            raise_first(told)
            return frame, {topic for report in told for topic in report.wrote}

        return run_rounds(members, {number: self._program.read_within(number) for number in members}, run)

    def _relational(self, number: int, rows: DataFrame | None, handed_over: list[DataFrame]) -> DataFrame:
        external = [] if rows is None else [rows.withColumn("origin", F.lit(0).cast("bigint"))]
        given = [*external, *handed_over] or [self._marks(number, {}).limit(0)]
        united = _united(given)
        return relational_rows(
            self._plan, number, lambda topics: united.where(F.col("topic").isin(topics)), self._program
        )

    def _in_tasks(self, number: int, moves: OffsetRanges, handed_over: list[DataFrame], step: Step) -> DataFrame:
        marks, slots = self._marks(number, moves), min(self._slots, self._program.tasks[number])
        if handed_over:
            marks = _united([marks, *handed_over]).repartitionById(slots, F.col("partition") % slots)
        return marks.mapInArrow(tasks_in_arrow(self._packed, number, step), OUT_SCHEMA)

    def _handed_over(self, number: int, written: Mapping[int, DataFrame]) -> list[DataFrame]:
        """The rows of repartition topics that sub-topologies before this one wrote in this step."""
        internal = self._program.read_within(number)
        writers = [writer for writer in sorted(self._program.upstream[number]) if writer in written]
        return [written[writer].where(F.col("topic").isin(*internal)) for writer in writers]

    def _marks(self, number: int, moves: OffsetRanges) -> DataFrame:
        """A row for every task: it wakes the task and tells it which records of the log are its own."""
        count, topics = self._program.tasks[number], self._external(number)
        told = [F.lit(bytearray(encode_ranges(ranges_of_task(moves, topics, p)))) for p in range(count)]
        slots = min(self._slots, count)
        nothing, zero = F.lit(None).cast("binary"), F.lit(0).cast("bigint")
        columns = {
            "topic": F.lit(CONTROL_TOPIC),
            "partition": F.col("id").cast("int"),
            "offset": zero,
            "timestamp": zero,
            "key": nothing,
            "value": F.element_at(F.array(*told), F.col("id").cast("int") + 1),
            "headers": F.lit(None).cast("array<struct<name: string, value: binary>>"),
            "origin": zero,
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
