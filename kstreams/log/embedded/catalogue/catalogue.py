"""The catalogue: one SQLite database that all processes of a log share, and the topics in it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.errors import CorruptLogError, LogError, TopicExistsError, UnknownTopicError
from kstreams.log.api import TopicDescription
from kstreams.log.embedded.catalogue.journaled_database import DATABASE, Decide, JournaledDatabase
from kstreams.log.embedded.catalogue.reconciliation import DAMAGE, choose_copy, is_passing
from kstreams.log.embedded.catalogue.rows import Row, topic_config
from kstreams.log.embedded.disk import Disk
from kstreams.log.naming import check_total, did_you_mean
from kstreams.os.forks import of_one_process, still_while_forking
from kstreams.os.private import make_folder

Rows = list[tuple[Any, ...]]

HELD_BY_ANOTHER = (
    " Another process holds it for long: if one that uses this log stands still (stopped by a signal or a debugger), "
    "let it go on or end it."
)


class Topic(NamedTuple):
    """A topic with the number that distinguishes it from an earlier one of the same name."""

    id: int
    name: str
    partitions: int
    config: dict[str, str]

    def describe(self) -> TopicDescription:
        """The topic as the API shows it."""
        return TopicDescription(self.name, self.partitions, dict(self.config))

    def require(self, partition: int) -> None:
        """Raise UnknownTopicError for a partition that it does not have."""
        if not 0 <= partition < self.partitions:
            raise UnknownTopicError(
                f"The topic {self.name!r} has the partitions 0 to {self.partitions - 1}, not {partition}."
            )


class Catalogue:
    """An open catalogue; may be shared by the threads of a process, and survives a fork by opening anew.

    Parameters
    ----------
    folder : Path
        The log's folder; made if it is not there.
    durability : {"none", "os", "fsync"}
    disk : Disk
        What writes the journal.
    decide : callable
        Which copy of the catalogue is complete where they differ; `salvage` accepts a loss.

    Raises
    ------
    LogFormatError
        When a newer kstreams wrote it.
    CorruptLogError
        When it is damaged so that no copy of it is sure to have all that was committed.
    """

    def __init__(self, folder: Path, durability: str, disk: Disk, decide: Decide = choose_copy) -> None:
        self.path = folder / DATABASE
        self._mutex = threading.RLock()
        make_folder(folder)
        with self._errors():
            self._database = JournaledDatabase(folder, durability, disk, decide)
        of_one_process(self, "This log", LogError)
        still_while_forking(self, self._mutex)

    @property
    def boot(self) -> bytes:
        """The machine's boot in which the last change was made before this opening."""
        return self._database.boot

    @property
    def repairs(self) -> list[str]:
        """What was repaired since it was opened, in words."""
        return self._database.repairs

    def read(self, sql: str, *values: Any) -> Rows:
        """The rows of one query."""
        with self._mutex, self._errors():
            return self._database.connection.execute(sql, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of what is done in it, or nothing."""
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
        """The greatest number that a row of the table ever had."""
        rows = self.read("SELECT value FROM marks WHERE name = ?", f"last of {table}")
        return int(rows[0][0]) if rows else 0

    def raise_id(self, table: str, least: int) -> None:
        """Never give a number up to `least` to a row of the table."""
        with self.write() as database:
            sql = "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
            database.execute(sql, (f"last of {table}", least))

    def close(self) -> None:
        """Release the database."""
        with self._mutex:
            self._database.close()

    def topics(self) -> dict[str, Topic]:
        """All topics by name."""
        rows = self.read("SELECT id, name, partitions, config FROM topics ORDER BY name")
        return {row[1]: self._topic(row) for row in rows}

    def topic(self, name: str) -> Topic:
        """The topic of that name; UnknownTopicError names the nearest there is."""
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
            hint = HELD_BY_ANOTHER if is_passing(error) else ""
            raise LogError(f"The catalogue {self.path} cannot be used: {error}.{hint}") from error
        except DAMAGE as error:
            raise CorruptLogError(
                f"The catalogue {self.path} is damaged: {error}. Stop all processes that use the log and start them "
                "again; the first makes it anew from its journal."
            ) from error


@contextmanager
def insert_topic(catalogue: Catalogue, name: str, partitions: int, config: dict[str, str]) -> Iterator[Topic]:
    """Insert a topic; it is there for others when the caller has made its folders and the block ends."""
    with catalogue.write() as database:
        try:
            topic = Topic(next_id(database, "topics"), name, partitions, config)
            database.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", (*topic[:3], json.dumps(config)))
        except sqlite3.IntegrityError:
            raise TopicExistsError(f"The topic {name!r} is there already.") from None
        yield topic


@contextmanager
def grow_topic(catalogue: Catalogue, name: str, total: int) -> Iterator[Topic]:
    """Give a topic, as it was, more partitions; they are there for others when the caller has made their folders."""
    with catalogue.write() as database:
        topic = catalogue.topic(name)
        check_total(name, topic.partitions, total)
        database.execute("UPDATE topics SET partitions = ? WHERE id = ?", (total, topic.id))
        yield topic


def next_id(database: sqlite3.Connection, table: str) -> int:
    """A number that no row of the table ever had."""
    name = f"last of {table}"
    sql = "INSERT INTO marks VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
    database.execute(sql, (name,))
    return int(database.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()[0])


def update_config(database: sqlite3.Connection, topic: Topic, config: dict[str, str]) -> None:
    """Give a topic other settings."""
    database.execute("UPDATE topics SET config = ? WHERE id = ?", (json.dumps(config), topic.id))


def delete_topic(catalogue: Catalogue, topic: Topic) -> None:
    """Take a topic out, with the offsets that groups committed for it."""
    with catalogue.write() as database:
        database.execute("DELETE FROM topics WHERE id = ?", (topic.id,))
        database.execute("DELETE FROM offsets WHERE topic = ?", (topic.name,))
        database.execute("DELETE FROM transaction_partitions WHERE topic_id = ?", (topic.id,))
