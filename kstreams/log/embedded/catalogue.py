"""The catalogue: one SQLite database that all processes of a log share, and the topics in it."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.errors import CorruptLogError, LogError, LogFormatError, TopicExistsError, UnknownTopicError
from kstreams.log.api import TopicDescription
from kstreams.log.embedded.disk import create_file, create_folder
from kstreams.log.naming import did_you_mean

VERSION = 1
_WAIT_S = 60.0
_SCHEMA = """
CREATE TABLE topics (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL, config TEXT NOT NULL);
CREATE TABLE offsets (group_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL,
    next_offset INTEGER NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (group_id, topic, partition)) WITHOUT ROWID;
CREATE TABLE producers (id INTEGER PRIMARY KEY AUTOINCREMENT, transactional_id TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL);
CREATE TABLE transactions (id INTEGER PRIMARY KEY, producer_id INTEGER NOT NULL, epoch INTEGER NOT NULL,
    state TEXT NOT NULL, expires_ms INTEGER NOT NULL);
CREATE INDEX open_transactions ON transactions (state, producer_id) WHERE state = 'open';
CREATE TABLE transaction_partitions (transaction_id INTEGER NOT NULL, topic_id INTEGER NOT NULL,
    partition INTEGER NOT NULL, first_offset INTEGER NOT NULL,
    PRIMARY KEY (transaction_id, topic_id, partition)) WITHOUT ROWID;
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
# FULL syncs the database at every commit, NORMAL never loses its integrity, OFF promises nothing after a power cut.
_SYNCHRONOUS = {"fsync": "FULL", "os": "NORMAL", "none": "OFF"}

Rows = list[tuple[Any, ...]]


class Topic(NamedTuple):
    """A topic with the number that tells it from an earlier one of the same name."""

    id: int
    name: str
    partitions: int
    config: dict[str, str]

    def describe(self) -> TopicDescription:
        """The topic as the API shows it."""
        return TopicDescription(self.name, self.partitions, dict(self.config))


class Catalogue:
    """An open catalogue; may be shared by the threads of a process, and survives a fork by opening anew.

    Parameters
    ----------
    folder : Path
        The log's folder; made if it is not there.
    durability : {"none", "os", "fsync"}

    Raises
    ------
    LogFormatError
        When a newer kstreams wrote it.
    """

    def __init__(self, folder: Path, durability: str) -> None:
        self.path = folder / "catalogue.sqlite"
        self._synchronous = _SYNCHRONOUS[durability]
        self._mutex = threading.RLock()
        create_folder(folder)
        self._connection = self._open()

    def read(self, sql: str, *values: Any) -> Rows:
        """The rows of one query."""
        with self._mutex, self._errors():
            return self._mine().execute(sql, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of what is done in it, or nothing."""
        with self._mutex, self._errors():
            connection = self._mine()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Release the database."""
        with self._mutex:
            self._connection.close()

    def topics(self) -> dict[str, Topic]:
        """All topics by name."""
        rows = self.read("SELECT id, name, partitions, config FROM topics ORDER BY name")
        return {row[1]: Topic(row[0], row[1], row[2], json.loads(row[3])) for row in rows}

    def topic(self, name: str) -> Topic:
        """The topic of that name; UnknownTopicError names the nearest there is."""
        rows = self.read("SELECT id, name, partitions, config FROM topics WHERE name = ?", name)
        if not rows:
            hint = did_you_mean(name, [row[0] for row in self.read("SELECT name FROM topics")])
            raise UnknownTopicError(f"There is no topic {name!r} in {self.path.parent}.{hint} Create it first.")
        return Topic(rows[0][0], rows[0][1], rows[0][2], json.loads(rows[0][3]))

    def _open(self) -> sqlite3.Connection:
        self._pid = os.getpid()
        with self._errors():
            if not self.path.exists() or self.path.stat().st_size == 0:
                self._create()
            connection = self._connect()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                connection.close()
                self._create()
                return self._open()
            if version > VERSION:
                connection.close()
                raise LogFormatError(
                    f"{self.path.parent} has format {version}, this kstreams reads up to {VERSION}. Upgrade kstreams."
                )
            return connection

    def _connect(self) -> sqlite3.Connection:
        os.close(create_file(self.path))  # SQLite gives its side files the mode of the database
        connection = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        return connection

    def _create(self) -> None:
        # Turning a database to WAL is not covered by SQLite's busy timeout, so only one process may do it.
        fd = create_file(self.path.with_name("lock"))
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            connection = self._connect()
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            connection.close()
        finally:
            os.close(fd)

    def _mine(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            self._connection = self._open()
        return self._connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise LogError(f"The catalogue {self.path} cannot be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise CorruptLogError(f"The catalogue {self.path} is damaged: {error}.") from error


@contextmanager
def insert_topic(catalogue: Catalogue, name: str, partitions: int, config: dict[str, str]) -> Iterator[Topic]:
    """Insert a topic; it is there for others when the caller has made its folders and the block ends."""
    with catalogue.write() as database:
        try:
            cursor = database.execute(
                "INSERT INTO topics (name, partitions, config) VALUES (?, ?, ?)", (name, partitions, json.dumps(config))
            )
        except sqlite3.IntegrityError:
            raise TopicExistsError(f"The topic {name!r} is there already.") from None
        yield Topic(int(cursor.lastrowid or 0), name, partitions, config)


def update_config(database: sqlite3.Connection, topic: Topic, config: dict[str, str]) -> None:
    """Give a topic other settings."""
    database.execute("UPDATE topics SET config = ? WHERE id = ?", (json.dumps(config), topic.id))


def delete_topic(catalogue: Catalogue, topic: Topic) -> None:
    """Take a topic out, with the offsets that groups committed for it."""
    with catalogue.write() as database:
        database.execute("DELETE FROM topics WHERE id = ?", (topic.id,))
        database.execute("DELETE FROM offsets WHERE topic = ?", (topic.name,))
        database.execute("DELETE FROM transaction_partitions WHERE topic_id = ?", (topic.id,))
