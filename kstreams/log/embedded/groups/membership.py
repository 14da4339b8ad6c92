"""`Membership`: a consumer's part in its group; it joins, leads, takes what it is given and gives back, in `poll`."""

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
from kstreams.log.embedded.groups.member_files import Presence
from kstreams.log.embedded.resources import LogResources
from kstreams.log.groups.assignors import ASSIGNORS
from kstreams.log.groups.group import Group, GroupState, Member, replaced
from kstreams.log.groups.group_consumers import Listeners, Reading
from kstreams.log.groups.subscription import MemberSubscription
from kstreams.log.groups.transitions import Join, Leave, Sync

_LOOK_S = 0.1  # so soon a death is noticed
_logger = logging.getLogger("kstreams.groups")
# seconds, as a reader that waits for records
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.01
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Membership:
    """A subscribed consumer in its group.

    Parameters
    ----------
    home : LogResources
    settings : mapping
        Of the consumer.
    reading : Reading
    topics : TopicWatch
    listeners : Listeners
    """

    def __init__(
        self,
        home: LogResources,
        settings: Mapping[str, Any],
        reading: Reading,
        topics: TopicWatch,
        listeners: Listeners,
    ) -> None:
        self._home = home
        self._settings = settings
        self._reading = reading
        self._topics = topics
        self._listeners = listeners
        self._assignors = settings["partition.assignment.strategy"]
        self._group = settings["group.id"]
        self._instance = settings["group.instance.id"]
        self._coordinator = GroupCoordinator(home, self._group)
        self._generation = -1
        self._has_taken = False  # what its generation gives it
        self._given: tuple[TopicPartition, ...] = ()  # by the last generation that it took part in
        self._wants_round = False  # whether it has to join though nobody asks it to
        self._was_in = False  # the group, under its id
        self._fenced: FencedError | None = None
        self._id, self._heart = self._born()

    def metadata(self) -> GroupMetadata:
        """Who commits for the group."""
        return GroupMetadata(self._group, self._id, self._generation, self._instance)

    def attend(self, timeout: float) -> float:
        """Take part in what the group does now; what is left of the time. With partitions in hand it does not wait."""
        pause = _FIRST_PAUSE
        while True:
            self._heart.polled()
            while self._act(group := self._coordinator.look()):
                pass
            is_waiting = group.state is not GroupState.STABLE
            if not is_waiting or timeout <= 0 or self._reading.assignment():
                return max(timeout, 0.0)
            self._home.clock.sleep(min(pause, timeout))
            timeout -= pause
            pause = min(pause * 2, _LONGEST_PAUSE)

    def leave(self, *, for_good: bool) -> None:
        """Give everything back and go; a static member stays for its session time-out unless it goes for good."""
        has_left = for_good or self._instance is None
        try:
            if self._fenced is None and self._id in self._coordinator.look().members:
                self._give_back(self._reading.assignment(), self._listeners.revoked)
        finally:
            self._reading.take_over([])
            self._heart.stop(leaves=has_left)
            if has_left:
                self._coordinator.bring(Leave(self._id, CLOSED))

    def _act(self, group: Group) -> bool:
        """Do what is to be done next; whether anything was."""
        if self._fenced is not None:
            raise self._fenced
        me = group.members.get(self._id)
        if me is None:
            self._enter(group)
        elif self._wants_round or (group.state is GroupState.PREPARING_REBALANCE and not me.joined):
            self._join()
        elif group.state is GroupState.COMPLETING_REBALANCE and group.leader == self._id:
            self._lead(group)
        elif group.state is GroupState.STABLE and not (self._has_taken and group.generation == self._generation):
            self._take(group.generation, me.assignment)
        elif group.state is GroupState.STABLE and self._topics.has_changed():
            self._wants_round = True
        else:
            return False
        return True

    def _enter(self, group: Group) -> None:
        """Join for the first time, or anew after the others went on without this member."""
        if self._was_in:
            taken = self._instance is not None and group.of_instance(self._instance) is not None
            self._heart.stop(leaves=True)
            self._lose()
            if taken:
                self._fenced = replaced(self._group, self._instance)
                return
            self._id, self._heart = self._born()
        self._was_in = True
        self._join()

    def _lose(self) -> None:
        """What it had may belong to others already."""
        self._generation = -1
        self._has_taken = False
        self._given = ()
        self._give_back(self._reading.assignment(), self._listeners.lost or self._listeners.revoked)

    def _join(self) -> None:
        is_eager = not self._assignors[0].cooperative
        if is_eager:
            self._give_back(self._reading.assignment(), self._listeners.revoked)
        owned = tuple(sorted(self._reading.assignment()))
        had = self._given if is_eager else ()
        subscription = MemberSubscription(self._topics.topics(), owned, self._generation, self._instance, had)
        names = tuple(assignor.name for assignor in self._assignors)
        session_ms = self._settings["session.timeout.ms"]
        poll_ms = self._settings["max.poll.interval.ms"]
        self._coordinator.bring(Join(Member(self._id, names, subscription, session_ms, poll_ms)))
        self._wants_round = False

    def _lead(self, group: Group) -> None:
        """Divide the partitions; when the group went on meanwhile, the next look shows where it is."""
        members = {member.id: member.subscription for member in group.members.values()}
        shares = ASSIGNORS[group.strategy].assign(self._topics.partitions_for(members.values()), members)
        try:
            self._coordinator.bring(Sync(self._id, group.generation, shares))
        except (CommitFailedError, RebalanceInProgressError):
            return

    def _take(self, generation: int, given: tuple[TopicPartition, ...]) -> None:
        """Read what the new generation gives, after what it takes away was given back."""
        owned = self._reading.assignment()
        self._generation = generation
        self._has_taken = False
        self._given = given
        revoked = owned - set(given)
        added = sorted(set(given) - owned)
        self._wants_round = bool(revoked)  # others wait for it
        self._give_back(revoked, self._listeners.revoked)
        self._reading.take_over(given)
        self._has_taken = True
        if added and self._listeners.assigned is not None:
            self._listeners.assigned(added)

    def _give_back(self, partitions: Collection[TopicPartition], listener: PartitionsListener | None) -> None:
        try:
            if partitions and listener is not None:
                listener(sorted(partitions))
        finally:
            if partitions:
                self._reading.take_over(self._reading.assignment() - set(partitions))

    def _born(self) -> tuple[str, Heart]:
        """A new id, and the thread that shows that its bearer lives."""
        given = self._instance or self._settings["client.id"] or "consumer"
        member = f"{_UNSAFE.sub('_', given)[:100]}-{uuid.uuid4().hex}"
        beat_ms = self._settings["heartbeat.interval.ms"]
        poll_ms = self._settings["max.poll.interval.ms"]
        is_static = self._instance is not None
        return member, Heart(self._home, self._group, member, is_static=is_static, beat_ms=beat_ms, poll_ms=poll_ms)


