"""A catalogue of format 1, which had no journal: it is upgraded, or refused when it holds what cannot be."""

import sqlite3
from pathlib import Path

import pytest

from kstreams.errors import CorruptLogError
from kstreams.log import open_log, verify
from tests.log.embedded.killed_log import copy, state

FORMAT_1 = """
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
PRAGMA user_version = 1;
"""


def in_format_1(killed: Path, folder: Path, *changes: str) -> Path:
    """The log as a kstreams without a journal wrote it."""
    copy(killed, folder)
    state(folder)
    database = sqlite3.connect(folder / "catalogue.sqlite")
    tables = ("topics", "offsets", "producers", "transactions", "transaction_partitions", "marks")
    rows = {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in tables}
    database.close()
    for path in folder.glob("catalogue.*"):
        path.unlink()
    old = sqlite3.connect(folder / "catalogue.sqlite")
    old.execute("PRAGMA journal_mode = WAL")
    old.executescript(FORMAT_1)
    with old:
        for table, held in rows.items():
            for row in held:
                if "last of" not in str(row):
                    old.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        old.execute("UPDATE sqlite_sequence SET seq = 2 WHERE name = 'topics'")
        for change in changes:
            old.execute(change)
    old.close()
    return folder


def test_a_log_of_format_1_is_upgraded_when_it_is_opened(killed_before_schemas: Path, tmp_path: Path) -> None:
    whole = state(copy(killed_before_schemas, tmp_path / "whole"))
    folder = in_format_1(killed_before_schemas, tmp_path / "log")
    assert verify(folder) == []
    assert state(folder) == whole
    assert verify(folder) == []
    with open_log(folder) as log:
        log.admin().create_topic("next")
    assert (folder / "topics" / "next@3").is_dir()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE topics SET partitions = 1000000000",
        "UPDATE topics SET partitions = -1",
        "UPDATE topics SET config = '{'",
        "UPDATE topics SET config = '[1]'",
        f"UPDATE topics SET config = '{'[' * 100_000}'",
        "UPDATE topics SET name = '../../outside'",
        "UPDATE offsets SET next_offset = -5",
        "UPDATE offsets SET next_offset = 'x'",
        "UPDATE producers SET epoch = -1",
    ],
)
def test_what_cannot_be_is_one_clear_error_at_once(killed_before_schemas: Path, tmp_path: Path, change: str) -> None:
    folder = in_format_1(killed_before_schemas, tmp_path / "log", change)
    assert verify(folder) != []
    with pytest.raises(CorruptLogError, match="holds"):
        open_log(folder)
