"""`KafkaAdmin`: the admin client for topics of a cluster, their offsets, and consumer groups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConsumerGroupDescription,
    NewPartitions,
    NewTopic,
)
from confluent_kafka.admin import MemberDescription as ClientMember

from kstreams.config.key import Key
from kstreams.errors import ConfigError, LogError, TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupDescription, GroupMetadata, MemberDescription, OffsetAndMetadata, TopicDescription
from kstreams.log.kafka.connection import ATTEMPT_TIMEOUT_S, TIMEOUT_S, Connection, outcome
from kstreams.log.kafka.failures import error_of, reason_of
from kstreams.log.kafka.group_requests import coordinator_of, remove_member
from kstreams.log.kafka.offset_commits import commit_offsets, commit_refused
from kstreams.log.kafka.quotas import alter_quotas, read_quotas
from kstreams.log.naming import check_client_id, check_more_partitions, check_topic_name, checked_quota, did_you_mean
from kstreams.log.settings import choice, read_setting
from kstreams.log.topic_types import KEY_TYPE, VALUE_TYPE

logger = logging.getLogger(__name__)
TYPE_SETTINGS = frozenset((KEY_TYPE, VALUE_TYPE))
"""The settings that name the types of records, which Kafka does not have."""
_RETENTION_CLOCK = Key("retention.clock", choice("wall", "record"), "wall", "Where `retention.ms` counts back from.")
_KAFKA_SETTINGS = (
    "cleanup.policy", "compression.type", "delete.retention.ms", "max.message.bytes", "message.timestamp.type",
    "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms", "max.compaction.lag.ms", "min.insync.replicas", "retention.bytes", "retention.ms",
    "segment.bytes", "segment.ms", "unclean.leader.election.enable",
)  # fmt: skip
_SET_ON_TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_POLL_S = 0.05
_NO_OFFSET = -1001  # librdkafka's RD_KAFKA_OFFSET_INVALID
_STATES = {
    ConsumerGroupState.UNKNOWN: "Unknown",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}

T = TypeVar("T")


class KafkaAdmin:
    """See `kstreams.log.api.Admin`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic, and wait until the brokers know it.

        Raises
        ------
        TopicExistsError
        ConfigError
            If the name, the number of partitions or a setting is illegal.
        """
        if partitions < 1:
            raise ConfigError(f"The topic {name!r} cannot have {partitions} partitions: give 1 or more.")
        settings = kafka_topic_settings(name, config)
        topic = NewTopic(check_topic_name(name), partitions, self._connection.replication, config=settings)
        future = self._connection.admin.create_topics([topic], request_timeout=TIMEOUT_S)[name]
        try:
            future.result(timeout=TIMEOUT_S + 5)
        except KafkaException as error:
            failure = _creation_error(name, settings, error)
            if isinstance(failure, TopicExistsError):  # another process may have created it just now
                self._await(lambda: name in self._connection.topic_partitions(name))
            raise failure from None
        self._connection.drop_facts(name)
        self._await(lambda: self._connection.topic_partitions(name).get(name) == partitions)

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic. None restores a default. Raises ConfigError for an illegal setting."""
        self.describe_topic(name)
        changed = {key: value for key, value in config.items() if key not in TYPE_SETTINGS}
        if not changed:
            return
        entries = [
            ConfigEntry(key, "", incremental_operation=AlterConfigOpType.DELETE)
            if value is None
            else ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in changed.items()
        ]
        resource = ConfigResource("topic", name, incremental_configs=entries)
        future = self._connection.admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)[resource]
        try:
            future.result(timeout=TIMEOUT_S + 5)
        except KafkaException as error:
            raise refused_settings(name, {key: value or "" for key, value in changed.items()}, str(error)) from None
        self._connection.drop_facts(name)

    def add_partitions(self, name: str, total: int) -> None:
        """Increase the number of partitions to `total`, and wait until the brokers know them.

        Raises
        ------
        ConfigError
            If the topic has as many partitions or more.
        """
        partitions = self._connection.await_partitions(name)
        if not partitions:
            raise self._connection.unknown_topic(name)
        check_more_partitions(name, partitions, total)
        futures = self._connection.admin.create_partitions([NewPartitions(name, total)], request_timeout=TIMEOUT_S)
        outcome(f"The topic {name!r} cannot get more partitions", futures[name])
        self._connection.drop_facts(name)
        self._await(lambda: self._connection.topic_partitions(name).get(name) == total)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records, and wait until the brokers have dropped it."""
        if not self._connection.await_partitions(name):
            raise self._connection.unknown_topic(name)
        futures = self._connection.admin.delete_topics([name], request_timeout=TIMEOUT_S)
        outcome(f"The topic {name!r} cannot be deleted", futures[name])
        self._connection.drop_facts(name)
        self._await(lambda: not self._connection.topic_partitions(name))

    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """Return all topics by name. The settings are read when one of them is used."""
        for name in awaited:
            self._connection.await_partitions(name)
        topics = self._connection.topic_partitions()
        settings = cache(
            lambda: {name: _topic_settings(entries) for name, entries in self._connection.configs(topics).items()}
        )
        return {name: TopicDescription(name, number, LazySettings(name, settings)) for name, number in topics.items()}

    def describe_topic(self, name: str) -> TopicDescription:
        """Return the partitions and settings of a topic. UnknownTopicError names the nearest topic."""
        partitions = self._connection.await_partitions(name)
        if not partitions:
            raise self._connection.unknown_topic(name)
        return TopicDescription(name, partitions, _topic_settings(self._connection.configs([name])[name]))

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._connection.beginnings(partitions)

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the end offsets. With `committed_only`, they are at most the offset of the first open transaction."""
        return self._connection.ends(partitions, committed_only=committed_only)

    def offsets_at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the first offset at or after a time (ms) in each partition. The end if there is none."""
        return self._connection.offsets_at_times(times, committed_only=True)

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets. Raises LogError for an offset after the end."""
        ends = self.end_offsets(list(before), committed_only=False)
        for source, offset in before.items():
            if offset > ends[source]:
                raise LogError(f"Records of {source} before {offset} cannot be deleted: it ends at {ends[source]}.")
        kafka_partitions = [KafkaPartition(*source, offset) for source, offset in before.items()]
        for partition, future in self._connection.admin.delete_records(
            kafka_partitions, request_timeout=TIMEOUT_S
        ).items():
            outcome(f"Records of {partition.topic}-{partition.partition} cannot be deleted", future)

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, without partitions that have none. Waits for open transactions.

        A group client reads the offsets, because the admin client crashes the process if a coordinator moves or starts.
        """
        if not partitions:
            return {}
        client = self._connection.group(group)
        kafka_partitions = [KafkaPartition(*source) for source in partitions]
        try:
            offsets = self._connection.retry(lambda: client.committed(kafka_partitions, timeout=ATTEMPT_TIMEOUT_S))
        except KafkaException as error:
            raise error_of(f"The committed offsets of the group {group!r} cannot be read", error) from None
        return {
            TopicPartition(committed.topic, committed.partition): OffsetAndMetadata(
                committed.offset, _metadata(committed)
            )
            for committed in offsets
            if committed.offset != _NO_OFFSET and committed.error is None
        }

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets atomically."""
        error = commit_offsets(self._connection, self._connection.group(group), offsets)
        if error is not None:
            raise commit_refused(GroupMetadata(group), error)

    def groups(self) -> list[str]:
        """Return the names of all groups of the cluster."""
        failure = f"The groups of bootstrap.servers={self._connection.servers} cannot be listed"

        def request(admin: AdminClient) -> Any:
            listing = _result(admin.list_consumer_groups(request_timeout=TIMEOUT_S))
            if listing.errors:
                raise KafkaException(listing.errors[0])
            return listing.valid

        return sorted(group.group_id for group in self._request(failure, request))

    def describe_group(self, group: str) -> GroupDescription:
        """Return the state and members of a group. The cluster does not report its generation."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """Return the states and members of several groups, in one request."""
        if not groups:
            return {}

        def request(admin: AdminClient) -> dict[str, ConsumerGroupDescription | None]:
            futures = admin.describe_consumer_groups(list(groups), request_timeout=TIMEOUT_S)
            return {group: _result_if_group_exists(future) for group, future in futures.items()}

        descriptions = self._request(f"The groups {', '.join(groups)} cannot be described", request)
        return {group: _description(group, descriptions[group]) for group in groups}

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets. Raises LogError while it has members."""
        members = len(self.describe_group(group).members)
        if members:
            raise LogError(f"The group {group!r} has {members} members: stop them before you delete it.")

        def request(admin: AdminClient) -> None:
            futures = admin.delete_consumer_groups([group], request_timeout=TIMEOUT_S)
            _result_if_group_exists(futures[group])

        self._request(f"The group {group!r} cannot be deleted", request)

    def remove_member(self, group: str, member: str) -> None:
        """Remove a member whose process has ended; nothing happens if the group has no such member."""
        with self._connection.broker_requests() as broker:
            coordinator = coordinator_of(broker, group)
        with self._connection.broker_requests(coordinator) as broker:
            remove_member(broker, group, member)

    def client_quotas(self) -> dict[str | None, dict[str, float]]:
        """Return the quotas by client id. None is the default. Quotas of users are left out."""
        with self._connection.broker_requests() as broker:
            return read_quotas(broker)

    def alter_client_quotas(self, client_id: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a client id, or of the default, and wait until a broker knows them. None removes one."""
        check_client_id(client_id)
        changed = {name: checked_quota(name, rate) for name, rate in quotas.items()}
        with self._connection.broker_requests() as broker:
            alter_quotas(broker, client_id, changed)
            self._await(lambda: _has_quotas(read_quotas(broker).get(client_id, {}), changed))

    def close(self) -> None:
        """Do nothing: the clients belong to the connection."""

    def __enter__(self) -> KafkaAdmin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _request(self, failure: str, request: Callable[[AdminClient], T]) -> T:
        """Return the result of a request about groups. Retry while a coordinator moves or starts."""
        admin = self._connection.admin
        try:
            return self._connection.retry(lambda: request(admin))
        except KafkaException as error:
            raise error_of(failure, error) from None

    def _await(self, is_done: Callable[[], bool]) -> None:
        """Wait for a change, which reaches the brokers some time after the controller."""
        for _ in range(int(TIMEOUT_S / _POLL_S)):
            if is_done():
                return
            self._connection.clock.sleep(_POLL_S)
        raise LogError(f"The brokers of {self._connection.servers} did not make a change within {TIMEOUT_S} s.")


def kafka_topic_settings(name: str, config: Mapping[str, str] | None) -> dict[str, str]:
    """Return the settings of a new topic in Kafka's form.

    Kafka counts `retention.ms` back from the present time, and would delete windows of old records during a replay.
    Therefore a topic with `retention.clock=record` retains all records on Kafka.

    Raises
    ------
    ConfigError
        If `retention.clock` is illegal.

    Examples
    --------
    >>> kafka_topic_settings("t", {"cleanup.policy": "compact", "kstreams.key.type": "int", "retention.clock": "wall"})
    {'cleanup.policy': 'compact'}
    """
    settings = {key: value for key, value in (config or {}).items() if key not in TYPE_SETTINGS}
    if settings.get("compression.type") == "none":
        settings["compression.type"] = "uncompressed"
    clock = read_setting("topic", _RETENTION_CLOCK, settings.pop(_RETENTION_CLOCK.name, _RETENTION_CLOCK.default))
    if clock == "record" and "retention.ms" in settings:
        policies = [policy for policy in settings.get("cleanup.policy", "delete").split(",") if policy != "delete"]
        logger.warning(
            "Kafka counts retention.ms back from now, so that %s would lose the windows of old records: it keeps them "
            "for ever (cleanup.policy=%s, retention.ms=-1 instead of %s). To limit its size, set "
            "topic.retention.clock=wall.",
            name,
            ",".join(policies) or "delete",
            settings["retention.ms"],
        )
        settings |= {"retention.ms": "-1"} | ({"cleanup.policy": ",".join(policies)} if policies else {})
    return settings


def refused_settings(name: str, config: Mapping[str, str], reason: str) -> ConfigError:
    """Return the error for settings that the cluster has refused. It names the nearest known setting."""
    unknown_key = next((key for key in config if key in reason and key not in _KAFKA_SETTINGS), None)
    hint = did_you_mean(unknown_key, _KAFKA_SETTINGS) if unknown_key else ""
    return ConfigError(f"Kafka refuses the settings of the topic {name!r}: {reason}.{hint}")


class LazySettings(Mapping[str, str]):
    """The settings of one topic, which are read when one of them is used. `read` returns those of all topics."""

    def __init__(self, topic: str, read: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._topic = topic
        self._read = read

    def __getitem__(self, key: str) -> str:
        return self._read()[self._topic][key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read()[self._topic])

    def __len__(self) -> int:
        return len(self._read()[self._topic])


def _metadata(partition: KafkaPartition) -> str:
    """Return the metadata of a committed offset. Empty if the client cannot decode it.

    The client expects a zero byte at the end of the text, which other clients do not write. Without the byte, it reads
    other memory beyond the text.
    """
    try:
        return partition.metadata or ""
    except UnicodeDecodeError:
        return ""


def _has_quotas(present: Mapping[str, float], changed: Mapping[str, int | None]) -> bool:
    return all(present.get(name) == rate for name, rate in changed.items())


def _result(future: Future[T]) -> T:
    return future.result(timeout=TIMEOUT_S + 5)


def _result_if_group_exists(future: Future[T]) -> T | None:
    """Return the result of a request about a group. None if the group does not exist."""
    try:
        return _result(future)
    except KafkaException as error:
        reason = reason_of(error)
        if reason is not None and reason.code() == KafkaError.GROUP_ID_NOT_FOUND:
            return None
        raise


def _description(group: str, description: ConsumerGroupDescription | None) -> GroupDescription:
    if description is None:
        return GroupDescription(group, "Dead", None, "", ())
    members = tuple(
        MemberDescription(member.member_id, member.group_instance_id or None, _assigned(member))
        for member in description.members
    )
    return GroupDescription(group, _STATES[description.state], None, description.partition_assignor, members)


def _assigned(member: ClientMember) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(partition.topic, partition.partition) for partition in member.assignment.topic_partitions)
    )


def _topic_settings(entries: Mapping[str, ConfigEntry]) -> dict[str, str]:
    """Return the settings that are set on the topic itself, and its clean-up policy."""
    return {
        name: str(entry.value)
        for name, entry in sorted(entries.items())
        if entry.source == _SET_ON_TOPIC or name == "cleanup.policy"
    }


def _creation_error(name: str, settings: Mapping[str, str], error: KafkaException) -> Exception:
    reason = reason_of(error)
    if reason is not None and reason.code() == KafkaError.INVALID_CONFIG:
        return refused_settings(name, settings, reason.str())
    if reason is not None and reason.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        return ConfigError(f"The topic {name!r} cannot be created: {reason.str()} Set replication.factor.")
    if reason is not None and reason.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return error_of(f"The topic {name!r} exists already", error)
    return error_of(f"The topic {name!r} cannot be created", error)
