"""Which of the catalogue's two copies is complete: the database that all read, or the journal written before it."""

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

DAMAGE = (sqlite3.Error, UnicodeDecodeError)  # what SQLite's module raises where bytes are not as it wrote them
_BUSY = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_NOMEM", "SQLITE_PERM"}


class AuthoritativeCopy(Enum):
    """The copy that has all that was committed."""

    SAME = "same"
    JOURNAL = "journal"  # the database lacks changes or is damaged
    DATABASE = "database"  # the journal lacks changes or is damaged


class DatabaseContents(NamedTuple):
    """What a sound database holds."""

    tables: Tables
    state: DatabaseState


def read_contents(database: sqlite3.Connection) -> DatabaseContents | None:
    """What the database holds, or None where a row, an index or the schema is not as it was written."""
    if next(faults(database), None) is not None:
        return None
    state = read_state(database)
    assert state is not None
    return DatabaseContents(read_tables(database), state)


def faults(database: sqlite3.Connection) -> Iterator[str]:
    """What is not as it was written, in words."""
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
        if is_passing(error):
            raise
        yield str(error)


def is_passing(error: Exception) -> bool:
    """Whether an error means that the database is not available now, and nothing about its content."""
    return getattr(error, "sqlite_errorname", "") in _BUSY


def choose_copy(folder: Path, journal: JournalContents | None, contents: DatabaseContents | None) -> AuthoritativeCopy:
    """The copy that has all that was ever committed.

    Raises
    ------
    CorruptLogError
        When neither is sure to.
    """
    if journal is None:
        raise _refusal(folder, f"{NAME} is missing")
    if contents is not None and contents.state.sequence >= journal.newest:
        if (contents.state.sequence, contents.state.position) != (journal.sequence, journal.end) or journal.damage:
            return AuthoritativeCopy.DATABASE
        if contents.tables == journal.tables:
            return AuthoritativeCopy.SAME
        raise _refusal(folder, f"catalogue.sqlite and {NAME} say different things of the same change")
    if journal.is_whole:
        return AuthoritativeCopy.JOURNAL
    state = "is damaged" if contents is None else f"ends with change {contents.state.sequence}"
    raise _refusal(folder, f"{NAME} is damaged at byte {journal.end} ({journal.damage}), and catalogue.sqlite {state}")


def choose_copy_with_loss(
    folder: Path, journal: JournalContents | None, contents: DatabaseContents | None
) -> AuthoritativeCopy:
    """The copy that has more of what was committed, where `choose_copy` finds none that is sure to have all."""
    try:
        return choose_copy(folder, journal, contents)
    except CorruptLogError:
        pass
    if contents is not None and (journal is None or journal.sequence <= contents.state.sequence):
        return AuthoritativeCopy.DATABASE
    if journal is None or journal.tables is None:
        raise CorruptLogError(
            f"Nothing is left of the catalogue of {folder}: put back a copy of catalogue.sqlite and {NAME}."
        )
    return AuthoritativeCopy.JOURNAL


def _refusal(folder: Path, what: str) -> CorruptLogError:
    return CorruptLogError(
        f"The catalogue of {folder} is damaged: {what}. Put back both files from one backup, or run "
        f"`kstreams log repair --log-dir {folder}`, which goes on with what is left and says what that is."
    )
