"""`UpdaterSensors`: what a state updater measures of itself: what it restores and follows, and how its time goes."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.samples import Samples


class UpdaterSensors:
    """The measurements of one state updater.

    Parameters
    ----------
    windows : SampleWindows

    Attributes
    ----------
    restoring, updating : Samples
        Seconds that went into active tasks, and into standbys.
    restored, updated : dict of str to Samples
        Changelog records of active tasks and of standbys, by task.

    Examples
    --------
    >>> sensors = UpdaterSensors(SampleWindows(30, 2))
    >>> sensors.restored_to("0_1", "counts", 500), sensors.restored_to("0_1", "counts", 800)
    (None, None)
    >>> sensors.restored["0_1"].total
    800.0
    """

    def __init__(self, windows: SampleWindows) -> None:
        self._windows = windows
        self._reached = dict[tuple[str, str], int]()
        self.restoring = windows.samples()
        self.updating = windows.samples()
        self.restored: dict[str, Samples] = {}
        self.updated: dict[str, Samples] = {}

    def worked(self, kind: Samples, since: float) -> None:
        """Something was done from this second of the monotonic clock on."""
        now = monotonic()
        kind.record(now - since, now)

    def restored_to(self, task: str, store: str, records: int) -> None:
        """So many records of a store are restored by now; fewer than before: it is restored anew."""
        before = self._reached.get((task, store), 0)
        self._reached[task, store] = records
        if records > before:
            self._samples(self.restored, task).record(records - before, monotonic())

    def followed(self, records: Mapping[str, int]) -> None:
        """So many records of standbys were applied, by task."""
        for task, count in records.items():
            self._samples(self.updated, task).record(count, monotonic())

    def _samples(self, of_tasks: dict[str, Samples], task: str) -> Samples:
        return of_tasks.setdefault(task, self._windows.samples())
