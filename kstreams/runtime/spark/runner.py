"""`SparkRunner`: runs a topology as one step loop for all tasks and one streaming query per windowed sub-topology."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from kstreams.config import Config
from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.kernel.source_line import brief_operator
from kstreams.log import home_of
from kstreams.log.api import Ability, Log
from kstreams.log.readable_ends import readable_ends
from kstreams.os.file_lock import FileLock
from kstreams.processor.context.failures import Drops
from kstreams.processor.topology.topic_types import types_written
from kstreams.processor.topology.topology import SubTopology, Topology
from kstreams.runtime.connectors import ApplicationConnectors
from kstreams.runtime.spark.batch_measures import BatchMeasures
from kstreams.runtime.spark.cluster.session import session_for_steps, task_slots
from kstreams.runtime.spark.cluster.shipping import pack
from kstreams.runtime.spark.code.execution import SinkProgram
from kstreams.runtime.spark.code.windowed_query import waits_for_the_end
from kstreams.runtime.spark.connector_queries import ConnectorQuery, SparkConnectors
from kstreams.runtime.spark.connector_tasks import ExecutorQuery
from kstreams.runtime.spark.exchange.reports import TaskReport, dropped_records, written_records
from kstreams.runtime.spark.exchange.rows import Offsets, positions_of
from kstreams.runtime.spark.feed_purge import FeedPurge
from kstreams.runtime.spark.feed_queries import DataFrameFeeds
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.control_blocks import ControlBlocks
from kstreams.runtime.spark.io.coordinated import CoordinatedCommits
from kstreams.runtime.spark.io.deleted_input import DeletedInput, skippable_topics
from kstreams.runtime.spark.io.delta import DeltaSink
from kstreams.runtime.spark.io.direct import DirectCommits
from kstreams.runtime.spark.io.offset_reset import starting_offsets
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.output_topics import OutputTopics
from kstreams.runtime.spark.io.position_commits import PositionCommits
from kstreams.runtime.spark.io.sink import LogSink, StepCommits
from kstreams.runtime.spark.io.source import ROWS_PER_TASK, StreamReader, TopicReader
from kstreams.runtime.spark.io.staged.commits import StagedCommits
from kstreams.runtime.spark.io.staged.publication import Publication, publish
from kstreams.runtime.spark.io.staged.rows import StagedRows
from kstreams.runtime.spark.partition_watch import PartitionWatch
from kstreams.runtime.spark.prepared import prepare
from kstreams.runtime.spark.program import fixed_sinks, query_group_of, source_partitions
from kstreams.runtime.spark.program_queries import ProgramQuery
from kstreams.runtime.spark.progress import OnProgress, SparkProgress
from kstreams.runtime.spark.query import ExactlyOnceSteps, OnBegin, OnStep, PartitionsAdded, StepExecutor, StepQuery
from kstreams.runtime.spark.relational.idle_input import Backlog, IdleInput
from kstreams.runtime.spark.relational.idle_partitions import NEVER_IDLE, idle_limits_of
from kstreams.runtime.spark.relational.inputs import ProgramInputs, TopicStreams, topic_streams
from kstreams.runtime.spark.relational.partition_clocks import PartitionClocks
from kstreams.runtime.spark.relational.program_counts import ProgramCounts
from kstreams.runtime.spark.relational.program_sinks import ProgramSink, program_sinks
from kstreams.runtime.spark.relational.program_steps import ProgramSteps, WrittenTopic
from kstreams.runtime.spark.relational.source_offsets import SourceOffsets
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.step_events import StepEvents, describe_jobs
from kstreams.runtime.spark.step_loop import StepLoop
from kstreams.runtime.spark.step_sensors import StepSensors
from kstreams.runtime.spark.storage.location import below, for_spark
from kstreams.runtime.spark.tasks.global_tables import GlobalTableLoader, on_an_executor
from kstreams.runtime.spark.tasks.sub_topology_chain import SubTopologyChain
from kstreams.runtime.spark.tasks.task_steps import TaskSteps
from kstreams.runtime.spark.unreadable_records import DeadLetterSteps, UnreadableRecords

logger = logging.getLogger(__name__)


def driver_lock(config: Config, *, shared: bool) -> AbstractContextManager[object]:
    """Return the lock of an application's drivers.

    Several drivers may share the lock, and the log lets only the newest one commit. An exclusive lock keeps drivers
    from starting while the state is moved or deleted.
    """
    name = config.application_id
    home = home_of(config)
    path = home.lock_file(f"{name}-spark")
    return FileLock(path, f"The application {name!r} on Spark", shared=shared) if path else nullcontext()


WAIT_SECONDS = 0.2

Query: TypeAlias = ProgramQuery | StepQuery | StepLoop | ConnectorQuery | ExecutorQuery
"""A thread or a query of Spark that the runner starts, waits for and stops."""


def warn_of_idle_sources(names: Collection[str]) -> None:
    """Warn that the idle time of sources that tasks read has effect with the next step only."""
    if names:
        logger.warning(
            "%s: in tasks on Spark, idle input closes windows only when the next record of any source arrives, since "
            "nothing runs between steps",
            ", ".join(names),
        )


class SparkRunner:
    """One application on Spark.

    Parameters
    ----------
    topology : Topology
    config : Config
    session : SparkSession
    log : Log
        The open home of topics of the configuration.
    clock : Clock
    on_progress : callable, optional
        Called after every step.
    listened_session : SparkSession, optional
        The session whose listeners receive the events of steps; `session` by default.

    Raises
    ------
    UnknownTopicError, TopologyError
        If the topology does not fit the topics, the checkpoint belongs to another topology, or the dead-letter topic is
        missing.
    """

    def __init__(
        self,
        topology: Topology,
        config: Config,
        session: SparkSession,
        log: Log,
        clock: Clock,
        on_progress: OnProgress | None = None,
        *,
        listened_session: SparkSession | None = None,
    ) -> None:
        self._session = session
        self._log = log
        self._clock = clock
        self._config = config
        self._settings = SparkSettings.of(config)
        self._drops = Drops(f"{config.application_id} on Spark", clock, config["log.summary.interval.ms"])
        self._on_progress = on_progress
        self.progress = SparkProgress(dropped=self._drops.counts)
        self._topology = topology
        self._listened_session = listened_session or session
        self.sensors = StepSensors.of(config)
        self._spark_queries = list[ProgramQuery | StepQuery]()
        self._lay_out()
        warn_of_idle_sources(self._program.idle_sources_of(self._prepared.in_tasks))

    def _lay_out(self) -> None:
        """Divide the work by the partitions that topics have now."""
        topology = self._topology
        config = self._config
        log = self._log
        connectors = ApplicationConnectors(topology, config.application_id, self._settings.prefix)
        self.connectors = SparkConnectors(connectors, config, self._session, log, self._clock)
        self._prepared = prepare(topology, config, log)
        self._plan, self._checkpoint, self._program = self._prepared
        in_tasks = [sub for sub in self._program.sub_topologies if sub.id in self._prepared.in_tasks]
        operators = "; ".join(self._plan.operators(sub.id) for sub in in_tasks)
        self._events = StepEvents(
            self._listened_session, config.application_id, self._checkpoint.id, in_tasks, operators, self._clock
        )
        self._feeds = DataFrameFeeds(self._session, topology.feeds, self._program, log, self._clock, self._commits)
        self._feeds.create_topics()
        self.connectors.create_sink_topics(self._program.partitions)
        filled_topics = {*self._program.feeds.values(), *connectors.streamed_topics()}
        self._purge = FeedPurge(log, filled_topics, config["repartition.purge.interval.ms"], self._clock)
        self._starts = starting_offsets(self._program, log, self._clock)
        by_topic = {
            topic: source for sub in self._program.sub_topologies for source in sub.sources for topic in source.topics
        }
        self._unreadable_records = UnreadableRecords(HomeAddress.of(config), by_topic)
        self._committed = list[CommittedSteps]()
        self._counts = ProgramCounts(
            self._plan.typed,
            self._drops,
            self.sensors,
            writes_dead_letters=self._settings.dead_letter_topic is not None,
        )

    def run(self, *, once: bool = False, until_end: bool = False, stop: threading.Event | None = None) -> SparkProgress:
        """Run until the input ends (`once`, `until_end`) or until `stop` is set.

        With `until_end`, open windows, suppressed results and unmatched rows of joins are emitted after the last row.
        """
        stop = stop or threading.Event()
        while True:
            try:
                self._run(bounded=once or until_end, until_end=until_end, stop=stop)
            except PartitionsAdded as added:
                logger.info("%s; the queries start again, with them", added)
                self._lay_out()
            else:
                return self.progress

    def _run(self, *, bounded: bool, until_end: bool, stop: threading.Event) -> None:
        """Run until the input ends, `stop` is set, or topics have more partitions than the queries read."""
        static, streaming = self._feeds.queries()
        queries = [(sink, self._program_query(sink)) for sink in self._program_sinks()]
        programs = [query for _, query in queries]
        tasks = [self._tasks(bounded=bounded)] if self._prepared.in_tasks else []
        sinks = self.connectors.sinks()
        streaming_feeds: list[Query] = [*streaming, *self.connectors.sources()]
        feeds: list[Query] = [*static, *streaming_feeds]
        self._spark_queries = [*programs, *streaming]
        processing: list[Query] = [*programs, *tasks]
        all_queries = [*feeds, *processing, *sinks]
        try:
            self.connectors.begin(bounded=bounded)
            self._purge.purge()
            self._start(static, bounded=True)
            self._start(streaming_feeds, bounded=bounded)
            self._wait(feeds if bounded else static, stop)
            self._start(processing if bounded else [*processing, *sinks], bounded=bounded)
            watch = None if bounded else self._watch_of_partitions()
            self._wait([*feeds, *processing] if bounded else all_queries, stop, watch)
            if until_end and not stop.is_set():
                _end_input(programs, tasks)
            if bounded:
                self._counts.tell_open_rows([(sink, program.open_rows) for sink, program in queries])
                self._start(sinks, bounded=True)
                self._wait(sinks, stop)
            self._purge.purge()
        finally:
            self._end(all_queries, sys.exception())

    def _end(self, queries: Sequence[Query], error: BaseException | None) -> None:
        """Stop all that runs, and say how the run has ended."""
        for query in queries:
            query.stop()
        self.connectors.end()
        self._events.end(None if isinstance(error, PartitionsAdded) else error)
        self._drops.report()

    def _start(self, queries: Sequence[Query], *, bounded: bool) -> None:
        for query in queries:
            query.start(bounded=bounded, pause_ms=self._config["poll.ms"])

    def _watch_of_partitions(self) -> PartitionWatch:
        """Return the watch of the topics that queries read."""
        topics = {source.topic for source in source_partitions(self._program, self._plan.in_queries)}
        counts = {topic: self._program.partitions[topic] for topic in topics}
        return PartitionWatch(self._log, counts, self._config["metadata.max.age.ms"], self._clock)

    def _wait(self, queries: Sequence[Query], stop: threading.Event, watch: PartitionWatch | None = None) -> None:
        running = list(queries)
        while running and not stop.is_set():
            if watch is not None:
                watch.check_if_due()
            running = [query for query in running if not query.ended(WAIT_SECONDS)]
            self._log.do_housekeeping()
            self._purge.purge_if_due()

    def _tasks(self, *, bounded: bool) -> StepLoop:
        numbers = self._prepared.in_tasks
        session = self._session if self._program.delta else session_for_steps(self._session)
        packed_program = pack(self._program)
        chain = SubTopologyChain(session, self._program, packed_program, self._plan)
        tables = GlobalTableLoader(self._program, on_an_executor(session, packed_program))
        work = TaskSteps(chain, self._checkpoint.storage, tables, self._program, self._clock, bounded=bounded)
        sources = source_partitions(self._program, numbers)
        topics = sorted({source.topic for source in sources})
        skippable = skippable_topics(self._program)
        topic_reader = TopicReader(HomeAddress.of(self._config), topics, ROWS_PER_TASK, skippable, sources)
        admissions = self._program.admissions(numbers)
        reader = StreamReader(topic_reader, None, positions_of(self._starts), admissions=admissions)
        group = self._prepared.group
        staging = self._program.checkpoint
        steps = self._steps(
            work, numbers, sources, group, staging, begin=self._events.begin, on_step=self._end_of_task_step
        )
        limit = ReadMaxRows(self._settings.max_records)
        return StepLoop(session, reader, limit, work.planned_ends, _no_rows, steps)

    def _program_sinks(self) -> Iterator[ProgramSink]:
        return program_sinks(self._plan, self._program, self._settings)

    def _program_query(self, sink: ProgramSink) -> ProgramQuery:
        """Create the query of one topic that a program writes."""
        number, name, program, source = sink
        spark_program = self._program
        feeds = spark_program.feeds
        node = program.sink.node
        upstream = tuple(self._plan.typed.graph.upstream(node))
        title = f"{self._config.application_id}, {program.sink.topic}"
        node_title = brief_operator(node.name, node.declared_at)
        topics = sorted({feeds.get(topic, topic) for topic in program.streamed_topics})
        sources = [TopicPartition(topic, p) for topic in topics for p in range(spark_program.partitions[topic])]
        storage = self._checkpoint.storage
        waits = any(waits_for_the_end(before, self._plan.typed) for before in upstream)
        work: StepExecutor
        if source is None:
            assert isinstance(node, g.To)
            work = ProgramSteps(WrittenTopic.of(node, self._plan.typed, spark_program))
        else:
            work = DeadLetterSteps(spark_program, number, source, program.sink.topic)
        group = query_group_of(self._config.application_id, name)
        staging = below(spark_program.checkpoint, f"queries/{name}")
        steps = self._steps(
            work,
            [number],
            sources,
            group,
            staging,
            begin=partial(describe_jobs, self._session, title, self._plan.operators_of_query(node)),
            on_step=self._count,
        )
        if by_partition := program.topics_by_partition:
            offsets = SourceOffsets(storage, f"query-{name}")
            offsets.take_up(steps.sink.positions(), is_last=len(by_partition) == 1, has_clocks=waits)
        clocks = PartitionClocks(self._session, storage, f"query-{name}-clocks") if waits else None
        idle = None if clocks is None else self._idle_input(upstream, sources, clocks, steps.sink)
        return ProgramQuery(
            self._session,
            program,
            ProgramInputs(self._streams_for(program), feeds, clocks, observes_times=idle is not None).functions,
            partial(self._step_query, f"query-{name}", f"{title}: {node_title}", steps),
            steps,
            clocks=clocks,
            idle=idle,
            has_input=partial(self._has_input, steps.sink),
            on_batch=self._counts.of_batches(sink),
        )

    def _step_query(self, folder: str, title: str, steps: ExactlyOnceSteps, rows: DataFrame, mode: str) -> StepQuery:
        storage = self._checkpoint.storage
        return StepQuery(
            storage,
            folder,
            rows,
            steps,
            SourceOffsets(storage, folder).positions,
            query_name=title,
            output_mode=mode,
            translate_error=self._unreadable_records.error_of,
        )

    def _streams_for(self, program: SinkProgram) -> TopicStreams:
        """Return how a program reads topics."""
        return topic_streams(
            self._session,
            self._config,
            self._program.partitions,
            self._starts,
            program.share_of(self._settings.max_records),
            skippable_topics(self._program),
        )

    def _idle_input(
        self, upstream: Sequence[Node], sources: Sequence[TopicPartition], clocks: PartitionClocks, sink: LogSink
    ) -> IdleInput | None:
        """Return the idle input of a query; None if no source before its sink has an idle time."""
        limits_ms = idle_limits_of(upstream, self._config["idle.timeout.ms"])
        if max(limits_ms.values(), default=NEVER_IDLE) == NEVER_IDLE:
            return None
        names = {self._program.feeds.get(topic, topic): limit_ms for topic, limit_ms in limits_ms.items()}
        of_sources = {source: names[source.topic] for source in sources}
        return IdleInput(clocks, of_sources, partial(self._backlog, sink), self._clock)

    def _backlog(self, sink: LogSink) -> Backlog:
        positions = sink.positions()
        with self._log.admin() as admin:
            return Backlog(admin.end_offsets(list(positions)), positions)

    def _has_input(self, sink: LogSink) -> bool:
        ends, positions = self._backlog(sink)
        return any(ends[source] > offset for source, offset in positions.items())

    def _steps(
        self,
        work: StepExecutor,
        numbers: Collection[int],
        sources: Sequence[TopicPartition],
        group: str,
        staging: str,
        *,
        begin: OnBegin,
        on_step: OnStep,
    ) -> ExactlyOnceSteps:
        """Create the steps that a consumer group commits: exactly once, unless the user asks for at least once.

        Each query numbers its own steps, so each has its own folder for staged rows.
        """
        program = self._program
        settings = self._settings
        subs = [sub for sub in program.sub_topologies if sub.id in numbers]
        checkpoint_id = self._checkpoint.id
        committed = CommittedSteps(self._log, group, sources, checkpoint_id, positions_of(self._starts))
        output = self._output(subs)
        self._purge.add_reader(committed)
        self._committed.append(committed)
        if self._config.explicit.get("processing.guarantee") == "at_least_once":
            commits: StepCommits = DirectCommits(PositionCommits(self._log, group, self._clock), committed, output)
        else:
            commits = self._commits(committed, output, sources, staging)
        sink = LogSink(committed, commits)
        output.prepare(self._log, fixed_sinks(subs) - program.topic_names.keys())
        delta = None
        if settings.delta is not None:
            folder = for_spark(settings.delta.folder, settings.conf)
            delta = DeltaSink(settings.delta._replace(folder=folder), program, f"{group}-{checkpoint_id}")
        deleted = DeletedInput(program, self._log)
        return ExactlyOnceSteps(work, sink, delta, deleted, on_step, begin, sensors=self.sensors)

    def _output(self, subs: Collection[SubTopology]) -> OutputTopics:
        program = self._program
        settings = self._settings
        return OutputTopics(
            HomeAddress.of(self._config),
            settings.prefix,
            program.partitions,
            program.default_partitions,
            types_written(subs),
        )

    def _commits(
        self, committed: CommittedSteps, output: OutputTopics, sources: Sequence[TopicPartition], staging: str
    ) -> StepCommits:
        """Create the commits of steps.

        If the home has a transaction coordinator, the records of all executors are committed in one transaction;
        otherwise they are staged in files first.
        """
        timeout_ms = self._settings.transaction_timeout_ms
        group = committed.group
        if Ability.COORDINATOR in self._log.abilities:
            return CoordinatedCommits(self._log, committed, output, timeout_ms)
        rows = StagedRows(staging, self._settings.conf)
        publishers = min(len(sources), task_slots(self._session))
        publication = Publication(output.home, rows, group, self._checkpoint.id, tuple(sources), timeout_ms)
        commits = PositionCommits(self._log, group, self._clock)
        publishing = partial(publish, ControlBlocks(self._session), publication)
        return StagedCommits(commits, committed, output, rows, publishing, publishers)

    def _end_of_task_step(self, reports: list[TaskReport]) -> None:
        """Count a step of tasks, and post its event to Spark's listeners."""
        self.progress.stores = self.sensors.of_stores()
        self.progress.stream_time = min(self.sensors.stream_times.values(), default=-1)
        self._count(reports)
        self._events.step_done(reports, self.progress)

    def _count(self, reports: list[TaskReport]) -> None:
        progress = self.progress
        progress.commits += 1
        progress.records_in += sum(report.records_in for report in reports)
        progress.records_out += written_records(reports)
        for (operator, reason), count in dropped_records(reports).items():
            self._drops.add(operator, reason, lambda: f"step {progress.commits}", count)
        self._drops.report_if_due()
        if self._on_progress is not None:
            progress.lag = self._unread_offsets()
            self._on_progress(progress)

    def batches(self) -> dict[str, BatchMeasures]:
        """Return the measures of the last batch of each query, and of the last step of tasks, by name."""
        batches = self._events.batches.copy()
        for query in self._spark_queries:
            batches |= query.batches()
        return batches

    def _unread_offsets(self) -> int:
        """Return the number of offsets from the positions of steps to the ends of their sources."""
        positions: dict[TopicPartition, int] = {}
        for committed in self._committed:
            for source, offset in committed.positions().items():
                positions[source] = max(offset, positions.get(source, 0))
        with self._log.admin() as admin:
            ends = admin.end_offsets(list(positions))
        return sum(max(0, ends[source] - offset) for source, offset in positions.items())

    def lags(self) -> dict[TopicPartition, int]:
        """Return the number of unprocessed records in each source partition."""
        sources = source_partitions(self._program, self._program.tasks.keys())
        with self._log.admin() as admin:
            ends = admin.end_offsets(sources)
            groups = [self._prepared.group, *self._query_groups()]
            committed_by_group = [admin.committed(group, sources) for group in groups]
        positions = {
            source: max(
                (committed[source].offset for committed in committed_by_group if source in committed), default=0
            )
            for source in sources
        }
        readable = readable_ends(self._log, positions, ends)
        return {source: max(0, readable[source] - position) for source, position in positions.items()}

    def _query_groups(self) -> list[str]:
        return [query_group_of(self._config.application_id, sink.query) for sink in self._program_sinks()]


def _end_input(programs: Sequence[ProgramQuery], tasks: Sequence[StepLoop]) -> None:
    """Emit what waits for the end of the input: open windows, suppressed results, rows without a match."""
    for program in programs:
        program.end_input()
    for loop in tasks:
        loop.end_input()


def _no_rows(start: Offsets, end: Offsets) -> DataFrame | None:
    """Return None: tasks read the log themselves."""
    return None
