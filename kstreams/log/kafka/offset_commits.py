"""Commits of a group's offsets by Kafka's client, and the metadata of members that commit.

The client hands out the metadata as bytes that only it needs to understand. They hold no more than `GroupMetadata`
does, which therefore is a plain value with every home; bytes that do not survive a round trip are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.groups.group import dividing, for_members_alone, no_member, of_another_generation, replaced
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.failures import error_of, reason_of

_FORMAT = b"CGMDv2:"
_GENERATION_BYTES = 4
_BETWEEN = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def read_metadata(raw: bytes) -> GroupMetadata:
    """Decode the client's bytes; LogError for bytes of a client that writes another form.

    Examples
    --------
    >>> read_metadata(metadata_bytes(GroupMetadata("readers", "a-1", 7)))
    GroupMetadata(group='readers', member='a-1', generation=7, instance=None)
    """
    start = len(_FORMAT) + _GENERATION_BYTES
    generation = int.from_bytes(raw[len(_FORMAT) : start], sys.byteorder, signed=True)
    group, _, member_and_instance = raw[start:].partition(b"\0")
    member, _, instance = member_and_instance.partition(b"\0")
    named = instance[1:-1].decode() if instance[:1] == b"\0" else None
    metadata = GroupMetadata(group.decode(), member.decode(), generation, named)
    if metadata_bytes(metadata) != raw:
        raise LogError(
            "This version of confluent-kafka writes the metadata of groups in an unknown form: install the "
            "version that kstreams was tested with (`pip install 'kstreams-dsl[kafka]'`)."
        )
    return metadata


def metadata_bytes(metadata: GroupMetadata) -> bytes:
    """Encode metadata as the client takes it."""
    generation = metadata.generation.to_bytes(_GENERATION_BYTES, sys.byteorder, signed=True)
    instance = b"\1" if metadata.instance is None else b"\0" + metadata.instance.encode() + b"\0"
    return b"\0".join([_FORMAT + generation + metadata.group.encode(), metadata.member.encode(), instance])


def client_offsets(offsets: Offsets) -> list[Place]:
    """Return offsets to commit as the client takes them."""
    return [
        Place(source.topic, source.partition, committed.offset, committed.metadata)
        for source, committed in offsets.items()
    ]


def commit_offsets(connection: Connection, client: Client, offsets: Offsets) -> BaseException | None:
    """Commit by a client for its group; retries while a coordinator moves.

    Returns the error of a commit that the cluster has refused, for `commit_refused`.
    """

    def commit() -> None:
        for place in client.commit(offsets=client_offsets(offsets), asynchronous=False) or ():
            if place.error is not None:
                raise KafkaException(place.error)

    try:
        if offsets:
            connection.retried(commit, offsets.keys())
    except KafkaException as failed:
        error: BaseException = failed
        return error
    return None


def is_between_generations(error: BaseException) -> bool:
    """Return whether a commit failed because the group is rebalancing, or has just done so."""
    reason = reason_of(error)
    return reason is not None and bool(reason.code() in _BETWEEN)


def commit_refused(committer: GroupMetadata, error: BaseException) -> LogError:
    """Return the error for a commit that the cluster has refused."""
    group = committer.group
    reason = reason_of(error)
    code = None if reason is None else reason.code()
    if code == KafkaError.UNKNOWN_MEMBER_ID:
        return no_member(group, committer.member) if committer.member else for_members_alone(group)
    if code == KafkaError.ILLEGAL_GENERATION:
        return of_another_generation(group, committer.generation)
    is_failed = (
        code == KafkaError._FATAL and committer.instance is not None
    )  # so reported once the client knows that it is fenced
    if code == KafkaError.FENCED_INSTANCE_ID or is_failed:
        return replaced(group, committer.instance)
    if code == KafkaError.REBALANCE_IN_PROGRESS:
        return dividing(group)
    return error_of(f"The offsets of the group {group!r} cannot be committed", error)
