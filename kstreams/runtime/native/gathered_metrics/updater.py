"""The metrics of restores and standbys."""

from __future__ import annotations

from collections import Counter
from time import monotonic

from kstreams.runtime.metrics.catalogue import TASK, UPDATER, MetricName
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.gathered_metrics.found import Found, Tags, amounts
from kstreams.runtime.native.metrics.updater_sensors import UpdaterSensors


def of_updater(client: Client, tags: Tags) -> Found:
    """What is restored and followed, what is left to do, and where the updater's time goes."""
    if client.manager is not None:
        yield MetricName(UPDATER, "active-restoring-tasks", tags), len(client.manager.restoring())
        yield MetricName(UPDATER, "standby-updating-tasks", tags), len(client.manager.standby())
        yield from _of_work(client.manager.updater_sensors, tags)
    restores, lacking = list(client.restores.values()), Counter[str]()
    yield MetricName(UPDATER, "restore-records-total", tags), sum(restore.restored for restore in restores)
    for restore in restores:
        of_store, left = (("task-id", restore.task), ("store", restore.store)), max(0, restore.total - restore.restored)
        lacking[restore.task] += left
        yield MetricName(UPDATER, "restore-remaining-records-total", (*tags, *of_store)), left
    for task, left in lacking.items():
        yield MetricName(TASK, "restore-remaining-records-total", (*tags, ("task-id", task))), left


def _of_work(sensors: UpdaterSensors, tags: Tags) -> Found:
    now = monotonic()
    restoring, updating = sensors.restoring.sum_rate(now), sensors.updating.sum_rate(now)
    yield MetricName(UPDATER, "active-restore-ratio", tags), restoring
    yield MetricName(UPDATER, "standby-update-ratio", tags), updating
    yield MetricName(UPDATER, "idle-ratio", tags), max(0.0, 1 - restoring - updating)
    applied = [*sensors.restored.copy().values(), *sensors.updated.copy().values()]
    yield MetricName(UPDATER, "restore-records-rate", tags), sum(samples.sum_rate(now) for samples in applied)
    yield MetricName(UPDATER, "restore-call-rate", tags), sum(samples.rate(now) for samples in applied)
    for name, of_tasks in (("restore", sensors.restored), ("update", sensors.updated)):
        for task, samples in of_tasks.copy().items():
            yield from amounts(TASK, name, samples, (*tags, ("task-id", task)), now)
