"""`Mirror`: copies topics, their settings and group offsets from one home to another, exactly once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import cast

from kstreams.errors import ConfigError, CorruptLogError, FencedError, LogError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.log.api import Consumer, GroupConsumer
from kstreams.log.homes import TopicHome
from kstreams.log.readable_ends import readable_ends
from kstreams.metrics.template import MetricName
from kstreams.metrics.values import MetricValue
from kstreams.mirror.copied_topics import CopiedTopics, EndPoint, create_internal_topic
from kstreams.mirror.group_offsets import GroupOffsets
from kstreams.mirror.heartbeats import Heartbeats
from kstreams.mirror.mirror_task import MirrorTask, task_number
from kstreams.mirror.offset_syncs import read_syncs
from kstreams.mirror.progress import MirrorProgress
from kstreams.mirror.settings import MirrorSettings

logger = logging.getLogger(__name__)

RETRY_TIMEOUT_MS = 300_000
"""The time without a successful round after which an error ends the mirror."""
_RETRY_BACKOFF_S = 1.0
_GROUP_POLL_MS = 50
_IDLE_COMMIT_MS = 50
_IDLE_S = 0.05
_SECOND_LOOK_S = 1.0
_MAX_RECORDS = 20_000
_SESSION_TIMEOUT_MS = 6_000  # Kafka's least `group.min.session.timeout.ms`: a successor starts after this time
_PROGRESS_MS = 1_000


class Mirror:
    """A copy of topics from a home of topics in another one.

    Several processes with the same aliases and target share the tasks of the mirror. A process without a task takes
    over when another one ends. MirrorMaker 2: `MirrorSourceConnector`, `MirrorCheckpointConnector` and
    `MirrorHeartbeatConnector`.

    Parameters
    ----------
    source, target : TopicHome
    settings : MirrorSettings, optional
    source_config, target_config : mapping, optional
        Settings with which the homes are opened, such as those for security.
    clock : Clock, optional

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.log import home_at
    >>> east, west = home_at(tempfile.mkdtemp()), home_at(tempfile.mkdtemp())
    >>> with east.open() as log, log.producer() as producer:
    ...     log.admin().create_topic("words")
    ...     producer.send("words", b"k", b"hello")
    >>> Mirror(east, west).run(until_end=True)
    >>> with west.open() as log:
    ...     sorted(log.admin().topics())[-1]
    'source.words'
    """

    def __init__(
        self,
        source: TopicHome,
        target: TopicHome,
        settings: MirrorSettings | None = None,
        *,
        source_config: Mapping[str, object] | None = None,
        target_config: Mapping[str, object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if source.address == target.address:
            raise ConfigError(f"{source} cannot be mirrored to itself: give two homes of topics.")
        self._source = source
        self._target = target
        self._settings = settings or MirrorSettings()
        self._source_config = source_config
        self._target_config = target_config
        self._clock = clock or SystemClock()
        self._progress = MirrorProgress(self._settings.policy, self._clock)

    def metrics(self) -> dict[MetricName, MetricValue]:
        """Return the present metrics, for `kstreams.metrics.prometheus.PrometheusCollector`."""
        return self._progress.metrics()

    def run(
        self,
        *,
        until_end: bool = False,
        stop: threading.Event | None = None,
        on_progress: Callable[[MirrorProgress], None] | None = None,
    ) -> None:
        """Copy until `stop` is set.

        Parameters
        ----------
        until_end : bool, default False
            True to return when the records that the topics hold now are copied.
        stop : threading.Event, optional
        on_progress : callable, optional
            Called once a second.

        Raises
        ------
        UnsupportedError
            If the target cannot have a record of the source.
        LogError
            If a home has not answered for `RETRY_TIMEOUT_MS`.
        """
        stop = stop or threading.Event()
        failures = Failures(self._clock)
        with (
            self._source.open(self._source_config, clock=self._clock) as source_log,
            self._target.open(self._target_config, clock=self._clock) as target_log,
        ):
            source = EndPoint(self._source, source_log)
            target = EndPoint(self._target, target_log)
            is_complete = False
            while not is_complete:
                with failures.repaired(), ExitStack() as clients:
                    running = RunningMirror(source, target, self._settings, self._progress, clients)
                    for _ in running.rounds(stop, until_end=until_end):
                        failures.note_success()
                        if on_progress is not None:
                            on_progress(self._progress)
                    is_complete = True
                if not is_complete:
                    self._clock.sleep(_RETRY_BACKOFF_S, stop)


class Interval:
    """A time that is due regularly, and at first.

    Parameters
    ----------
    clock : Clock
    interval_ms : int
    """

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        self._clock = clock
        self._interval_ms = interval_ms
        self._due_ms = clock.uptime_ms()

    def is_due(self) -> bool:
        """Return True once in each interval."""
        now_ms = self._clock.uptime_ms()
        if now_ms < self._due_ms:
            return False
        self._due_ms = now_ms + self._interval_ms
        return True


class Failures:
    """The errors of the homes, after which a mirror goes on from its last commit.

    Parameters
    ----------
    clock : Clock
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._success_ms: int | None = None

    def note_success(self) -> None:
        """Note that a round has succeeded."""
        self._success_ms = self._clock.uptime_ms()

    @contextmanager
    def repaired(self) -> Iterator[None]:
        """Log an error that may pass. Raise one at the start, or if no round has succeeded for `RETRY_TIMEOUT_MS`.

        A topic that is deleted at any time is none: the next round knows that it is gone.
        """
        try:
            yield
        except CorruptLogError:
            raise
        except UnknownTopicError as error:
            logger.warning("%s The mirror goes on without it.", error)
        except LogError as error:
            if self._success_ms is None or self._clock.uptime_ms() - self._success_ms > RETRY_TIMEOUT_MS:
                raise
            logger.warning("%s The mirror goes on from its last commit.", error)


