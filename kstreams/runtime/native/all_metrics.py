"""`gathered`: the metrics of a running application as they are now, under the names of Kafka Streams."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from queue import Empty, SimpleQueue

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin
from kstreams.metrics.catalogue import CLIENT, CONSUMER, MetricName
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.gathered_metrics.found import Found, Tags, Value
from kstreams.runtime.native.gathered_metrics.tasks import of_nodes, of_sinks, of_task, of_updater, of_updating
from kstreams.runtime.native.gathered_metrics.threads import of_thread
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.progress import known_ends
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread

PACKAGE = "kstreams-dsl"
_ENDS_S = 2.0  # a cluster that is gone takes half a minute to be given up, longer than Prometheus waits
_ENDED = {ThreadState.DEAD, ThreadState.PENDING_SHUTDOWN}


def gathered(client: Client, application_id: str) -> dict[MetricName, Value]:
    """Every metric that has a value by now; asks the home of topics where partitions end."""
    tags = (("client-id", client.config["client.id"] or application_id),)
    values = [*_of_client(client, application_id, tags), *of_updater(client.manager, client.restores.values(), tags)]
    with client.former.lock:
        threads = [(thread, list(thread.tasks)) for thread in client.threads]
        here = {name: value for name, value in _of_threads(threads) if value is not None}
        values += client.former.added_to(here).items()
    if client.context is not None:
        values += of_updating(client.context.state.sensors, tags)
        values += _of_topics(client.context, [(thread, task) for thread, tasks in threads for task in tasks], tags)
    return {name: value for name, value in values if value is not None}


def _of_threads(threads: Iterable[tuple[StreamThread, Sequence[ActiveTask]]]) -> Found:
    for thread, tasks in threads:
        yield from of_thread(thread)
        for task in tasks:
            yield from of_task(thread, task)


def _of_topics(context: RuntimeContext, tasks: Sequence[tuple[StreamThread, ActiveTask]], tags: Tags) -> Found:
    for table in context.topology.global_tables.tasks:
        yield from of_nodes(
            table, (("thread-id", context.environment.settings.global_thread), ("task-id", str(table.id)))
        )
    for thread, task in tasks:
        yield from of_sinks(thread, task, context.topology.layout.topic_names)
    yield from _lags([task for _, task in tasks], context, tags)


def _of_client(client: Client, application_id: str, tags: Tags) -> Found:
    progress = client.progress(with_lag=False)
    alive = [thread for thread in client.threads if thread.state not in _ENDED]
    yield MetricName(CLIENT, "version", tags), version(PACKAGE)
    yield MetricName(CLIENT, "application-id", tags), application_id
    yield MetricName(CLIENT, "state", tags), client.life.state.value
    yield MetricName(CLIENT, "alive-stream-threads", tags), len(alive)
    yield MetricName(CLIENT, "failed-stream-threads", tags), client.died
    yield MetricName(CLIENT, "stalls-total", tags), progress.stalls
    yield MetricName(CLIENT, "rebuilds-total", tags), progress.rebuilt
    yield MetricName(CLIENT, "reassigned-total", tags), progress.reassigned


def _lags(tasks: Sequence[ActiveTask], context: RuntimeContext, of_client: Tags) -> Found:
    now_ms = context.environment.clock.wall_ms()
    positions = {source: offset for task in tasks for source, offset in task.next_offsets.items()}
    last_ms = {source: task.sensors.read.last_ms.get(source.topic) for task in tasks for source in task.next_offsets}
    for source, end in _ends(list(positions), context.environment.admin).items():
        tags = (*of_client, ("topic", source.topic), ("partition", str(source.partition)))
        lag = max(0, end - positions[source])
        last = last_ms[source]
        yield MetricName(CONSUMER, "records-lag", tags), lag
        yield MetricName(CONSUMER, "records-lag-ms", tags), 0 if not lag else None if last is None else now_ms - last


def _ends(sources: Collection[TopicPartition], admin: Admin) -> Mapping[TopicPartition, int]:
    """Where partitions end; nothing when their home does not answer soon: then all else is worth knowing."""
    answers = SimpleQueue[Mapping[TopicPartition, int]]()

    def ask() -> None:
        with suppress(LogError):
            answers.put(known_ends(sources, admin))
            return
        answers.put({})

    threading.Thread(target=ask, name="kstreams-ends", daemon=True).start()
    try:
        return answers.get(timeout=_ENDS_S)
    except Empty:
        return {}
