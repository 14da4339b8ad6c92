"""`observe`: says what would otherwise be noticed late: threads that hang, a lag that grows, tasks that come and go."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

from kstreams.runtime.native.growing_lag import GrowingLag
from kstreams.runtime.native.hung_threads import HungThreads
from kstreams.runtime.native.job import Job
from kstreams.runtime.native.rebalance_loop import RebalanceLoop
from kstreams.runtime.native.thread.stream_thread import StreamThread

_LOOK_S = 0.5
_LOOKS_PER_LAG = 15
_OPERATORS_S = 0.05


def observe(
    job: Job, threads: Callable[[], Sequence[StreamThread]], lag: Callable[[], int], stopping: threading.Event
) -> None:
    """Look now and then, until `stopping`; the lag of a bounded run is no news.

    Parameters
    ----------
    job : Job
    threads : callable
        Gives the threads that there are now.
    lag : callable
        Gives the records that wait.
    stopping : Event
    """
    hung = HungThreads(job.clock, job.settings.task_timeout_ms)
    growing = GrowingLag()
    loop = RebalanceLoop(job.clock)
    if job.config["metrics.recording.level"] == "DEBUG":
        threading.Thread(target=_look_at_operators, args=(threads, stopping), daemon=True).start()
    for look in itertools.count(1):
        if stopping.wait(_LOOK_S):
            return
        hung.look(threads())
        loop.look(job.handovers.counts())
        if job.bounds is None and look % _LOOKS_PER_LAG == 0:
            growing.look(lag())


def _look_at_operators(threads: Callable[[], Sequence[StreamThread]], stopping: threading.Event) -> None:
    """Where the time of threads goes: in which operators they are found."""
    while not stopping.wait(_OPERATORS_S):
        for thread in threads():
            place = thread.place()
            thread.sensors.seen_in(None if place is None else place[1])
