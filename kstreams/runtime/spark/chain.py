"""The task path of one step: all sub-topologies one after the other, as one Spark plan.

Each sub-topology's input is shuffled to its tasks, and what a task writes to a repartition topic is the input of the
next sub-topology within the same step.
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
        self._several_read = sum(bool(self._external(number)) for number in self._order) > 1

    def outputs(self, rows: DataFrame | None, step: Step) -> tuple[DataFrame, list[DataFrame]]:
        """The rows that one step writes to topics, with the counts of its tasks, and what to unpersist afterwards.

        Parameters
        ----------
        rows : DataFrame or None
            The new rows of all source topics; None when there are none.
        """
        kept: list[DataFrame] = []
        if rows is not None and self._several_read:
            kept.append(rows := rows.persist())
        written: dict[int, DataFrame] = {}
        for number in self._order:
            frame = self._frame(number, self._input(number, rows, written), step)
            if number in self._read_twice:
                kept.append(frame := frame.persist())
            written[number] = frame
        visible = [frame.where(~F.col("topic").isin(*self._hidden())) for frame in written.values()]
        return reduce(lambda left, right: left.union(right), visible), kept

    def _frame(self, number: int, rows: DataFrame, step: Step) -> DataFrame:
        if number in self._plan.nodes:
            return relational_rows(
                self._plan, number, lambda topics: rows.where(F.col("topic").isin(topics)), self._program
            )
        return self._in_tasks(number, rows, step)

    def _in_tasks(self, number: int, rows: DataFrame, step: Step) -> DataFrame:
        slots = min(self._slots, self._program.tasks[number])
        placed = rows.repartitionById(slots, F.col("partition") % slots)
        return placed.mapInArrow(tasks_in_arrow(self._packed, number, step), OUT_SCHEMA)

    def _input(self, number: int, rows: DataFrame | None, written: Mapping[int, DataFrame]) -> DataFrame:
        """Marks that wake every task, rows of source topics, and rows of repartition topics written in this step."""
        parts = [] if number in self._plan.nodes else [self._marks(number)]
        if rows is not None and (external := self._external(number)):
            parts.append(rows.where(F.col("topic").isin(*external)).withColumn("origin", F.lit(0).cast("bigint")))
        internal = [topic for topic in self._program.inputs[number] if topic in self._program.internal]
        parts += [
            written[writer].where(F.col("topic").isin(*internal))
            for writer in writers_of(self._program, internal)
            if writer in written
        ]
        return reduce(lambda left, right: left.union(right), parts or [self._marks(number).limit(0)])

    def _marks(self, number: int) -> DataFrame:
        count = self._program.tasks[number]
        columns = "cast(id as int), 0L, 0L, cast(null as binary), cast(null as binary), null, 0L"
        return self._session.range(0, count, 1, 1).selectExpr(f"'{MARK}'", *columns.split(", ")).toDF(*_NAMES)

    def _external(self, number: int) -> list[str]:
        return [topic for topic in self._program.inputs[number] if topic not in self._program.internal]

    def _hidden(self) -> list[str]:
        return [*self._program.topic_names.values(), "\0"]  # isin() wants at least one


_NAMES = ("topic", "partition", "offset", "timestamp", "key", "value", "headers", "origin")


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
