"""`Membership`: a consumer in its group. Joining, assigning, reading and revoking partitions all happen in `poll`."""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kstreams.errors import CommitFailedError, FencedError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import GroupMetadata, PartitionsListener
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.embedded.groups.coordinator import CLOSED, GroupCoordinator
from kstreams.log.embedded.groups.member_files import MemberFile
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.assignors import ASSIGNORS
from kstreams.log.groups.group import Group, GroupState, Member, instance_replaced
from kstreams.log.groups.group_consumers import GroupReader, RebalanceListeners
from kstreams.log.groups.subscription import MemberSubscription
from kstreams.log.groups.transitions import Join, Leave, Sync

_CHECK_S = 0.1  # between two checks of other members
_logger = logging.getLogger("kstreams.groups")
# seconds between two looks at the group during a rebalance
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.01
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Membership:
    """A subscribed consumer in its group.

    Parameters
    ----------
    home : LogResources
    settings : mapping
        Settings of the consumer.
    reader : GroupReader
    topics : SubscribedTopics
    listeners : RebalanceListeners
    """

    def __init__(
        self,
        home: LogResources,
        settings: Mapping[str, Any],
        reader: GroupReader,
        topics: SubscribedTopics,
        listeners: RebalanceListeners,
    ) -> None:
        self._home = home
        self._settings = settings
        self._reader = reader
        self._topics = topics
        self._listeners = listeners
        self._assignors = settings["partition.assignment.strategy"]
        self._group = settings["group.id"]
        self._instance = settings["group.instance.id"]
        self._coordinator = GroupCoordinator(home, self._group)
        self._generation = -1
        self._reads_assignment = False  # whether it reads the partitions of its generation
        self._assigned: tuple[TopicPartition, ...] = ()  # by the last generation that it was in
        self._needs_rejoin = False  # whether it must join though no rebalance has started
        self._has_joined = False  # the group, with its present id
        self._fenced: FencedError | None = None
        self._id, self._heartbeat = self._new_member()

    def metadata(self) -> GroupMetadata:
        """Return the metadata of the member."""
        return GroupMetadata(self._group, self._id, self._generation, self._instance)

    def poll(self, timeout: float) -> float:
        """Take part in rebalances; return the remaining seconds. A consumer that has partitions does not wait here."""
        pause = _FIRST_PAUSE
        while True:
            self._heartbeat.polled()
            while self._step(group := self._coordinator.group()):
                pass
            is_stable = group.state is GroupState.STABLE
            if is_stable or timeout <= 0 or self._reader.assignment():
                return max(timeout, 0.0)
            self._home.clock.sleep(min(pause, timeout))
            timeout -= pause
            pause = min(pause * 2, _LONGEST_PAUSE)

    def leave(self, *, for_good: bool) -> None:
        """Revoke all partitions and leave; a static member stays for its session timeout unless `for_good`."""
        leaves = for_good or self._instance is None
        try:
            if self._fenced is None and self._id in self._coordinator.group().members:
                self._revoke(self._reader.assignment(), self._listeners.revoked)
        finally:
            self._reader.take_over([])
            self._heartbeat.stop(leaves=leaves)
            if leaves:
                self._coordinator.apply(Leave(self._id, CLOSED))

    def _step(self, group: Group) -> bool:
        """Do the next step that the state of the group requires; return whether there was one."""
        if self._fenced is not None:
            raise self._fenced
        me = group.members.get(self._id)
        if me is None:
            self._join_group(group)
        elif self._needs_rejoin or (group.state is GroupState.PREPARING_REBALANCE and not me.joined):
            self._join()
        elif group.state is GroupState.COMPLETING_REBALANCE and group.leader == self._id:
            self._assign_partitions(group)
        elif group.state is GroupState.STABLE and not (self._reads_assignment and group.generation == self._generation):
            self._read_assignment(group.generation, me.assignment)
        elif group.state is GroupState.STABLE and self._topics.has_changed():
            self._needs_rejoin = True
        else:
            return False
        return True

    def _join_group(self, group: Group) -> None:
        """Join for the first time, or again after the group has removed this member."""
        if self._has_joined:
            is_replaced = self._instance is not None and group.of_instance(self._instance) is not None
            self._heartbeat.stop(leaves=True)
            self._forget_assignment()
            if is_replaced:
                self._fenced = instance_replaced(self._group, self._instance)
                return
            self._id, self._heartbeat = self._new_member()
        self._has_joined = True
        self._join()

    def _forget_assignment(self) -> None:
        """Stop reading: the partitions may belong to other members already."""
        self._generation = -1
        self._reads_assignment = False
        self._assigned = ()
        self._revoke(self._reader.assignment(), self._listeners.lost or self._listeners.revoked)

    def _join(self) -> None:
        is_eager = not self._assignors[0].cooperative
        if is_eager:
            self._revoke(self._reader.assignment(), self._listeners.revoked)
        owned = tuple(sorted(self._reader.assignment()))
        previous = self._assigned if is_eager else ()
        subscription = MemberSubscription(self._topics.topics(), owned, self._generation, self._instance, previous)
        names = tuple(assignor.name for assignor in self._assignors)
        session_ms = self._settings["session.timeout.ms"]
        poll_ms = self._settings["max.poll.interval.ms"]
        self._coordinator.apply(Join(Member(self._id, names, subscription, session_ms, poll_ms)))
        self._needs_rejoin = False

    def _assign_partitions(self, group: Group) -> None:
        """Assign the partitions as the leader; if the group has changed meanwhile, the next step sees it."""
        members = {member.id: member.subscription for member in group.members.values()}
        shares = ASSIGNORS[group.strategy].assign(self._topics.partitions_for(members.values()), members)
        try:
            self._coordinator.apply(Sync(self._id, group.generation, shares))
        except (CommitFailedError, RebalanceInProgressError):
            return

    def _read_assignment(self, generation: int, assigned: tuple[TopicPartition, ...]) -> None:
        """Revoke the partitions that the new generation takes away, then read those that it assigns."""
        owned = self._reader.assignment()
        self._generation = generation
        self._reads_assignment = False
        self._assigned = assigned
        revoked = owned - set(assigned)
        added = sorted(set(assigned) - owned)
        self._needs_rejoin = bool(revoked)  # other members wait for these
        self._revoke(revoked, self._listeners.revoked)
        self._reader.take_over(assigned)
        self._reads_assignment = True
        if added and self._listeners.assigned is not None:
            self._listeners.assigned(added)

    def _revoke(self, partitions: Collection[TopicPartition], listener: PartitionsListener | None) -> None:
        try:
            if partitions and listener is not None:
                listener(sorted(partitions))
        finally:
            if partitions:
                self._reader.take_over(self._reader.assignment() - set(partitions))

    def _new_member(self) -> tuple[str, Heartbeat]:
        """Return a new member id, and its heartbeat."""
        name = self._instance or self._settings["client.id"] or "consumer"
        member = f"{_UNSAFE.sub('_', name)[:100]}-{uuid.uuid4().hex}"
        interval_ms = self._settings["heartbeat.interval.ms"]
        poll_ms = self._settings["max.poll.interval.ms"]
        is_static = self._instance is not None
        return member, Heartbeat(
            self._home, self._group, member, is_static=is_static, interval_ms=interval_ms, poll_ms=poll_ms
        )


