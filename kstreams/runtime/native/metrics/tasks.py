"""The metrics of tasks, of their nodes, and of their stores with the database that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.debug_sensors import DebugSensors
from kstreams.metrics.sensors import RecordAges, TaskSensors
from kstreams.metrics.template import Tags
from kstreams.metrics.values import (
    MetricValues,
    average_and_extremes,
    average_and_maximum,
    latency,
    rate_and_count,
    rate_and_sum,
)
from kstreams.processor.context.forwarded import NO_CHILD
from kstreams.processor.task.task import Task
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


def store_metrics(sensors: TaskSensors, tags: Tags) -> MetricValues:
    """Return RocksDB's properties of each store; at DEBUG also operations, hit ratios and RocksDB's statistics."""
    for store, properties in sensors.properties.items():
        store_tags = (*tags, ("rocksdb-state-id", store))
        for name, value in properties.items():
            yield catalogue.ROCKSDB_PROPERTIES[name].tagged(store_tags), value
        if properties:
            yield catalogue.ESTIMATE_LIVE_DATA_SIZE.tagged(store_tags), sensors.extents[store].bytes
    if sensors.debug is not None:
        yield from _operations(sensors.debug, tags)
        yield from _hit_ratios(sensors.debug, tags)
        yield from _suppress_buffers(sensors.debug, tags)
        yield from sensors.debug.database.values(tags, monotonic())


def _operations(debug: DebugSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    for (store, operation), seconds in list(debug.operations.by_operation.items()):
        metrics = catalogue.OPERATIONS[operation]
        store_tags = (*tags, ("state-id", store))
        yield from latency(metrics.latency, seconds, store_tags, now)
        yield metrics.rate.tagged(store_tags), seconds.rate(now)


def _hit_ratios(debug: DebugSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    for store, hits in list(debug.hits.by_store.items()):
        yield from average_and_extremes(catalogue.HIT_RATIO, hits, (*tags, ("record-cache-id", store)), now)


def _suppress_buffers(debug: DebugSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    for buffer in debug.suppress:
        for metrics, samples in buffer.extents.items():
            yield from average_and_maximum(metrics, samples, (*tags, ("state-id", buffer.store)), now)


def node_metrics(task: Task, tags: Tags) -> MetricValues:
    """Return what nodes have read, forwarded and dropped, and the sensors of processors."""
    dropped = task.dropped.copy()
    for node, reason in dropped:
        reason_tags = (*_node_tags(tags, node), ("reason", reason))
        yield catalogue.DROPPED_RECORDS_BY_REASON.tagged(reason_tags), dropped[node, reason]
    for node, records in task.records_by_source().items():
        yield catalogue.NODE_PROCESS_TOTAL.tagged(_node_tags(tags, node)), records
    for (node, child), records in task.forwarded.items():
        if child != NO_CHILD:
            child_tags = (*_node_tags(tags, node), ("child-node-id", child))
            yield catalogue.FORWARDED_RECORDS.tagged(child_tags), records
    yield from _waits(task, tags)
    yield from _sensors(task, tags)


def _waits(task: Task, tags: Tags) -> MetricValues:
    """Return the waiting and the parked records of operators that let records wait."""
    now_ms = task.wall_ms()
    for node, waits in task.waits().items():
        node_tags = _node_tags(tags, node)
        yield catalogue.WAITING_RECORDS.tagged(node_tags), waits.records
        yield catalogue.OLDEST_WAIT.tagged(node_tags), waits.oldest_ms(now_ms)
        yield catalogue.PARKED_RECORDS.tagged(node_tags), task.failures.parked[node]


def _sensors(task: Task, tags: Tags) -> MetricValues:
    for (node, name), sensor in list(task.sensors.items()):
        measured = sensor.measured
        node_tags = _node_tags(tags, node)
        yield catalogue.of_sensor(catalogue.SENSOR_TOTAL, name, node_tags), measured.total
        yield catalogue.of_sensor(catalogue.SENSOR_COUNT, name, node_tags), measured.count
        yield catalogue.of_sensor(catalogue.SENSOR_MAX, name, node_tags), measured.highest


def source_metrics(active: ActiveTask, tags: Tags) -> MetricValues:
    """Return what sources have read from each topic, and the ages of the records."""
    nodes = {source.topic: active.task.source_of(source.topic) for source in active.plan.inputs}
    ages = active.sensors.read
    now = monotonic()
    yield from _ages(ages, nodes, tags)
    topic_tags = {topic: _topic_tags(tags, node, topic) for topic, node in nodes.items()}
    for topic, samples in list(ages.by_topic.items()):
        if topic in topic_tags:
            yield catalogue.RECORDS_CONSUMED.tagged(topic_tags[topic]), samples.count
            yield catalogue.NODE_PROCESS_RATE.tagged(topic_tags[topic]), samples.rate(now)
    for source, size in active.input.group.bytes_taken().items():
        yield catalogue.BYTES_CONSUMED.tagged(topic_tags[source.topic]), size


def sink_metrics(active: ActiveTask, topic_names: Mapping[str, str], tags: Tags) -> MetricValues:
    """Return the ages of records when sinks write them.

    Parameters
    ----------
    active : ActiveTask
    topic_names : mapping of str to str
        The names of internal topics in the log, by their names in the topology.
    tags : Tags
    """
    fixed = {sink.topic: sink.name for sink in active.plan.sub_topology.sinks if isinstance(sink.topic, str)}
    nodes = {topic_names.get(topic, topic): name for topic, name in fixed.items()}
    yield from _ages(active.sensors.written, nodes, tags)


def _ages(ages: RecordAges, nodes: Mapping[str, str], tags: Tags) -> MetricValues:
    now = monotonic()
    for topic, samples in list(ages.by_topic.items()):
        if topic in nodes:
            topic_tags = _topic_tags(tags, nodes[topic], topic)
            yield from average_and_extremes(catalogue.RECORD_E2E_LATENCY, samples, topic_tags, now)


def _node_tags(tags: Tags, node: str) -> Tags:
    return (*tags, ("processor-node-id", node))


def _topic_tags(tags: Tags, node: str, topic: str) -> Tags:
    return (*_node_tags(tags, node), ("topic-name", topic))
