"""`gathered`: the metrics of a running application as they are now, under the names of Kafka Streams."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from time import monotonic
from typing import TypeAlias

from kstreams.errors import LogError
from kstreams.processor.task.task import Task
from kstreams.runtime.metrics.activity import Activity
from kstreams.runtime.metrics.catalogue import (
    CACHE,
    CLIENT,
    CONSUMER,
    NODE,
    STATE,
    TASK,
    THREAD,
    TOPIC,
    UPDATER,
    MetricName,
)
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.job import Job
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.metrics.record_ages import RecordAges
from kstreams.runtime.native.metrics.suppress_sensors import SuppressSensors
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread

Value: TypeAlias = float | str
Tags: TypeAlias = tuple[tuple[str, str], ...]
Found: TypeAlias = Iterator[tuple[MetricName, Value | None]]

PACKAGE = "kstreams-dsl"
_ENDED = {ThreadState.DEAD, ThreadState.PENDING_SHUTDOWN}


def gathered(client: Client, application_id: str) -> dict[MetricName, Value]:
    """Every metric that has a value by now; asks the home of topics where partitions end."""
    threads = list(client.threads)
    tasks = [(thread, task) for thread in threads for task in list(thread.tasks)]
    found = [*_of_client(client, application_id, threads), *_of_restores(client)]
    for thread in threads:
        found += _of_thread(thread)
    for thread, task in tasks:
        found += _of_task(thread, task)
    if client.job is not None:
        for table in client.job.global_tables.tasks:
            found += _of_nodes(table, (("thread-id", client.job.settings.global_thread), ("task-id", str(table.id))))
        for thread, task in tasks:
            found += _of_sinks(thread, task, client.job.layout.topic_names)
        with suppress(LogError):  # a home that does not answer now: all else is worth knowing
            found += _lags([task for _, task in tasks], client.job)
    return {name: value for name, value in found if value is not None}


def _of_client(client: Client, application_id: str, threads: Iterable[StreamThread]) -> Found:
    progress = client.progress(with_lag=False)
    yield MetricName(CLIENT, "version"), version(PACKAGE)
    yield MetricName(CLIENT, "application-id"), application_id
    yield MetricName(CLIENT, "state"), client.life.state.value
    yield MetricName(CLIENT, "alive-stream-threads"), sum(thread.state not in _ENDED for thread in threads)
    yield MetricName(CLIENT, "failed-stream-threads"), client.died
    yield MetricName(CLIENT, "stalls-total"), progress.stalls
    yield MetricName(CLIENT, "rebuilds-total"), progress.rebuilt
    yield MetricName(CLIENT, "reassigned-total"), progress.reassigned


def _of_thread(thread: StreamThread) -> Found:
    tags, sensors, now = (("thread-id", thread.name),), thread.sensors, monotonic()
    activities = {
        "poll": sensors.poll,
        "process": sensors.process,
        "punctuate": sensors.punctuate,
        "commit": sensors.commit,
    }
    for name, activity in activities.items():
        yield from _of_activity(name, activity, tags, now)
    yield MetricName(THREAD, "process-rate", tags), sensors.process.records.sum_rate(now)
    yield MetricName(THREAD, "process-total", tags), sensors.process.records.total
    for name, activity in (("poll", sensors.poll), ("process", sensors.process)):
        yield MetricName(THREAD, f"{name}-records-avg", tags), activity.records.average(now)
        yield MetricName(THREAD, f"{name}-records-max", tags), activity.records.highest(now)
    yield MetricName(THREAD, "task-created-total", tags), sensors.tasks_created
    yield MetricName(THREAD, "task-closed-total", tags), sensors.tasks_closed
    yield MetricName(THREAD, "thread-start-time", tags), sensors.started_ms
    yield MetricName(THREAD, "state", tags), thread.state.value
    written = thread.sink_buffer.records_out.copy() | thread.sink_buffer.repartitioned.copy()  # no topic is in both
    for topic, records in written.items():
        yield MetricName(TOPIC, "records-produced-total", (*tags, ("topic-name", topic))), records
    for topic, size in thread.sink_buffer.bytes_out.copy().items():
        yield MetricName(TOPIC, "bytes-produced-total", (*tags, ("topic-name", topic))), size
    for operator, share in thread.sensors.shares(now).items():
        yield MetricName(NODE, "active-ratio", (*tags, ("processor-node-id", operator))), share


def _of_activity(name: str, activity: Activity, tags: Tags, now: float) -> Found:
    seconds = activity.seconds
    yield MetricName(THREAD, f"{name}-latency-avg", tags), _milliseconds(seconds.average(now))
    yield MetricName(THREAD, f"{name}-latency-max", tags), _milliseconds(seconds.highest(now))
    yield MetricName(THREAD, f"{name}-ratio", tags), seconds.sum_rate(now)
    if name != "process":
        yield MetricName(THREAD, f"{name}-rate", tags), seconds.rate(now)
        yield MetricName(THREAD, f"{name}-total", tags), seconds.count


def _of_task(thread: StreamThread, active: ActiveTask) -> Found:
    tags, task = (("thread-id", thread.name), ("task-id", active.id)), active.task
    yield MetricName(TASK, "dropped-records-total", tags), task.dropped.copy().total()
    yield MetricName(TASK, "dropped-records-rate", tags), active.sensors.dropped.rate(monotonic())
    yield MetricName(TASK, "active-buffer-count", tags), sum(map(active.group.buffered, active.plan.inputs))
    yield MetricName(TASK, "input-buffer-bytes-total", tags), active.group.buffered_bytes()
    yield MetricName(TASK, "stream-time", tags), task.stream_time
    yield MetricName(TASK, "uncommitted-bytes", tags), active.bytes_pending
    if active.state.directory is not None:
        yield MetricName(STATE, "total-sst-files-size", tags), _bytes_under(active.state.directory)
    yield from _of_nodes(task, tags)
    yield from _of_stores(active, tags)
    nodes = {source.topic: task.source_of(source.topic) for source in active.plan.inputs}
    yield from _ages(active.sensors.read, nodes, tags)
    for topic, ages in list(active.sensors.read.by_topic.items()):
        yield MetricName(TOPIC, "records-consumed-total", (*tags, ("topic-name", topic))), ages.count
    for source, size in active.group.bytes_taken().items():
        yield MetricName(TOPIC, "bytes-consumed-total", (*tags, ("topic-name", source.topic))), size
    for held in active.sensors.suppress:
        yield from _of_suppress(held, tags)


def _of_nodes(task: Task, tags: Tags) -> Found:
    dropped = task.dropped.copy()
    for node, reason in dropped:
        by_reason = (*tags, ("processor-node-id", node), ("reason", reason))
        yield MetricName(NODE, "dropped-records-by-reason-total", by_reason), dropped[node, reason]
    for node, records in task.records_by_source().items():
        yield MetricName(NODE, "process-total", (*tags, ("processor-node-id", node))), records
    for (node, child), records in task.forwarded.items():
        ends = (*tags, ("processor-node-id", node), ("child-node-id", child))
        yield MetricName(NODE, "forwarded-records-total", ends), records
    for (node, sensor), measured in ((name, sensor.measured) for name, sensor in list(task.sensors.items())):
        of_node = (*tags, ("processor-node-id", node))
        yield MetricName(NODE, f"{sensor}-total", of_node), measured.total
        yield MetricName(NODE, f"{sensor}-count", of_node), measured.count
        yield MetricName(NODE, f"{sensor}-max", of_node), measured.highest


def _of_sinks(thread: StreamThread, active: ActiveTask, real_names: Mapping[str, str]) -> Found:
    tags = (("thread-id", thread.name), ("task-id", active.id))
    fixed = ((sink.topic, sink.name) for sink in active.plan.sub_topology.sinks if isinstance(sink.topic, str))
    yield from _ages(active.sensors.written, {real_names.get(topic, topic): name for topic, name in fixed}, tags)


def _of_stores(active: ActiveTask, tags: Tags) -> Found:
    now = monotonic()
    for store, extent in active.sensors.extents.items():
        of_store = (*tags, ("rocksdb-state-id", store))
        yield MetricName(STATE, "estimate-num-keys", of_store), extent.rows
        yield MetricName(STATE, "estimate-live-data-size", of_store), extent.bytes
    for store, hits in list(active.sensors.hits.by_store.items()) if active.sensors.hits is not None else ():
        of_cache = (*tags, ("record-cache-id", store))
        yield MetricName(CACHE, "hit-ratio-avg", of_cache), hits.average(now)
        yield MetricName(CACHE, "hit-ratio-min", of_cache), hits.lowest(now)
        yield MetricName(CACHE, "hit-ratio-max", of_cache), hits.highest(now)


def _of_suppress(held: SuppressSensors, tags: Tags) -> Found:
    now, of_node, of_store = monotonic(), (*tags, ("processor-node-id", held.node)), (*tags, ("state-id", held.store))
    yield MetricName(NODE, "suppression-emit-total", of_node), held.emitted.total
    yield MetricName(NODE, "suppression-emit-rate", of_node), held.emitted.rate(now)
    for what, samples in held.extents.items():
        yield MetricName(STATE, f"suppression-buffer-{what}-avg", of_store), samples.average(now)
        yield MetricName(STATE, f"suppression-buffer-{what}-max", of_store), samples.highest(now)


def _ages(ages: RecordAges, nodes: Mapping[str, str], tags: Tags) -> Found:
    now = monotonic()
    for topic, samples in list(ages.by_topic.items()):
        if topic in nodes:
            of_node = (*tags, ("processor-node-id", nodes[topic]), ("topic-name", topic))
            yield MetricName(NODE, "record-e2e-latency-avg", of_node), samples.average(now)
            yield MetricName(NODE, "record-e2e-latency-min", of_node), samples.lowest(now)
            yield MetricName(NODE, "record-e2e-latency-max", of_node), samples.highest(now)


def _of_restores(client: Client) -> Found:
    if client.manager is not None:
        yield MetricName(UPDATER, "active-restoring-tasks"), len(client.manager.restoring())
        yield MetricName(UPDATER, "standby-updating-tasks"), len(client.manager.standby())
    restores = list(client.restores.values())
    yield MetricName(UPDATER, "restore-records-total"), sum(restore.restored for restore in restores)
    for restore in restores:
        tags = (("task-id", restore.task), ("store", restore.store))
        yield MetricName(UPDATER, "restore-remaining-records-total", tags), max(0, restore.total - restore.restored)


def _lags(tasks: Sequence[ActiveTask], job: Job) -> Found:
    now_ms = job.clock.now_ms()
    positions = {source: offset for task in tasks for source, offset in task.next_offsets.items()}
    last_ms = {source: task.sensors.read.last_ms.get(source.topic) for task in tasks for source in task.next_offsets}
    for source, end in job.admin.end_offsets(list(positions)).items():
        tags = (("topic", source.topic), ("partition", str(source.partition)))
        lag, last = max(0, end - positions[source]), last_ms[source]
        yield MetricName(CONSUMER, "records-lag", tags), lag
        yield MetricName(CONSUMER, "records-lag-ms", tags), 0 if not lag else None if last is None else now_ms - last


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _bytes_under(folder: os.PathLike[str]) -> int:
    """The size of the files of a database; those that go away meanwhile do not count."""
    total = 0
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            with suppress(OSError):
                total += file.stat().st_size
    return total
