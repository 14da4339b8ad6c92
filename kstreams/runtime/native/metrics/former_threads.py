"""`FormerThreads`: the counters of threads and tasks that have left this process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kstreams.metrics.catalogue import SENSOR_COUNT, SENSOR_TOTAL, template_of
from kstreams.metrics.template import MetricKind, MetricName
from kstreams.metrics.values import MetricValue, MetricValues
from kstreams.runtime.native.metrics.tasks import task_metrics
from kstreams.runtime.native.metrics.threads import thread_metrics
from kstreams.runtime.native.progress import Progress, progress_of
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread


class FormerThreads:
    """The counters of threads that were replaced or removed, and of tasks that threads gave back.

    Attributes
    ----------
    progress : list of Progress
        The progress of the threads.
    lock : Lock
        Held while a thread or task leaves, so that its counters are read here or there, never twice and never not at
        all.
    """

    def __init__(self) -> None:
        self.progress: list[Progress] = []
        self.lock = threading.Lock()
        self._totals: Counter[MetricName] = Counter()

    @contextmanager
    def leaving(self, threads: Sequence[StreamThread]) -> Iterator[None]:
        """Hold the lock while the caller removes threads that have ended, after adding their counters."""
        with self.lock:
            self.progress.append(progress_of(threads, None))
            for thread in threads:
                self._add(thread_metrics(thread))
                for task in thread.tasks:
                    self._add(task_metrics(thread, task))
            yield

    @contextmanager
    def task_leaving(self, thread: StreamThread, task: ActiveTask) -> Iterator[None]:
        """Hold the lock while the caller removes a task from a thread, after adding its counters."""
        with self.lock:
            self._add(task_metrics(thread, task))
            yield

    def add_to(self, values: dict[MetricName, MetricValue]) -> None:
        """Add the counters to the values of the present threads and tasks. The caller holds the lock."""
        for name, total in self._totals.items():
            present = values.get(name, 0)
            values[name] = total if isinstance(present, str) else present + total

    def _add(self, values: MetricValues) -> None:
        for name, value in values:
            if value is not None and not isinstance(value, str) and _is_sum(name):
                self._totals[name] += value  # type: ignore[assignment]  # seconds and sums of sensors are floats


def _is_sum(name: MetricName) -> bool:
    """Return whether the values of several tasks add up."""
    template = template_of(name)
    return template.kind is MetricKind.COUNTER or template in (SENSOR_TOTAL, SENSOR_COUNT)
