"""The task path of one step: all sub-topologies one after the other, as one Spark plan.

A task reads its own partitions of source topics itself, straight from the log. What tasks write to a repartition topic
is shuffled to the tasks of the next sub-topology within the same step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.errors import UnsupportedError
from kstreams.runtime.spark.plan import Plan
from kstreams.runtime.spark.program import Program, Step
from kstreams.runtime.spark.relational import relational_rows
from kstreams.runtime.spark.reports import MARK
from kstreams.runtime.spark.rows import OUT_SCHEMA
from kstreams.runtime.spark.spans import Moves, encode_spans, spans_of
from kstreams.runtime.spark.task_run import tasks_in_arrow


class Chain:
    """The sub-topologies of an application in the order in which they feed each other.

    Parameters
    ----------
    session : SparkSession
    program : Program
    packed : bytes
        The same program, packed for the workers.
    plan : Plan
        Says which sub-topologies go the relational way.
    """

    def __init__(self, session: SparkSession, program: Program, packed: bytes, plan: Plan) -> None:
        self._session, self._program, self._packed, self._plan = session, program, packed, plan
        self._order = [number for number in in_feeding_order(program) if number not in plan.streaming]
        self._slots = session.sparkContext.defaultParallelism
        self._read_twice = _feeding(program)
        relational = [number for number in self._order if number in plan.nodes]
        self._several_read = sum(bool(self._external(number)) for number in relational) > 1

    def outputs(self, rows: DataFrame | None, moves: Moves, step: Step) -> tuple[DataFrame, list[DataFrame]]:
        """The rows that one step writes to topics, with the counts of its tasks, and what to unpersist afterwards.

        Parameters
        ----------
        rows : DataFrame or None
            The new rows of all source topics, for what is relational; None when there are none.
        moves : mapping
            Which rows those are, for tasks: each reads its own partitions by itself.
        """
        kept: list[DataFrame] = []
        if rows is not None and self._several_read:
            kept.append(rows := rows.persist())
        written: dict[int, DataFrame] = {}
        for number in self._order:
            handed_over = self._handed_over(number, written)
            if number in self._plan.nodes:
                frame = self._relational(number, rows, handed_over)
            else:
                frame = self._in_tasks(number, moves, handed_over, step)
            if number in self._read_twice:
                kept.append(frame := frame.persist())
            written[number] = frame
        visible = [frame.where(~F.col("topic").isin(*self._hidden())) for frame in written.values()]
        return reduce(lambda left, right: left.union(right), visible), kept

    def _relational(self, number: int, rows: DataFrame | None, handed_over: list[DataFrame]) -> DataFrame:
        external = [] if rows is None else [rows.withColumn("origin", F.lit(0).cast("bigint"))]
        given = [*external, *handed_over] or [self._marks(number, {}).limit(0)]
        united = reduce(lambda left, right: left.union(right), given)
        return relational_rows(
            self._plan, number, lambda topics: united.where(F.col("topic").isin(topics)), self._program
        )

    def _in_tasks(self, number: int, moves: Moves, handed_over: list[DataFrame], step: Step) -> DataFrame:
        marks, slots = self._marks(number, moves), min(self._slots, self._program.tasks[number])
        if handed_over:
            united = reduce(lambda left, right: left.union(right), [marks, *handed_over])
            marks = united.repartitionById(slots, F.col("partition") % slots)
        return marks.mapInArrow(tasks_in_arrow(self._packed, number, step), OUT_SCHEMA)

    def _handed_over(self, number: int, written: Mapping[int, DataFrame]) -> list[DataFrame]:
        """The rows of repartition topics that sub-topologies before this one wrote in this step."""
        internal = [topic for topic in self._program.inputs[number] if topic in self._program.internal]
        writers = [writer for writer in writers_of(self._program, internal) if writer in written]
        return [written[writer].where(F.col("topic").isin(*internal)) for writer in writers]

    def _marks(self, number: int, moves: Moves) -> DataFrame:
        """A row for every task: it wakes the task and tells it which records of the log are its own."""
        count, topics = self._program.tasks[number], self._external(number)
        told = [F.lit(bytearray(encode_spans(spans_of(moves, topics, p)))) for p in range(count)]
        slots = min(self._slots, count)
        nothing, zero = F.lit(None).cast("binary"), F.lit(0).cast("bigint")
        columns = {
            "topic": F.lit(MARK),
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


def writers_of(program: Program, topics: Collection[str]) -> list[int]:
    """The sub-topologies that write one of these topics."""
    names = program.topic_names
    return [
        sub.id
        for sub in program.sub_topologies
        if any(isinstance(sink.topic, str) and names.get(sink.topic, sink.topic) in topics for sink in sub.sinks)
    ]


def in_feeding_order(program: Program) -> list[int]:
    """The sub-topologies (those of global tables aside), each after those that feed it.

    Raises
    ------
    UnsupportedError
        When some feed each other in a circle.
    """
    waiting = {sub.id: _feeders(program, sub.id) for sub in program.sub_topologies if not sub.is_global}
    order: list[int] = []
    while waiting:
        ready = sorted(number for number, feeders in waiting.items() if not feeders & waiting.keys())
        if not ready:
            raise UnsupportedError(
                f"Sub-topologies {sorted(waiting)} feed each other in a circle, which one micro-batch cannot run "
                "through; run this application on the native engine."
            )
        order += ready
        for number in ready:
            del waiting[number]
    return order


def _feeders(program: Program, number: int) -> set[int]:
    return set(writers_of(program, [topic for topic in program.inputs[number] if topic in program.internal]))


def _feeding(program: Program) -> set[int]:
    return set(writers_of(program, program.internal))
