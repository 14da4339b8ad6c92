"""The workers of connectors: `source_worker` and `sink_worker` create the internal topics and the worker."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import TypeAlias

from kstreams.connectors.api import SinkTask
from kstreams.connectors.connector import SinkConnector, SourceConnector
from kstreams.connectors.connectors_topic import ConnectorControl, control_with_identity, read_connectors
from kstreams.connectors.dead_letters import DeadLetters
from kstreams.connectors.refusals import DeadLettersOfTask, Refusals
from kstreams.connectors.reread_records import read_records_at
from kstreams.connectors.retried_sink_task import RetriedSinkPartition
from kstreams.connectors.sink_task import SinkPartition
from kstreams.connectors.source_task import SourceTask
from kstreams.connectors.task import CommitSchedule, ConnectorTask
from kstreams.connectors.worker import Worker
from kstreams.errors import ConnectorError, TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, GroupConsumer, Log

_PURGE_INTERVAL_MS = 5_000


class Purge:
    """Deletes the records of an internal topic that its sink has committed, at intervals.

    Parameters
    ----------
    admin : Admin
    clock : Clock
    """

    def __init__(self, admin: Admin, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._purged_ms: dict[TopicPartition, int] = {}

    def committed(self, source: TopicPartition, next_offset: int) -> None:
        """Delete the records before an offset, if the interval is over."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._purged_ms.setdefault(source, now_ms) >= _PURGE_INTERVAL_MS:
            self._purged_ms[source] = now_ms
            self._admin.delete_records({source: next_offset})


OpenParking: TypeAlias = "Callable[[SinkConnector, str, TopicPartition], Refusals]"


def refuse_parking(connector: SinkConnector, task: str, source: TopicPartition) -> Refusals:
    """Raise the error for a sink with a parking topic, or attempts, where only dead letters are possible."""
    setting = f"park={connector.park!r}" if connector.park else f"retry={connector.retry!r}"
    raise ConnectorError(f"{connector.name} has {setting}, which the native engine alone can do")


def create_positions_topic(connector: SourceConnector, admin: Admin) -> None:
    """Create the topic with the positions of a source, with a partition per task, if it does not exist."""
    if connector.positions_topic in admin.topics():
        return
    with suppress(TopicExistsError):
        admin.create_topic(connector.positions_topic, connector.source.tasks, {"cleanup.policy": "compact"})


def create_waiting_topic(connector: SinkConnector, admin: Admin) -> None:
    """Create the topic of the rows that wait for an attempt, with as many partitions as that of the sink."""
    if connector.waiting_topic in admin.topics():
        return
    partitions = admin.describe_topic(connector.topic.name).partitions
    with suppress(TopicExistsError):
        admin.create_topic(connector.waiting_topic, partitions, {"retention.ms": "-1"})


def source_worker(
    connector: SourceConnector,
    log: Log,
    clock: Clock,
    dead_letter_topic: str = "",
    *,
    control: ConnectorControl | None = None,
) -> Worker:
    """Return the worker of a source, whose topic exists.

    Parameters
    ----------
    connector : SourceConnector
    log : Log
    clock : Clock
    dead_letter_topic : str
        The topic for rows that do not fit the types of the source. Empty to end with an error.
    control : ConnectorControl, optional
        By default the one that the topic of connectors holds.
    """
    first_control = control or read_connectors(log, connector.group).control(connector.name)
    with log.admin() as admin:
        create_positions_topic(connector, admin)

    def open_task(source: TopicPartition, _: GroupConsumer, control: ConnectorControl) -> SourceTask:
        return SourceTask(connector, source.partition, log, clock, dead_letter_topic)

    def new_schedule() -> CommitSchedule:
        return CommitSchedule(connector.source.commit_interval_ms)

    return Worker(
        connector.id,
        connector.positions_topic,
        open_task,
        log,
        clock,
        first_control,
        new_schedule=new_schedule,
        filled_topic=connector.topic.name,
    )


def sink_worker(
    connector: SinkConnector,
    log: Log,
    clock: Clock,
    resources: ExitStack,
    dead_letter_topic: str = "",
    *,
    control: ConnectorControl | None = None,
    open_parking: OpenParking = refuse_parking,
    can_wait: bool = False,
) -> Worker:
    """Return the worker of a sink, whose topic exists.

    Parameters
    ----------
    connector : SinkConnector
    log : Log
    clock : Clock
    resources : ExitStack
        Closes the producer of dead letters.
    dead_letter_topic : str
        The topic for records that the sink cannot take. Empty to end with an error.
    control : ConnectorControl, optional
        With the identity of the sink. By default the one that the topic of connectors holds.
    open_parking : callable
        Opens the parking topic of the sink for a task: connector, id of the task, and its partition.
    can_wait : bool
        True if refused rows of a sink with `retry` may wait in a topic of the application.
    """
    first_control = control or control_with_identity(log, connector.group, connector.name)
    letters = DeadLetters(connector.name, dead_letter_topic, resources.enter_context(log.producer()))
    admin = resources.enter_context(log.admin())

    purge = Purge(admin, clock)
    on_commit = purge.committed if connector.topic.is_internal else _keep
    retry = connector.retry if can_wait else None
    if retry is not None:
        create_waiting_topic(connector, admin)

    def open_task(source: TopicPartition, consumer: GroupConsumer, control: ConnectorControl) -> ConnectorTask:
        task = control.task(source.partition)
        identity = task.identity or control.identity

        def first_offset() -> int:
            offsets = consumer.committed([source]) if connector.sink.at_least_once else {}
            beginning = admin.beginning_offsets([source])[source]
            return offsets[source].offset if source in offsets else max(beginning, task.first_offset or 0)

        def open_refusals() -> Refusals:
            if connector.park or connector.retry is not retry:
                return open_parking(connector, SinkTask(identity, source.topic, source.partition).id, source)
            return DeadLettersOfTask(letters)

        if retry is not None:
            return RetriedSinkPartition(
                connector,
                identity,
                source,
                log,
                clock,
                admin,
                retry=retry,
                first_offset=first_offset,
                letters=letters,
                on_commit=partial(on_commit, source),
                on_pass=partial(purge.committed, TopicPartition(connector.waiting_topic, source.partition)),
                open_refusals=open_refusals,
            )
        return SinkPartition(
            connector,
            identity,
            source.partition,
            first_offset,
            letters,
            partial(on_commit, source),
            records_at=partial(read_records_at, log, source),
            open_refusals=open_refusals,
        )

    def new_schedule() -> CommitSchedule:
        sink = connector.sink
        return CommitSchedule(sink.commit_interval_ms, sink.commit_rows, sink.commit_bytes)

    return Worker(connector.id, connector.topic.name, open_task, log, clock, first_control, new_schedule=new_schedule)


def _keep(source: TopicPartition, next_offset: int) -> None:
    """Keep the records: others read the topic, too."""
