"""Runs a draw in the steps of the Spark engine, by its own tasks, state files and offsets, but without Spark.

A step takes milliseconds here, so that steps of a single record can be drawn by the thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxRows

from kstreams.config import Config
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.exchange.reports import TaskReport, resting_tasks
from kstreams.runtime.spark.exchange.rows import Offsets, positions_of
from kstreams.runtime.spark.io.from_log import from_log
from kstreams.runtime.spark.io.offset_ranges import OffsetRange, OffsetRanges, ranges_of_task
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import StreamReader, TopicReader
from kstreams.runtime.spark.program import Program, program_of, source_partitions
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import NO_STEP, AppliedStep, Step, batch_step, end_step
from kstreams.runtime.spark.tasks.global_tables import GlobalTableLoader, RunTask
from kstreams.runtime.spark.tasks.manifests import StepManifest
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from kstreams.runtime.spark.tasks.step_plans import StepPlan
from kstreams.runtime.spark.tasks.task_run import run_task
from kstreams.serdes import serde_of
from tests.spark.draws.draw import TYPES, Draw
from tests.spark.draws.engines import application
from tests.spark.draws.results import Results, record
from tests.spark.running import Application
from tests.spark.stepped import Given, run_step
from tests.spark.written_blocks import batches_of, split_reports

Size = Callable[[], int]
"""Most rows of the next step."""


def in_steps(draw: Draw, folder: Path, size: Size, forgets: Callable[[], bool] = lambda: False) -> Results:
    """All results of a draw.

    Parameters
    ----------
    draw : Draw
    folder : Path
    size : callable
    forgets : callable
        Whether the next step is run by a worker that knows nothing.
    """
    return _run(draw, folder, size, forgets).results


def ends_after(draw: Draw, app: Application, count: int) -> Mapping[TopicPartition, int]:
    """Where the first step of so many rows ends in each partition that an application reads in steps."""
    reader = _Steps(_program(draw, app)).reader()
    reader.prepareForTriggerAvailableNow()
    return positions_of(reader.latestOffset(reader.initialOffset(), ReadMaxRows(count)))


def _run(draw: Draw, folder: Path, size: Size, forgets: Callable[[], bool]) -> _Steps:
    steps = _Steps(_program(draw, application(draw, folder)))
    for rows in steps.run(size, forgets):
        steps.keep(rows)
    STATE_CACHE.clear()
    return steps


def _program(draw: Draw, app: Application) -> Program:
    # With Delta tasks give out what they write: it is taken from there, and no topic is written.
    delta = {"spark.kstreams.delta": str(app.folder / "delta")}
    config = Config.of({**app.settings, **delta, "spark.kstreams.snapshot.every": "3"})
    settings = SparkSettings.of(config)
    existing = dict.fromkeys(app.topics(), draw.partitions)
    layout = lay_out(app.topology, "app", existing)
    return program_of(app.topology, config, settings, layout, existing, str(app.folder / "checkpoint"))


def _in_this_process(program: Program) -> RunTask:
    def run(number: int, ranges: Sequence[OffsetRange], step: Step) -> list[TaskReport]:
        made = run_task(
            program, program.sub_topology(number), 0, step, from_log(HomeAddress.of(program.config), ranges)
        )
        return split_reports(made)[1]

    return run


class _Steps:
    """The steps of one application, one after the other."""

    def __init__(self, program: Program) -> None:
        self._program, self._globals = program, GlobalTableLoader(program, _in_this_process(program))
        self._sources = source_partitions(program, program.tasks.keys())
        self._manifest = StepManifest()
        self._last, self._resting = NO_STEP, frozenset[str]()
        self.results: Results = {}

    def run(self, size: Size, forgets: Callable[[], bool]) -> Iterable[pa.Table]:
        """The rows that every step writes to the topics of the user."""
        reader = self.reader()
        reader.prepareForTriggerAvailableNow()
        at, number = reader.initialOffset(), 0
        while (reached := reader.latestOffset(at, ReadMaxRows(size()))) != at:
            if forgets():
                STATE_CACHE.clear()
            yield self._step(batch_step(number), _ranges(at, reached))
            at, number = reached, number + 1
        if number:
            yield self._step(end_step(self._last), {})

    def keep(self, rows: pa.Table) -> None:
        """Add what a step has written to the results."""
        hidden = set(self._program.topic_names.values())
        for batch in batches_of(rows):
            topic, partition = batch.source
            if topic not in hidden:
                kept = self.results.setdefault(topic, [[] for _ in range(self._program.partitions.get(topic, 5))])
                kept[partition] += _records(batch)

    def reader(self) -> StreamReader:
        """What cuts the input into steps."""
        topics = sorted({source.topic for source in self._sources})
        cut = self._program.admissions(self._program.tasks.keys())
        return StreamReader(TopicReader(HomeAddress.of(self._program.config), topics, 1 << 60), None, admissions=cut)

    def _step(self, number: int, ranges: OffsetRanges) -> pa.Table:
        before = self._manifest
        plan = StepPlan(before.step, 0, self._globals.plan(number, before.globals))
        loaded = self._globals.load(number, plan, before)
        step = Step(number, end=bool(number % 2), states=before.states | loaded, resting=self._resting)
        reports: list[TaskReport] = []
        made, states = run_step(self._program, step, self._given(ranges), reports)
        self._resting = resting_tasks(reports)
        self._manifest, self._last = StepManifest(number, AppliedStep(), dict(states), plan.globals), number
        return pa.concat_tables(made)

    def _given(self, ranges: OffsetRanges) -> Given:
        def batches(number: int, partition: int) -> Iterable[Batch]:
            external = [topic for topic in self._program.inputs[number] if topic not in self._program.internal]
            return chain.from_iterable(
                from_log(HomeAddress.of(self._program.config), ranges_of_task(ranges, external, partition)).values()
            )

        return batches


def _ranges(start: Offsets, end: Offsets) -> OffsetRanges:
    begin = positions_of(start)
    return {source: (begin[source], at) for source, at in positions_of(end).items()}


def _records(batch: Batch) -> list[Any]:
    key, value = (serde_of(kind) for kind in TYPES[batch.source.topic])
    columns = key.decode_rows(batch.keys), value.decode_rows(batch.values), batch.timestamps.to_pylist()
    return [record(*row) for row in zip(*columns, strict=True)]
