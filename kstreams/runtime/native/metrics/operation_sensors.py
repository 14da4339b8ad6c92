"""`OperationSensors`: how long the operations of a task's stores take of late."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from kstreams.runtime.metrics.activity import SampleWindows
from kstreams.runtime.metrics.samples import Samples
from kstreams.state.rows.operation_time import OperationTime


class OperationSensors:
    """The times of the stores' operations, look by look.

    Parameters
    ----------
    windows : SampleWindows
    times : mapping of str to mapping of str to OperationTime
        By store and operation, as they go on.

    Examples
    --------
    >>> time = OperationTime()
    >>> operations = OperationSensors(SampleWindows(30, 2), {"counts": {"get": time}})
    >>> time.took(0.25), time.took(0.75)
    (None, None)
    >>> operations.look()
    >>> found = operations.by_operation["counts", "get"]
    >>> found.count, found.average(monotonic()), found.highest(monotonic())
    (2, 0.5, 0.75)
    """

    __slots__ = ("_before", "_times", "_windows", "by_operation")

    def __init__(self, windows: SampleWindows, times: Mapping[str, Mapping[str, OperationTime]]) -> None:
        self._windows = windows
        self._times = {(store, name): time for store, of_store in times.items() for name, time in of_store.items()}
        self._before = dict.fromkeys(self._times, (0, 0.0))
        self.by_operation: dict[tuple[str, str], Samples] = {}

    def look(self) -> None:
        """Take what came since the last time."""
        now = monotonic()
        for operation, time in self._times.items():
            count, seconds = self._before[operation]
            if time.count > count:
                samples = self.by_operation.setdefault(operation, self._windows.samples())
                samples.record_many(time.count - count, time.seconds - seconds, 0, time.longest_s, now)
                self._before[operation] = (time.count, time.seconds)
                time.longest_s = 0.0
