"""`DebugSensors`: what a task measures of itself with `metrics.recording.level=DEBUG`."""

from __future__ import annotations

from time import monotonic

import numpy as np

from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.task import Task
from kstreams.processor.topology.nodes import SubTopology
from kstreams.runtime.metrics.activity import Activity, SampleWindows
from kstreams.runtime.native.metrics.cache_hits import CacheHits
from kstreams.runtime.native.metrics.database_sensors import DatabaseSensors
from kstreams.runtime.native.metrics.emissions import Emissions
from kstreams.runtime.native.metrics.operation_sensors import OperationSensors
from kstreams.runtime.native.metrics.suppress_sensors import suppress_sensors
from kstreams.state.api import TaskState


class DebugSensors:
    """The measurements of one task that take time with every record, look-up or run.

    Parameters
    ----------
    windows : SampleWindows
    sub_topology : SubTopology
    state : TaskState
        Measured (see `open_task_state`).

    Attributes
    ----------
    process, punctuate : Activity
    commits, lateness : Samples
        `lateness`: by how many milliseconds records are behind stream time.
    enforced : Samples
        Runs although an input was empty.
    """

    def __init__(self, windows: SampleWindows, sub_topology: SubTopology, state: TaskState) -> None:
        self.process = Activity(windows)
        self.punctuate = Activity(windows)
        self.commits = windows.samples()
        self.lateness = windows.samples()
        self.enforced = windows.samples()
        self.hits = CacheHits(windows, state.reads())
        self.operations = OperationSensors(windows, state.operation_times())
        self.suppress = suppress_sensors(windows, sub_topology, state)
        self.emissions = Emissions(windows, sub_topology)
        self.database = DatabaseSensors(windows)

    def before_run(self, runs: Interleaved, stream_time: int, *, enforced: bool) -> None:
        """Records are about to be processed; `enforced`: although an input is empty."""
        now = monotonic()
        times = runs.timestamps()
        late = np.maximum(np.maximum.accumulate(times), stream_time) - times
        self.lateness.record_many(len(late), float(late.sum()), int(late.min()), int(late.max()), now)
        if enforced:
            self.enforced.record(1, now)

    def after_run(self, task: Task, since: float, records: int) -> None:
        """They were processed, from this second of the monotonic clock on."""
        self.process.took(since, records)
        self.hits.after_run()
        self._look(task)

    def committed(self, task: Task, state: TaskState) -> None:
        """What the stores hold is on disk; called by the thread that owns them."""
        self.commits.record(1, monotonic())
        self._look(task)
        if self.database.is_due():
            self.database.look(state.database_statistics())

    def _look(self, task: Task) -> None:
        self.operations.look()
        self.emissions.look(task.forwarded)
        for sensors in self.suppress:
            sensors.look()
