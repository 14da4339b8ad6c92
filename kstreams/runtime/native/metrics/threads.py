"""The metrics of stream threads, of the topics that their sinks write to, and of the state updater."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.sensors import ThreadSensors, UpdaterSensors
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues, average_and_maximum, durations, rate_and_count, rate_and_sum
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.stream_thread import StreamThread


def thread_metrics(thread: StreamThread) -> MetricValues:
    """Return where the time of a thread goes, its tasks, and what its sinks wrote."""
    tags = (("thread-id", thread.name),)
    sensors = thread.sensors
    now = monotonic()
    yield from _activities(sensors, tags, now)
    yield from average_and_maximum(catalogue.POLL_RECORDS, sensors.poll.records, tags, now)
    yield from average_and_maximum(catalogue.PROCESS_RECORDS, sensors.process.records, tags, now)
    yield from rate_and_count(catalogue.TASK_CREATED, sensors.tasks_created, tags, now)
    yield from rate_and_count(catalogue.TASK_CLOSED, sensors.tasks_closed, tags, now)
    blocked_s = sensors.poll.seconds.total + sensors.commit.seconds.total
    yield catalogue.BLOCKED_TIME.tagged(tags), int(blocked_s * 1e9)
    yield catalogue.THREAD_START_TIME.tagged(tags), sensors.started_ms
    yield catalogue.THREAD_STATE.tagged(tags), thread.state.value
    for operator, ratio in sensors.operator_ratios(now).items():
        yield catalogue.ACTIVE_RATIO.tagged((*tags, ("processor-node-id", operator))), ratio
    yield from _written_topics(thread, tags)
    yield from average_and_maximum(catalogue.PRODUCE_THROTTLE_TIME, sensors.produce_throttling.delays, tags, now)
    yield from average_and_maximum(catalogue.FETCH_THROTTLE_TIME, sensors.fetch_throttling.delays, tags, now)
    yield catalogue.PRODUCE_THROTTLE_TOTAL.tagged(tags), int(sensors.produce_throttling.delays.total)
    yield catalogue.FETCH_THROTTLE_TOTAL.tagged(tags), int(sensors.fetch_throttling.delays.total)


def _activities(sensors: ThreadSensors, tags: Tags, now: float) -> MetricValues:
    for metrics, activity in (
        (catalogue.THREAD_POLL, sensors.poll),
        (catalogue.THREAD_PUNCTUATE, sensors.punctuate),
        (catalogue.THREAD_COMMIT, sensors.commit),
    ):
        yield from durations(metrics, activity, tags, now)
        yield from rate_and_count(metrics.events, activity.seconds, tags, now)
    yield from durations(catalogue.THREAD_PROCESS, sensors.process, tags, now)
    yield from rate_and_sum(catalogue.THREAD_PROCESS.events, sensors.process.records, tags, now)


def _written_topics(thread: StreamThread, tags: Tags) -> MetricValues:
    buffer = thread.sink_buffer
    records = buffer.records_out.copy() | buffer.repartitioned.copy()  # no topic is in both
    for metric, amounts in (
        (catalogue.RECORDS_PRODUCED, records),
        (catalogue.BYTES_PRODUCED, buffer.bytes_out.copy()),
    ):
        for topic, amount in amounts.items():
            yield metric.tagged((*tags, ("topic-name", topic))), amount


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
