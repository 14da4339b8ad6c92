"""`KafkaAdmin`: topics of a cluster, their offsets, and what groups committed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from kstreams.errors import ConfigError, LogError, TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupDescription, GroupMetadata, MemberDescription, OffsetAndMetadata, TopicDescription
from kstreams.log.kafka.connection import ASK_S, TIMEOUT_S, Connection, outcome
from kstreams.log.kafka.failures import raised, reason_of
from kstreams.log.kafka.offset_commits import commit_offsets, commit_refused
from kstreams.log.naming import check_topic_name, check_total, did_you_mean
from kstreams.log.settings import choice
from kstreams.log.topic_types import KEY_TYPE, VALUE_TYPE

logger = logging.getLogger(__name__)
TYPES = frozenset((KEY_TYPE, VALUE_TYPE))
"""What the records are; Kafka has no place for it."""
_RETENTION_CLOCK = "retention.clock"
_KNOWN = (
    "cleanup.policy", "compression.type", "delete.retention.ms", "max.message.bytes", "message.timestamp.type",
    "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms", "max.compaction.lag.ms", "min.insync.replicas", "retention.bytes", "retention.ms",
    "segment.bytes", "segment.ms", "unclean.leader.election.enable",
)  # fmt: skip
_OF_TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_SETTLE_S = 0.05
_NO_OFFSET = -1001
_STATES = {
    ConsumerGroupState.UNKNOWN: "Unknown",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}


class KafkaAdmin:
    """See `kstreams.log.api.Admin`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until the cluster knows it.

        Raises
        ------
        TopicExistsError
        ConfigError
            For a name, a number of partitions or a setting that cannot be.
        """
        if partitions < 1:
            raise ConfigError(f"A topic has at least one partition, not {partitions}.")
        settings = translated(name, config)
        wanted = NewTopic(check_topic_name(name), partitions, self._connection.replication, config=settings)
        future = self._connection.admin.create_topics([wanted], request_timeout=TIMEOUT_S)[name]
        try:
            future.result(timeout=TIMEOUT_S + 5)
        except KafkaException as error:
            failure = _not_created(name, settings, error)
            if isinstance(failure, TopicExistsError):  # perhaps since a moment ago, made by somebody else
                self._wait(lambda: name in self._connection.topic_partitions(name))
            raise failure from None
        self._connection.forget(name)
        self._wait(lambda: self._connection.topic_partitions(name).get(name) == partitions)

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic, None to take one back; ConfigError for one that cannot be."""
        self.describe_topic(name)
        changed = {key: value for key, value in config.items() if key not in TYPES}
        if not changed:
            return
        kinds = {True: AlterConfigOpType.DELETE, False: AlterConfigOpType.SET}
        entries = [
            ConfigEntry(key, value or "", incremental_operation=kinds[value is None]) for key, value in changed.items()
        ]
        resource = ConfigResource("topic", name, incremental_configs=entries)
        future = self._connection.admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)[resource]
        try:
            future.result(timeout=TIMEOUT_S + 5)
        except KafkaException as error:
            raise refusal(name, {key: value or "" for key, value in changed.items()}, str(error)) from None
        self._connection.forget(name)

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have so many partitions, and wait until the cluster knows them; ConfigError if it has as many."""
        partitions = self._connection.learnt_partitions(name)
        if not partitions:
            raise self._connection.unknown(name)
        check_total(name, partitions, total)
        futures = self._connection.admin.create_partitions([NewPartitions(name, total)], request_timeout=TIMEOUT_S)
        outcome(f"The topic {name!r} cannot get more partitions", futures[name])
        self._connection.forget(name)
        self._wait(lambda: self._connection.topic_partitions(name).get(name) == total)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records, and wait until the cluster has forgotten it."""
        if not self._connection.learnt_partitions(name):
            raise self._connection.unknown(name)
        futures = self._connection.admin.delete_topics([name], request_timeout=TIMEOUT_S)
        outcome(f"The topic {name!r} cannot be deleted", futures[name])
        self._connection.forget(name)
        self._wait(lambda: not self._connection.topic_partitions(name))

    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """All topics by name; their settings are asked for when somebody looks at one."""
        for name in awaited:
            self._connection.learnt_partitions(name)
        found = self._connection.topic_partitions()
        settings = cache(lambda: {name: _set(entries) for name, entries in self._connection.configs(found).items()})
        return {name: TopicDescription(name, number, SettingsLater(name, settings)) for name, number in found.items()}

    def describe_topic(self, name: str) -> TopicDescription:
        """The topic's partitions and what is set on it; UnknownTopicError names the nearest topic."""
        partitions = self._connection.learnt_partitions(name)
        if not partitions:
            raise self._connection.unknown(name)
        return TopicDescription(name, partitions, _set(self._connection.configs([name])[name]))

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset of each partition that is still there."""
        return self._connection.beginnings(partitions)

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Offset after the last record; with `committed_only`, at most that of the first open transaction."""
        return self._connection.ends(partitions, committed_only=committed_only)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Let the records before these offsets go; LogError for an offset after the end."""
        ends = self.end_offsets(list(before), committed_only=False)
        for source, offset in before.items():
            if offset > ends[source]:
                raise LogError(f"{source} ends at {ends[source]}: nothing before {offset} can be deleted.")
        places = [Place(*source, offset) for source, offset in before.items()]
        for place, future in self._connection.admin.delete_records(places, request_timeout=TIMEOUT_S).items():
            outcome(f"Records of {place.topic}-{place.partition} cannot be deleted", future)

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are left out. Open transactions are waited for.

        A client of the group is asked: the admin client dies with the process where a coordinator moves or begins.
        """
        if not partitions:
            return {}
        client = self._connection.group(group)
        places = [Place(*each) for each in partitions]
        try:
            found = self._connection.again(lambda: client.committed(places, timeout=ASK_S))
        except KafkaException as error:
            raise raised(f"What the group {group!r} has committed cannot be read", error) from None
        return {
            TopicPartition(at.topic, at.partition): OffsetAndMetadata(at.offset, _metadata(at))
            for at in found
            if at.offset != _NO_OFFSET and at.error is None
        }

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit all of these offsets as one."""
        error = commit_offsets(self._connection, self._connection.group(group), offsets)
        if error is not None:
            raise commit_refused(GroupMetadata(group), error)

    def groups(self) -> list[str]:
        """Names of the groups that the cluster knows."""
        what = f"The groups of bootstrap.servers={self._connection.servers} cannot be listed"

        def ask(admin: AdminClient) -> Any:
            listed = _result(admin.list_consumer_groups(request_timeout=TIMEOUT_S))
            if listed.errors:
                raise KafkaException(listed.errors[0])
            return listed.valid

        return sorted(group.group_id for group in self._asked(what, ask))

    def describe_group(self, group: str) -> GroupDescription:
        """The group's state and members; the cluster does not tell its generation."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """The states and members of several groups, asked for at once."""
        if not groups:
            return {}

        def ask(admin: AdminClient) -> Any:
            futures = admin.describe_consumer_groups(list(groups), request_timeout=TIMEOUT_S)
            return {group: _unless_absent(future) for group, future in futures.items()}

        found = self._asked(f"The groups {', '.join(groups)} cannot be described", ask)
        return {group: _description(group, found[group]) for group in groups}

    def delete_group(self, group: str) -> None:
        """Forget a group's offsets; LogError while it has members."""
        members = len(self.describe_group(group).members)
        if members:
            raise LogError(f"The group {group!r} has {members} members: stop them before you delete it.")
        self._asked(
            f"The group {group!r} cannot be deleted",
            lambda admin: _unless_absent(admin.delete_consumer_groups([group], request_timeout=TIMEOUT_S)[group]),
        )

    def close(self) -> None:
        """Nothing to release: the clients belong to the connection."""

    def __enter__(self) -> KafkaAdmin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _asked(self, what: str, ask: Callable[[AdminClient], Any]) -> Any:
        """What a request about groups gives, asked again while a coordinator moves or begins."""
        admin = self._connection.admin
        try:
            return self._connection.again(lambda: ask(admin))
        except KafkaException as error:
            raise raised(what, error) from None

    def _wait(self, is_so: Callable[[], bool]) -> None:
        """Brokers learn of a change some time after the controller has made it."""
        for _ in range(int(TIMEOUT_S / _SETTLE_S)):
            if is_so():
                return
            self._connection.clock.sleep(_SETTLE_S)
        raise LogError(f"The brokers of {self._connection.servers} did not take over a change within {TIMEOUT_S} s.")


