"""`Catalogue`: the SQLite database that all processes of a log share, with its rows of topics and of groups."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kstreams.errors import CorruptLogError, LogError, TopicExistsError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata, TopicDescription
from kstreams.log.embedded.catalogue.journaled_database import (
    DAMAGE,
    DATABASE,
    Decide,
    JournaledDatabase,
    choose_copy,
    is_transient,
)
from kstreams.log.embedded.catalogue.rows import Row, topic_config
from kstreams.log.embedded.disk import Disk
from kstreams.log.groups.group import Group, GroupState, check_commit
from kstreams.log.naming import check_more_partitions, did_you_mean
from kstreams.os.forks import hold_while_forking, of_one_process
from kstreams.os.private import make_folder

Rows = list[tuple[Any, ...]]

HELD_BY_ANOTHER = (
    " Another process keeps it locked for long: if a process that uses this log is suspended (by a signal or a "
    "debugger), resume or end it."
)


class Topic(NamedTuple):
    """A topic; its id distinguishes it from an earlier topic of the same name."""

    id: int
    name: str
    partitions: int
    config: dict[str, str]

    def describe(self) -> TopicDescription:
        """Return the topic as the API describes it."""
        return TopicDescription(self.name, self.partitions, dict(self.config))

    def require(self, partition: int) -> None:
        """Raise UnknownTopicError for a partition that the topic does not have."""
        if not 0 <= partition < self.partitions:
            raise UnknownTopicError(
                f"The topic {self.name!r} has the partitions 0 to {self.partitions - 1}, not {partition}."
            )


class Catalogue:
    """An open catalogue, which threads of a process may share; not usable in a forked child.

    Parameters
    ----------
    folder : Path
        The log's folder; created if it does not exist.
    durability : {"none", "os", "fsync"}
    disk : Disk
        Writes the journal.
    decide : callable
        Chooses the complete copy of the catalogue if the copies differ; `choose_copy_with_loss` accepts a loss.

    Raises
    ------
    LogFormatError
        When a newer kstreams wrote it.
    CorruptLogError
        When it is damaged so that no copy is certain to have all commits.
    """

    def __init__(self, folder: Path, durability: str, disk: Disk, decide: Decide = choose_copy) -> None:
        self.path = folder / DATABASE
        self._mutex = threading.RLock()
        make_folder(folder)
        with self._errors():
            self._database = JournaledDatabase(folder, durability, disk, decide)
        of_one_process(self, "This log", LogError)
        hold_while_forking(self, self._mutex)

    @property
    def boot(self) -> bytes:
        """The boot of the machine in which the last change before this opening was made."""
        return self._database.boot

    @property
    def repairs(self) -> list[str]:
        """Descriptions of the repairs since it was opened."""
        return self._database.repairs

    def read(self, sql: str, *values: Any) -> Rows:
        """Return the rows of one query."""
        with self._mutex, self._errors():
            return self._database.connection.execute(sql, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction of the database, which is rolled back after an exception."""
        with self._mutex, self._errors():
            connection = self._database.connection
            database = self._database
            state = None
            try:
                state = database.begin()
                yield connection
                database.commit(state)
            except BaseException:
                if connection.in_transaction:
                    database.roll_back(state)
                raise

    def newest_id(self, table: str) -> int:
        """Return the greatest id that a row of the table ever had."""
        rows = self.read("SELECT value FROM marks WHERE name = ?", f"last of {table}")
        return int(rows[0][0]) if rows else 0

    def raise_id(self, table: str, least: int) -> None:
        """Let new rows of a table have ids above `least`."""
        with self.write() as database:
            sql = "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
            database.execute(sql, (f"last of {table}", least))

    def close(self) -> None:
        """Close the database."""
        with self._mutex:
            self._database.close()

    def topics(self) -> dict[str, Topic]:
        """Return all topics by name."""
        rows = self.read("SELECT id, name, partitions, config FROM topics ORDER BY name")
        return {row[1]: self._topic(row) for row in rows}

    def topic(self, name: str) -> Topic:
        """Return a topic; UnknownTopicError names the nearest known topic."""
        rows = self.read("SELECT id, name, partitions, config FROM topics WHERE name = ?", name)
        if not rows:
            hint = did_you_mean(name, [row[0] for row in self.read("SELECT name FROM topics")])
            raise UnknownTopicError(f"There is no topic {name!r} in {self.path.parent}.{hint} Create it first.")
        return self._topic(rows[0])

    def _topic(self, row: Row) -> Topic:
        return Topic(row[0], row[1], row[2], topic_config(row, str(self.path)))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            hint = HELD_BY_ANOTHER if is_transient(error) else ""
            raise LogError(f"The catalogue {self.path} cannot be used: {error}.{hint}") from error
        except DAMAGE as error:
            raise CorruptLogError(
                f"The catalogue {self.path} is damaged: {error}. Stop all processes that use the log and start them "
                "again; the first one rebuilds it from its journal."
            ) from error


