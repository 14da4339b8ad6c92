"""`InstanceActivity`: the threads, tasks, counters and lags of one process. Clients compute rates from the counters."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from time import monotonic

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kstreams.diagram.data import as_data
from kstreams.diagram.svg import as_svg
from kstreams.kernel.decoders import decode_json
from kstreams.metrics import catalogue
from kstreams.metrics.template import MetricName, MetricTemplate
from kstreams.metrics.values import MetricValue
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.endpoint import Endpoint
from kstreams.server.page import JSON
from kstreams.server.store_query import LOCAL, is_local
from kstreams.server.store_query_service import StoreQueryService

_SVG = "image/svg+xml"
_PEER_TIMEOUT_S = 2.0


class ActivityRoutes:
    """Routes for the topology and for the activity of the instances.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the routes."""
        return (
            Endpoint("/v1/topology", "Sub-topologies with their nodes, topics and stores.", self.topology),
            Endpoint("/v1/topology.svg", "The topology as a picture.", self.picture, media_types=(_SVG,)),
            Endpoint("/v1/activity", "The counters, tasks and lags of each instance.", self.activity, (LOCAL,)),
        )

    async def topology(self, request: Request) -> Response:
        """Return the JSON of `kstreams topology --json`, with the description in the format of Kafka Streams."""
        topology = self._service.streams.topology
        return _json({"application_id": self._name(), "description": topology.describe(), **as_data(topology)})

    async def picture(self, request: Request) -> Response:
        """Return the picture of `kstreams topology --format svg`."""
        topology = self._service.streams.topology
        seconds = self._service.limits.deadline_s
        text = await self._service.executor.run(lambda: as_svg(topology, f"Topology of {self._name()}"), seconds)
        return Response(text, media_type=_SVG)

    async def activity(self, request: Request) -> Response:
        """Return the activity of this instance, then of the others. The state of a silent instance is `SILENT`."""
        service = self._service
        deadline_s = service.limits.deadline_s
        activities = [await service.executor.run(lambda: activity_of(service.streams, service.instance), deadline_s)]
        if not is_local(request.query_params):
            responses = await service.get_from_peers("/v1/activity", min(_PEER_TIMEOUT_S, deadline_s))
            activities += [_activity_of_peer(instance, body) for instance, body in responses.items()]
        return _json({"application_id": self._name(), "instances": activities})

    def _name(self) -> str:
        return self._service.streams.config.application_id


def _activity_of_peer(instance: str, body: bytes | None) -> InstanceActivity:
    """Return the activity of another instance from its response. None is the response of a silent instance."""
    if body is None:
        return InstanceActivity(instance, 0, "SILENT", 0.0, [], [], [], [], [], [], {}, 0)
    [activity] = decode_json(body, _Activities).instances
    return activity


class _Activities(msgspec.Struct):
    instances: list[InstanceActivity]


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)


class ThreadActivity(msgspec.Struct, frozen=True):
    """A stream thread and its tasks."""

    name: str
    state: str
    tasks: list[str]


class ActivityCount(msgspec.Struct, frozen=True):
    """A counter since the start of its task or thread.

    Parameters
    ----------
    kind : {"read", "consumed", "forwarded", "written", "repartitioned", "dropped", "throttled"}
    of : str
        The counted object: the source node for "read"; the topic, by its name in the topology, for "consumed",
        "written" and "repartitioned"; `PARENT>CHILD` for "forwarded", which needs `metrics.recording.level=DEBUG`; the
        operator for "dropped"; "producing" or "reading" for "throttled", whose count is milliseconds.
    by : str
        The task that counted; for "written", "repartitioned" and "throttled" the thread.
    count : int
    reason : str
        The reason for "dropped".
    """

    kind: str
    of: str
    by: str
    count: int
    reason: str = ""


class PartitionLag(msgspec.Struct, frozen=True):
    """The number of unprocessed records of an input partition."""

    topic: str
    partition: int
    lag: int


class RestoreProgress(msgspec.Struct, frozen=True):
    """The number of changelog records that a store still has to restore."""

    task: str
    store: str
    remaining: int


class TaskStatistics(msgspec.Struct, frozen=True):
    """The stream time of a task (ms; -1 before the first record), and the size of the live data in its stores."""

    task: str
    stream_time: int
    bytes: int


class StoreStatistics(msgspec.Struct, frozen=True):
    """The number of rows and the size of the live data in a store of a task, as RocksDB estimates them."""

    store: str
    task: str
    rows: int
    bytes: int


class InstanceActivity(msgspec.Struct, frozen=True):
    """The activity of one process.

    Parameters
    ----------
    instance : str
    pid : int
    state : str
    seconds : float
        The time of the monotonic clock of the process, for rates of counters.
    threads : list of ThreadActivity
    counts : list of ActivityCount
    lags : list of PartitionLag
    restores : list of RestoreProgress
    tasks : list of TaskStatistics
    stores : list of StoreStatistics
    ratios : dict of str to float
        The share of its thread's time that each operator takes. Needs `metrics.recording.level=DEBUG`.
    failed_threads : int
    """

    instance: str
    pid: int
    state: str
    seconds: float
    threads: list[ThreadActivity]
    counts: list[ActivityCount]
    lags: list[PartitionLag]
    restores: list[RestoreProgress]
    tasks: list[TaskStatistics]
    stores: list[StoreStatistics]
    ratios: dict[str, float]
    failed_threads: int


def activity_of(streams: KafkaStreams, instance: str) -> InstanceActivity:
    """Return the activity of this process."""
    threads = [
        ThreadActivity(thread.name, thread.state.value, [task.task_id for task in thread.tasks])
        for thread in streams.metadata_for_local_threads()
    ]
    metrics = _MetricsByName(streams.metrics())
    internal_topics = _internal_topics(streams)
    counts = (
        _read_counts(metrics),
        _consumed_counts(metrics, internal_topics),
        _forwarded_counts(metrics),
        _produced_counts(metrics, internal_topics),
        _dropped_counts(metrics),
        _throttle_counts(metrics),
    )
    failed_threads = metrics.all(catalogue.FAILED_STREAM_THREADS)
    return InstanceActivity(
        instance=instance,
        pid=os.getpid(),
        state=streams.state.value,
        seconds=monotonic(),
        threads=threads,
        counts=_merged(chain.from_iterable(counts)),
        lags=[
            PartitionLag(tags["topic"], int(tags["partition"]), int(lag))
            for tags, lag in metrics.all(catalogue.RECORDS_LAG)
        ],
        restores=[
            RestoreProgress(tags["task-id"], tags["store"], int(remaining))
            for tags, remaining in metrics.all(catalogue.STORE_REMAINING_RECORDS)
            if remaining
        ],
        tasks=_task_statistics(metrics),
        stores=_store_statistics(metrics),
        ratios={tags["processor-node-id"]: ratio for tags, ratio in metrics.all(catalogue.ACTIVE_RATIO)},
        failed_threads=int(failed_threads[0][1]) if failed_threads else 0,
    )


class _MetricsByName:
    """The numeric metrics with their tags, indexed by group and name."""

    def __init__(self, metrics: Mapping[MetricName, MetricValue]) -> None:
        self._values: dict[tuple[str, str], list[tuple[dict[str, str], float]]] = {}
        for name, value in metrics.items():
            if not isinstance(value, str):
                self._values.setdefault(name[:2], []).append((dict(name.tags), value))

    def all(self, metric: MetricTemplate) -> list[tuple[dict[str, str], float]]:
        """Return the tags and the value of each combination of labels."""
        return self._values.get((metric.group, metric.name), [])


def _merged(counts: Iterable[ActivityCount]) -> list[ActivityCount]:
    """Add the counters that a task had in several threads, because clients expect one counter of each kind."""
    totals = Counter[tuple[str, str, str, str]]()
    for counter in counts:
        totals[counter.kind, counter.of, counter.by, counter.reason] += counter.count
    return [ActivityCount(kind, of, by, count, reason) for (kind, of, by, reason), count in totals.items()]


def _read_counts(metrics: _MetricsByName) -> list[ActivityCount]:
    return [
        ActivityCount("read", tags["processor-node-id"], tags["task-id"], int(count))
        for tags, count in metrics.all(catalogue.NODE_PROCESS_TOTAL)
    ]


def _consumed_counts(metrics: _MetricsByName, internal_topics: Mapping[str, str]) -> Iterator[ActivityCount]:
    for tags, count in metrics.all(catalogue.RECORDS_CONSUMED):
        topic = tags["topic-name"]
        yield ActivityCount("consumed", internal_topics.get(topic, topic), tags["task-id"], int(count))


def _forwarded_counts(metrics: _MetricsByName) -> Iterator[ActivityCount]:
    for tags, count in metrics.all(catalogue.FORWARDED_RECORDS):
        edge = f"{tags['processor-node-id']}>{tags['child-node-id']}"
        yield ActivityCount("forwarded", edge, tags["task-id"], int(count))


def _internal_topics(streams: KafkaStreams) -> dict[str, str]:
    """Map the topics of the log to their names in the topology."""
    return {f"{streams.config.application_id}-{topic.name}": topic.name for topic in streams.topology.internal_topics}


def _produced_counts(metrics: _MetricsByName, internal_topics: Mapping[str, str]) -> Iterator[ActivityCount]:
    for tags, count in metrics.all(catalogue.RECORDS_PRODUCED):
        topic = tags["topic-name"]
        kind = "repartitioned" if topic in internal_topics else "written"
        yield ActivityCount(kind, internal_topics.get(topic, topic), tags["thread-id"], int(count))


def _dropped_counts(metrics: _MetricsByName) -> list[ActivityCount]:
    return [
        ActivityCount("dropped", tags["processor-node-id"], tags["task-id"], int(count), tags["reason"])
        for tags, count in metrics.all(catalogue.DROPPED_RECORDS_BY_REASON)
    ]


def _throttle_counts(metrics: _MetricsByName) -> Iterator[ActivityCount]:
    for client, metric in (
        ("producing", catalogue.PRODUCE_THROTTLE_TOTAL),
        ("reading", catalogue.FETCH_THROTTLE_TOTAL),
    ):
        for tags, delay_ms in metrics.all(metric):
            if delay_ms:
                yield ActivityCount("throttled", client, tags["thread-id"], int(delay_ms))


def _task_statistics(metrics: _MetricsByName) -> list[TaskStatistics]:
    sizes = Counter[str]()
    for tags, size in metrics.all(catalogue.ESTIMATE_LIVE_DATA_SIZE):
        sizes[tags["task-id"]] += int(size)
    times = metrics.all(catalogue.STREAM_TIME)
    return [TaskStatistics(tags["task-id"], int(time), sizes[tags["task-id"]]) for tags, time in times]


def _store_statistics(metrics: _MetricsByName) -> list[StoreStatistics]:
    rows = _by_store(metrics, catalogue.ESTIMATE_NUM_KEYS)
    sizes = _by_store(metrics, catalogue.ESTIMATE_LIVE_DATA_SIZE)
    return [
        StoreStatistics(store, task, count, sizes.get((store, task), 0))
        for (store, task), count in sorted(rows.items())
    ]


def _by_store(metrics: _MetricsByName, metric: MetricTemplate) -> dict[tuple[str, str], int]:
    """Return the values of a metric by store and task."""
    return {(tags["rocksdb-state-id"], tags["task-id"]): int(value) for tags, value in metrics.all(metric)}
