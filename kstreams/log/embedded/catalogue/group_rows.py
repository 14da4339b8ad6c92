"""What the catalogue keeps of consumer groups: the offsets they committed."""

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
    """The group as it is; an empty one when nobody was ever in it."""
    rows = catalogue.read("SELECT content FROM groups WHERE group_id = ?", name)
    return decoded(name, rows[0][0]) if rows else Group(name)


def group_version(catalogue: Catalogue, name: str) -> int:
    """How often the group has changed."""
    rows = catalogue.read("SELECT version FROM groups WHERE group_id = ?", name)
    return int(rows[0][0]) if rows else 0


def store_group(database: sqlite3.Connection, group: Group) -> None:
    """Store a group inside a transaction of the catalogue."""
    database.execute(
        "INSERT INTO groups VALUES (?, 1, ?) ON CONFLICT (group_id) "
        "DO UPDATE SET version = version + 1, content = excluded.content",
        (group.name, group.encode()),
    )


def known_groups(catalogue: Catalogue) -> list[str]:
    """Names of the groups that have or had members, or committed something."""
    rows = catalogue.read("SELECT group_id FROM groups UNION SELECT group_id FROM offsets ORDER BY group_id")
    return [name for (name,) in rows]


def forget_group(catalogue: Catalogue, name: str) -> None:
    """Forget a group and what it committed.

    Raises
    ------
    LogError
        When it has members.
    """
    with catalogue.write() as database:
        group = read_group(catalogue, name)
        if group.state is not GroupState.EMPTY:
            raise LogError(f"The group {name!r} has {len(group.members)} members: stop them before you delete it.")
        database.execute("DELETE FROM groups WHERE group_id = ?", (name,))
        database.execute("DELETE FROM offsets WHERE group_id = ?", (name,))


def decoded(name: str, content: str) -> Group:
    """The group in a row; CorruptLogError when it is none."""
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
