"""`KafkaMembership`: a client that is a member of a group. Another client reads its partitions.

The other client can pause, seek and skim partitions without an effect on the membership.
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
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, PartitionsListener
from kstreams.log.groups.group import instance_replaced, not_a_member
from kstreams.log.groups.group_consumers import MEMBER_SETTINGS, GroupReader, RebalanceListeners, check_times
from kstreams.log.kafka import offset_commits
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.failures import error_of, log_error
from kstreams.log.settings import QUOTA_DELAYS, read_settings
from kstreams.os.forks import of_one_process

_METADATA_TIMEOUT_S = 1.0  # short, because the consumer does not read during this time
_ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
_MEMBER_KEYS = MEMBER_SETTINGS.keys() - {"client.id", "auto.offset.reset"}
_MIN_REFRESH_MS = 100
_logger = logging.getLogger("kstreams.groups")
_FIXED_SETTINGS = {"enable.auto.commit": False, "enable.auto.offset.store": False}
_REBALANCE_S = 3.0  # the time in which most rebalances end
_BACKOFF_S = 0.02
_NOT_JOINED = "A consumer that has not joined"  # the member id before the consumer joins, as the subject of messages
_REPORTED_BY_READER = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_NOT_ADMITTED = (
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
    config : mapping
        The settings of the consumer from the user.
    settings : mapping
        The checked settings of the member.
    reader : GroupReader
    topics : collection of str, or pattern
    listeners : RebalanceListeners
    """

    def __init__(
        self,
        connection: Connection,
        config: Mapping[str, Any],
        settings: Mapping[str, Any],
        reader: GroupReader,
        topics: Collection[str] | re.Pattern[str],
        listeners: RebalanceListeners,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._reader = reader
        self._listeners = listeners
        self._is_cooperative = settings["partition.assignment.strategy"][0].cooperative
        self._topics = SubscribedKafkaTopics(connection, topics, settings["metadata.max.age.ms"])
        self._assigned: set[TopicPartition] = set()  # partitions from the group that are not read yet
        self._listener_errors: list[BaseException] = []  # errors of listeners that the client has called
        self._fatal_error: LogError | None = None
        self._last_metadata = GroupMetadata(settings["group.id"], _NOT_JOINED, -1, settings["group.instance.id"])
        self._client = connection.client("consumer", _member_client, client_of_member(config, settings))
        of_one_process(self, "This consumer", LogError)

    def metadata(self) -> GroupMetadata:
        """Return the last valid metadata. After the member has left, the cluster refuses commits with it."""
        metadata = self._current_metadata()
        if metadata.member and metadata.generation >= 0:
            self._last_metadata = metadata
        return self._last_metadata

    def commit(self, offsets: offset_commits.Offsets) -> None:
        """Commit as a member.

        The client joins the next generation in the background, so that the commit may belong to the generation before.
        No other member gets the partitions until `poll` revokes them. Therefore the commit is repeated until the client
        knows its new generation.
        """
        deadline = monotonic() + _REBALANCE_S
        while True:
            committer = self._committer()
            error = offset_commits.commit_offsets(self._connection, self._client, offsets)
            if error is None:
                return
            if not offset_commits.is_between_generations(error) or monotonic() > deadline:
                raise offset_commits.commit_refused(committer, error)
            self._connection.clock.sleep(_BACKOFF_S)

    def poll(self, timeout: float) -> None:
        """Take part in rebalances of the group, for at most `timeout` seconds."""
        if self._fatal_error is not None:
            raise self._fatal_error
        if (topics := self._topics.changed_names()) is not None:
            self._subscribe(topics)
        event = self._poll_client(timeout)
        while event is not None:
            if event.error() is not None:
                self._handle_error(event.error())
            event = self._poll_client(0)
        self._raise_listener_error()
        if self._assigned:
            self._read_assigned()
        self.metadata()

    def leave(self) -> None:
        """Revoke all partitions and leave. A static member stays in the group for its session timeout."""
        with suppress(LogError):
            self._poll_client(0)  # reports lost partitions, which would otherwise be reported as revoked
        self._call_listener(self._reader.assignment(), self._listeners.revoked)
        self._reader.take_over([])
        self._client.close()
        self._raise_listener_error()

    def _committer(self) -> GroupMetadata:
        """Return the metadata of the member. Raises CommitFailedError after the member has left.

        Without the check, the client would commit without a member.
        """
        last = self.metadata()
        current = self._current_metadata()
        if not current.member or current.generation < 0:
            raise self._fatal_error or not_a_member(last.group, last.member)
        return last

    def _current_metadata(self) -> GroupMetadata:
        return offset_commits.read_metadata(self._client.consumer_group_metadata())

    def _subscribe(self, topics: list[str]) -> None:
        if topics:
            self._client.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        else:
            self._client.unsubscribe()

    def _poll_client(self, timeout: float) -> Message | None:
        try:
            return self._client.poll(timeout)
        except KafkaException as error:
            raise error_of(f"The group {self._settings['group.id']!r} cannot be joined", error) from None

    def _read_assigned(self) -> None:
        """Begin to read the partitions that the group has assigned."""
        new_partitions = sorted(self._assigned)
        self._reader.take_over(self._reader.assignment() | self._assigned)
        self._assigned.clear()
        self._call_listener(new_partitions, self._listeners.assigned)
        self._raise_listener_error()

    def _on_assign(self, client: Client, partitions: list[KafkaPartition]) -> None:
        if self._is_cooperative:
            client.incremental_assign(partitions)
        else:
            client.assign(partitions)
        client.pause(partitions)
        self._assigned.update(_sources(partitions))

    def _on_revoke(self, client: Client, partitions: list[KafkaPartition]) -> None:
        if self._current_metadata().member:
            self._revoke(_sources(partitions), self._listeners.revoked)
        else:  # the member has left the group, because it did not revoke the partitions in time
            self._on_lost(client, partitions)

    def _on_lost(self, client: Client, partitions: list[KafkaPartition]) -> None:
        self._revoke(_sources(partitions), self._listeners.lost or self._listeners.revoked)

    def _revoke(self, sources: set[TopicPartition], listener: PartitionsListener | None) -> None:
        """Call the listener, then stop reading. The client releases the partitions when its callback returns."""
        self._assigned -= sources
        owned = self._reader.assignment()
        self._call_listener(owned & sources, listener)
        self._reader.take_over(owned - sources)

    def _call_listener(self, sources: Collection[TopicPartition], listener: PartitionsListener | None) -> None:
        if sources and listener is not None:
            try:
                listener(sorted(sources))
            except BaseException as error:
                self._listener_errors.append(error)

    def _raise_listener_error(self) -> None:
        if self._listener_errors:
            errors, self._listener_errors = self._listener_errors, []
            raise errors[0]

    def _handle_error(self, error: KafkaError) -> None:
        """Raise or log an error that the client reports."""
        group = self._settings["group.id"]
        if error.code() == KafkaError._FATAL:
            self._revoke(set(self._reader.assignment()), self._listeners.lost or self._listeners.revoked)
            self._fatal_error = self._member_error(error)
            raise self._fatal_error
        if error.code() in _NOT_ADMITTED:
            raise log_error(f"The group {group!r} does not admit this member", error)
        if error.code() not in _REPORTED_BY_READER:
            _logger.warning("The group %s: %s (%s)", group, error.str(), error.name())

    def _member_error(self, error: KafkaError) -> LogError:
        """Return the error of a client with a fatal error, whose reason is only in its text."""
        group = self._settings["group.id"]
        instance = self._settings["group.instance.id"]
        if instance is not None and "fenced" in error.str():
            return instance_replaced(group, instance)
        return log_error(f"The member of the group {group!r} has failed", error)


class SubscribedKafkaTopics:
    """The topics of one subscription.

    Parameters
    ----------
    connection : Connection
    topics : collection of str, or pattern
        The names of topics, or a pattern that whole names match. The matching topics may change.
    max_age_ms : int
        The time after which matching topics are read again.
    """

    def __init__(self, connection: Connection, topics: Collection[str] | re.Pattern[str], max_age_ms: int) -> None:
        self._connection = connection
        self._max_age_ms = max_age_ms
        self._pattern = topics if isinstance(topics, re.Pattern) else None
        self._names = [] if isinstance(topics, re.Pattern) else sorted(set(topics))
        self._read_ms: int | None = None

    def changed_names(self) -> list[str] | None:
        """Return the names to subscribe to if they have changed, or None."""
        now_ms = self._connection.clock.uptime_ms()
        is_first = self._read_ms is None
        if not is_first and (self._pattern is None or now_ms - (self._read_ms or 0) < self._max_age_ms):
            return None
        existing = self._cluster_topics()
        self._read_ms = now_ms
        if self._pattern is None:
            self._warn_of_missing(existing)
            return self._names
        matching = sorted(name for name in existing or () if self._pattern.fullmatch(name))
        if existing is None or matching == self._names:
            return None
        self._names = matching
        return matching

    def _cluster_topics(self) -> Collection[str] | None:
        """Return the topics of the cluster. None if no broker answers in time."""
        try:
            return self._connection.topic_names(_METADATA_TIMEOUT_S)
        except KafkaException as error:
            _logger.warning("The topics cannot be read from %s: %s", self._connection.servers, error)
            return None

    def _warn_of_missing(self, existing: Collection[str] | None) -> None:
        for name in self._names:
            if existing is not None and name not in existing:
                _logger.warning("There is no topic %r yet: it is read when it is created.", name)


def read_member_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of a member, and return them together with the defaults of the others.

    Kafka's client requires a `session.timeout.ms` of at most `max.poll.interval.ms`. The default is lowered to it.

    Raises
    ------
    ConfigError
    """
    explicit = {name: config[name] for name in MEMBER_SETTINGS if config.get(name) is not None}
    settings = read_settings("consumer", MEMBER_SETTINGS, explicit)
    poll_ms = settings["max.poll.interval.ms"]
    session_ms = settings["session.timeout.ms"]
    if "session.timeout.ms" in explicit and session_ms > poll_ms:
        raise ConfigError(
            f"`session.timeout.ms` ({session_ms}) is more than `max.poll.interval.ms` ({poll_ms}), which Kafka's "
            "client does not support: lower it."
        )
    settings["session.timeout.ms"] = session_ms = min(session_ms, poll_ms)
    if "heartbeat.interval.ms" not in explicit:
        settings["heartbeat.interval.ms"] = max(1, min(settings["heartbeat.interval.ms"], session_ms // 3))
    check_times(settings)
    for assignor in settings["partition.assignment.strategy"]:
        if assignor.name not in _ASSIGNORS:
            raise ConfigError(
                f"Kafka's client has the assignors {', '.join(_ASSIGNORS)}, not {assignor.name!r}: set "
                "`partition.assignment.strategy` to cooperative-sticky, with which members keep most partitions."
            )
    return settings


def client_of_member(config: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings of the client that is the member."""
    member_settings = {name: settings[name] for name in _MEMBER_KEYS if settings[name] is not None}
    age_ms = member_settings.pop("metadata.max.age.ms")
    return {
        **config,
        **member_settings,
        "partition.assignment.strategy": ",".join(
            assignor.name for assignor in settings["partition.assignment.strategy"]
        ),
        "topic.metadata.refresh.interval.ms": max(_MIN_REFRESH_MS, age_ms),
        "metadata.max.age.ms": None,
        QUOTA_DELAYS: None,
        "auto.offset.reset": "latest",
    }


def client_of_reader(config: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the client that reads the member's partitions."""
    reset = settings["auto.offset.reset"]
    client_reset = "earliest" if isinstance(reset, timedelta) else reset
    reader_settings = {name: value for name, value in config.items() if name not in _MEMBER_KEYS}
    return reader_settings | {"auto.offset.reset": client_reset}


def _member_client(settings: dict[str, Any]) -> Client:
    return Client({**settings, **_FIXED_SETTINGS})


def _sources(partitions: list[KafkaPartition]) -> set[TopicPartition]:
    return {TopicPartition(partition.topic, partition.partition) for partition in partitions}
