"""The metrics of restores and standbys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from time import monotonic

from kstreams.runtime.metrics.catalogue import TASK, UPDATER, MetricName
from kstreams.runtime.native.gathered_metrics.found import Found, Tags, amounts
from kstreams.runtime.native.metrics.updater_sensors import UpdaterSensors
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.tasks.task_manager import TaskManager


def of_updater(manager: TaskManager | None, restores: Iterable[RestoreProgress], tags: Tags) -> Found:
    """What is restored and followed, and what is left to do."""
    restoring = frozenset[str]()
    if manager is not None:
        restoring = frozenset(map(str, manager.restoring()))
        yield MetricName(UPDATER, "active-restoring-tasks", tags), len(restoring)
        yield MetricName(UPDATER, "standby-updating-tasks", tags), len(manager.standby())
        for standby, lag in manager.lags().items():
            yield MetricName(TASK, "standby-lag", (*tags, ("task-id", str(standby)))), lag
    yield from _of_restores(list(restores), restoring, tags)


def _of_restores(restores: Sequence[RestoreProgress], restoring: Collection[str], tags: Tags) -> Found:
    """What they lack; nothing where a restore was given up because the task runs elsewhere now."""
    remaining_records = Counter[str]()
    for restore in restores:
        remaining = max(0, restore.total - restore.restored) if restore.task in restoring else 0
        remaining_records[restore.task] += remaining
        of_store = (*tags, ("task-id", restore.task), ("store", restore.store))
        yield MetricName(UPDATER, "restore-remaining-records-total", of_store), remaining
    for task, remaining in remaining_records.items():
        yield MetricName(TASK, "restore-remaining-records-total", (*tags, ("task-id", task))), remaining


def of_updating(sensors: UpdaterSensors, tags: Tags) -> Found:
    """Where the updater's time goes, and what it has applied."""
    now = monotonic()
    restoring = sensors.restoring.sum_rate(now)
    updating = sensors.updating.sum_rate(now)
    yield MetricName(UPDATER, "active-restore-ratio", tags), restoring
    yield MetricName(UPDATER, "standby-update-ratio", tags), updating
    yield MetricName(UPDATER, "idle-ratio", tags), max(0.0, 1 - restoring - updating)
    applied = [*sensors.restored.copy().values(), *sensors.updated.copy().values()]
    yield MetricName(UPDATER, "restore-records-rate", tags), sum(samples.sum_rate(now) for samples in applied)
    yield MetricName(UPDATER, "restore-call-rate", tags), sum(samples.rate(now) for samples in applied)
    restored = sum(samples.total for samples in sensors.restored.copy().values())
    yield MetricName(UPDATER, "restore-records-total", tags), restored
    for name, of_tasks in (("restore", sensors.restored), ("update", sensors.updated)):
        for task, samples in of_tasks.copy().items():
            yield from amounts(TASK, name, samples, (*tags, ("task-id", task)), now)
