"""`Task`: the live closures of one sub-topology and partition with their stores, fed with batches of records.

It depends neither on threads nor on Spark: both runtimes and the test driver use this class.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType

from kstreams.errors import CorruptStateError, ProcessingError, RegistryError, RegistryUnavailableError, SerdeError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.source_line import operator_at
from kstreams.processor.api.metrics import Sensor
from kstreams.processor.context.application import Application
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.current_task import in_task
from kstreams.processor.context.encoded_rows import Collector, EncodedRows, send_partitioned
from kstreams.processor.context.failures import DeadLetters, Drops, Failures
from kstreams.processor.context.forwarded import ForwardedCounts
from kstreams.processor.context.operator_code import OperatorCode
from kstreams.processor.context.operator_context import Registrations, TaskContext, Waits
from kstreams.processor.context.task_punctuations import TaskPunctuations
from kstreams.processor.context.tracing import Tracing
from kstreams.processor.task.binding import bind, in_order_of
from kstreams.processor.task.columns.region import Region, RegionParts, live_regions
from kstreams.processor.task.inputs import TaskInputs, TopicInput
from kstreams.processor.task.outputs import AT_END, AT_FLUSH, OutputBuffers, at_end
from kstreams.processor.task.partition_group import Interleaved
from kstreams.processor.task.record_loop import Interrupt, RecordLoop
from kstreams.processor.task.task_time import TaskTime
from kstreams.processor.topology.nodes import SubTopology
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.state.api import StateStore, TaskState


@dataclass(frozen=True, slots=True, eq=False)
class TaskResources:
    """The stores and the output of a task.

    Parameters
    ----------
    state : TaskState
        The open stores.
    collector : Collector
        Takes the encoded records of the sinks.
    global_stores : mapping of str to StateStore
        Stores of global tables, by name.
    sends_in_order : bool
        True if output topics are sent in the order of their first rows.
    """

    state: TaskState
    collector: Collector
    global_stores: Mapping[str, StateStore] = field(default_factory=dict)
    sends_in_order: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ResumePoint:
    """The point at which an earlier instance of a task stopped.

    Parameters
    ----------
    metadata : mapping of str to int
        The task metadata of the last commit (`Task.metadata()`); the task continues as if it had never stopped.
    deadlines : mapping of str to int
        The result of `Task.deadlines()` of the instance that this one continues: punctuators then keep their phase.
        After a restart they start anew, as in Kafka Streams.
    """

    metadata: Mapping[str, int] = field(default_factory=dict)
    deadlines: Mapping[str, int] = field(default_factory=dict)


START = ResumePoint()
"""The resume point of a task that runs for the first time."""


class OperatorErrors:
    """The errors of the operators of one task.

    Parameters
    ----------
    task_id : str
    sub_topology : SubTopology
    current : CurrentRecord
    code : OperatorCode
    """

    def __init__(self, task_id: str, sub_topology: SubTopology, current: CurrentRecord, code: OperatorCode) -> None:
        self._task_id = task_id
        self._current = current
        self._code = code
        self._declared_at = {node.name: node.declared_at for node in sub_topology.nodes}

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Run operators within the block. Errors become a ProcessingError; no record is current afterwards."""
        try:
            with in_task(self._task_id):
                yield
        except (ProcessingError, CorruptStateError, RegistryError):
            raise
        except _NotSent as failed:
            raise failed.error from failed.error.__cause__
        except Exception as error:
            name = self._code.failed_operator(error.__traceback__) or f"task {self._task_id}"
            raise ProcessingError(name, self._declared_at.get(name), self._current.place(), error) from error
        finally:
            self._current.leave()

    def running(self, frame: FrameType) -> str | None:
        """Return the name of the operator that a thread at this frame is running."""
        return self._code.running_operator(frame)

    def described(self, name: str) -> str:
        """Describe an operator for errors."""
        return operator_at(name, self._declared_at.get(name))


def sending_meanwhile(send: Callable[[], None]) -> Callable[[], None]:
    """Return `send` for calls while operators run: its errors are not theirs, so no error handler gets them."""

    def send_meanwhile() -> None:
        try:
            send()
        except Exception as error:
            raise _NotSent(error) from error

    return send_meanwhile


