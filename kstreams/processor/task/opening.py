"""Puts together what the operators of a task are bound to: its context and its output buffers."""

from __future__ import annotations

from functools import partial

from kstreams.processor.context.application import Application
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.context.errors.dead_letters import DeadLetters
from kstreams.processor.context.errors.drops import Drops
from kstreams.processor.context.errors.failures import Failures
from kstreams.processor.context.forwarded import ForwardedCounts
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.context.task_punctuations import TaskPunctuations
from kstreams.processor.context.tracing import Tracing
from kstreams.processor.task.collector import Collector, send_partitioned
from kstreams.processor.task.operator_errors import sending_meanwhile
from kstreams.processor.task.outputs import OutputBuffers
from kstreams.processor.task.parameters import ResumePoint, TaskResources
from kstreams.processor.topology.nodes import SubTopology


def open_context(
    sub_topology: SubTopology,
    partition: int,
    application: Application,
    resources: TaskResources,
    resume: ResumePoint,
) -> tuple[TaskContext, OutputBuffers]:
    """The context of a task, and where its sinks write."""
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
    """What makes spans of a task, where `trace.records` asks for them."""
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
