"""`FormerThreads`: what threads and tasks have counted that are gone, so that no counter of the process falls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kstreams.runtime.metrics.catalogue import TEMPLATES, MetricKind, MetricName
from kstreams.runtime.native.gathered_metrics.found import Found, Value
from kstreams.runtime.native.gathered_metrics.tasks import of_task
from kstreams.runtime.native.gathered_metrics.threads import of_thread
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