class Heartbeat:
    """A thread that writes a member's heartbeats and checks the other members, until `stop`.

    Parameters
    ----------
    home : LogResources
    group : str
    member : str
        The member's id.
    is_static : bool
        Whether a member that stops polling only stops its heartbeats; a dynamic member leaves.
    interval_ms, poll_ms : int
        `heartbeat.interval.ms` and `max.poll.interval.ms`.
    """

    def __init__(
        self, home: LogResources, group: str, member: str, *, is_static: bool, interval_ms: int, poll_ms: int
    ) -> None:
        self._clock = home.clock
        self._member = member
        self._is_static = is_static
        self._interval_ms = interval_ms
        self._poll_ms = poll_ms
        self._coordinator = GroupCoordinator(home, group)
        self._polled_ms = self._last_beat_ms = self._clock.uptime_ms()
        self._file = MemberFile(home.folder, member, self._last_beat_ms)
        self._last_error = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat of {member}", daemon=True)
        self._thread.start()

    def polled(self) -> None:
        """Note that the consumer was polled."""
        self._polled_ms = self._clock.uptime_ms()

    def stop(self, *, leaves: bool) -> None:
        """Stop the heartbeats."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._file.close(leaves=leaves)

    def _run(self) -> None:
        while not self._stopped.wait(_CHECK_S):
            try:
                self._beat()
            except Exception as error:  # an error that passes must not end the member
                if str(error) != self._last_error:
                    _logger.warning("The heartbeat of %s failed: %s", self._member, error)
                self._last_error = str(error)

    def _beat(self) -> None:
        now_ms = self._clock.uptime_ms()
        if now_ms - self._polled_ms >= self._poll_ms:
            self._leave_if_dynamic(now_ms)
        elif now_ms - self._last_beat_ms >= self._interval_ms:
            self._file.beat(now_ms)
            self._last_beat_ms = now_ms
        self._coordinator.remove_dead(observer=self._member)

    def _leave_if_dynamic(self, now_ms: int) -> None:
        if not self._is_static and self._member in self._coordinator.group().members:
            reason = f"it did not poll for {now_ms - self._polled_ms} ms (max.poll.interval.ms)"
            self._coordinator.apply(Leave(self._member, reason))


class SubscribedTopics:
    """The topics of one subscription, and whether they have changed.

    Parameters
    ----------
    catalogue : Catalogue
    clock : Clock
    topics : collection of str, or pattern
        Names, or a pattern that whole names match.
    max_age_ms : int
        Time after which the topics are read again (`metadata.max.age.ms`).
    """

    def __init__(
        self, catalogue: Catalogue, clock: Clock, topics: Collection[str] | re.Pattern[str], max_age_ms: int
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._pattern = topics if isinstance(topics, re.Pattern) else None
        self._names = () if isinstance(topics, re.Pattern) else tuple(sorted(set(topics)))
        self._watched: set[str] = set()
        self._partition_counts: dict[str, int] = {}
        self._read_ms = 0
        self._warned_of: set[str] = set()

    def topics(self) -> tuple[str, ...]:
        """Return the names of the topics; for a pattern, of the existing topics that match."""
        existing = self._partitions()
        self._warn_of_missing(set(self._names) - existing.keys())
        pattern = self._pattern
        names = self._names if pattern is None else tuple(name for name in sorted(existing) if pattern.fullmatch(name))
        self._remember(names, existing)
        return names

    def partitions_for(self, subscriptions: Iterable[MemberSubscription]) -> dict[str, int]:
        """Return the number of partitions of the topics of all members, and watch these topics from now on."""
        existing = self._partitions()
        topics = {topic for subscription in subscriptions for topic in subscription.topics}
        self._remember(topics | self._watched, existing)
        return {topic: existing[topic] for topic in topics & existing.keys()}

    def has_changed(self) -> bool:
        """Return whether a watched topic was created, deleted or extended; reads them once per `max_age_ms`."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._read_ms < self._max_age_ms:
            return False
        self._read_ms = now_ms
        existing = self._partitions()
        matching = {name for name in existing if self._pattern is not None and self._pattern.fullmatch(name)}
        counts = {name: existing[name] for name in (self._watched | matching) & existing.keys()}
        return counts != self._partition_counts

    def _remember(self, watched: Collection[str], existing: dict[str, int]) -> None:
        self._watched = set(watched)
        self._partition_counts = {name: existing[name] for name in self._watched & existing.keys()}
        self._read_ms = self._clock.uptime_ms()

    def _warn_of_missing(self, names: set[str]) -> None:
        for name in sorted(names - self._warned_of):
            _logger.warning("There is no topic %r yet: it is read when it is created.", name)
        self._warned_of = names

    def _partitions(self) -> dict[str, int]:
        return dict(self._catalogue.read("SELECT name, partitions FROM topics"))
