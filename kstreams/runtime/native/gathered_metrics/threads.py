"""The metrics of stream threads, and of the topics that their sinks write to."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from kstreams.metrics.catalogue import NODE, TEMPLATES, THREAD, TOPIC, MetricKind, MetricName
from kstreams.runtime.native.gathered_metrics.found import Found, Value, amounts, extremes, latency, occurrences, turns
from kstreams.runtime.native.gathered_metrics.tasks import of_task
from kstreams.runtime.native.progress import Progress, progress_of
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread


class FormerThreads:
    """The counters of threads that were replaced or removed, and of tasks that threads gave back.

    Attributes
    ----------
    progress : list of Progress
        Of the threads.
    lock : Lock
        Held while something leaves: it is counted here or there, never twice and never not at all.
    """

    def __init__(self) -> None:
        self.progress: list[Progress] = []
        self.lock = threading.Lock()
        self._reached: Counter[MetricName] = Counter()

    @contextmanager
    def leaving(self, threads: Sequence[StreamThread]) -> Iterator[None]:
        """Threads, which have ended, are taken from those of the process meanwhile."""
        with self.lock:
            self.progress.append(progress_of(threads, None))
            for thread in threads:
                self._keep(of_thread(thread))
                for task in thread.tasks:
                    self._keep(of_task(thread, task))
            yield

    @contextmanager
    def task_leaving(self, thread: StreamThread, task: ActiveTask) -> Iterator[None]:
        """A task is taken from a thread meanwhile."""
        with self.lock:
            self._keep(of_task(thread, task))
            yield

    def added_to(self, values: dict[MetricName, Value]) -> dict[MetricName, Value]:
        """The metrics of those that are there: counters go on from where they were; call it with the lock held."""
        for name, total in self._reached.items():
            now = values.get(name, 0)
            values[name] = total if isinstance(now, str) else now + total
        return values

    def _keep(self, values: Found) -> None:
        for name, value in values:
            if value is not None and not isinstance(value, str) and _adds_up(name):
                self._reached[name] += value  # type: ignore[assignment]  # seconds and sums of sensors are floats


def _adds_up(name: MetricName) -> bool:
    """Whether it is the sum of what happened: of sensors all but the greatest value."""
    if name.tag("sensor") is not None:
        return not name.name.endswith("-max")
    return TEMPLATES[name.group, name.name].kind is MetricKind.COUNTER


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
    for operator, share in thread.sensors.operator_ratios(now).items():
        yield MetricName(NODE, "active-ratio", (*tags, ("processor-node-id", operator))), share
    yield from _of_topics(thread)


def _of_topics(thread: StreamThread) -> Found:
    buffer = thread.sink_buffer
    of_thread = ("thread-id", thread.name)
    records = buffer.records_out.copy() | buffer.repartitioned.copy()  # no topic is in both
    for name, written in (("records", records), ("bytes", buffer.bytes_out.copy())):
        for topic, amount in written.items():
            yield MetricName(TOPIC, f"{name}-produced-total", (of_thread, ("topic-name", topic))), amount