@contextmanager
def insert_topic(catalogue: Catalogue, name: str, partitions: int, config: dict[str, str]) -> Iterator[Topic]:
    """Insert a topic; the caller creates its folders in the block, after which others see the topic."""
    with catalogue.write() as database:
        try:
            topic = Topic(next_id(database, "topics"), name, partitions, config)
            database.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", (*topic[:3], json.dumps(config)))
        except sqlite3.IntegrityError:
            raise TopicExistsError(f"The topic {name!r} exists already.") from None
        yield topic


@contextmanager
def grow_topic(catalogue: Catalogue, name: str, total: int) -> Iterator[Topic]:
    """Add partitions to a topic; the caller creates their folders in the block, after which others see them.

    Yields the topic as it was.
    """
    with catalogue.write() as database:
        topic = catalogue.topic(name)
        check_more_partitions(name, topic.partitions, total)
        database.execute("UPDATE topics SET partitions = ? WHERE id = ?", (total, topic.id))
        yield topic


def next_id(database: sqlite3.Connection, table: str) -> int:
    """Return an id that no row of the table ever had."""
    name = f"last of {table}"
    sql = "INSERT INTO marks VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
    database.execute(sql, (name,))
    return int(database.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()[0])


def update_config(database: sqlite3.Connection, topic: Topic, config: dict[str, str]) -> None:
    """Change the settings of a topic."""
    database.execute("UPDATE topics SET config = ? WHERE id = ?", (json.dumps(config), topic.id))


def delete_topic(catalogue: Catalogue, topic: Topic) -> None:
    """Delete a topic, with the offsets that groups have committed for it."""
    with catalogue.write() as database:
        database.execute("DELETE FROM topics WHERE id = ?", (topic.id,))
        database.execute("DELETE FROM offsets WHERE topic = ?", (topic.name,))
        database.execute("DELETE FROM transaction_partitions WHERE topic_id = ?", (topic.id,))


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


def read_quotas(catalogue: Catalogue) -> dict[str, dict[str, float]]:
    """Return the quotas by client id; those of the client id `""` are the default."""
    quotas: dict[str, dict[str, float]] = {}
    for client_id, name, rate in catalogue.read("SELECT client_id, name, rate FROM quotas ORDER BY client_id, name"):
        quotas.setdefault(client_id, {})[name] = rate
    return quotas


def read_quota(catalogue: Catalogue, client_id: str, name: str) -> int:
    """Return a quota of a client id, or else the default; 0 if there is none."""
    sql = "SELECT rate FROM quotas WHERE name = ? AND client_id IN (?, '') ORDER BY client_id DESC LIMIT 1"
    rows = catalogue.read(sql, name, client_id)
    return int(rows[0][0]) if rows else 0


def store_quotas(catalogue: Catalogue, client_id: str, quotas: Mapping[str, int | None]) -> None:
    """Set quotas of a client id, and remove those that are None."""
    with catalogue.write() as database:
        for name, rate in quotas.items():
            database.execute("DELETE FROM quotas WHERE client_id = ? AND name = ?", (client_id, name))
            if rate is not None:
                database.execute("INSERT INTO quotas VALUES (?, ?, ?)", (client_id, name, rate))


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
    return {source: offsets[source] for source in partitions if source in offsets}
