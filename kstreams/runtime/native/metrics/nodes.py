"""The metrics of the nodes of a task: records read, forwarded, dropped and written, and the sensors of processors."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.sensors import RecordAges
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues, average_and_extremes
from kstreams.processor.context.forwarded import NO_CHILD
from kstreams.processor.task.task import Task
from kstreams.runtime.native.thread.active_task import ActiveTask


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
    yield from _sensors(task, tags)


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
