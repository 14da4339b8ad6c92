"""The metrics of tasks, with their nodes and stores."""

from __future__ import annotations

from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.debug_sensors import DebugSensors
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues, average_and_maximum, latency, rate_and_count, rate_and_sum
from kstreams.runtime.native.metrics.nodes import node_metrics, source_metrics
from kstreams.runtime.native.metrics.stores import store_metrics
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread


def task_tags(thread: StreamThread, active: ActiveTask) -> Tags:
    """Return the labels of a task's metrics."""
    return (("thread-id", thread.name), ("task-id", active.id))


def task_metrics(thread: StreamThread, active: ActiveTask) -> MetricValues:
    """Return the metrics of a task, and of its nodes, sources and stores."""
    tags = task_tags(thread, active)
    sensors = active.sensors
    now = monotonic()
    yield catalogue.DROPPED_RECORDS.total.tagged(tags), active.task.dropped.copy().total()
    yield catalogue.DROPPED_RECORDS.rate.tagged(tags), sensors.dropped.rate(now)
    yield catalogue.ACTIVE_BUFFER_COUNT.tagged(tags), sum(map(active.input.group.buffered, active.plan.inputs))
    yield catalogue.INPUT_BUFFER_BYTES.tagged(tags), active.input.group.buffered_bytes()
    yield catalogue.CACHE_SIZE_BYTES.tagged(tags), sensors.live_bytes
    yield catalogue.STREAM_TIME.tagged(tags), active.task.stream_time
    yield catalogue.UNCOMMITTED_BYTES.tagged(tags), active.bytes_pending
    yield from node_metrics(active.task, tags)
    yield from store_metrics(sensors, tags)
    yield from source_metrics(active, tags)
    if sensors.debug is not None:
        yield from _runs(sensors.debug, tags, now)
        yield from _delayed_results(sensors.debug, tags, now)
        yield catalogue.ACTIVE_PROCESS_RATIO.tagged(tags), _active_ratio(sensors.debug, thread, now)


def _runs(debug: DebugSensors, tags: Tags, now: float) -> MetricValues:
    yield from latency(catalogue.TASK_PROCESS_LATENCY, debug.process.seconds, tags, now)
    yield from rate_and_sum(catalogue.TASK_PROCESS, debug.process.records, tags, now)
    yield from latency(catalogue.TASK_PUNCTUATE_LATENCY, debug.punctuate.seconds, tags, now)
    yield from rate_and_count(catalogue.TASK_PUNCTUATE, debug.punctuate.seconds, tags, now)
    yield from rate_and_count(catalogue.TASK_COMMIT, debug.commits, tags, now)
    yield from average_and_maximum(catalogue.RECORD_LATENESS, debug.lateness, tags, now)
    yield from rate_and_count(catalogue.ENFORCED_PROCESSING, debug.enforced, tags, now)


def _delayed_results(debug: DebugSensors, tags: Tags, now: float) -> MetricValues:
    for (node, metrics), emitted in debug.emissions.by_operator.items():
        node_tags = (*tags, ("processor-node-id", node))
        yield metrics.total.tagged(node_tags), emitted.total
        yield metrics.rate.tagged(node_tags), emitted.rate(now)


def _active_ratio(debug: DebugSensors, thread: StreamThread, now: float) -> float | None:
    """Return the task's share of the processing time of its thread, or None if the thread has processed nothing."""
    sensors = [task.sensors.debug for task in list(thread.tasks)]
    thread_seconds = sum(each.process.seconds.recent_total(now) for each in sensors if each is not None)
    if not thread_seconds:
        return None
    return min(1.0, debug.process.seconds.recent_total(now) / thread_seconds)  # the thread works on between both sums
