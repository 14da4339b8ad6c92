"""`KafkaMembership`: a client of Kafka's that is in a group and reads nothing; another client reads what it is given.

So a partition can be paused, sought and skimmed without a word between the reader and the group.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException

from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, PartitionsListener
from kstreams.log.groups.group import no_member, replaced
from kstreams.log.groups.group_consumers import MEMBER_SETTINGS, Listeners, Reading, check_times
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.failures import error_of, log_error
from kstreams.log.kafka.offset_commits import (
    Offsets,
    commit_offsets,
    commit_refused,
    is_between_generations,
    read_metadata,
)
from kstreams.log.settings import read_settings
from kstreams.os.forks import of_one_process

_ASK_S = 1.0  # a member that waits longer does not read meanwhile
_ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
_OF_GROUP = MEMBER_SETTINGS.keys() - {"client.id", "auto.offset.reset"}
_SHORTEST_AGE_MS = 100
_logger = logging.getLogger("kstreams.groups")
_OURS = {"enable.auto.commit": False, "enable.auto.offset.store": False}
_DIVIDED_S = 3.0  # in which a group mostly has divided its partitions
_PAUSE_S = 0.02
_NOT_IN = "Who has not joined"
_TOLD_ELSEWHERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_REFUSED = (
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    KafkaError.INVALID_SESSION_TIMEOUT,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
)


class KafkaMembership:
    """A subscribed consumer in its group.

    Parameters
    ----------
    connection : Connection
    given : mapping
        Settings of the consumer, as the user gave them.
    settings : mapping
        Those of the group among them, read.
    reading : Reading
    wanted : collection of str, or pattern
    listeners : Listeners
    """

    def __init__(
        self,
        connection: Connection,
        given: Mapping[str, Any],
        settings: Mapping[str, Any],
        reading: Reading,
        wanted: Collection[str] | re.Pattern[str],
        listeners: Listeners,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._reading = reading
        self._listeners = listeners
        self._is_cooperative = settings["partition.assignment.strategy"][0].cooperative
        self._topics = WantedTopics(connection, wanted, settings["metadata.max.age.ms"])
        self._given: set[TopicPartition] = set()  # by the group, and not yet read
        self._raised: list[BaseException] = []  # by listeners, within calls of the client
        self._refused: LogError | None = None
        self._known = GroupMetadata(settings["group.id"], _NOT_IN, -1, settings["group.instance.id"])
        self._client = connection.client("consumer", _member_client, client_of_member(given, settings))
        of_one_process(self, "This consumer", LogError)

    def metadata(self) -> GroupMetadata:
        """Who commits for the group. Of who is out, it is that by which it was in: the cluster refuses it."""
        now = self._metadata_now()
        if now.member and now.generation >= 0:
            self._known = now
        return self._known

    def commit(self, offsets: Offsets) -> None:
        """Commit as a member.

        The client takes part in the next generation by itself: a commit may be of the one before. Until `attend` gives
        its partitions back, nobody else gets them: it is committed again when the client knows its generation.
        """
        until = monotonic() + _DIVIDED_S
        while True:
            committer = self._committer()
            error = commit_offsets(self._connection, self._client, offsets)
            if error is None:
                return
            if not is_between_generations(error) or monotonic() > until:
                raise commit_refused(committer, error)
            self._connection.clock.sleep(_PAUSE_S)

    def attend(self, timeout: float) -> None:
        """Take part in what the group does, for so long at most."""
        if self._refused is not None:
            raise self._refused
        if (topics := self._topics.changed()) is not None:
            self._subscribe(topics)
        event = self._poll(timeout)
        while event is not None:
            if event.error() is not None:
                self._note(event.error())
            event = self._poll(0)
        self._raise_first()
        if self._given:
            self._take()
        self.metadata()

    def leave(self) -> None:
        """Give everything back and go; a static member stays in the group for its session time-out."""
        with suppress(LogError):
            self._poll(0)  # so that what was lost is not told as revoked
        self._tell(self._reading.assignment(), self._listeners.revoked)
        self._reading.take_over([])
        self._client.close()
        self._raise_first()

    def _committer(self) -> GroupMetadata:
        """Who commits; raises CommitFailedError for who is out, whom the client would let commit as a stranger."""
        known = self.metadata()
        now = self._metadata_now()
        if not now.member or now.generation < 0:
            raise self._refused or no_member(known.group, known.member)
        return known

    def _metadata_now(self) -> GroupMetadata:
        return read_metadata(self._client.consumer_group_metadata())

    def _subscribe(self, topics: list[str]) -> None:
        if topics:
            self._client.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        else:
            self._client.unsubscribe()

    def _poll(self, timeout: float) -> Any:
        try:
            return self._client.poll(timeout)
        except KafkaException as error:
            raise error_of(f"The group {self._settings['group.id']!r} cannot be joined", error) from None

    def _take(self) -> None:
        """Read what the group has given, too."""
        given = sorted(self._given)
        self._reading.take_over(self._reading.assignment() | self._given)
        self._given.clear()
        self._tell(given, self._listeners.assigned)
        self._raise_first()

    def _on_assign(self, client: Any, places: list[Any]) -> None:
        if self._is_cooperative:
            client.incremental_assign(places)
        else:
            client.assign(places)
        client.pause(places)
        self._given.update(_sources(places))

    def _on_revoke(self, client: Any, places: list[Any]) -> None:
        if self._metadata_now().member:
            self._give_back(_sources(places), self._listeners.revoked)
        else:  # it was asked to give back, and did not do so in time
            self._on_lost(client, places)

    def _on_lost(self, client: Any, places: list[Any]) -> None:
        self._give_back(_sources(places), self._listeners.lost or self._listeners.revoked)

    def _give_back(self, sources: set[TopicPartition], listener: PartitionsListener | None) -> None:
        """Tell, then read no more of it; the client gives it back when the call returns."""
        self._given -= sources
        owned = self._reading.assignment()
        self._tell(owned & sources, listener)
        self._reading.take_over(owned - sources)

    def _tell(self, sources: Collection[TopicPartition], listener: PartitionsListener | None) -> None:
        if sources and listener is not None:
            try:
                listener(sorted(sources))
            except BaseException as error:
                self._raised.append(error)

    def _raise_first(self) -> None:
        if self._raised:
            raised, self._raised = self._raised, []
            raise raised[0]

    def _note(self, error: Any) -> None:
        """What the client tells of the group."""
        group = self._settings["group.id"]
        if error.code() == KafkaError._FATAL:
            self._give_back(set(self._reading.assignment()), self._listeners.lost or self._listeners.revoked)
            self._refused = self._fatal(error)
            raise self._refused
        if error.code() in _REFUSED:
            raise log_error(f"The group {group!r} does not take this member", error)
        if error.code() not in _TOLD_ELSEWHERE:
            _logger.warning("The group %s: %s (%s)", group, error.str(), error.name())

    def _fatal(self, error: Any) -> LogError:
        """After which the client does nothing more; its reason is in the text alone."""
        group = self._settings["group.id"]
        instance = self._settings["group.instance.id"]
        if instance is not None and "fenced" in error.str():
            return replaced(group, instance)
        return log_error(f"The member of the group {group!r} has failed", error)


class WantedTopics:
    """The topics of one subscription.

    Parameters
    ----------
    connection : Connection
    wanted : collection of str, or pattern
        Names, or what whole names match.
    max_age_ms : int
        After how long it looks for matches again.
    """

    def __init__(self, connection: Connection, wanted: Collection[str] | re.Pattern[str], max_age_ms: int) -> None:
        self._connection = connection
        self._max_age_ms = max_age_ms
        self._pattern = wanted if isinstance(wanted, re.Pattern) else None
        self._names = [] if isinstance(wanted, re.Pattern) else sorted(set(wanted))
        self._looked_ms: int | None = None
        self._warned = False

    def changed(self) -> list[str] | None:
        """The names to subscribe to, if they are others than at the last look."""
        now_ms = self._connection.clock.uptime_ms()
        is_first = self._looked_ms is None
        if not is_first and (self._pattern is None or now_ms - (self._looked_ms or 0) < self._max_age_ms):
            return None
        there = self._there()
        self._looked_ms = now_ms
        if self._pattern is None:
            self._warn(there)
            return self._names
        found = sorted(name for name in there or () if self._pattern.fullmatch(name))
        if there is None or found == self._names:
            return None
        self._names = found
        return found

    def _there(self) -> Collection[str] | None:
        """The topics of the cluster; None when no broker tells them now."""
        try:
            return self._connection.topics_now(_ASK_S)
        except KafkaException as error:
            _logger.warning("The brokers of %s do not tell their topics: %s", self._connection.servers, error)
            return None

    def _warn(self, there: Collection[str] | None) -> None:
        for name in self._names:
            if there is not None and name not in there:
                _logger.warning("There is no topic %r yet: it is read when it is created.", name)


def read_member_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that concern the group, checked, over their defaults.

    Kafka's client wants `session.timeout.ms` to be at most `max.poll.interval.ms`. The default follows it.

    Raises
    ------
    ConfigError
    """
    known = {name: given[name] for name in MEMBER_SETTINGS if given.get(name) is not None}
    settings = read_settings("consumer", MEMBER_SETTINGS, known)
    poll_ms = settings["max.poll.interval.ms"]
    session_ms = settings["session.timeout.ms"]
    if "session.timeout.ms" in known and session_ms > poll_ms:
        raise ConfigError(
            f"Kafka's client takes a `session.timeout.ms` ({session_ms}) of at most `max.poll.interval.ms` ({poll_ms})."
        )
    settings["session.timeout.ms"] = session_ms = min(session_ms, poll_ms)
    if "heartbeat.interval.ms" not in known:
        settings["heartbeat.interval.ms"] = max(1, min(settings["heartbeat.interval.ms"], session_ms // 3))
    check_times(settings)
    for assignor in settings["partition.assignment.strategy"]:
        if assignor.name not in _ASSIGNORS:
            raise ConfigError(
                f"Kafka's client knows the assignors {', '.join(_ASSIGNORS)}, not {assignor.name!r}: set "
                "`partition.assignment.strategy` to cooperative-sticky, with which members keep what they may keep."
            )
    return settings


def client_of_member(given: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the client that is the member; it reads nothing."""
    read = {name: settings[name] for name in _OF_GROUP if settings[name] is not None}
    age_ms = read.pop("metadata.max.age.ms")
    return {
        **given,
        **read,
        "partition.assignment.strategy": ",".join(each.name for each in settings["partition.assignment.strategy"]),
        "topic.metadata.refresh.interval.ms": max(_SHORTEST_AGE_MS, age_ms),
        "metadata.max.age.ms": None,
        "auto.offset.reset": "latest",
    }


def client_of_reader(given: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the client that reads what the member is given."""
    reset = settings["auto.offset.reset"]
    lost = "earliest" if isinstance(reset, timedelta) else reset
    return {name: each for name, each in given.items() if name not in _OF_GROUP} | {"auto.offset.reset": lost}


def _member_client(settings: dict[str, Any]) -> Any:
    return Client({**settings, **_OURS})


def _sources(places: list[Any]) -> set[TopicPartition]:
    return {TopicPartition(place.topic, place.partition) for place in places}
