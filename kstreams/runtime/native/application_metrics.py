"""`application_metrics`: the present metrics of a running application, under the names of Kafka Streams."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin
from kstreams.metrics import catalogue
from kstreams.metrics.connector_tasks import connector_metrics
from kstreams.metrics.template import MetricName, Tags
from kstreams.metrics.values import MetricValue, MetricValues, identity
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.metrics.tasks import node_metrics, sink_metrics, task_metrics, task_tags
from kstreams.runtime.native.metrics.threads import restore_metrics, thread_metrics, updater_metrics
from kstreams.runtime.native.progress import existing_end_offsets
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread

_END_OFFSETS_TIMEOUT_S = 2.0
"""Kafka's client waits half a minute for an unreachable cluster, which is longer than Prometheus waits for metrics."""
_STOPPED = {ThreadState.DEAD, ThreadState.PENDING_SHUTDOWN}


def application_metrics(client: Client | RunningClient) -> dict[MetricName, MetricValue]:
    """Return the present value of every metric that has one. Reads the end offsets of the inputs from their home."""
    config = client.application.config
    tags = (("client-id", config["client.id"] or config.application_id),)
    values = [*_client_metrics(client, config.application_id, tags)]
    if isinstance(client, RunningClient):
        values += _metrics_of_run(client, tags)
    return {name: value for name, value in values if value is not None}


def _metrics_of_run(client: RunningClient, tags: Tags) -> MetricValues:
    yield from restore_metrics(client.manager, client.restores.values(), tags)
    with client.former_threads.lock:
        threads = [(thread, list(thread.tasks)) for thread in client.threads]
        totals = {name: value for name, value in _thread_metrics(threads) if value is not None}
        client.former_threads.add_to(totals)
    yield from totals.items()
    tasks = [(thread, task) for thread, tasks in threads for task in tasks]
    yield from updater_metrics(client.context.state.sensors, tags)
    statuses = client.context.connectors.statuses()
    yield from connector_metrics(statuses, tags, client.context.environment.clock.uptime_ms())
    yield from _topic_metrics(client.context, tasks)
    yield from _lag_metrics([task for _, task in tasks], client.context, tags)


def _thread_metrics(threads: Iterable[tuple[StreamThread, Sequence[ActiveTask]]]) -> MetricValues:
    for thread, tasks in threads:
        yield from thread_metrics(thread)
        for task in tasks:
            yield from task_metrics(thread, task)


def _topic_metrics(context: RuntimeContext, tasks: Sequence[tuple[StreamThread, ActiveTask]]) -> MetricValues:
    for table in context.topology.global_tables.tasks:
        tags = (("thread-id", context.environment.settings.global_thread), ("task-id", str(table.id)))
        yield from node_metrics(table, tags)
    for thread, task in tasks:
        yield from sink_metrics(task, context.topology.layout.topic_names, task_tags(thread, task))


def _client_metrics(client: Client | RunningClient, application_id: str, tags: Tags) -> MetricValues:
    progress = client.progress(with_lag=False)
    alive_threads = [thread for thread in client.threads if thread.state not in _STOPPED]
    yield from identity(application_id, client.application.lifecycle.state.value, tags)
    yield catalogue.ALIVE_STREAM_THREADS.tagged(tags), len(alive_threads)
    yield catalogue.FAILED_STREAM_THREADS.tagged(tags), client.failed_threads
    yield catalogue.STALLS.tagged(tags), progress.stalls
    yield catalogue.REBUILDS.tagged(tags), progress.rebuilt
    yield catalogue.REASSIGNED.tagged(tags), progress.reassigned


def _lag_metrics(tasks: Sequence[ActiveTask], context: RuntimeContext, client_tags: Tags) -> MetricValues:
    now_ms = context.environment.clock.wall_ms()
    positions = {source: offset for task in tasks for source, offset in task.next_offsets.items()}
    last_ms = {source: task.sensors.read.last_ms.get(source.topic) for task in tasks for source in task.next_offsets}
    for source, end in _end_offsets(list(positions), context.environment.admin).items():
        tags = (*client_tags, ("topic", source.topic), ("partition", str(source.partition)))
        lag = max(0, end - positions[source])
        yield catalogue.RECORDS_LAG.tagged(tags), lag
        yield catalogue.RECORDS_LAG_MS.tagged(tags), _age_ms(last_ms[source], now_ms) if lag else 0


def _age_ms(time_ms: int | None, now_ms: int) -> int | None:
    return None if time_ms is None else now_ms - time_ms


def _end_offsets(sources: Collection[TopicPartition], admin: Admin) -> Mapping[TopicPartition, int]:
    """Return the end offsets. If the home of topics does not answer soon, return none: other metrics do not need it."""
    results = SimpleQueue[Mapping[TopicPartition, int]]()

    def read() -> None:
        with suppress(LogError):
            results.put(existing_end_offsets(sources, admin))
            return
        results.put({})

    threading.Thread(target=read, name="kstreams-ends", daemon=True).start()
    try:
        return results.get(timeout=_END_OFFSETS_TIMEOUT_S)
    except Empty:
        return {}
