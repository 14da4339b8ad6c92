"""The choice of the complete copy of the catalogue, if database and journal differ after a crash or damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from kstreams.errors import CorruptLogError
from kstreams.log.embedded.catalogue.journal import NAME, JournalContents
from kstreams.log.embedded.catalogue.rows import (
    OLDEST_JOURNALED,
    VERSION,
    DatabaseState,
    Tables,
    read_state,
    read_tables,
    schema_of,
    state_of,
)

DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # errors of the sqlite3 module for a damaged file
_BUSY = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_NOMEM", "SQLITE_PERM"}


class AuthoritativeCopy(Enum):
    """The copy that has all commits."""

    SAME = "same"
    JOURNAL = "journal"  # the database lacks changes or is damaged
    DATABASE = "database"  # the journal lacks changes or is damaged


class DatabaseContents(NamedTuple):
    """The contents of an undamaged database."""

    tables: Tables
    state: DatabaseState


def read_contents(database: sqlite3.Connection) -> DatabaseContents | None:
    """Return the contents of the database; None if a row, an index or the schema is damaged."""
    if next(faults(database), None) is not None:
        return None
    state = read_state(database)
    return None if state is None else DatabaseContents(read_tables(database), state)


def faults(database: sqlite3.Connection) -> Iterator[str]:
    """Yield a description of each damage in the database."""
    try:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if not OLDEST_JOURNALED <= version <= VERSION:
            yield "the format version is not the one that was written"
        rows = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        mode = database.execute("PRAGMA journal_mode").fetchone()[0]
        if dict(rows) != schema_of(version) or mode != "wal":
            yield "the tables are not those that were made"
        yield from (line for (line,) in database.execute("PRAGMA integrity_check") if line != "ok")
        tables = read_tables(database)
        state = read_state(database)
        if state is None or state != state_of(tables, state.sequence, state.position):
            yield "the rows do not have the mark that they were sealed with"
    except DAMAGE as error:
        if is_transient(error):
            raise
        yield str(error)


def is_transient(error: Exception) -> bool:
    """Return whether an error says that the database is not available now, and nothing about its content."""
    return getattr(error, "sqlite_errorname", "") in _BUSY


def choose_copy(folder: Path, journal: JournalContents | None, contents: DatabaseContents | None) -> AuthoritativeCopy:
    """Return the copy that has all commits.

    Raises
    ------
    CorruptLogError
        When neither copy is certain to have all commits.
    """
    if journal is None:
        raise _damage_error(folder, f"{NAME} is missing")
    if contents is not None and contents.state.sequence >= journal.newest:
        if (contents.state.sequence, contents.state.position) != (journal.sequence, journal.end) or journal.damage:
            return AuthoritativeCopy.DATABASE
        if contents.tables == journal.tables:
            return AuthoritativeCopy.SAME
        raise _damage_error(folder, f"catalogue.sqlite and {NAME} differ in the same change")
    if journal.is_whole:
        return AuthoritativeCopy.JOURNAL
    state = "is damaged" if contents is None else f"ends with change {contents.state.sequence}"
    raise _damage_error(
        folder, f"{NAME} is damaged at byte {journal.end} ({journal.damage}), and catalogue.sqlite {state}"
    )


def choose_copy_with_loss(
    folder: Path, journal: JournalContents | None, contents: DatabaseContents | None
) -> AuthoritativeCopy:
    """Return the copy that has more commits, if neither is certain to have all."""
    try:
        return choose_copy(folder, journal, contents)
    except CorruptLogError:
        pass
    if contents is not None and (journal is None or journal.sequence <= contents.state.sequence):
        return AuthoritativeCopy.DATABASE
    if journal is None or journal.tables is None:
        raise CorruptLogError(
            f"Both copies of the catalogue of {folder} are lost: put back a copy of catalogue.sqlite and {NAME}."
        )
    return AuthoritativeCopy.JOURNAL


def _damage_error(folder: Path, damage: str) -> CorruptLogError:
    return CorruptLogError(
        f"The catalogue of {folder} is damaged: {damage}. Put back both files from one backup, or run "
        f"`kstreams log repair --log-dir {folder}`, which keeps the intact part and reports the loss."
    )