class Heart:
    """Beats from its making to `stop`.

    Parameters
    ----------
    home : LogResources
    group : str
    member : str
        The member's id.
    is_static : bool
        Whether a member that stops polling falls silent; others leave.
    beat_ms, poll_ms : int
        `heartbeat.interval.ms` and `max.poll.interval.ms`.
    """

    def __init__(
        self, home: LogResources, group: str, member: str, *, is_static: bool, beat_ms: int, poll_ms: int
    ) -> None:
        self._clock = home.clock
        self._member = member
        self._is_static = is_static
        self._beat_ms = beat_ms
        self._poll_ms = poll_ms
        self._coordinator = GroupCoordinator(home, group)
        self._polled_ms = self._beaten_ms = self._clock.uptime_ms()
        self._presence = Presence(home.folder, member, self._beaten_ms)
        self._complaint = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heart of {member}", daemon=True)
        self._thread.start()

    def polled(self) -> None:
        """The member's user has called `poll`."""
        self._polled_ms = self._clock.uptime_ms()

    def stop(self, *, leaves: bool) -> None:
        """Beat no more."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._presence.close(leaves=leaves)

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            try:
                self._beat()
            except Exception as error:  # else the member would die of what may pass
                if str(error) != self._complaint:
                    _logger.warning("The heart of %s missed a beat: %s", self._member, error)
                self._complaint = str(error)

    def _beat(self) -> None:
        now_ms = self._clock.uptime_ms()
        if now_ms - self._polled_ms >= self._poll_ms:
            self._give_up(now_ms)
        elif now_ms - self._beaten_ms >= self._beat_ms:
            self._presence.give_sign(now_ms)
            self._beaten_ms = now_ms
        self._coordinator.care(but=self._member)

    def _give_up(self, now_ms: int) -> None:
        if not self._is_static and self._member in self._coordinator.look().members:
            reason = f"it did not poll for {now_ms - self._polled_ms} ms (max.poll.interval.ms)"
            self._coordinator.bring(Leave(self._member, reason))


class TopicWatch:
    """The topics of one subscription.

    Parameters
    ----------
    catalogue : Catalogue
    clock : Clock
    wanted : collection of str, or pattern
        Names, or what whole names match.
    max_age_ms : int
        After how long it looks again (`metadata.max.age.ms`).
    """

    def __init__(
        self, catalogue: Catalogue, clock: Clock, wanted: Collection[str] | re.Pattern[str], max_age_ms: int
    ) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._pattern = wanted if isinstance(wanted, re.Pattern) else None
        self._names = () if isinstance(wanted, re.Pattern) else tuple(sorted(set(wanted)))
        self._watched: set[str] = set()
        self._known: dict[str, int] = {}
        self._looked_ms = 0
        self._missing: set[str] = set()

    def topics(self) -> tuple[str, ...]:
        """The names of the topics that are wanted now; of a pattern, those that there are."""
        there = self._partitions()
        self._warn(set(self._names) - there.keys())
        pattern = self._pattern
        found = self._names if pattern is None else tuple(name for name in sorted(there) if pattern.fullmatch(name))
        self._remember(found, there)
        return found

    def partitions_for(self, subscriptions: Iterable[MemberSubscription]) -> dict[str, int]:
        """How many partitions the topics have that any member subscribes to; from now on these are watched too."""
        there = self._partitions()
        wanted = {topic for subscription in subscriptions for topic in subscription.topics}
        self._remember(wanted | self._watched, there)
        return {topic: there[topic] for topic in wanted & there.keys()}

    def has_changed(self) -> bool:
        """Whether a topic that is watched came, went or grew; looked at no more often than the age says."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._looked_ms < self._max_age_ms:
            return False
        self._looked_ms = now_ms
        there = self._partitions()
        matched = {name for name in there if self._pattern is not None and self._pattern.fullmatch(name)}
        return {name: there[name] for name in (self._watched | matched) & there.keys()} != self._known

    def _remember(self, watched: Collection[str], there: dict[str, int]) -> None:
        self._watched = set(watched)
        self._known = {name: there[name] for name in self._watched & there.keys()}
        self._looked_ms = self._clock.uptime_ms()

    def _warn(self, missing: set[str]) -> None:
        for name in sorted(missing - self._missing):
            _logger.warning("There is no topic %r yet: it is read when it is created.", name)
        self._missing = missing

    def _partitions(self) -> dict[str, int]:
        return dict(self._catalogue.read("SELECT name, partitions FROM topics"))
