"""`InstanceActivity`: what one process of an application does now; whoever shows its counters makes rates of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
_PEER_S = 2.0


class ActivityRoutes:
    """Answers whoever shows the application.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        return (
            Endpoint("/v1/topology", "Sub-topologies with their nodes, topics and stores.", self.topology),
            Endpoint("/v1/topology.svg", "The topology as a picture.", self.picture, media_types=(_SVG,)),
            Endpoint("/v1/activity", "What each instance does now: counters, tasks and lags.", self.activity, (LOCAL,)),
        )

    async def topology(self, request: Request) -> Response:
        """As `kstreams topology --json`, with the description in Kafka Streams' form."""
        topology = self._service.streams.topology
        return _json({"application_id": self._name(), "description": topology.describe(), **as_data(topology)})

    async def picture(self, request: Request) -> Response:
        """As `kstreams topology --format svg`."""
        topology = self._service.streams.topology
        seconds = self._service.limits.deadline_s
        text = await self._service.work.do(lambda: as_svg(topology, f"Topology of {self._name()}"), seconds)
        return Response(text, media_type=_SVG)

    async def activity(self, request: Request) -> Response:
        """Of this instance first, then of the others; one that does not answer is named with the state `SILENT`."""
        service = self._service
        own = await service.work.do(lambda: activity_of(service.streams, service.instance), service.limits.deadline_s)
        activities = [own]
        if not is_local(request.query_params):
            answers = await service.others("/v1/activity", min(_PEER_S, service.limits.deadline_s))
            activities += [_other(instance, body) for instance, body in answers.items()]
        return _json({"application_id": self._name(), "instances": activities})

    def _name(self) -> str:
        return self._service.streams.config.application_id


def _other(instance: str, body: bytes | None) -> InstanceActivity:
    """What another instance says of itself; nothing but its name where it says nothing."""
    if body is None:
        return InstanceActivity(instance, 0, "SILENT", 0.0, [], [], [], [], [], [], {}, 0)
    [activity] = decode_json(body, _Answer).instances
    return activity


class _Answer(msgspec.Struct):
    instances: list[InstanceActivity]


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)


class ThreadActivity(msgspec.Struct, frozen=True):
    """A stream thread and its tasks."""

    name: str
    state: str
    tasks: list[str]


class Counted(msgspec.Struct, frozen=True):
    """How much of something there was since its task or thread began.

    Parameters
    ----------
    kind : {"read", "consumed", "forwarded", "written", "repartitioned", "dropped"}
    of : str
        The source that read, the topic that was consumed, `PARENT>CHILD` of operators that forwarded (with
        `metrics.recording.level=DEBUG`), the topic that was written, by its name in the topology, the operator that
        dropped.
    by : str
        The task, or the thread that wrote.
    count : int
    reason : str
        Why records were dropped.
    """

    kind: str
    of: str
    by: str
    count: int
    reason: str = ""


class PartitionLag(msgspec.Struct, frozen=True):
    """Records of an input partition that are not processed yet."""

    topic: str
    partition: int
    lag: int


class Restore(msgspec.Struct, frozen=True):
    """Changelog records that a store still lacks."""

    task: str
    store: str
    remaining: int


class TaskFigures(msgspec.Struct, frozen=True):
    """A task: its stream time (ms; -1 before the first record), and how many bytes of its stores are in use."""

    task: str
    stream_time: int
    bytes: int


class StoreFigures(msgspec.Struct, frozen=True):
    """A store of a task on disk: how many rows, and how many bytes are in use, as RocksDB estimates."""

    store: str
    task: str
    rows: int
    bytes: int


class InstanceActivity(msgspec.Struct, frozen=True):
    """One process.

    Parameters
    ----------
    instance : str
    pid : int
    state : str
    seconds : float
        Of its own clock, which only goes forward: differences of counters are over differences of this.
    threads : list of ThreadActivity
    counts : list of Counted
    lags : list of PartitionLag
    restores : list of Restore
    tasks : list of TaskFigures
    stores : list of StoreFigures
    ratios : dict of str to float
        By operator: which part of its thread's time it takes (with `metrics.recording.level=DEBUG`).
    failed_threads : int
    """

    instance: str
    pid: int
    state: str
    seconds: float
    threads: list[ThreadActivity]
    counts: list[Counted]
    lags: list[PartitionLag]
    restores: list[Restore]
    tasks: list[TaskFigures]
    stores: list[StoreFigures]
    ratios: dict[str, float]
    failed_threads: int


