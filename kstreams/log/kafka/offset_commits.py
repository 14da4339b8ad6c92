"""Commits of offsets by Kafka's client, refused in the words of groups."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.groups.group import dividing, for_members_alone, no_member, of_another_generation, replaced
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.failures import raised, reason_of

_FORMAT = b"CGMDv2:"
_GENERATION_BYTES = 4
_BETWEEN = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def read_metadata(raw: bytes) -> GroupMetadata:
    """What the client's bytes say; LogError for those of a client that writes others.

    Examples
    --------
    >>> read_metadata(metadata_bytes(GroupMetadata("readers", "a-1", 7)))
    GroupMetadata(group='readers', member='a-1', generation=7, instance=None)
    """
    start = len(_FORMAT) + _GENERATION_BYTES
    generation = int.from_bytes(raw[len(_FORMAT) : start], sys.byteorder, signed=True)
    group, _, rest = raw[start:].partition(b"\0")
    member, _, instance = rest.partition(b"\0")
    named = instance[1:-1].decode() if instance[:1] == b"\0" else None
    found = GroupMetadata(group.decode(), member.decode(), generation, named)
    if metadata_bytes(found) != raw:
        raise LogError(
            "This version of confluent-kafka writes the metadata of groups in a form that is not known: install the "
            "version that kstreams was tested with (`pip install 'kstreams-dsl[kafka]'`)."
        )
    return found


def metadata_bytes(metadata: GroupMetadata) -> bytes:
    """The metadata as the client takes it."""
    generation = metadata.generation.to_bytes(_GENERATION_BYTES, sys.byteorder, signed=True)
    instance = b"\1" if metadata.instance is None else b"\0" + metadata.instance.encode() + b"\0"
    return b"\0".join([_FORMAT + generation + metadata.group.encode(), metadata.member.encode(), instance])


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
