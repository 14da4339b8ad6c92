"""The metrics of stream threads, and of the topics that their sinks write to."""

from __future__ import annotations

from time import monotonic

from kstreams.runtime.metrics.catalogue import NODE, THREAD, TOPIC, MetricName
from kstreams.runtime.native.gathered_metrics.found import Found, amounts, extremes, latency, occurrences, turns
from kstreams.runtime.native.thread.stream_thread import StreamThread


def of_thread(thread: StreamThread) -> Found:
    """Where its time goes, its tasks, and what was written."""
    tags = (("thread-id", thread.name),)
    sensors = thread.sensors
    now = monotonic()
    for name, activity in (("poll", sensors.poll), ("punctuate", sensors.punctuate), ("commit", sensors.commit)):
        yield from turns(THREAD, name, activity, tags, now)
        yield MetricName(THREAD, f"{name}-ratio", tags), activity.seconds.sum_rate(now)
    yield from latency(THREAD, "process", sensors.process.seconds, tags, now)
    yield from amounts(THREAD, "process", sensors.process.records, tags, now)
    yield MetricName(THREAD, "process-ratio", tags), sensors.process.seconds.sum_rate(now)
    for name, activity in (("poll", sensors.poll), ("process", sensors.process)):
        yield from extremes(THREAD, f"{name}-records", activity.records, tags, now)
    yield from occurrences(THREAD, "task-created", sensors.tasks_created, tags, now)
    yield from occurrences(THREAD, "task-closed", sensors.tasks_closed, tags, now)
    blocked_s = sensors.poll.seconds.total + sensors.commit.seconds.total
    yield MetricName(THREAD, "blocked-time-ns-total", tags), int(blocked_s * 1e9)
    yield MetricName(THREAD, "thread-start-time", tags), sensors.started_ms
    yield MetricName(THREAD, "state", tags), thread.state.value
    for operator, share in thread.sensors.shares(now).items():
        yield MetricName(NODE, "active-ratio", (*tags, ("processor-node-id", operator))), share
    yield from _of_topics(thread)


def _of_topics(thread: StreamThread) -> Found:
    buffer = thread.sink_buffer
    of_thread = ("thread-id", thread.name)
    records = buffer.records_out.copy() | buffer.repartitioned.copy()  # no topic is in both
    for name, written in (("records", records), ("bytes", buffer.bytes_out.copy())):
        for topic, amount in written.items():
            yield MetricName(TOPIC, f"{name}-produced-total", (of_thread, ("topic-name", topic))), amount
