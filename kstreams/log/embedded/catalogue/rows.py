"""The tables of the catalogue as plain rows, changes of rows, and the checksum of all rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, get_args

import google_crc32c
import msgspec

from kstreams.errors import ConfigError, CorruptLogError
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import QUOTAS
from kstreams.log.naming import check_topic_name
from kstreams.schemas.compatibility.rules import RULES
from kstreams.schemas.registry import SchemaReference, SchemaType

Row = tuple[Any, ...]
Tables = dict[str, dict[Row, Row]]  # by table and key
MOST_PARTITIONS = 10_000
VERSION = 5

SCHEMA = {
    "topics": "CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
    "partitions INTEGER NOT NULL, config TEXT NOT NULL)",
    "offsets": "CREATE TABLE offsets (group_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, "
    "next_offset INTEGER NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (group_id, topic, partition)) WITHOUT ROWID",
    "groups": "CREATE TABLE groups (group_id TEXT PRIMARY KEY, version INTEGER NOT NULL, content TEXT NOT NULL) "
    "WITHOUT ROWID",
    "producers": "CREATE TABLE producers (id INTEGER PRIMARY KEY, transactional_id TEXT NOT NULL UNIQUE, "
    "epoch INTEGER NOT NULL)",
    "transactions": "CREATE TABLE transactions (id INTEGER PRIMARY KEY, producer_id INTEGER NOT NULL, "
    "epoch INTEGER NOT NULL, state TEXT NOT NULL, expires_ms INTEGER NOT NULL)",
    "open_transactions": "CREATE INDEX open_transactions ON transactions (state, producer_id) WHERE state = 'open'",
    "transaction_partitions": "CREATE TABLE transaction_partitions (transaction_id INTEGER NOT NULL, "
    "topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, first_offset INTEGER NOT NULL, "
    "PRIMARY KEY (transaction_id, topic_id, partition)) WITHOUT ROWID",
    "schemas": "CREATE TABLE schemas (id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, type TEXT NOT NULL, "
    "text TEXT NOT NULL, refs TEXT NOT NULL)",
    "schema_versions": "CREATE TABLE schema_versions (subject TEXT NOT NULL, version INTEGER NOT NULL, "
    "schema_id INTEGER NOT NULL, deleted INTEGER NOT NULL, PRIMARY KEY (subject, version)) WITHOUT ROWID",
    "schema_rules": "CREATE TABLE schema_rules (subject TEXT PRIMARY KEY, rule TEXT NOT NULL) WITHOUT ROWID",
    "quotas": "CREATE TABLE quotas (client_id TEXT NOT NULL, name TEXT NOT NULL, rate INTEGER NOT NULL, "
    "PRIMARY KEY (client_id, name)) WITHOUT ROWID",
    "marks": "CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "seal": "CREATE TABLE seal (one INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, position INTEGER NOT NULL, "
    "mark INTEGER NOT NULL)",
}


class TableColumns(NamedTuple):
    """The columns of a table in the journal; the first `key` columns are its key."""

    columns: tuple[str, ...]
    key: int


TABLES = {
    "topics": TableColumns(("id", "name", "partitions", "config"), 1),
    "offsets": TableColumns(("group_id", "topic", "partition", "next_offset", "metadata"), 3),
    "groups": TableColumns(("group_id", "version", "content"), 1),
    "producers": TableColumns(("id", "transactional_id", "epoch"), 1),
    "transactions": TableColumns(("id", "producer_id", "epoch", "state", "expires_ms"), 1),
    "transaction_partitions": TableColumns(("transaction_id", "topic_id", "partition", "first_offset"), 3),
    "schemas": TableColumns(("id", "guid", "type", "text", "refs"), 1),
    "schema_versions": TableColumns(("subject", "version", "schema_id", "deleted"), 2),
    "schema_rules": TableColumns(("subject", "rule"), 1),
    "quotas": TableColumns(("client_id", "name", "rate"), 2),
    "marks": TableColumns(("name", "value"), 1),
}
# the format version of each later table
_SINCE = {"groups": 3, "schemas": 4, "schema_versions": 4, "schema_rules": 4, "quotas": 5}
OLDEST_JOURNALED = 2
_encode = msgspec.json.Encoder().encode
_TEXTS = {
    "name", "config", "group_id", "topic", "metadata", "transactional_id", "state", "content",
    "guid", "type", "text", "refs", "subject", "rule", "client_id",
}  # fmt: skip


class RowChange(NamedTuple):
    """A row before and after a change; None before an insert or after a delete."""

    table: str
    old: Row | None
    new: Row | None


class DatabaseState(NamedTuple):
    """The row of the table `seal`: the last change of the database, and the checksum of all rows."""

    sequence: int
    position: int  # size of the journal after that change
    checksum: int


def empty_tables() -> Tables:
    """Return the tables of a new catalogue."""
    return {table: {} for table in TABLES}


def create_tables(database: sqlite3.Connection) -> None:
    """Create the tables in an empty database."""
    database.execute("PRAGMA journal_mode = WAL")
    database.executescript(f"BEGIN; {'; '.join(SCHEMA.values())}; PRAGMA user_version = {VERSION}; COMMIT;")


def add_tables(database: sqlite3.Connection) -> None:
    """Upgrade a database of an older format that has a journal; may be repeated."""
    for name in _SINCE:
        database.execute(SCHEMA[name].replace("TABLE", "TABLE IF NOT EXISTS", 1))
    database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("PRAGMA journal_mode = WAL")


def schema_of(version: int) -> dict[str, str]:
    """Return the tables of a format that has a journal."""
    return {name: sql for name, sql in SCHEMA.items() if _SINCE.get(name, OLDEST_JOURNALED) <= version}


def read_tables(database: sqlite3.Connection) -> Tables:
    """Return all rows of a database; tables that its format does not have are empty."""
    existing = {name for (name,) in database.execute("SELECT name FROM main.sqlite_master")}
    return {
        name: {row[: table.key]: row for row in database.execute(f"SELECT {', '.join(table.columns)} FROM main.{name}")}
        if name in existing
        else {}
        for name, table in TABLES.items()
    }


def write_tables(database: sqlite3.Connection, tables: Tables) -> None:
    """Replace all rows of a database, in a transaction."""
    for name, table in TABLES.items():
        database.execute(f"DELETE FROM main.{name}")
        parameters = ", ".join("?" * len(table.columns))
        database.executemany(f"INSERT INTO main.{name} VALUES ({parameters})", list(tables[name].values()))


def read_state(database: sqlite3.Connection) -> DatabaseState | None:
    """Return the state in the table `seal`; None if the table is empty."""
    row = database.execute("SELECT sequence, position, mark FROM seal").fetchone()
    return None if row is None else DatabaseState(*row)


def write_state(database: sqlite3.Connection, state: DatabaseState) -> None:
    """Store the state in the table `seal`."""
    sql = "INSERT INTO seal VALUES (1, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET sequence = ?, position = ?, mark = ?"
    database.execute(sql, state + state)


def state_of(tables: Tables, sequence: int, position: int) -> DatabaseState:
    """Return the state of a database with these rows."""
    total = sum(_row_checksum(name, row) for name, rows in tables.items() for row in rows.values())
    return _signed(total, sequence, position)


def next_state(state: DatabaseState, changes: Iterable[RowChange], size: int) -> DatabaseState:
    """Return the state after changes whose journal record has `size` bytes."""
    total = state.checksum - _row_checksum("seal", state[:2])
    for table, old, new in changes:
        total -= 0 if old is None else _row_checksum(table, old)
        total += 0 if new is None else _row_checksum(table, new)
    return _signed(total, state.sequence + 1, state.position + size)


def _signed(total: int, sequence: int, position: int) -> DatabaseState:
    return DatabaseState(sequence, position, (total + _row_checksum("seal", (sequence, position))) % 2**63)


def _row_checksum(table: str, row: Row) -> int:
    return int(google_crc32c.value(_encode((table, row))))


def record_changes(database: sqlite3.Connection, on_change: Callable[[RowChange], None]) -> None:
    """Call `on_change` for every change of a row, by any statement."""

    def changed(table: str, kind: str, *values: Any) -> None:
        middle = len(TABLES[table].columns)
        if kind == "insert":
            on_change(RowChange(table, None, values))
        elif kind == "delete":
            on_change(RowChange(table, values, None))
        else:
            on_change(RowChange(table, values[:middle], values[middle:]))

    database.create_function("changed", -1, changed)
    database.execute("PRAGMA recursive_triggers = ON")  # otherwise REPLACE deletes rows without a trigger
    for statement in _triggers():
        database.execute(statement)


def _triggers() -> Iterator[str]:
    for name, table in TABLES.items():
        old = ", ".join(f"OLD.{column}" for column in table.columns)
        new = ", ".join(f"NEW.{column}" for column in table.columns)
        for kind, values in ("insert", new), ("update", f"{old}, {new}"), ("delete", old):
            yield (
                f"CREATE TEMP TRIGGER {name}_{kind} AFTER {kind} ON main.{name} "
                f"BEGIN SELECT changed('{name}', '{kind}', {values}); END"
            )


def check_tables(tables: Tables, path: str) -> None:
    """Raise for impossible rows: a column of another type, a negative number, or a topic that the API would refuse.

    Raises
    ------
    CorruptLogError
    """
    for name, rows in tables.items():
        for row in rows.values():
            for column, value in zip(TABLES[name].columns, row, strict=True):
                is_valid = type(value) is str if column in _TEXTS else type(value) is int and 0 <= value < 2**63
                if not is_valid:
                    raise _impossible(path, f"{column} {value!r} in {name}")
    for row in tables["topics"].values():
        topic_config(row, path)
    _check_schemas(tables, path)
    for client, name, rate in tables["quotas"].values():
        if name not in QUOTAS or rate < 1:
            raise _impossible(path, f"the quota {name!r} of {rate} bytes per second of the client {client!r}")


def _check_schemas(tables: Tables, path: str) -> None:
    for _, _, kind, _, references in tables["schemas"].values():
        if kind not in get_args(SchemaType) or not _are_references(references):
            raise _impossible(path, f"a schema of the type {kind!r} with the references {references[:60]!r}")
    for subject, rule in tables["schema_rules"].values():
        if rule not in RULES:
            raise _impossible(path, f"the rule of compatibility {rule!r} of the subject {subject!r}")


def topic_config(row: Row, path: str) -> dict[str, str]:
    """Return the settings in a row of `topics`; CorruptLogError for an impossible row."""
    _, name, partitions, config = row
    try:
        check_topic_name(name)
        read = json.loads(config)
    except (ConfigError, TypeError, ValueError, RecursionError):
        raise _impossible(path, f"the topic {name!r} with the configuration {str(config)[:60]!r}") from None
    if type(partitions) is not int or not 1 <= partitions <= MOST_PARTITIONS:
        raise _impossible(path, f"the topic {name!r} with {partitions} partitions (there are 1 to {MOST_PARTITIONS})")
    if type(read) is not dict or not all(type(value) is str for value in read.values()):
        raise _impossible(path, f"the topic {name!r} with the configuration {config[:60]!r}")
    return read


def _are_references(text: str) -> bool:
    try:
        decode_json(text.encode(), list[SchemaReference])
    except msgspec.MsgspecError:
        return False
    return True


def _impossible(path: str, content: str) -> CorruptLogError:
    return CorruptLogError(
        f"The catalogue {path} is damaged: it holds {content}. Put back a copy of catalogue.sqlite and "
        "catalogue.journal from before."
    )
