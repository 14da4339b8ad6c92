"""Commits of offsets by Kafka's client, refused in the words of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from kstreams.batch import TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.groups.refusals import dividing, for_members_alone, no_member, of_another_generation, replaced
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.failures import raised, reason_of

_BETWEEN = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def places_of(offsets: Offsets) -> list[Place]:
    """Offsets to commit as the client takes them."""
    return [Place(*source, at.offset, at.metadata) for source, at in offsets.items()]


def commit_offsets(connection: Connection, client: Any, offsets: Offsets) -> BaseException | None:
    """Commit by a client for its group, again while a coordinator moves; why it was not done, for `commit_refused`."""

    def commit() -> None:
        for place in client.commit(offsets=places_of(offsets), asynchronous=False) or ():
            if place.error is not None:
                raise KafkaException(place.error)

    try:
        if offsets:
            connection.again(commit, offsets.keys())
    except KafkaException as failed:
        error: BaseException = failed
        return error
    return None


def is_between_generations(error: BaseException) -> bool:
    """Whether a commit failed because the group divides its partitions, or has just done so."""
    reason = reason_of(error)
    return reason is not None and bool(reason.code() in _BETWEEN)


def commit_refused(committer: GroupMetadata, error: BaseException) -> LogError:
    """The error for a commit that the cluster has not taken."""
    group = committer.group
    reason = reason_of(error)
    code = None if reason is None else reason.code()
    if code == KafkaError.UNKNOWN_MEMBER_ID:
        return no_member(group, committer.member) if committer.member else for_members_alone(group)
    if code == KafkaError.ILLEGAL_GENERATION:
        return of_another_generation(group, committer.generation)
    is_failed = code == KafkaError._FATAL and committer.instance is not None  # told so when it has heard of it before
    if code == KafkaError.FENCED_INSTANCE_ID or is_failed:
        return replaced(group, committer.instance)
    if code == KafkaError.REBALANCE_IN_PROGRESS:
        return dividing(group)
    return raised(f"The offsets of the group {group!r} cannot be committed", error)