def translated(name: str, config: Mapping[str, str] | None) -> dict[str, str]:
    """The settings of a new topic as Kafka knows them.

    Kafka counts `retention.ms` back from now. What is to be kept by the time of its records (`retention.clock=record`)
    is kept for ever there: the windows of an old year that is replayed would be deleted while they are used.

    Raises
    ------
    ConfigError
        For a `retention.clock` that is no clock.

    Examples
    --------
    >>> translated("t", {"cleanup.policy": "compact", "kstreams.key.type": "int", "retention.clock": "wall"})
    {'cleanup.policy': 'compact'}
    """
    found = {key: value for key, value in (config or {}).items() if key not in TYPES}
    if found.get("compression.type") == "none":
        found["compression.type"] = "uncompressed"
    clock = found.pop(_RETENTION_CLOCK, "wall")
    try:
        choice("wall", "record")(clock)
    except ValueError as expected:
        raise ConfigError(f"The topic setting {_RETENTION_CLOCK!r} takes {expected}, not {clock!r}.") from None
    if clock == "record" and "retention.ms" in found:
        policies = [policy for policy in found.get("cleanup.policy", "delete").split(",") if policy != "delete"]
        logger.warning(
            "Kafka counts retention.ms back from now, so that %s would lose the windows of old records: it keeps them "
            "for ever (cleanup.policy=%s, retention.ms=-1 instead of %s). To bound it, set topic.retention.clock=wall.",
            *(name, ",".join(policies) or "delete", found["retention.ms"]),
        )
        found |= {"retention.ms": "-1"} | ({"cleanup.policy": ",".join(policies)} if policies else {})
    return found


