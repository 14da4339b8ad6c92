"""`StepSensors`: what the driver measures of the steps of a run: how long they take, and what tasks report in them."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.config import Config
from kstreams.runtime.metrics.activity import Activity, SampleWindows
from kstreams.runtime.spark.exchange.reports import StoreSize, TaskReport


class StepSensors:
    """The measurements of the steps; recorded by the threads of the run, read by any.

    Parameters
    ----------
    windows : SampleWindows

    Attributes
    ----------
    process, commit : Activity
        Whole steps with their records, and the commits in them.
    sizes : mapping of (str, str) to StoreSize
        By task and store, as of its last step.
    stream_times : mapping of str to int
        By task.

    Examples
    --------
    >>> sensors = StepSensors(SampleWindows(30, 2))
    >>> size = StoreSize(rows=3, bytes=100, updated=1)
    >>> sensors.applied(0.0, 0.0, [TaskReport(records_in=5, states={"0_1": b""}, stores={"counts": size})])
    >>> sensors.process.records.total, sensors.of_stores()["counts"].rows
    (5.0, 3)
    """

    def __init__(self, windows: SampleWindows) -> None:
        self.process = Activity(windows)
        self.commit = Activity(windows)
        self.sizes: dict[tuple[str, str], StoreSize] = {}
        self.stream_times: dict[str, int] = {}

    @classmethod
    def of(cls, config: Config) -> StepSensors:
        """Averaged as the configuration says."""
        return cls(SampleWindows.of(config))

    def applied(self, started_at: float, committing: float, reports: Iterable[TaskReport]) -> None:
        """A step is committed now; it began, and its commit began, at these seconds of the monotonic clock."""
        all_reports = list(reports)
        self.commit.took(committing)
        self.process.took(started_at, sum(report.records_in for report in all_reports))
        for report in all_reports:
            self.stream_times |= report.stream_times
            self.sizes |= {(task, store): size for task in report.states for store, size in report.stores.items()}

    def of_stores(self) -> dict[str, StoreSize]:
        """By store: how much it holds in all tasks together."""
        sizes: dict[str, StoreSize] = {}
        for (_, store), size in self.sizes.copy().items():
            earlier_size = sizes.get(store)
            sizes[store] = size if earlier_size is None else earlier_size + size
        return sizes