class _NotSent(BaseException):
    """The carrier of a topic's error past the running operators."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def open_context(
    sub_topology: SubTopology,
    partition: int,
    application: Application,
    resources: TaskResources,
    resume: ResumePoint,
) -> tuple[TaskContext, OutputBuffers]:
    """Return the context of a task, and its output buffers."""
    task_id = f"{sub_topology.id}_{partition}"
    stream_time = resume.metadata.get("stream_time", -1)
    current = CurrentRecord(task_id, partition, stream_time, resume.metadata.get("reached", stream_time))
    failures = _failures(sub_topology, partition, task_id, application, resources)
    outputs = OutputBuffers(
        sub_topology.sinks,
        current,
        failures,
        resources.collector,
        application.topic_names,
        in_order=resources.sends_in_order,
    )
    context = TaskContext(
        application=application,
        task_id=task_id,
        partition=partition,
        stores=resources.state.stores,
        global_stores=resources.global_stores,
        state_dir=resources.state.directory,
        current=current,
        failures=failures,
        punctuations=TaskPunctuations(application.clock, resume.deadlines),
        send_if_many=sending_meanwhile(outputs.send_if_many),
        forwarded=ForwardedCounts() if application.settings.counts_forwarded else None,
    )
    return context, outputs


def tracing_of(context: TaskContext) -> Tracing | None:
    """Return the tracing of a task if `trace.records` asks for it."""
    application = context.application
    records = application.settings.trace_records
    if records == "none":
        return None
    return Tracing(context.current, application.id, context.task_id, begins=records == "all")


def _failures(
    sub_topology: SubTopology, partition: int, task_id: str, application: Application, resources: TaskResources
) -> Failures:
    settings = application.settings
    policies = settings.errors.of_global_tables() if sub_topology.is_global else settings.errors
    drops = Drops(f"task {task_id}", application.clock, settings.log_summary_interval_ms)
    declared_at = {node.name: node.declared_at for node in sub_topology.nodes}
    return Failures(policies, drops, DeadLetters(partial(_send_letters, resources.collector, partition)), declared_at)


def _send_letters(collector: Collector, partition: int, topic: str, letters: EncodedRows) -> None:
    send_partitioned(collector, topic, letters, partition)


DELETED = "deleted before it was read"


class Task:
    """One sub-topology on one partition.

    A batch passes through six stages: input, cursor, operators or region, output buffers, collector, task metadata.

    Parameters
    ----------
    sub_topology : SubTopology
        The operators to run.
    partition : int
        The partition of the source topics.
    application : Application
        The constants of the application.
    resources : TaskResources
        The stores, and the collector of the output.
    resume : ResumePoint
        The point at which an earlier instance stopped.
    """

    def __init__(
        self,
        sub_topology: SubTopology,
        partition: int,
        application: Application,
        resources: TaskResources,
        resume: ResumePoint = START,
    ) -> None:
        self.id = TaskId(sub_topology.id, partition)
        self.sub_topology = sub_topology
        self.state = resources.state
        self._context, self._outputs = context, outputs = open_context(
            sub_topology, partition, application, resources, resume
        )
        code = OperatorCode(context.failures, context.current)
        self._errors = OperatorErrors(context.task_id, sub_topology, context.current, code)
        self._registrations = registrations = Registrations(resume.metadata)
        tracing = tracing_of(context)
        forwards = bind(sub_topology, context, outputs, registrations, code, tracing)
        context.punctuations.end_of_init([node.name for node in sub_topology.nodes])
        self._inputs = TaskInputs(sub_topology.sources, forwards, context, resume.metadata)
        parts = RegionParts(sub_topology, context, outputs, registrations.column_handles, forwards)
        self._regions = live_regions(parts)
        self._held_back = list(reversed(registrations.held_back.values()))  # children were bound first
        at_idle = reversed(registrations.at_idle)
        self._time = TaskTime(sub_topology, context, at_idle, self._release_held_back, resume.deadlines)
        self._interrupt = Interrupt()
        self._loop = RecordLoop(
            context.current,
            self._time,
            self._interrupt,
            follows_stream_time=registrations.follows_stream_time,
            notes_reached=outputs.follows_time,
        )
        self._complete_regions = completions = [region.complete for region in self._regions.values()]
        # Operator by operator: the records that one holds must reach the next before the next one ends.
        flush = registrations.at_flush
        end = registrations.at_end_of_input
        self._at_flush = [*completions, *in_order_of(sub_topology, flush)]
        self._at_end_of_input = [*completions, *in_order_of(sub_topology, [*flush, *end, *flush])]
        self._at_close = in_order_of(sub_topology, registrations.at_close)

    # metrics and metadata

    @property
    def dropped(self) -> Counter[tuple[str, str]]:
        """The number of dropped records by (node, reason)."""
        return self.failures.drops.counts

    @property
    def records_in(self) -> int:
        """The number of processed records of the user's topics, including dropped ones."""
        return self._inputs.records_in()

    def records_by_source(self) -> Counter[str]:
        """Return the number of processed records by source node, including sources of repartition topics."""
        return self._inputs.records_by_source()

    @property
    def failures(self) -> Failures:
        """The error policies of the task."""
        return self._context.failures

    @property
    def sensors(self) -> Mapping[tuple[str, str], Sensor]:
        """The sensors of its processors, by (node, sensor)."""
        return self._context.sensors

    def waits(self) -> dict[str, Waits]:
        """Return the records that wait for the wall clock, by operator. Any thread may call it."""
        return {node: waits() for node, waits in self._registrations.waits.items()}

    def wall_ms(self) -> int:
        """Return the wall-clock time (ms) of the application's clock."""
        return self._context.application.clock.wall_ms()

    @property
    def forwarded(self) -> Mapping[tuple[str, str], int]:
        """The number of records forwarded from one operator to another; empty if they are not counted."""
        counts = self._context.forwarded
        return {} if counts is None else counts.totals()

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) processed so far, -1 at first."""
        return self._context.current.stream_time

    @property
    def reached(self) -> int:
        """The progress (ms) in the order in which tasks take records, -1 at first."""
        return self._context.current.reached

    @property
    def commit_requested(self) -> bool:
        """True if a processor asked for a commit since the last flush."""
        return self._context.commit_request.is_made

    def operator_at(self, frame: FrameType) -> str | None:
        """Return the operator that a thread at this frame is running; None if it is none of this task."""
        return self._errors.running(frame)

    def described(self, operator: str) -> str:
        """Describe an operator with the line of the user's code that declared it."""
        return self._errors.described(operator)

    def source_of(self, topic: str) -> str:
        """Return the source node that reads a topic."""
        return self._inputs.of(topic).source.name

    def num_bytes_uncommitted(self) -> int:
        """Return the approximate memory of stores and operators until the next commit."""
        return self.state.num_bytes_pending() + self._registrations.num_bytes()

    # records

    def stamp(self, batch: Batch) -> Batch:
        """Return the batch with the timestamps from its source's extractor; rows with a negative one are dropped.

        Call it once per batch, in offset order, before the batch is merged with others by timestamp.
        """
        with in_task(self._context.task_id):
            return self._inputs.of(batch.source.topic).stamp(batch)

    def missing_schema(self, batch: Batch) -> tuple[int, RegistryUnavailableError] | None:
        """Ask for the schemas that a batch names, before it is stamped.

        Returns
        -------
        tuple of (int, RegistryUnavailableError) or None
            The first row whose schema is not cached while the registry is away, and the error.
        """
        return self._inputs.of(batch.source.topic).missing_schema(batch)

    def process(self, batch: Batch) -> int:
        """Process the records of a stamped batch, one after the other, depth first.

        Output is buffered. It is sent if there is much of it, at `send`, and at `flush`.

        Returns
        -------
        int
            The number of processed records: all, unless the task was interrupted.

        Raises
        ------
        SerdeError
            If a key or value does not decode or encode; names the node, and the record or topic.
        ProcessingError
            If a function raised an error; names the operator, the user's line and the record.
        """
        if not len(batch) or self._interrupt.is_set:
            return 0
        topic_input = self._inputs.of(batch.source.topic)
        self._time.seen(topic_input.source.name)
        topic_input.report_skipped(int(batch.offsets[0]))
        region = self._regions.get(topic_input.source.name)
        count = len(batch)
        if region is None or not self._process_columns(batch, region):
            count = self._process_rows(batch, topic_input)
        topic_input.count_processed(count)
        topic_input.report_skipped(int(batch.offsets[count - 1]) if count else -1)
        self._outputs.send_if_many()
        return count

    def _process_columns(self, batch: Batch, region: Region) -> bool:
        with self._errors.explained():
            return region.process(batch)

    def _process_rows(self, batch: Batch, topic_input: TopicInput) -> int:
        rows = topic_input.decoded(batch)
        with self._errors.explained():
            return self._loop.run(batch, rows, topic_input.forward)

    def process_interleaved(self, interleaved: Interleaved) -> list[int]:
        """Process records of several partitions in their order, as `process` does run by run.

        Returns
        -------
        list of int
            The number of processed records of each part: all, unless the task was interrupted.
        """
        inputs = [self._inputs.of(part.source.topic) for part in interleaved.parts]
        counts = self._process_together(interleaved, inputs) if len(inputs) > 1 else None
        if counts is None:
            counts = [0] * len(inputs)
            for part, run in interleaved.runs():
                counts[part] += self.process(run)
        return counts

    def _process_together(self, interleaved: Interleaved, inputs: list[TopicInput]) -> list[int] | None:
        """Process the records in one loop; return None, with nothing done, if they must be processed run by run."""
        if not self._loop.takes_interleaved(interleaved.parts) or any(
            topic_input.has_skipped for topic_input in inputs
        ):
            return None
        try:
            rows = [topic_input.decoded(part) for topic_input, part in zip(inputs, interleaved.parts, strict=True)]
        except SerdeError:
            return None  # the rows before the bad one are still processed
        for topic_input in inputs:
            self._time.seen(topic_input.source.name)
            if (region := self._regions.get(topic_input.source.name)) is not None:
                region.complete()
        with self._errors.explained():
            counts = self._loop.run_interleaved(interleaved, rows, [topic_input.forward for topic_input in inputs])
        for topic_input, count in zip(inputs, counts, strict=True):
            topic_input.count_processed(count)
        self._outputs.send_if_many()
        return counts

    def report_skipped(self, topic: str | None = None, before: int = sys.maxsize) -> bool:
        """Report the rows that `stamp` skipped before an offset, up to which the input is processed.

        They are not reported earlier, so that their effects are committed with their offsets. A runtime calls this
        before a flush if it moves past offsets without records to process.

        Parameters
        ----------
        topic : str, optional
            The real name of the topic; None for all inputs.
        before : int
            The next offset to process.

        Returns
        -------
        bool
            True if rows were reported.

        Raises
        ------
        SerdeError
            If bytes did not decode, and the task is to end by the handler's decision.
        """
        inputs = self._inputs if topic is None else [self._inputs.of(topic)]
        return any([topic_input.report_skipped(before - 1) for topic_input in inputs])

    def count_deleted(self, source: TopicPartition, start: int, end: int) -> None:
        """Count the records [start, end) of an input as dropped: they were deleted before they were read."""
        node = self._inputs.of(source.topic).source.name
        self.failures.drops.add(node, DELETED, lambda: f"{source}@{start}", end - start)

    def interrupt(self) -> None:
        """Let no further record be processed and no wall-clock punctuator be called; callable from any thread.

        A running call of `process` ends after the current record.
        """
        self._interrupt.set()
        self._time.stop()

    # time

    def punctuate(self) -> bool:
        """Call the wall-clock punctuators that are due, and log counts of dropped records; return whether one fired."""
        with self._errors.explained():
            fired = self._time.punctuate_by_wall_clock()
        if fired:
            self._outputs.send()
        self.failures.drops.report_if_due()
        return fired

    def pass_time(self, awake: Iterable[str] = ()) -> bool:
        """Advance stream time with the wall clock if input is idle; return whether output may exist.

        Call it at intervals while records may still come.

        Parameters
        ----------
        awake : iterable of str
            Topics with records that wait, or may still come.
        """
        for topic in awake:
            self._time.seen(self._inputs.of(topic).source.name)
        moves = self._time.idle_moves()
        if not moves:
            return False
        self._call(self._at_flush, AT_FLUSH)  # the updates in the record cache belong to the earlier time
        with self._errors.explained():
            return self._time.move(moves)

    # output and commits

    def send(self) -> None:
        """Send the output so far to the collector. Call it whenever no records wait to be processed."""
        if self._held_back:
            with self._errors.explained():
                self._release_held_back()
        self._outputs.send()

    def complete(self) -> None:
        """Complete the updates of stores: aggregations in columns may wait for more records.

        Call it before code outside of the task reads a store; a flush does it as well.
        """
        with self._errors.explained():
            for complete in self._complete_regions:
                complete()
            self._release_held_back()

    def flush(self) -> None:
        """Forward the updates in the record cache, and send all output to the collector, before every commit."""
        self._call(self._at_flush, AT_FLUSH)
        self._outputs.end_flush()
        self._context.commit_request.clear()
        with in_task(self._context.task_id):
            self.failures.drops.report_if_due()

    def end_of_input(self) -> None:
        """End bounded input: operators emit records that they held for later ones, parents first."""
        self._call(self._at_end_of_input, at_end(self.sub_topology.place))

    def metadata(self) -> dict[str, int]:
        """Return the times by which the task decides whether records are late, to be stored with each commit."""
        # Input after the end of input begins anew: `AT_END` is not a time of records.
        reached = self.reached if self.reached < AT_END else self.stream_time
        return {
            "stream_time": self.stream_time,
            "reached": reached,
            **self._inputs.partition_times(),
            **self._registrations.metadata(),
        }

    def deadlines(self) -> dict[str, int]:
        """Return the next deadline of each punctuator of `init`, in ms of its time, and since when input is idle."""
        return self._time.deadlines()

    def close(self) -> None:
        """Close the processors; the caller closes the stores, and handles uncommitted output."""
        with in_task(self._context.task_id):
            self.failures.drops.report()
            for callback in self._at_close:
                callback()

    def _release_held_back(self) -> None:
        for held_back in self._held_back:
            held_back.release_all()

    def _call(self, callbacks: list[Callable[[], None]], reached: int) -> None:
        with self._errors.explained():
            for callback in callbacks:
                self._context.current.reached = reached
                callback()
        self._outputs.send()