def refusal(name: str, config: Mapping[str, str], why: str) -> ConfigError:
    """The error for settings that the cluster has refused; names the nearest known setting."""
    wrong = next((key for key in config if key in why and key not in _KNOWN), None)
    hint = did_you_mean(wrong, _KNOWN) if wrong else ""
    return ConfigError(f"Kafka refuses the settings of the topic {name!r}: {why}.{hint}")


class SettingsLater(Mapping[str, str]):
    """The settings of one topic, asked for when somebody looks at them; `ask` gives those of all."""

    def __init__(self, topic: str, ask: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._topic = topic
        self._ask = ask

    def __getitem__(self, key: str) -> str:
        return self._ask()[self._topic][key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ask()[self._topic])

    def __len__(self) -> int:
        return len(self._ask()[self._topic])


def _metadata(place: Any) -> str:
    """The text with a committed offset; empty where the client cannot read it.

    It takes the text to end with a zero byte, with which it alone writes it: that of other clients is followed by what
    lies behind it in memory.
    """
    try:
        return place.metadata or ""
    except UnicodeDecodeError:
        return ""


def _result(future: Any) -> Any:
    return future.result(timeout=TIMEOUT_S + 5)


def _unless_absent(future: Any) -> Any:
    """What is told of a group; None of one that is not there."""
    try:
        return _result(future)
    except KafkaException as error:
        reason = reason_of(error)
        if reason is not None and reason.code() == KafkaError.GROUP_ID_NOT_FOUND:
            return None
        raise


def _description(group: str, found: Any) -> GroupDescription:
    if found is None:
        return GroupDescription(group, "Dead", None, "", ())
    members = tuple(
        MemberDescription(each.member_id, each.group_instance_id or None, _assigned(each)) for each in found.members
    )
    return GroupDescription(group, _STATES[found.state], None, found.partition_assignor, members)


def _assigned(member: Any) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(place.topic, place.partition) for place in member.assignment.topic_partitions))


def _set(entries: Mapping[str, Any]) -> dict[str, str]:
    """What is set on a topic itself, and its clean-up policy."""
    return {
        name: str(entry.value)
        for name, entry in sorted(entries.items())
        if entry.source == _OF_TOPIC or name == "cleanup.policy"
    }


def _not_created(name: str, settings: Mapping[str, str], error: KafkaException) -> Exception:
    reason = reason_of(error)
    if reason is not None and reason.code() == KafkaError.INVALID_CONFIG:
        return refusal(name, settings, reason.str())
    if reason is not None and reason.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        return ConfigError(f"The topic {name!r} cannot be made: {reason.str()} Set replication.factor.")
    if reason is not None and reason.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return raised(f"The topic {name!r} exists already", error)
    return raised(f"The topic {name!r} cannot be made", error)
