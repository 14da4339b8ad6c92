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
    hung, growing = HungThreads(job.clock, job.settings.task_timeout_ms), GrowingLag()
    loop = RebalanceLoop(job.clock)
    for look in itertools.count(1):
        if stopping.wait(_LOOK_S):
            return
        hung.look(threads())
        loop.look(job.handovers.counts())
        if job.bounds is None and look % _LOOKS_PER_LAG == 0:
            growing.look(lag())
