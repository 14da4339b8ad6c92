"""What the catalogue keeps of consumer groups: the offsets they committed."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

from kstreams.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.embedded.catalogue.group_rows import read_group
from kstreams.log.groups.group import check_commit


def store_offsets(
    database: sqlite3.Connection, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> None:
    """Store a group's offsets inside a transaction of the catalogue."""
    database.executemany(
        "INSERT INTO offsets VALUES (?, ?, ?, ?, ?) ON CONFLICT (group_id, topic, partition) "
        "DO UPDATE SET next_offset = excluded.next_offset, metadata = excluded.metadata",
        [(group, source.topic, source.partition, at.offset, at.metadata) for source, at in offsets.items()],
    )


def commit_offsets(
    catalogue: Catalogue, committer: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> None:
    """Commit all of these offsets as one, for a member of the group's generation or while it has no members.

    Raises
    ------
    CommitFailedError, RebalanceInProgressError, FencedError
    """
    with catalogue.write() as database:
        check_committer(catalogue, committer, offsets)
        store_offsets(database, committer.group, offsets)


def check_committer(catalogue: Catalogue, committer: GroupMetadata, partitions: Collection[TopicPartition]) -> None:
    """Refuse who may not commit these for the group now; the caller's transaction keeps the group as it is."""
    group = read_group(catalogue, committer.group)
    check_commit(group, committer.member, committer.instance, committer.generation, partitions)


def committed_offsets(
    catalogue: Catalogue, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The group's offsets of these partitions; those without one are left out."""
    rows = catalogue.read("SELECT topic, partition, next_offset, metadata FROM offsets WHERE group_id = ?", group)
    wanted = set(partitions)
    found = {TopicPartition(topic, number): OffsetAndMetadata(at, text) for topic, number, at, text in rows}
    return {source: found[source] for source in found if source in wanted}
