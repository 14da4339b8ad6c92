"""Commits of a group's offsets by Kafka's client, and the metadata of members that commit.

The client returns the metadata as bytes in a private format. They contain the same values as `GroupMetadata`, which is
used for every home. Bytes that cannot be decoded and encoded again are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.groups.group import (
    group_has_members,
    instance_replaced,
    not_a_member,
    old_generation,
    rebalance_in_progress,
)
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.failures import error_of, reason_of

_FORMAT = b"CGMDv2:"
_GENERATION_BYTES = 4
_BETWEEN = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def read_metadata(raw: bytes) -> GroupMetadata:
    """Decode the bytes of the client. Raises LogError if the client writes another format.

    Examples
    --------
    >>> read_metadata(metadata_bytes(GroupMetadata("readers", "a-1", 7)))
    GroupMetadata(group='readers', member='a-1', generation=7, instance=None)
    """
    start = len(_FORMAT) + _GENERATION_BYTES
    generation = int.from_bytes(raw[len(_FORMAT) : start], sys.byteorder, signed=True)
    group, _, member_and_instance = raw[start:].partition(b"\0")
    member, _, instance = member_and_instance.partition(b"\0")
    instance_id = instance[1:-1].decode() if instance[:1] == b"\0" else None
    metadata = GroupMetadata(group.decode(), member.decode(), generation, instance_id)
    if metadata_bytes(metadata) != raw:
        raise LogError(
            "This version of confluent-kafka writes the metadata of groups in an unknown format: install the version "
            "that kstreams was tested with (`pip install 'kstreams-dsl[kafka]'`)."
        )
    return metadata


def metadata_bytes(metadata: GroupMetadata) -> bytes:
    """Encode metadata in the format of the client."""
    generation = metadata.generation.to_bytes(_GENERATION_BYTES, sys.byteorder, signed=True)
    instance = b"\1" if metadata.instance is None else b"\0" + metadata.instance.encode() + b"\0"
    return b"\0".join([_FORMAT + generation + metadata.group.encode(), metadata.member.encode(), instance])


def client_offsets(offsets: Offsets) -> list[KafkaPartition]:
    """Return offsets as objects of the client."""
    return [
        KafkaPartition(source.topic, source.partition, committed.offset, committed.metadata)
        for source, committed in offsets.items()
    ]


def commit_offsets(connection: Connection, client: Client, offsets: Offsets) -> BaseException | None:
    """Commit offsets of the client's group. Retry while a coordinator moves.

    Returns the error if the cluster has refused the commit, for `commit_refused`.
    """

    def commit() -> None:
        for partition in client.commit(offsets=client_offsets(offsets), asynchronous=False) or ():
            if partition.error is not None:
                raise KafkaException(partition.error)

    try:
        if offsets:
            connection.retry(commit, offsets.keys())
    except KafkaException as failed:
        error: BaseException = failed
        return error
    return None


def is_between_generations(error: BaseException) -> bool:
    """Return True if a commit has failed because of a rebalance that is going on or has just ended."""
    reason = reason_of(error)
    return reason is not None and bool(reason.code() in _BETWEEN)


def commit_refused(committer: GroupMetadata, error: BaseException) -> LogError:
    """Return the error for a commit that the cluster has refused."""
    group = committer.group
    reason = reason_of(error)
    code = None if reason is None else reason.code()
    if code == KafkaError.UNKNOWN_MEMBER_ID:
        return not_a_member(group, committer.member) if committer.member else group_has_members(group)
    if code == KafkaError.ILLEGAL_GENERATION:
        return old_generation(group, committer.generation)
    # A client that knows that its static member is fenced reports a fatal error.
    is_fenced_client = code == KafkaError._FATAL and committer.instance is not None
    if code == KafkaError.FENCED_INSTANCE_ID or is_fenced_client:
        return instance_replaced(group, committer.instance)
    if code == KafkaError.REBALANCE_IN_PROGRESS:
        return rebalance_in_progress(group)
    return error_of(f"The offsets of the group {group!r} cannot be committed", error)
