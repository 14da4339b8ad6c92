"""The metrics of stream threads, and of the topics that their sinks write to."""

from __future__ import annotations

from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.sensors import ThreadSensors
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues, average_and_maximum, durations, rate_and_count, rate_and_sum
from kstreams.runtime.native.thread.stream_thread import StreamThread


def thread_metrics(thread: StreamThread) -> MetricValues:
    """Return where the time of a thread goes, its tasks, and what its sinks wrote."""
    tags = (("thread-id", thread.name),)
    sensors = thread.sensors
    now = monotonic()
    yield from _activities(sensors, tags, now)
    yield from average_and_maximum(catalogue.POLL_RECORDS, sensors.poll.records, tags, now)
    yield from average_and_maximum(catalogue.PROCESS_RECORDS, sensors.process.records, tags, now)
    yield from rate_and_count(catalogue.TASK_CREATED, sensors.tasks_created, tags, now)
    yield from rate_and_count(catalogue.TASK_CLOSED, sensors.tasks_closed, tags, now)
    blocked_s = sensors.poll.seconds.total + sensors.commit.seconds.total
    yield catalogue.BLOCKED_TIME.tagged(tags), int(blocked_s * 1e9)
    yield catalogue.THREAD_START_TIME.tagged(tags), sensors.started_ms
    yield catalogue.THREAD_STATE.tagged(tags), thread.state.value
    for operator, ratio in sensors.operator_ratios(now).items():
        yield catalogue.ACTIVE_RATIO.tagged((*tags, ("processor-node-id", operator))), ratio
    yield from _written_topics(thread, tags)


def _activities(sensors: ThreadSensors, tags: Tags, now: float) -> MetricValues:
    for metrics, activity in (
        (catalogue.THREAD_POLL, sensors.poll),
        (catalogue.THREAD_PUNCTUATE, sensors.punctuate),
        (catalogue.THREAD_COMMIT, sensors.commit),
    ):
        yield from durations(metrics, activity, tags, now)
        yield from rate_and_count(metrics.events, activity.seconds, tags, now)
    yield from durations(catalogue.THREAD_PROCESS, sensors.process, tags, now)
    yield from rate_and_sum(catalogue.THREAD_PROCESS.events, sensors.process.records, tags, now)


def _written_topics(thread: StreamThread, tags: Tags) -> MetricValues:
    buffer = thread.sink_buffer
    records = buffer.records_out.copy() | buffer.repartitioned.copy()  # no topic is in both
    for metric, amounts in (
        (catalogue.RECORDS_PRODUCED, records),
        (catalogue.BYTES_PRODUCED, buffer.bytes_out.copy()),
    ):
        for topic, amount in amounts.items():
            yield metric.tagged((*tags, ("topic-name", topic))), amount
