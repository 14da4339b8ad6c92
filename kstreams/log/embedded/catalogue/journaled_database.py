"""The catalogue's two copies, kept the same: every change goes to the journal, then to the database.

A process may die between the two: the journal has a change that the database lacks. Whoever opens the catalogue or
writes to it next takes it over, so that a change is either in both copies or in none.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from kstreams.errors import CorruptLogError, LogError, LogFormatError
from kstreams.log.embedded.catalogue.journal import NAME, Journal, JournalContents, encode_record, read_journal
from kstreams.log.embedded.catalogue.reconciliation import (
    DAMAGE,
    AuthoritativeCopy,
    DatabaseContents,
    choose_copy,
    is_passing,
    read_contents,
)
from kstreams.log.embedded.catalogue.rows import (
    OLDEST_JOURNALED,
    TABLES,
    VERSION,
    DatabaseState,
    RowChange,
    Tables,
    add_tables,
    check_tables,
    create_tables,
    empty,
    next_state,
    read_state,
    read_tables,
    record_changes,
    state_of,
    write_state,
    write_tables,
)
from kstreams.log.embedded.disk import Disk, FolderLock, create_file, refuse_links

DATABASE = "catalogue.sqlite"
Decide = Callable[[Path, JournalContents | None, DatabaseContents | None], AuthoritativeCopy]

_WAIT_S = 60.0
_SIDE_FILES = ("-wal", "-shm")
_JOURNAL_BYTES = 256 * 1024
# The journal is what survives a power failure, so the database is never synced for a commit.
_SYNCHRONOUS = {"fsync": "NORMAL", "os": "NORMAL", "none": "OFF"}
_logger = logging.getLogger("kstreams.log")


def holds_log(folder: Path) -> bool:
    """Whether a folder holds a copy of a catalogue."""
    return (folder / DATABASE).exists() or (folder / NAME).exists()


def existing_log(folder: str | Path) -> Path:
    """The folder of a log that is there; LogError when it holds neither copy of a catalogue."""
    root = Path(folder)
    if not holds_log(root):
        raise LogError(f"{root} holds no log: there is no {DATABASE} in it.")
    return root


class JournaledDatabase:
    """Database and journal of an open catalogue.

    Parameters
    ----------
    folder : Path
        The log's folder.
    durability : {"none", "os", "fsync"}
    disk : Disk
        What writes the journal.
    decide : callable
        Which copy is complete where they differ: `choose_copy`, or `salvage` for who accepts a loss.

    Attributes
    ----------
    connection : sqlite3.Connection
    boot : bytes
        The machine's boot in which the last change was written before this opening.
    repairs : list of str
        What was repaired, in words.

    Raises
    ------
    CorruptLogError, LogFormatError
    """

    def __init__(self, folder: Path, durability: str, disk: Disk, decide: Decide = choose_copy) -> None:
        self._folder = folder
        self._durability = durability
        self._decide = decide
        self._path = folder / DATABASE
        self._journal = Journal(folder, disk, durability)
        self._changes: list[RowChange] = []
        self.repairs: list[str] = []
        refuse_links(self._path, *self._side_files())
        self._folder_lock = FolderLock(folder)
        with self._folder_lock.opening() as alone:
            self._prepare()
            self.connection, self.boot = self._agree(alone)
        self._tune(self.connection)
        record_changes(self.connection, self._changes.append)

    def begin(self) -> DatabaseState:
        """Take the database's write lock; what a dead writer left is taken over first."""
        self.connection.execute("BEGIN IMMEDIATE")
        state = read_state(self.connection)
        if state is None or self._journal.size() != state.position:
            state = self._synchronized(state)
        if state.position > max(_JOURNAL_BYTES, 4 * self._journal.first_size):
            state = self._shorten(state)
        self._changes.clear()
        return state

    def commit(self, state: DatabaseState) -> None:
        """Make what changed since `begin` visible to all."""
        if self._changes:
            record = encode_record(state.sequence + 1, self._changes)
            write_state(self.connection, next_state(state, self._changes, len(record)))
            try:
                self._journal.append(record, state.position)
            except OSError as error:
                raise LogError(
                    f"Could not write {self._journal.path}: {error.strerror}. Nothing was committed; free some space "
                    "or check the disk."
                ) from error
        self.connection.execute("COMMIT")

    def roll_back(self, state: DatabaseState | None) -> None:
        """Undo what changed since `begin`."""
        try:
            if state is not None and self._journal.size() > state.position:
                self._journal.cut(state.position)
        finally:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Release the files."""
        self.connection.close()
        self._journal.close()
        self._folder_lock.close()

    def _prepare(self) -> None:
        """Begin the journal of a new catalogue."""
        if self._journal.exists() or (self._path.exists() and self._path.stat().st_size > 0):
            return
        if any((self._folder / "topics").glob("*@*")):
            raise CorruptLogError(
                f"{self._folder} holds topics but no catalogue: put back {DATABASE} and {self._journal.path.name} "
                "from a backup, or choose another folder for a new log."
            )
        self._journal.replace(1, empty())

    def _upgrade(self, database: sqlite3.Connection) -> None:
        """Begin the journal of a catalogue from before there were journals, and add what came later."""
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version == 1:
                _leave_wal(database, self._folder)
                self._journal.replace(1, _tables_of_format_1(database, str(self._path)))
            elif OLDEST_JOURNALED <= version < VERSION:
                _leave_wal(database, self._folder)
                add_tables(database)
        except DAMAGE as error:
            if is_passing(error) or not self._journal.exists():
                raise
            return
        if version > VERSION:
            raise LogFormatError(
                f"{self._folder} has format {version}, this kstreams reads up to {VERSION}. Upgrade kstreams; if "
                f"nothing newer ever wrote it, it is damaged: `kstreams log repair --log-dir {self._folder}`."
            )

    def _agree(self, alone: bool) -> tuple[sqlite3.Connection, bytes]:
        """An open database that is the same as the journal."""
        database = self._connect()
        try:
            self._upgrade(database)
            contents = _locked_contents(database)
            journal = self._read_journal()
            authority = self._decide(self._folder, journal, contents)
            if contents is None:
                database.close()
                database = self._recreated(alone)
            self._copy_from(database, authority, journal, contents)
            check_tables(read_tables(database), str(self._path))
            database.execute("COMMIT")
            return database, b"" if journal is None else journal.boot
        except BaseException:
            database.close()
            raise

    def _synchronized(self, state: DatabaseState | None) -> DatabaseState:
        self._journal.reopen()
        if state is None or self._journal.size() != state.position:
            contents = read_contents(self.connection)
            journal = self._read_journal()
            authority = self._decide(self._folder, journal, contents)
            if contents is None:
                raise self._in_use()
            self._copy_from(self.connection, authority, journal, contents)
        state = read_state(self.connection)
        assert state is not None
        return state

    def _copy_from(
        self,
        database: sqlite3.Connection,
        authority: AuthoritativeCopy,
        journal: JournalContents | None,
        contents: DatabaseContents | None,
    ) -> None:
        """Make the other copy equal to the one that is complete."""
        if authority is AuthoritativeCopy.JOURNAL:
            assert journal is not None
            assert journal.tables is not None
            if journal.sequence > 1:
                state = "was damaged" if contents is None else f"ended with change {contents.state.sequence}"
                self._report(f"{self._path} {state}: taken from its journal, up to change {journal.sequence}")
            self._journal.cut(journal.end)
            write_tables(database, journal.tables)
            write_state(database, state_of(journal.tables, journal.sequence, journal.end))
        elif authority is AuthoritativeCopy.DATABASE:
            assert contents is not None
            lost = "was missing" if journal is None else f"ended with change {journal.sequence}"
            self._report(f"{self._journal.path} {lost}: written anew from {DATABASE}, change {contents.state.sequence}")
            size = self._journal.replace(contents.state.sequence, contents.tables)
            write_state(database, state_of(contents.tables, contents.state.sequence, size))

    def _report(self, sentence: str) -> None:
        self.repairs.append(sentence)
        _logger.warning("%s", sentence)

    def _shorten(self, state: DatabaseState) -> DatabaseState:
        """Begin the journal anew, which holds far more changes than there are rows."""
        tables = read_tables(self.connection)
        if state != state_of(tables, state.sequence, state.position):
            raise self._in_use()
        shorter = state_of(tables, state.sequence, self._journal.replace(state.sequence, tables))
        write_state(self.connection, shorter)
        return shorter

    def _read_journal(self) -> JournalContents | None:
        raw = self._journal.read()
        return None if raw is None else read_journal(raw)

    def _connect(self) -> sqlite3.Connection:
        # Never open the database past SQLite: closing such a file releases the locks of the whole process.
        if not self._path.exists():
            os.close(create_file(self._path))  # SQLite gives its side files the mode of the database
        self._path.chmod(0o600)
        return sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)

    def _recreated(self, alone: bool) -> sqlite3.Connection:
        if not alone:
            raise self._in_use()
        for path in (self._path, *self._side_files()):
            path.unlink(missing_ok=True)
        database = self._connect()
        self._tune(database)
        create_tables(database)
        database.execute("BEGIN IMMEDIATE")
        return database

    def _tune(self, database: sqlite3.Connection) -> None:
        database.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")

    def _side_files(self) -> list[Path]:
        return [self._path.with_name(DATABASE + suffix) for suffix in _SIDE_FILES]

    def _in_use(self) -> CorruptLogError:
        return CorruptLogError(
            f"The catalogue {self._path} is damaged while it is in use: stop all processes that use the log and start "
            "them again; the first makes it anew from its journal."
        )


def _locked_contents(database: sqlite3.Connection) -> DatabaseContents | None:
    """What the database holds, under its write lock; None where it cannot even be locked."""
    try:
        database.execute("BEGIN IMMEDIATE")
    except DAMAGE as error:
        if is_passing(error):
            raise
        return None
    return read_contents(database)


def _leave_wal(database: sqlite3.Connection, folder: Path) -> None:
    """Be the only one who has the database open."""
    try:
        database.execute("PRAGMA busy_timeout = 2000")
        database.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError:
        raise LogError(
            f"{folder} was written by an older kstreams that still runs: stop it, so that the log can be upgraded."
        ) from None


def _tables_of_format_1(database: sqlite3.Connection, path: str) -> Tables:
    tables = read_tables(database)
    for name, greatest in database.execute("SELECT name, seq FROM sqlite_sequence"):
        if name in TABLES:
            tables["marks"][(f"last of {name}",)] = (f"last of {name}", greatest)
    check_tables(tables, path)
    return tables
