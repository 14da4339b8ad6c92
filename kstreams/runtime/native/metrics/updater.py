"""The metrics of the state updater: what is restored, and what standby tasks apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.sensors import UpdaterSensors
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues, rate_and_sum
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.tasks.task_manager import TaskManager


def restore_metrics(manager: TaskManager, restores: Iterable[RestoreProgress], tags: Tags) -> MetricValues:
    """Return how many tasks are restored and updated, and the records that they lack."""
    restoring = frozenset(map(str, manager.restoring()))
    yield catalogue.ACTIVE_RESTORING_TASKS.tagged(tags), len(restoring)
    yield catalogue.STANDBY_UPDATING_TASKS.tagged(tags), len(manager.standby())
    for standby, lag in manager.lags().items():
        yield catalogue.STANDBY_LAG.tagged((*tags, ("task-id", str(standby)))), lag
    yield from _remaining_records(list(restores), restoring, tags)


def _remaining_records(restores: Sequence[RestoreProgress], restoring: Collection[str], tags: Tags) -> MetricValues:
    """Return the records that are still to be restored: none for a task that runs elsewhere now."""
    records_by_task = Counter[str]()
    for restore in restores:
        remaining = max(0, restore.total - restore.restored) if restore.task in restoring else 0
        records_by_task[restore.task] += remaining
        store_tags = (*tags, ("task-id", restore.task), ("store", restore.store))
        yield catalogue.STORE_REMAINING_RECORDS.tagged(store_tags), remaining
    for task, remaining in records_by_task.items():
        yield catalogue.TASK_REMAINING_RECORDS.tagged((*tags, ("task-id", task))), remaining


def updater_metrics(sensors: UpdaterSensors, tags: Tags) -> MetricValues:
    """Return the shares of the updater's time, and the records that it has applied."""
    now = monotonic()
    restoring = sensors.restoring.sum_rate(now)
    updating = sensors.updating.sum_rate(now)
    yield catalogue.ACTIVE_RESTORE_RATIO.tagged(tags), restoring
    yield catalogue.STANDBY_UPDATE_RATIO.tagged(tags), updating
    yield catalogue.IDLE_RATIO.tagged(tags), max(0.0, 1 - restoring - updating)
    applied = [*sensors.restored.copy().values(), *sensors.updated.copy().values()]
    yield catalogue.RESTORE_RECORDS_RATE.tagged(tags), sum(samples.sum_rate(now) for samples in applied)
    yield catalogue.RESTORE_CALL_RATE.tagged(tags), sum(samples.rate(now) for samples in applied)
    restored = sum(samples.total for samples in sensors.restored.copy().values())
    yield catalogue.RESTORE_RECORDS_TOTAL.tagged(tags), restored
    for metrics, by_task in (
        (catalogue.TASK_RESTORE, sensors.restored),
        (catalogue.TASK_UPDATE, sensors.updated),
    ):
        for task, samples in by_task.copy().items():
            yield from rate_and_sum(metrics, samples, (*tags, ("task-id", task)), now)
