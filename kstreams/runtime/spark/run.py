"""`SparkRunner`: runs a topology as one streaming query, step by step, each step exactly once.

A step is a micro-batch of Spark, or the end of bounded input after one. Its plan is on disk before it runs; its state
files may be written any number of times; it counts when the log has committed its rows, its positions and its number
in one transaction. Whatever happens in between, the step is run again from the same parent.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kstreams.batch import TopicPartition
from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.errors import KStreamsError, StateError
from kstreams.log.api import Log
from kstreams.processor.layout import Layout, lay_out
from kstreams.processor.topology import SubTopology, Topology
from kstreams.runtime.spark.chain import Chain
from kstreams.runtime.spark.checkpoint import Checkpoint
from kstreams.runtime.spark.delta import DeltaSink
from kstreams.runtime.spark.global_tables import GlobalTables
from kstreams.runtime.spark.plan import plan_of
from kstreams.runtime.spark.program import Program, batch_step, end_step
from kstreams.runtime.spark.reports import Report, dropped_records, raise_first, split_reports, unwrapped
from kstreams.runtime.spark.rows import positions_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.shipping import pack
from kstreams.runtime.spark.sink import LogSink
from kstreams.runtime.spark.source import register
from kstreams.runtime.spark.state_files import NO_STEP
from kstreams.runtime.spark.steps import StepPlan, StepPlans, batch_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)


@dataclass
class Progress:
    """What a run has done since its start; `records_in` counts records of source topics."""

    records_in: int = 0
    records_out: Counter[str] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    commits: int = 0
    lag: int = 0


OnProgress = Callable[[Progress], None]


class SparkRunner:
    """One application on Spark.

    Parameters
    ----------
    topology : Topology
    config : Config
    session : SparkSession
    log : Log
        The embedded log in `log.dir`.
    clock : Clock
    on_progress : callable, optional
        Told after every step.

    Raises
    ------
    UnknownTopicError, TopologyError
        When the topology does not fit the topics, or the checkpoint belongs to another topology.
    UnsupportedError
        When sub-topologies feed each other in a circle.
    """

    def __init__(
        self,
        topology: Topology,
        config: Config,
        session: SparkSession,
        log: Log,
        clock: Clock,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._session, self._log, self._clock, self._config = session, log, clock, config
        self._settings = settings = SparkSettings.of(config)
        self._on_progress, self.progress = on_progress, Progress()
        existing = _existing(log)
        layout = lay_out(topology, config.application_id, existing)
        self._checkpoint = Checkpoint(settings.checkpoint / config.application_id, topology)
        self._program = program = program_of(topology, config, settings, layout, existing, self._checkpoint.root)
        self._sources = source_partitions(program)
        self._plans = StepPlans(self._checkpoint.root)
        self._globals = GlobalTables(program, str(config["log.dir"]))
        plan = plan_of(topology, settings.path)
        self._chain = Chain(session, program, pack(program), plan)
        group, id_ = f"{config.application_id}-spark", self._checkpoint.id
        self._sink = LogSink(
            log, group, self._sources, settings.prefix, id_, program.partitions, program.default_partitions
        )
        self._sink.create_topics(fixed_sinks(program.sub_topologies) - program.topic_names.keys())
        self._delta = None if settings.delta is None else DeltaSink(session, settings.delta, program, f"{group}-{id_}")
        self._error: BaseException | None = None
        register(session)

    def run(self, *, once: bool = False, until_end: bool = False, stop: threading.Event | None = None) -> Progress:
        """Run until the input ends (`once`, `until_end`) or until `stop` is set.

        With `until_end`, what is still open is closed after the last row: windows, suppress, unmatched join rows.
        """
        try:
            self._stream(bounded=once or until_end, stop=stop or threading.Event())
            last = self._sink.last_step()
            if until_end and last not in (NO_STEP, end_step(last)):
                self._apply(end_step(last), None, self._sink.positions())
        finally:
            self._sink.close()
        return self.progress

    def _stream(self, *, bounded: bool, stop: threading.Event) -> None:
        rows = (
            self._session.readStream.format("kstreams")
            .option("path", str(self._config["log.dir"]))
            .option("topics", ",".join(sorted({source.topic for source in self._sources})))
            .option("maxRecordsPerTrigger", self._settings.max_records)
            .load()
        )
        writer = rows.writeStream.foreachBatch(self._batch).option("checkpointLocation", self._checkpoint.query)
        pause = f"{self._config['poll.ms']} milliseconds"
        query = (writer.trigger(availableNow=True) if bounded else writer.trigger(processingTime=pause)).start()
        try:
            while not query.awaitTermination(0.2):
                if stop.is_set():
                    query.stop()
        except Exception as error:
            query.stop()
            raise (self._error or unwrapped(error)) from error

    def _batch(self, rows: DataFrame, batch_id: int) -> None:
        """What Spark calls for every micro-batch, again for one that it does not know to be done."""
        step, last = batch_step(batch_id), self._sink.last_step()
        try:
            if step <= last:
                return
            if last >> 1 != batch_id - 1:
                raise StateError(
                    f"The checkpoint {self._checkpoint.root} goes on with step {step}, but the log knows of "
                    f"{'none' if last == NO_STEP else last} before it: one of them was replaced. Run with --reset."
                )
            self._apply(step, rows, positions_of(batch_end(self._checkpoint.query, batch_id)))
        except KStreamsError as error:
            self._error = error
            raise

    def _apply(self, number: int, rows: DataFrame | None, positions: Mapping[TopicPartition, int]) -> None:
        plan = self._planned(number)
        rows_out, kept = self._chain.outputs(rows, plan.step(number))
        try:
            table, reports = split_reports(rows_out.toArrow())
        finally:
            for frame in kept:
                frame.unpersist()
        raise_first(reports)
        if self._delta is not None:
            self._delta.apply(number, table)
        before = self._sink.positions()
        written = self._sink.apply(number, table, positions)
        self._count(sum(at - before.get(source, 0) for source, at in positions.items()), written, reports)

    def _planned(self, number: int) -> StepPlan:
        parent, known = self._sink.last_step(), self._plans.get(number)
        before = self._plans.get(parent)
        tables = {} if before is None else before.globals
        if known is None or known.parent != parent:
            known = StepPlan(parent, self._clock.now_ms(), self._globals.plan(number, tables))
            self._plans.put(number, known)
        self._globals.load(number, known.globals, tables, known.now_ms)
        return known

    def _count(self, records_in: int, written: Counter[str], reports: list[Report]) -> None:
        progress = self.progress
        progress.commits += 1
        progress.records_in += records_in
        progress.records_out += written
        for place, count in dropped_records(reports).items():
            if place not in progress.dropped:
                logger.warning("%s dropped %d records: %s", place[0], count, place[1])
            progress.dropped[place] += count
        if self._on_progress is not None:
            progress.lag = self._lag()
            self._on_progress(progress)

    def _lag(self) -> int:
        positions = self._sink.positions()
        with self._log.admin() as admin:
            ends = admin.end_offsets(self._sources)
        return sum(max(0, ends[source] - at) for source, at in positions.items())


def program_of(
    topology: Topology,
    config: Config,
    settings: SparkSettings,
    layout: Layout,
    existing: Mapping[str, int],
    checkpoint: str,
) -> Program:
    """What the workers are told of an application."""
    tasks = Counter(task.id.sub_topology for task in layout.tasks)
    read = {topic for topics in layout.inputs.values() for topic in topics}
    repartition = frozenset(layout.topic_names.values())
    through = frozenset(topic for topic in fixed_sinks(topology.sub_topologies) if topic in read)
    prefixed = {t.removeprefix(settings.prefix): n for t, n in existing.items() if t.startswith(settings.prefix)}
    routed = {topic: layout.partitions[topic] for topic in (*read, *repartition)}
    return Program(
        config=config,
        sub_topologies=topology.sub_topologies,
        inputs=layout.inputs,
        topic_names=layout.topic_names,
        partitions={**layout.partitions, **prefixed, **routed},
        tasks=tasks,
        checkpoint=checkpoint,
        internal=repartition | through,
        snapshot_every=settings.snapshot_every,
    )


def source_partitions(program: Program) -> list[TopicPartition]:
    """All partitions of the topics that the streaming query reads."""
    topics = {
        topic
        for sub in program.sub_topologies
        if not sub.is_global
        for topic in program.inputs[sub.id]
        if topic not in program.internal
    }
    return [TopicPartition(topic, p) for topic in sorted(topics) for p in range(program.partitions[topic])]


def fixed_sinks(sub_topologies: Iterable[SubTopology]) -> set[str]:
    """The topics that are written to, by their names in the topology; those chosen per record aside."""
    return {sink.topic for sub in sub_topologies for sink in sub.sinks if isinstance(sink.topic, str)}


def _existing(log: Log) -> dict[str, int]:
    with log.admin() as admin:
        return {name: topic.partitions for name, topic in admin.topics().items()}
