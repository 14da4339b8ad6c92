"""`Task`: the live closures of one sub-topology and partition with their stores, fed with batches of records.

It knows neither threads nor Spark: both runtimes and the test driver run this very class.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from kstreams.batch import Batch, TopicPartition
from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.errors import CorruptStateError, ProcessingError, SerdeError
from kstreams.processor.api.metrics import Sensor
from kstreams.processor.context.dead_letters import DeadLetters
from kstreams.processor.context.drops import Drops
from kstreams.processor.context.failures import Failures
from kstreams.processor.context.record_cursor import RecordCursor
from kstreams.processor.context.registrations import Registrations
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.task.binding import bind, failed_operator, in_order_of
from kstreams.processor.task.columns.region import Region, TaskParts, live_regions
from kstreams.processor.task.idle import WHOLE_TASK, idle_input
from kstreams.processor.task.inputs import TaskInputs, TopicInput
from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.interrupt import Interrupt
from kstreams.processor.task.outputs import Collector, OutputBuffers
from kstreams.processor.topology.nodes import SubTopology
from kstreams.processor.topology.operator import Forward
from kstreams.processor.topology.task_id import TaskId
from kstreams.record import Headers
from kstreams.state.api import StateStore, TaskState

DELETED = "deleted before it was read"

Lane: TypeAlias = tuple[RecordCursor, Forward, Iterator[Any]]
"""The records of one input, where they go, and how far they have come."""


class Task:
    """One sub-topology at work on one partition.

    Parameters
    ----------
    sub_topology : SubTopology
        What to run.
    partition : int
        Which partition of its source topics.
    state : TaskState
        The open stores.
    collector : Collector
        Takes what the sinks write, encoded.
    config : Config
        The settings of the application.
    clock : Clock
        Wall-clock time for punctuators and processors.
    application_id : str
        Shown to processors.
    global_stores : mapping of str to StateStore
        Stores of global tables, by name.
    memo : mapping of str to int, optional
        What `memo()` gave at the last commit; the task goes on as if it had never stopped.
    topic_names : mapping of str to str
        Real names of topics whose name in the topology differs: internal ones lack the application's id there.
    deadlines : mapping of str to int, optional
        What `deadlines()` of another instance gave, when this one goes on where that left off: punctuators then keep
        their rhythm. After a restart they start anew, as in Kafka Streams.
    in_order : bool
        Whether a run's output topics are sent in the order in which they got their first rows.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        partition: int,
        *,
        state: TaskState,
        collector: Collector,
        config: Config,
        clock: Clock,
        application_id: str,
        global_stores: Mapping[str, StateStore] | None = None,
        memo: Mapping[str, int] | None = None,
        topic_names: Mapping[str, str] | None = None,
        deadlines: Mapping[str, int] | None = None,
        in_order: bool = False,
    ) -> None:
        self.id = TaskId(sub_topology.id, partition)
        self.sub_topology, self.state, self._memo = sub_topology, state, dict(memo or {})
        self._context = context = TaskContext(
            application_id=application_id,
            task_id=str(self.id),
            partition=partition,
            config=config,
            clock=clock,
            stores=state.stores,
            global_stores=global_stores or {},
            stream_time=self._memo.get("stream_time", -1),
            state_dir=state.directory,
        )
        self._interrupt = Interrupt()
        context.drops = self._drops = Drops(f"task {self.id}", clock, config["log.summary.interval.ms"])
        letters = DeadLetters(collector.send)
        declared_at = {node.name: node.declared_at for node in sub_topology.nodes}
        context.failures = Failures(config, self._drops, letters, declared_at, sub_topology.is_global)
        self._outputs = OutputBuffers(
            sub_topology.sinks, context, collector, topic_names or {}, letters, in_order=in_order
        )
        self._callbacks = callbacks = Registrations(self._memo, context)
        context.deadlines = deadlines or {}
        forwards = bind(sub_topology, context, self._outputs, callbacks)
        context.is_new, context.deadlines = False, {}
        self._routes = TaskInputs(sub_topology.sources, forwards, topic_names or {}, context, self._memo)
        self._regions = live_regions(TaskParts(sub_topology, context, self._outputs, callbacks.lives, forwards))
        context.send_if_many = self._send_meanwhile
        self._complete_regions = completions = [region.complete for region in self._regions.values()]
        self._at_flush = [*completions, *in_order_of(sub_topology, callbacks.at_flush)]
        # Operator by operator: what one still holds must reach the next before that one ends.
        flush, end = callbacks.at_flush, callbacks.at_end_of_input
        self._at_end_of_input = [*completions, *in_order_of(sub_topology, [*flush, *end, *flush])]
        self._at_close = in_order_of(sub_topology, callbacks.at_close)
        self._delayed = list(reversed(context.delayed.values()))
        passing = dict(reversed(callbacks.at_idle))  # steps are bound children first
        self._at_idle: dict[str, Callable[[int], bool]] = {**passing, WHOLE_TASK: context.pass_time}
        self._idle = idle_input(sub_topology, self._at_idle, config, clock.now_ms(), deadlines or {})

    @property
    def dropped(self) -> Counter[tuple[str, str]]:
        """How many records each (node, reason) has dropped."""
        return self._drops.counts

    @property
    def records_in(self) -> int:
        """How many records of the user's topics it has read and is done with, those it dropped among them."""
        return self._routes.records_in()

    @property
    def failures(self) -> Failures:
        """Its error policies."""
        return self._context.failures

    @property
    def sensors(self) -> Mapping[tuple[str, str], Sensor]:
        """What its processors measure, by (node, sensor)."""
        return self._context.sensors

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) processed so far, -1 at first."""
        return self._context.stream_time

    def num_bytes_uncommitted(self) -> int:
        """Roughly what its stores and steps hold in memory until the next commit."""
        return self.state.num_bytes_pending() + sum([num_bytes() for num_bytes in self._context.uncommitted])

    @property
    def commit_requested(self) -> bool:
        """Whether a processor asked for a commit since the last flush."""
        return self._context.commit_requested

    def stamp(self, batch: Batch) -> Batch:
        """The batch with the timestamps that its source's extractor gives; rows with a negative one are dropped.

        To be called once, in offset order, before the batch competes with others by timestamp.
        """
        return self._routes.of(batch.source.topic).stamp(batch)

    def process(self, batch: Batch) -> int:
        """Run all records of a batch (already stamped), one after the other, depth first.

        What they write is gathered: it is sent when there is much of it, at `send`, and at `flush`.

        Returns
        -------
        int
            How many records were processed: all, unless the task was interrupted.

        Raises
        ------
        SerdeError
            When a key or value does not decode or encode; names the node, and the record or topic.
        ProcessingError
            When a function raised; names the operator, the user's line and the record.
        """
        if not len(batch) or self._interrupt.is_set:
            return 0
        route = self._routes.of(batch.source.topic)
        self._enter(route)
        route.report_skipped(int(batch.offsets[0]))
        region, count = self._regions.get(route.source.name), len(batch)
        if region is None or not self._process_columns(batch, region):
            count = self._process_rows(batch, route)
        route.records_in += count
        route.report_skipped(int(batch.offsets[count - 1]) if count else -1)
        self._outputs.send_if_many()
        return count

    def process_interleaved(self, given: Interleaved) -> list[int]:
        """Run records of several partitions in their order, as `process` would run by run.

        Returns
        -------
        list of int
            How many records of each part were processed: all, unless the task was interrupted.
        """
        routes = [self._routes.of(part.source.topic) for part in given.parts]
        counts = self._process_turns(given, routes) if len(routes) > 1 else None
        if counts is None:
            counts = [0] * len(routes)
            for part, run in given.runs():
                counts[part] += self.process(run)
        return counts

    def _process_turns(self, given: Interleaved, routes: list[TopicInput]) -> list[int] | None:
        """The records as rows, decoded at once; None with nothing done when they need a closer look."""
        pairs = list(zip(routes, given.parts, strict=True))
        if self._context.follows_time or any(route.has_skipped or part.headers is not None for route, part in pairs):
            return None
        try:
            decoded = [route.decoded(part) for route, part in pairs]
        except SerdeError:
            return None  # what comes before the bad row still has its turn
        for route in routes:
            self._enter(route)
            if (region := self._regions.get(route.source.name)) is not None:
                region.complete()
        times = given.times(self._context.stream_time)
        runs = [RecordCursor(part, part.offsets, *at) for part, at in zip(given.parts, times, strict=True)]
        lanes: list[Lane] = [
            (run, route.forward, zip(*rows, run.cursor, strict=False))
            for run, route, rows in zip(runs, routes, decoded, strict=True)
        ]
        with self._explained():
            self._interrupt.guard(*(keys for keys, _ in decoded))
            _run_in_turns(self._context, lanes, given.turns())
            self._end_loop(runs)
        for route, run in zip(routes, runs, strict=True):
            route.records_in += run.taken
        self._outputs.send_if_many()
        return [run.taken for run in runs]

    def _end_loop(self, runs: list[RecordCursor]) -> None:
        self._interrupt.guard()
        if self._interrupt.is_set:
            self._context.stop_at(runs)

    def _enter(self, route: TopicInput) -> None:
        if self._idle is not None:
            self._idle.seen(route.source.name, self._context.clock.now_ms())

    def report_skipped(self, topic: str | None = None, before: int = sys.maxsize) -> bool:
        """All of the input before an offset is done: tell of the rows that `stamp` put aside.

        They are told no earlier, so that what follows from them is committed with their offsets. To be called before a
        flush by whoever moves past offsets at which nothing was left to process.

        Parameters
        ----------
        topic : str, optional
            By its real name; None: of all inputs.
        before : int
            The next offset to process.

        Returns
        -------
        bool
            Whether there were any.

        Raises
        ------
        SerdeError
            When bytes did not decode, and the handler wants the task to end.
        """
        routes = self._routes if topic is None else [self._routes.of(topic)]
        return any([route.report_skipped(before - 1) for route in routes])

    def count_deleted(self, source: TopicPartition, start: int, end: int) -> None:
        """Count the records [start, end) of an input as dropped: they were deleted before they were read."""
        route = self._routes.of(source.topic)
        self._drops.add(route.source.name, DELETED, lambda: f"{source}@{start}", end - start)

    def interrupt(self) -> None:
        """Let no further record be processed and no wall-clock punctuator be called; from another thread.

        The call of `process` that is under way ends behind the record that is being processed.
        """
        self._interrupt.set()
        self._context.wall_clock_punctuations.stop()

    def _process_columns(self, batch: Batch, region: Region) -> bool:
        with self._explained():
            return region.process(batch)

    def _process_rows(self, batch: Batch, route: TopicInput) -> int:
        context = self._context
        keys, values = route.decoded(batch)
        timestamps = batch.timestamps.to_numpy()
        stream_times = np.maximum(np.maximum.accumulate(timestamps), context.stream_time)
        run = RecordCursor(batch, batch.offsets, stream_times, timestamps.tolist())
        rows = zip(keys, values, run.cursor, strict=False)
        context.run = run
        with self._explained():
            self._interrupt.guard(keys)
            if batch.headers is not None or context.follows_time:
                self._run_closely(route.forward, rows, batch.header_rows())
            else:
                _run_straight(route.forward, rows)
            self._end_loop([run])
        return run.taken

    def punctuate(self) -> bool:
        """Call the wall-clock punctuators that are due; whether there was one."""
        with self._explained():
            self._release_held_back()
            fired = self._context.wall_clock_punctuations.fire(self._context.clock.now_ms())
        if fired:
            self._outputs.send()
        return fired

    def pass_time(self, awake: Iterable[str] = ()) -> bool:
        """Let stream time go on with the wall clock where input is idle, if sources say so; whether anything came out.

        To be called at intervals while records may still come.

        Parameters
        ----------
        awake : iterable of str
            Topics of which records wait, or may be on their way.
        """
        if self._idle is None:
            return False
        now_ms = self._context.clock.now_ms()
        for topic in awake:
            self._idle.seen(self._routes.of(topic).source.name, now_ms)
        moves = self._idle.moves(now_ms)
        if not moves:
            return False
        self._call(self._at_flush)  # what the record cache holds belongs to the time before
        with self._explained():
            moved = [pass_time(moves[step]) for step, pass_time in self._at_idle.items() if step in moves]
        return any(moved)

    def send(self) -> None:
        """Hand to the collector what was written so far. To be called whenever nothing waits to be processed."""
        if self._delayed:
            with self._explained():
                self._release_held_back()
        self._outputs.send()

    def complete(self) -> None:
        """Bring the stores up to all that was processed: aggregations in columns let records wait for more.

        To be called before anybody outside of the task looks into a store; a flush does it as well.
        """
        with self._explained():
            for complete in self._complete_regions:
                complete()
            self._release_held_back()

    def flush(self) -> None:
        """Forward what the record cache holds, and hand all output to the collector. Comes before every commit."""
        self._call(self._at_flush)
        self._context.commit_requested = False
        self._drops.report_if_due()

    def end_of_input(self) -> None:
        """Bounded input is over: let operators emit what only later records would have released, parents first."""
        self._call(self._at_end_of_input)

    def metadata(self) -> dict[str, int]:
        """The times by which the task decides what is late: to be kept with each commit and given back on restart."""
        kept = {name: read() for name, read in self._callbacks.kept.items()}
        return {"stream_time": self._context.stream_time, **self._routes.partition_times(), **kept}

    def deadlines(self) -> dict[str, int]:
        """When each punctuator of `init` is due next, in ms of its kind of time, and since when input is idle."""
        schedules = self._context.schedules.items()
        due = {name: schedule.deadline_ms for name, schedule in schedules if not schedule.cancelled}
        return due if self._idle is None else due | self._idle.times()

    def close(self) -> None:
        """Close the processors; stores and uncommitted output are the caller's."""
        self._drops.report()
        for callback in self._at_close:
            callback()

    def _run_closely(self, forward: Forward, rows: Iterable[Any], headers: list[Headers]) -> None:
        """The loop for records with headers, and for processors that may ask to be called as stream time goes on."""
        context, punctuations = self._context, self._context.stream_time_punctuations
        for (key, value, timestamp), context.headers in zip(rows, headers, strict=False):
            forward(key, value, timestamp)
            if punctuations.deadline_ms <= timestamp:  # what was due before this record has been called before it
                self._punctuate_stream_time(context.stream_time)

    def _punctuate_stream_time(self, stream_time: int) -> None:
        self._release_held_back()
        context = self._context
        run = context.run
        context.run, context.headers = None, ()
        context.stream_time_punctuations.fire(stream_time)
        context.run = run

    def _release_held_back(self) -> None:
        for delayed in self._delayed:
            delayed.release_all()

    def _send_meanwhile(self) -> None:
        """Send while operators work; that it fails is no fault of theirs, and nothing for their error handlers."""
        try:
            self._outputs.send_if_many()
        except Exception as error:
            raise _NotSent(error) from error

    def _call(self, callbacks: list[Callable[[], None]]) -> None:
        with self._explained():
            for callback in callbacks:
                callback()
        self._outputs.send()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what an operator raises into an error that names it, its line and the record."""
        try:
            yield
        except (ProcessingError, CorruptStateError):
            raise
        except _NotSent as failed:
            raise failed.error from failed.error.__cause__
        except Exception as error:
            name = failed_operator(error.__traceback__, self._callbacks) or f"task {self.id}"
            declared_at = {node.name: node.declared_at for node in self.sub_topology.nodes}.get(name)
            raise ProcessingError(name, declared_at, self._context.place(), error) from error
        finally:
            self._context.leave()


class _NotSent(BaseException):
    """Carries an error of the topics past the operators that are at work."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _run_straight(forward: Forward, rows: Iterable[Any]) -> None:
    for key, value, timestamp in rows:
        forward(key, value, timestamp)


def _run_in_turns(context: TaskContext, lanes: list[Lane], turns: Iterable[tuple[int, int]]) -> None:
    for lane, count in turns:
        context.run, forward, rows = lanes[lane]
        for key, value, timestamp in islice(rows, count):
            forward(key, value, timestamp)
