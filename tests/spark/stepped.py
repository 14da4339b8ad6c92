"""An application in steps, run as Spark's workers run them, but without Spark: its tasks, state files and rounds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.batch import Row as LogRow
from kstreams.processor.topology.barriers import processing_order
from kstreams.processor.topology.layout import lay_out
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.exchange.blocks import Block, rows_of
from kstreams.runtime.spark.exchange.merged_blocks import merged
from kstreams.runtime.spark.exchange.reports import TaskReport, raise_first, resting_tasks
from kstreams.runtime.spark.exchange.rows import ARROW_OUT_SCHEMA
from kstreams.runtime.spark.program import Program, program_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import StateVersion, Step
from kstreams.runtime.spark.tasks.manifests import newest
from kstreams.runtime.spark.tasks.rounds import run_rounds
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from kstreams.runtime.spark.tasks.task_run import TaskInput, run_task
from kstreams.serdes import serde_of
from kstreams.testing import TopologyTestDriver
from tests.spark.running import Row, Types
from tests.spark.written_blocks import batches_of, split_reports

Output = tuple[Any, ...]
"""Topic, key, value and timestamp of a record, and its headers where a test asks for them."""


class Stepped:
    """A topology whose steps a test makes one by one, over topics of one partition.

    Parameters
    ----------
    topology : Topology or StreamsBuilder
    types : mapping
        Key and value type of every topic.
    inputs : collection of str
        The topics that it reads.
    folder : Path
        For what workers keep, and for the state files.
    checkpoint : str, optional
        Where the state files lie instead, a path or URI.
    **settings
        Of the application; the record cache is off.
    """

    def __init__(
        self,
        topology: Any,
        types: Types,
        inputs: Collection[str],
        folder: Path,
        checkpoint: str | None = None,
        **settings: Any,
    ) -> None:
        self.topology = topology if isinstance(topology, Topology) else topology.build()
        self.config = Config.of({"application.id": "app", "statestore.cache.max.bytes": 0, **settings})
        existing = dict.fromkeys(inputs, 1)
        layout = lay_out(self.topology, "app", existing)
        spark = SparkSettings(snapshot_every=3, state_dir=str(folder / "local"))
        self.program = program_of(self.topology, self.config, spark, layout, existing, checkpoint or str(folder))
        self.types, self._number = types, -2
        self._states: Mapping[str, StateVersion] = {}
        self._resting = frozenset[str]()
        self._offsets = dict.fromkeys(inputs, 0)
        self.reports: list[TaskReport] = []

    def step(
        self,
        rows: Sequence[Row],
        *,
        now_ms: int = 0,
        behind: Collection[str] = (),
        twice: bool = False,
        forget: bool = False,
        headers: bool = False,
    ) -> list[Output]:
        """What one more step puts out; on request run twice, the second time by a worker that may know nothing.

        `behind` names the topics that have more records than it takes.
        """
        self._number += 2
        known = len(self.reports)
        partitions = frozenset(TopicPartition(topic, 0) for topic in behind)
        step = Step(self._number, now_ms, states=self._states, behind=partitions, resting=self._resting)
        table = self._encoded(rows)
        for again in range(1 + twice):
            if forget and again == twice:
                forget_states(self.program)
            given = rows_in(self.program, table)
            tables, states = run_step(self.program, load_globals(self.program, step, given), given, self.reports)
        self._states, self._resting = states, resting_tasks(self.reports[known:])
        return [row for made in tables for row in self._decoded(made, headers=headers)]

    def driver_outputs(self, rows: Iterable[Row], topics: Iterable[str]) -> list[Output]:
        """What the test driver puts out for the same input, topic after topic."""
        driver = TopologyTestDriver(self.topology, self.config)
        inputs: dict[str, Any] = {}
        for row in rows:
            if row.topic not in inputs:
                key, value = self.types[row.topic]
                inputs[row.topic] = driver.create_input_topic(row.topic, key=key, value=value)
            inputs[row.topic].pipe_record(ks.Record(key=row.key, value=row.value, timestamp=row.timestamp))
        found: list[Output] = []
        for topic in topics:
            key, value = self.types[topic]
            records = driver.create_output_topic(topic, key=key, value=value).read_records()
            found += [(topic, record.key, record.value, record.timestamp) for record in records]
        return found

    def _encoded(self, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist([self._one(row) for row in rows], schema=ARROW_OUT_SCHEMA)

    def _one(self, row: Row) -> dict[str, Any]:
        offset = self._offsets[row.topic]
        self._offsets[row.topic] += 1
        place = {"topic": row.topic, "partition": 0, "offset": offset, "timestamp": row.timestamp}
        place |= {"origin": 0, "stream_time": row.timestamp}
        place |= {"headers": [{"name": name, "value": raw} for name, raw in row.headers] or None}
        items = zip(("key", "value"), (row.key, row.value), self.types[row.topic], strict=True)
        return place | {part: _bytes(item, kind) for part, item, kind in items}

    def _decoded(self, table: pa.Table, *, headers: bool) -> list[Output]:
        found = []
        for row in table.to_pylist():
            if row["topic"] in self.types:
                items = zip((row["key"], row["value"]), self.types[row["topic"]], strict=True)
                named = ([(each["name"], each["value"]) for each in row["headers"] or ()],) if headers else ()
                found.append((row["topic"], *(_object(raw, kind) for raw, kind in items), row["timestamp"], *named))
        return found


def forget_states(program: Program) -> None:
    """What a machine that never ran the application knows of its states."""
    STATE_CACHE.clear()
    shutil.rmtree(str(program.state_dir), ignore_errors=True)


def _bytes(item: Any, kind: Any) -> bytes | None:
    return None if item is None else serde_of(kind).serialize(item)


def _object(raw: bytes | None, kind: Any) -> Any:
    return None if raw is None else serde_of(kind).deserialize(raw)


Given = Callable[[int, int], Iterable[Batch]]
"""What the task of a sub-topology and a partition reads from outside in a step."""


def task_input_of(batches: Iterable[Batch]) -> TaskInput:
    """Return batches by their partitions."""
    task_input: dict[TopicPartition, list[Batch]] = {}
    for batch in batches:
        task_input.setdefault(batch.source, []).append(batch)
    return task_input


def written(blocks: Iterable[Block]) -> list[LogRow]:
    """The rows of some blocks, as a task of another sub-topology reads them."""
    return [row for rows in merged(blocks).values() for batch in rows for row in batch.rows()]


def load_globals(program: Program, step: Step, given: Given) -> Step:
    """Let the tasks of global tables run over the rows; the step that looks into what they have made."""
    states = dict(step.states)
    for sub in program.sub_topologies:
        if sub.is_global:
            made = run_task(program, sub, 0, step, task_input_of(given(sub.id, 0)))
            _, reports = split_reports(made)  # else only its state matters
            states |= newest(report.states for report in reports)
    return step._replace(states=states)


def rows_in(program: Program, rows: pa.Table) -> Given:
    """The rows of a table, given to the tasks that read them."""

    def batches(number: int, partition: int) -> Iterable[Batch]:
        return batches_of(_of_task(rows, program.inputs[number], partition))

    return batches


def run_step(
    program: Program, step: Step, given: Given, reports: list[TaskReport] | None = None
) -> tuple[list[pa.Table], Mapping[str, StateVersion]]:
    """The output of every sub-topology, as `SubTopologyChain` has it made; and the state that the step leaves."""
    produced: list[list[Block]] = []
    states = dict(step.states)
    gathered: list[TaskReport] = [] if reports is None else reports

    def run(number: int, round_number: int, waiting: Sequence[list[Block]]) -> tuple[list[Block], Collection[str]]:
        again = round_number > 0
        parts, outside = ([*waiting], _nothing) if again else ([*before, *waiting], given)
        goes_on, known = step._replace(round_number=round_number, states=states), len(gathered)
        made = _run(program, number, goes_on, outside, [block for part in parts for block in part], gathered)
        states.update(newest(report.states for report in gathered[known:]))
        return made, {block.topic for block in made}

    for stage in processing_order(program.upstream):
        before = list(produced)
        taken = run_rounds(sorted(stage), {number: program.read_within(number) for number in stage}, run)
        produced += [blocks for parts in taken.values() for blocks in parts]
    return [rows_of(blocks) for blocks in produced], states


def _nothing(number: int, partition: int) -> Iterable[Batch]:
    return ()


def _run(
    program: Program, number: int, step: Step, given: Given, blocks: Sequence[Block], gathered: list[TaskReport]
) -> list[Block]:
    """All tasks of a sub-topology."""
    sub, within, made = program.sub_topology(number), program.read_within(number), []
    for partition in range(program.tasks[number]):
        handed_over = merged(block for block in blocks if block.topic in within and block.partition == partition)
        task_input = {**task_input_of(given(number, partition)), **handed_over}
        made += run_task(program, sub, partition, step, task_input)
    written_blocks, reports = split_reports(made)
    raise_first(reports)
    gathered += reports
    return written_blocks


def _of_task(rows: pa.Table, topics: Iterable[str], partition: int) -> pa.Table:
    return _among(rows.filter(pc.equal(rows["partition"], partition)), topics)


def _among(rows: pa.Table, topics: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["topic"], pa.array(list(topics), pa.string())))