class RunningMirror:
    """A mirror with open homes. Each `round` copies some records.

    Parameters
    ----------
    source, target : EndPoint
    settings : MirrorSettings
    progress : MirrorProgress
    clients : ExitStack
        Releases the clients. Records that are not committed are aborted.
    """

    def __init__(
        self,
        source: EndPoint,
        target: EndPoint,
        settings: MirrorSettings,
        progress: MirrorProgress,
        clients: ExitStack,
    ) -> None:
        self._source = source.log
        self._target = target.log
        self._settings = settings
        self._progress = progress
        self._clock = clock = progress.clock
        self._source_admin = clients.enter_context(source.log.admin())
        self._num_tasks = self._create_offset_syncs_topic()
        self._topics = clients.enter_context(closing(CopiedTopics(source, target, settings)))
        self._groups = clients.enter_context(closing(GroupOffsets(source.log, target.log, settings)))
        self._heartbeats = clients.enter_context(closing(Heartbeats(target.log, settings.policy, clock)))
        self._copies: dict[TopicPartition, TopicPartition] = {}
        self._tasks: dict[int, MirrorTask] = {}
        self._assigned = set[int]()
        self._consumer: Consumer = source.log.consumer()
        self._member = self._join()
        clients.callback(self._member.close)
        clients.callback(self._abandon)
        self._ends: dict[TopicPartition, int] | None = None
        self._transaction_ms = clock.uptime_ms()
        self._poll_of_group = Interval(clock, _GROUP_POLL_MS)
        self._refresh = Interval(clock, settings.refresh_interval_ms)
        self._sync = Interval(clock, settings.sync_interval_ms)
        self._heartbeat = Interval(clock, settings.heartbeat_interval_ms)
        self._check_of_others = Interval(clock, _PROGRESS_MS)

    def round(self) -> None:
        """Take part in the group, copy some records, and commit if it is time."""
        if self._poll_of_group.is_due():
            self._member.poll(0.0)
            self._open_tasks()
        if self._refresh.is_due():
            self._refresh_topics()
        self._copy()
        if self._heartbeat.is_due() and 0 in self._tasks:
            self._heartbeats.emit()
        if self._sync.is_due():
            self._sync_groups()

    def rounds(self, stop: threading.Event, *, until_end: bool) -> Iterator[None]:
        """Copy until `stop` is set, or until all records are copied. Yields once a second, and at the end."""
        shown = Interval(self._clock, _PROGRESS_MS)
        while not stop.is_set():
            self.round()
            if until_end and self.is_at_end():
                break
            if shown.is_due():
                self.measure_lag()
                yield
        self.finish()
        yield

    def is_at_end(self) -> bool:
        """Return True if all records are copied that the topics held at the first call."""
        if self._ends is None:
            self._ends = self._source_admin.end_offsets(list(self._copies))
        if any(task.is_open for task in self._tasks.values()):
            return False
        own = self._consumer.assignment()
        ends = {source: end for source, end in self._ends.items() if source in self._copies}
        if any(source in own and self._consumer.position(source) < end for source, end in ends.items()):
            return False
        other_ends = {source: end for source, end in ends.items() if source not in own}
        return not other_ends or (self._check_of_others.is_due() and self._have_copied(other_ends))

    def finish(self) -> None:
        """Commit, translate the offsets of groups once more, and measure the lag."""
        with suppress(FencedError):
            self._sync_groups()
            self.measure_lag()

    def measure_lag(self) -> None:
        """Read the ends of the partitions that this process copies, for progress and metrics."""
        own = self._consumer.assignment()
        ends = self._consumer.end_offsets(own)
        for source in own:
            self._progress.record_lag(source, self._copies[source], ends[source] - self._consumer.position(source))

    def _create_offset_syncs_topic(self) -> int:
        """Create the topic with a partition for each task. Return the number of tasks."""
        with self._target.admin() as admin:
            topic = create_internal_topic(admin, self._settings.policy.offset_syncs_topic, self._settings.tasks)
        if topic.partitions < self._settings.tasks:
            logger.warning(
                "This mirror has %s, since its first start: the number cannot be changed to %s.",
                "1 task" if topic.partitions == 1 else f"{topic.partitions} tasks", self._settings.tasks,
            )  # fmt: skip
        return topic.partitions

    def _join(self) -> GroupConsumer:
        """Return a member of the group, whose partitions of the topic of offset syncs are its tasks."""
        member = cast(
            GroupConsumer,
            self._target.consumer({"group.id": self._settings.policy.group, "session.timeout.ms": _SESSION_TIMEOUT_MS}),
        )
        member.subscribe(
            [self._settings.policy.offset_syncs_topic],
            on_assigned=self._on_assigned,
            on_revoked=self._on_revoked,
            on_lost=self._on_lost,
        )
        return member

    def _on_assigned(self, partitions: list[TopicPartition]) -> None:
        self._member.pause(partitions)  # a task reads its partition when it has fenced its predecessor
        self._assigned |= {partition.partition for partition in partitions}

    def _on_revoked(self, partitions: list[TopicPartition]) -> None:
        with suppress(FencedError):
            self._commit()
        self._on_lost(partitions)

    def _on_lost(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._assigned.discard(partition.partition)
            if task := self._tasks.pop(partition.partition, None):
                task.close()
        self._assign()

    def _open_tasks(self) -> None:
        """Open the tasks that the group has assigned, and read their partitions."""
        new = self._assigned - self._tasks.keys()
        for number in sorted(new):
            self._tasks[number] = MirrorTask(self._target, self._settings.policy, number)
        if new:
            self._assign()

    def _abandon(self) -> None:
        """Close the tasks and the reader. Records that are not committed are aborted."""
        self._consumer.assign([])
        self._consumer.close()
        for number in list(self._tasks):
            self._tasks.pop(number).close()

    def _refresh_topics(self) -> None:
        """Commit, because the positions of partitions that come back are the committed ones, and read the topics."""
        self._commit()
        self._copies = self._topics.refresh()
        self._assign()

    def _task_of(self, source: TopicPartition) -> MirrorTask | None:
        return self._tasks.get(task_number(source, self._num_tasks))

    def _assign(self) -> None:
        """Read the partitions of the open tasks. New ones start at the position of their task."""
        own = {source: task for source in self._copies if (task := self._task_of(source)) is not None}
        former = self._consumer.assignment()
        if own.keys() == former:
            return
        if former - own.keys():
            self._progress.drop(former - own.keys())
        new = own.keys() - former
        for task in self._tasks.values():
            task.add_targets([self._copies[source] for source in new if own[source] is task])
        ends = self._source_admin.end_offsets(new, committed_only=False)
        self._consumer.assign(list(own))
        for source in new:
            self._seek(source, own[source], ends[source])

    def _seek(self, source: TopicPartition, task: MirrorTask, end: int) -> None:
        position = task.position(source)
        if position is None:
            return
        if position > end:  # a new leader of a partition may know of its last records a moment later
            self._clock.sleep(_SECOND_LOOK_S)
            end = self._source_admin.end_offsets([source], committed_only=False)[source]
        if position > end:
            logger.warning(
                "%s ends before its last copied record: its topic is new, and is copied from its start.", source
            )
            task.restart(source)
        else:
            self._consumer.seek(source, position)

    def _copy(self) -> None:
        batches = self._poll()
        for batch in batches:
            task = self._task_of(batch.source)
            if task is None:
                continue
            if not any(task.is_open for task in self._tasks.values()):
                self._transaction_ms = self._clock.uptime_ms()
            task.send(batch, self._copies[batch.source])
        duration_ms = self._clock.uptime_ms() - self._transaction_ms
        if duration_ms >= (self._settings.commit_interval_ms if batches else _IDLE_COMMIT_MS):
            self._commit()

    def _poll(self) -> list[Batch]:
        """Read records. If a topic was deleted, the others are read from their positions on."""
        try:
            return self._consumer.poll(_IDLE_S, _MAX_RECORDS)
        except UnknownTopicError as error:
            logger.warning("%s", error)
        self._commit()
        self._consumer.close()
        self._consumer = self._source.consumer()
        self._refresh_topics()
        return []

    def _commit(self) -> None:
        for task in self._tasks.values():
            for source, records in task.commit().items():
                self._progress.record(source, records)

    def _sync_groups(self) -> None:
        """Commit, so that no transaction is open for long, and translate the offsets of groups in own partitions."""
        self._commit()
        copies = {source: target for source, target in self._copies.items() if self._task_of(source) is not None}
        self._groups.sync(copies, self._translate)

    def _translate(self, source: TopicPartition, offset: int) -> int | None:
        task = self._task_of(source)
        return None if task is None else task.translate(source, offset)

    def _have_copied(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Return True if the other processes of the mirror have copied these partitions up to their ends."""
        topic = self._settings.policy.offset_syncs_topic
        numbers = {task_number(source, self._num_tasks) for source in ends}
        if not numbers <= self._tasks_of_others():
            return False
        positions = dict(self._source_admin.beginning_offsets(list(ends)))
        for number in numbers:
            for source, syncs in read_syncs(self._target, topic, number).items():
                if source in ends and syncs.position is not None:
                    positions[source] = syncs.position
        return readable_ends(self._source, positions, ends) == positions

    def _tasks_of_others(self) -> set[int]:
        """Return the tasks that the group has assigned to other processes."""
        own_id = self._member.group_metadata().member
        with self._target.admin() as admin:
            members = admin.describe_group(self._settings.policy.group).members
        return {partition.partition for member in members if member.id != own_id for partition in member.partitions}