def activity_of(streams: KafkaStreams, instance: str) -> InstanceActivity:
    """What this process does now."""
    threads = [
        ThreadActivity(thread.name, thread.state.value, [task.task_id for task in thread.tasks])
        for thread in streams.metadata_for_local_threads()
    ]
    metrics = _ByName(streams.metrics())
    internal = _internal_topics(streams)
    failed = metrics.all(catalogue.FAILED_STREAM_THREADS)
    return InstanceActivity(
        instance,
        os.getpid(),
        streams.state.value,
        monotonic(),
        threads,
        _merged(
            [
                *_read(metrics),
                *_consumed(metrics, internal),
                *_forwarded(metrics),
                *_written(metrics, internal),
                *_dropped(metrics),
            ]
        ),
        [
            PartitionLag(tags["topic"], int(tags["partition"]), int(lag))
            for tags, lag in metrics.all(catalogue.RECORDS_LAG)
        ],
        [
            Restore(tags["task-id"], tags["store"], int(remaining))
            for tags, remaining in metrics.all(catalogue.STORE_REMAINING_RECORDS)
            if remaining
        ],
        _tasks(metrics),
        _sizes(metrics),
        {tags["processor-node-id"]: ratio for tags, ratio in metrics.all(catalogue.ACTIVE_RATIO)},
        int(failed[0][1]) if failed else 0,
    )


class _ByName:
    """Metrics by group and name, with their tags."""

    def __init__(self, metrics: Mapping[MetricName, MetricValue]) -> None:
        self._values: dict[tuple[str, str], list[tuple[dict[str, str], float]]] = {}
        for name, value in metrics.items():
            if not isinstance(value, str):
                self._values.setdefault(name[:2], []).append((dict(name.tags), value))

    def all(self, metric: MetricTemplate) -> list[tuple[dict[str, str], float]]:
        """Return the tags and the value of each combination of labels."""
        return self._values.get((metric.group, metric.name), [])


def _merged(counts: Iterable[Counted]) -> list[Counted]:
    """What a task counted in one thread after the other, together: who shows it looks for one counter of each kind."""
    counted: dict[tuple[str, str, str, str], Counted] = {}
    for counter in counts:
        identity = counter.kind, counter.of, counter.by, counter.reason
        before = counted[identity].count if identity in counted else 0
        counted[identity] = Counted(counter.kind, counter.of, counter.by, before + counter.count, counter.reason)
    return list(counted.values())


def _read(metrics: _ByName) -> list[Counted]:
    return [
        Counted("read", tags["processor-node-id"], tags["task-id"], int(count))
        for tags, count in metrics.all(catalogue.NODE_PROCESS_TOTAL)
    ]


def _consumed(metrics: _ByName, internal: Mapping[str, str]) -> Iterator[Counted]:
    for tags, count in metrics.all(catalogue.RECORDS_CONSUMED):
        topic = tags["topic-name"]
        yield Counted("consumed", internal.get(topic, topic), tags["task-id"], int(count))


def _forwarded(metrics: _ByName) -> Iterator[Counted]:
    for tags, count in metrics.all(catalogue.FORWARDED_RECORDS):
        ends = f"{tags['processor-node-id']}>{tags['child-node-id']}"
        yield Counted("forwarded", ends, tags["task-id"], int(count))


def _internal_topics(streams: KafkaStreams) -> dict[str, str]:
    """By their real names: their names in the topology."""
    return {f"{streams.config.application_id}-{topic.name}": topic.name for topic in streams.topology.internal_topics}


def _written(metrics: _ByName, internal: Mapping[str, str]) -> Iterator[Counted]:
    for tags, count in metrics.all(catalogue.RECORDS_PRODUCED):
        topic = tags["topic-name"]
        kind = "repartitioned" if topic in internal else "written"
        yield Counted(kind, internal.get(topic, topic), tags["thread-id"], int(count))


def _dropped(metrics: _ByName) -> list[Counted]:
    return [
        Counted("dropped", tags["processor-node-id"], tags["task-id"], int(count), tags["reason"])
        for tags, count in metrics.all(catalogue.DROPPED_RECORDS_BY_REASON)
    ]


def _tasks(metrics: _ByName) -> list[TaskFigures]:
    used = Counter[str]()
    for tags, size in metrics.all(catalogue.ESTIMATE_LIVE_DATA_SIZE):
        used[tags["task-id"]] += int(size)
    times = metrics.all(catalogue.STREAM_TIME)
    return [TaskFigures(tags["task-id"], int(time), used[tags["task-id"]]) for tags, time in times]


def _sizes(metrics: _ByName) -> list[StoreFigures]:
    rows = _by_store(metrics, catalogue.ESTIMATE_NUM_KEYS)
    sizes = _by_store(metrics, catalogue.ESTIMATE_LIVE_DATA_SIZE)
    return [
        StoreFigures(store, task, count, sizes.get((store, task), 0)) for (store, task), count in sorted(rows.items())
    ]


def _by_store(metrics: _ByName, metric: MetricTemplate) -> dict[tuple[str, str], int]:
    """Return the values of a metric by store and task."""
    return {(tags["rocksdb-state-id"], tags["task-id"]): int(value) for tags, value in metrics.all(metric)}
