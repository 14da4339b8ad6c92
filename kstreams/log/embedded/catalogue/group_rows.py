"""What the catalogue keeps of the members of groups: each group is one row, changed as a whole."""

from __future__ import annotations

import sqlite3

import msgspec

from kstreams.errors import CorruptLogError, LogError
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.groups.group import Group, GroupState


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
