"""Rows of consumer groups in the catalogue: committed offsets, and members (one row for each group)."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

import msgspec

from kstreams.errors import CorruptLogError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.groups.group import Group, GroupState, check_commit


def read_group(catalogue: Catalogue, name: str) -> Group:
    """Return the group; an empty group if it never had a member."""
    rows = catalogue.read("SELECT content FROM groups WHERE group_id = ?", name)
    return decode_group(name, rows[0][0]) if rows else Group(name)


def group_version(catalogue: Catalogue, name: str) -> int:
    """Return the version of the group, which increases with each change."""
    rows = catalogue.read("SELECT version FROM groups WHERE group_id = ?", name)
    return int(rows[0][0]) if rows else 0


def store_group(database: sqlite3.Connection, group: Group) -> None:
    """Store a group inside a transaction of the catalogue."""
    database.execute(
        "INSERT INTO groups VALUES (?, 1, ?) ON CONFLICT (group_id) "
        "DO UPDATE SET version = version + 1, content = excluded.content",
        (group.name, group.encode()),
    )


def group_names(catalogue: Catalogue) -> list[str]:
    """Return the names of groups that have or had members or committed offsets."""
    rows = catalogue.read("SELECT group_id FROM groups UNION SELECT group_id FROM offsets ORDER BY group_id")
    return [name for (name,) in rows]


def delete_group_rows(catalogue: Catalogue, name: str) -> None:
    """Delete a group with its committed offsets.

    Raises
    ------
    LogError
        When the group has members.
    """
    with catalogue.write() as database:
        group = read_group(catalogue, name)
        if group.state is not GroupState.EMPTY:
            raise LogError(f"The group {name!r} has {len(group.members)} members: stop them before you delete it.")
        database.execute("DELETE FROM groups WHERE group_id = ?", (name,))
        database.execute("DELETE FROM offsets WHERE group_id = ?", (name,))


def decode_group(name: str, content: str) -> Group:
    """Decode the group of a row; CorruptLogError if it cannot be decoded."""
    try:
        return Group.decode(content)
    except msgspec.DecodeError as error:
        raise CorruptLogError(f"The catalogue holds a group {name!r} that cannot be read: {error}.") from None


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
    """Raise if a member may not commit offsets of these partitions now; called in a transaction of the catalogue."""
    group = read_group(catalogue, committer.group)
    check_commit(group, committer.member, committer.instance, committer.generation, partitions)


def committed_offsets(
    catalogue: Catalogue, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the group's offsets of these partitions; partitions without an offset are left out."""
    rows = catalogue.read("SELECT topic, partition, next_offset, metadata FROM offsets WHERE group_id = ?", group)
    offsets = {
        TopicPartition(topic, number): OffsetAndMetadata(offset, metadata) for topic, number, offset, metadata in rows
    }
    return {source: offsets[source] for source in offsets.keys() & set(partitions)}
