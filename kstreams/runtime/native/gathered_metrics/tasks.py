"""The metrics of tasks, of their operators and of the topics that they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from time import monotonic

from kstreams.metrics.catalogue import CACHE, NODE, STATE, TASK, TOPIC, UPDATER, MetricName
from kstreams.metrics.debug_sensors import DebugSensors
from kstreams.metrics.sensors import RecordAges, TaskSensors, UpdaterSensors
from kstreams.processor.context.forwarded import NOBODY
from kstreams.processor.task.task import Task
from kstreams.runtime.native.gathered_metrics.found import Found, Tags, amounts, extremes, latency, occurrences, turns
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread


def of_stores(sensors: TaskSensors, tags: Tags) -> Found:
    """What RocksDB says of each store; with DEBUG also what operations take, and hit ratios."""
    for store, properties in sensors.properties.items():
        of_store = (*tags, ("rocksdb-state-id", store))
        for name, value in properties.items():
            yield MetricName(STATE, name, of_store), value
        if properties:
            yield MetricName(STATE, "estimate-live-data-size", of_store), sensors.extents[store].bytes
    if sensors.debug is not None:
        yield from _of_operations(sensors.debug, tags)
        yield from _of_memory(sensors.debug, tags)
        for name, figure in sensors.debug.database.values(monotonic()):
            yield MetricName(STATE, name, tags), figure


def _of_operations(debug: DebugSensors, tags: Tags) -> Found:
    now = monotonic()
    for (store, name), seconds in list(debug.operations.by_operation.items()):
        of_store = (*tags, ("state-id", store))
        yield from latency(STATE, name, seconds, of_store, now)
        yield MetricName(STATE, f"{name}-rate", of_store), seconds.rate(now)


def _of_memory(debug: DebugSensors, tags: Tags) -> Found:
    now = monotonic()
    for store, hits in list(debug.hits.by_store.items()):
        of_cache = (*tags, ("record-cache-id", store))
        yield from extremes(CACHE, "hit-ratio", hits, of_cache, now)
        yield MetricName(CACHE, "hit-ratio-min", of_cache), hits.lowest(now)
    for buffer in debug.suppress:
        for extent, samples in buffer.extents.items():
            yield from extremes(
                STATE, f"suppression-buffer-{extent}", samples, (*tags, ("state-id", buffer.store)), now
            )


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


def of_task(thread: StreamThread, active: ActiveTask) -> Found:
    """What it holds and has dropped, its operators, stores and topics."""
    tags = (("thread-id", thread.name), ("task-id", active.id))
    sensors = active.sensors
    now = monotonic()
    yield MetricName(TASK, "dropped-records-total", tags), active.task.dropped.copy().total()
    yield MetricName(TASK, "dropped-records-rate", tags), sensors.dropped.rate(now)
    yield MetricName(TASK, "active-buffer-count", tags), sum(map(active.group.buffered, active.plan.inputs))
    yield MetricName(TASK, "input-buffer-bytes-total", tags), active.group.buffered_bytes()
    yield MetricName(TASK, "cache-size-bytes-total", tags), sensors.live_bytes
    yield MetricName(TASK, "stream-time", tags), active.task.stream_time
    yield MetricName(TASK, "uncommitted-bytes", tags), active.bytes_pending
    yield from of_nodes(active.task, tags)
    yield from of_stores(sensors, tags)
    yield from _of_sources(active, tags)
    if sensors.debug is not None:
        yield from _of_runs(sensors.debug, _seconds_in_tasks(thread, now), tags)


def _seconds_in_tasks(thread: StreamThread, now: float) -> float:
    debug = [task.sensors.debug for task in list(thread.tasks)]
    return sum(sensors.process.seconds.recent_total(now) for sensors in debug if sensors is not None)


def _of_sources(active: ActiveTask, tags: Tags) -> Found:
    nodes = {source.topic: active.task.source_of(source.topic) for source in active.plan.inputs}
    now = monotonic()
    yield from _ages(active.sensors.read, nodes, tags)
    of_sources = {topic: (*tags, ("processor-node-id", node), ("topic-name", topic)) for topic, node in nodes.items()}
    for topic, ages in list(active.sensors.read.by_topic.items()):
        if topic in of_sources:
            yield MetricName(TOPIC, "records-consumed-total", of_sources[topic]), ages.count
            yield MetricName(NODE, "process-rate", of_sources[topic]), ages.rate(now)
    for source, size in active.group.bytes_taken().items():
        yield MetricName(TOPIC, "bytes-consumed-total", of_sources[source.topic]), size


def _of_runs(debug: DebugSensors, busy: float, tags: Tags) -> Found:
    now = monotonic()
    yield from latency(TASK, "process", debug.process.seconds, tags, now)
    yield from amounts(TASK, "process", debug.process.records, tags, now)
    yield from turns(TASK, "punctuate", debug.punctuate, tags, now)
    yield from occurrences(TASK, "commit", debug.commits, tags, now)
    yield from extremes(TASK, "record-lateness", debug.lateness, tags, now)
    yield from occurrences(TASK, "enforced-processing", debug.enforced, tags, now)
    share = (
        min(1.0, debug.process.seconds.recent_total(now) / busy) if busy else None
    )  # the thread works on between both sums
    yield MetricName(TASK, "active-process-ratio", tags), share
    for (node, name), emitted in debug.emissions.by_operator.items():
        of_node = (*tags, ("processor-node-id", node))
        yield MetricName(NODE, f"{name}-total", of_node), emitted.total
        yield MetricName(NODE, f"{name}-rate", of_node), emitted.rate(now)


def of_nodes(task: Task, tags: Tags) -> Found:
    """What operators have read, passed on, dropped and measured themselves."""
    dropped = task.dropped.copy()
    for node, reason in dropped:
        by_reason = (*tags, ("processor-node-id", node), ("reason", reason))
        yield MetricName(NODE, "dropped-records-by-reason-total", by_reason), dropped[node, reason]
    for node, records in task.records_by_source().items():
        yield MetricName(NODE, "process-total", (*tags, ("processor-node-id", node))), records
    for (node, child), records in task.forwarded.items():
        if child == NOBODY:
            continue
        ends = (*tags, ("processor-node-id", node), ("child-node-id", child))
        yield MetricName(NODE, "forwarded-records-total", ends), records
    for (node, sensor), measured in ((name, sensor.measured) for name, sensor in list(task.sensors.items())):
        of_node = (*tags, ("processor-node-id", node), ("sensor", sensor))
        yield MetricName(NODE, f"{sensor}-total", of_node), measured.total
        yield MetricName(NODE, f"{sensor}-count", of_node), measured.count
        yield MetricName(NODE, f"{sensor}-max", of_node), measured.highest


def of_sinks(thread: StreamThread, active: ActiveTask, real_names: Mapping[str, str]) -> Found:
    """How old records are when sinks write them."""
    tags = (("thread-id", thread.name), ("task-id", active.id))
    fixed = ((sink.topic, sink.name) for sink in active.plan.sub_topology.sinks if isinstance(sink.topic, str))
    yield from _ages(active.sensors.written, {real_names.get(topic, topic): name for topic, name in fixed}, tags)


def _ages(ages: RecordAges, nodes: Mapping[str, str], tags: Tags) -> Found:
    now = monotonic()
    for topic, samples in list(ages.by_topic.items()):
        if topic in nodes:
            of_node = (*tags, ("processor-node-id", nodes[topic]), ("topic-name", topic))
            yield from extremes(NODE, "record-e2e-latency", samples, of_node, now)
            yield MetricName(NODE, "record-e2e-latency-min", of_node), samples.lowest(now)
