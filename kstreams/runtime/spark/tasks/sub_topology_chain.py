"""`SubTopologyChain`: the task path of one step, all sub-topologies one after the other in one Spark plan.

A task reads its partitions of source topics directly from the log and writes to topics itself. Spark shuffles the
records of repartition topics to the tasks of the next sub-topology within the same step. Sub-topologies in a cycle run
in rounds. Each round is a job of its own, since only the reports of a round tell whether another round is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kstreams.processor.topology.barriers import in_cycles, processing_order
from kstreams.runtime.spark.cluster.session import task_slots
from kstreams.runtime.spark.exchange.blocks import BLOCK_SCHEMA
from kstreams.runtime.spark.exchange.reports import raise_first, taken_reports
from kstreams.runtime.spark.exchange.rows import titled
from kstreams.runtime.spark.io.control_blocks import ControlBlocks
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges, ranges_of_task
from kstreams.runtime.spark.io.output_topics import StepOutput
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.step_input import StepInput
from kstreams.runtime.spark.steps import StateVersion, Step
from kstreams.runtime.spark.tasks.manifests import newest
from kstreams.runtime.spark.tasks.rounds import run_rounds
from kstreams.runtime.spark.tasks.task_run import tasks_in_arrow


class SubTopologyChain:
    """The sub-topologies of an application in processing order.

    Parameters
    ----------
    session : SparkSession
    program : Program
    packed : bytes
        The program, packed for the workers.
    plan : PathPlan
        The plan that names the sub-topologies of queries, which do not run in steps of tasks.
    """

    def __init__(self, session: SparkSession, program: Program, packed: bytes, plan: PathPlan) -> None:
        self._session = session
        self._program = program
        self._packed = packed
        self._plan = plan
        self._stages = [sorted(stage) for stage in processing_order(program.upstream) if not stage & plan.in_queries]
        self._cyclic = in_cycles(program.upstream)
        self._controls = ControlBlocks(session)
        self._globals = [sub.id for sub in program.sub_topologies if sub.is_global]
        self._partition = F.col("partition")
        self._writers = frozenset().union(*program.upstream.values())
        self._in_frame_of_reader = frozenset() if program.delta else self._only_read_by_tasks()

    def outputs(self, step_input: StepInput, step: Step) -> DataFrame:
        """Return the rows that one step hands to Spark, and the reports of its tasks."""
        written: dict[int, DataFrame] = {}
        for stage in self._stages:
            if self._cyclic.isdisjoint(stage):
                written[stage[0]] = self._run_once(stage[0], step_input, step, written)
            else:
                frames_of_rounds = self._in_rounds(stage, step_input, step, written)
                written |= {number: _united(frames) for number, frames in frames_of_rounds.items()}
        return _united([frame for number, frame in written.items() if number not in self._in_frame_of_reader])

    def _only_read_by_tasks(self) -> frozenset[int]:
        """Return the sub-topologies whose only reader runs in tasks: its frame includes their frames and reports."""
        upstream = self._program.upstream
        readers = {number: [other for other, writers in upstream.items() if number in writers] for number in upstream}
        run_once = {stage[0] for stage in self._stages} - self._cyclic
        return frozenset(
            writer
            for writer, readers_of_writer in readers.items()
            if writer in run_once and len(readers_of_writer) == 1 and readers_of_writer[0] in run_once
        )

    def _run_once(self, number: int, step_input: StepInput, step: Step, written: Mapping[int, DataFrame]) -> DataFrame:
        blocks = self._blocks_for(number, written)
        frame = self._in_tasks(number, step_input.ranges, blocks, step, step_input.output)
        is_read_again = number in self._writers - self._in_frame_of_reader
        return step_input.persisted(frame) if is_read_again or self._program.delta else frame

    def _in_rounds(
        self, members: list[int], step_input: StepInput, step: Step, written: Mapping[int, DataFrame]
    ) -> dict[int, list[DataFrame]]:
        """Return the rows of each round of sub-topologies in a cycle."""
        blocks_of_first_round = {number: self._blocks_for(number, written) for number in members}
        versions: dict[str, StateVersion] = {}

        def run(number: int, round_number: int, pending: Sequence[DataFrame]) -> tuple[DataFrame, set[str]]:
            blocks = [self._of_topics(frame, number) for frame in pending]
            ranges: OffsetRanges = {}
            if round_number == 0:
                blocks += blocks_of_first_round[number]
                ranges = step_input.ranges
            round_step = step._replace(round_number=round_number, states={**step.states, **versions})
            frame = step_input.persisted(self._in_tasks(number, ranges, blocks, round_step, step_input.output))
            reports = taken_reports(frame)
            raise_first(reports)
            versions.update(newest(report.states for report in reports))
            return frame, {topic for report in reports for topic in report.shuffled_topics}

        return run_rounds(members, {number: self._program.read_within(number) for number in members}, run)

    def _in_tasks(
        self, number: int, ranges: OffsetRanges, blocks: list[DataFrame], step: Step, output: StepOutput
    ) -> DataFrame:
        count = self._program.tasks[number]
        topics = self._external(number)
        slots = min(task_slots(self._session), count)
        ranges_of_tasks = [ranges_of_task(ranges, topics, partition) for partition in range(count)]
        frame = self._controls.of(count, slots)
        if blocks:
            frame = _united([frame, *blocks]).repartitionById(slots, self._partition % slots)
            frame = frame.sortWithinPartitions(self._partition)
        step_of_tasks = step.only({number, *self._globals})
        run_tasks = tasks_in_arrow(self._packed, number, step_of_tasks, output.writer, ranges_of_tasks)
        title = f"sub-topology {number}: {self._plan.operators(number)}"
        return frame.mapInArrow(titled(run_tasks, title), BLOCK_SCHEMA)

    def _blocks_for(self, number: int, written: Mapping[int, DataFrame]) -> list[DataFrame]:
        """Return the blocks that upstream sub-topologies have written in this step for this one.

        If this sub-topology is the only reader of a writer, the frame also holds that writer's reports.
        """
        writers = [writer for writer in sorted(self._program.upstream[number]) if writer in written]
        return [
            written[writer] if writer in self._in_frame_of_reader else self._of_topics(written[writer], number)
            for writer in writers
        ]

    def _of_topics(self, frame: DataFrame, number: int) -> DataFrame:
        """Return the blocks of the internal topics that a sub-topology reads."""
        return frame.where(F.col("topic").isin(*self._program.read_within(number)))

    def _external(self, number: int) -> list[str]:
        return [topic for topic in self._program.inputs[number] if topic not in self._program.internal]


def _united(frames: Collection[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.union(right), frames)
