"""`JournaledDatabase`: the two copies of the catalogue. Every change goes to the journal, then to the database.

A process may die between the two, so that the database lacks a change of the journal. The next process that opens the
catalogue or writes to it copies the change to the database.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from kstreams.errors import CorruptLogError, LogError, LogFormatError
from kstreams.log.embedded.catalogue import reconciliation, rows
from kstreams.log.embedded.catalogue.journal import NAME, Journal, JournalContents, encode_record, read_journal
from kstreams.log.embedded.disk import Disk, FolderLock, create_file, refuse_links

DATABASE = "catalogue.sqlite"
Decide = Callable[
    [Path, JournalContents | None, reconciliation.DatabaseContents | None], reconciliation.AuthoritativeCopy
]

_WAIT_S = 60.0
_SIDE_FILES = ("-wal", "-shm")
_JOURNAL_BYTES = 256 * 1024
# The journal survives a power failure, so the database is never synced for a commit.
_SYNCHRONOUS = {"fsync": "NORMAL", "os": "NORMAL", "none": "OFF"}
_logger = logging.getLogger("kstreams.log")


def holds_log(folder: Path) -> bool:
    """Return whether a folder has a copy of a catalogue."""
    return (folder / DATABASE).exists() or (folder / NAME).exists()


def existing_log(folder: str | Path) -> Path:
    """Return the folder of an existing log; LogError if it has no copy of a catalogue."""
    root = Path(folder)
    if not holds_log(root):
        raise LogError(f"{root} holds no log: there is no {DATABASE} in it.")
    return root


class JournaledDatabase:
    """The database and the journal of an open catalogue.

    Parameters
    ----------
    folder : Path
        The log's folder.
    durability : {"none", "os", "fsync"}
    disk : Disk
        Writes the journal.
    decide : callable
        Chooses the complete copy if they differ: `choose_copy`, or `choose_copy_with_loss`.

    Attributes
    ----------
    connection : sqlite3.Connection
    boot : bytes
        The boot of the machine in which the last change before this opening was made.
    repairs : list of str
        Descriptions of the repairs.

    Raises
    ------
    CorruptLogError, LogFormatError
    """

    def __init__(self, folder: Path, durability: str, disk: Disk, decide: Decide = reconciliation.choose_copy) -> None:
        self._folder = folder
        self._durability = durability
        self._decide = decide
        self._path = folder / DATABASE
        self._journal = Journal(folder, disk, durability)
        self._changes: list[rows.RowChange] = []
        self.repairs: list[str] = []
        refuse_links(self._path, *self._side_files())
        self._folder_lock = FolderLock(folder)
        with self._folder_lock.opening() as is_alone:
            self._create_journal()
            self.connection, self.boot = self._open_consistent(is_alone)
        self._set_synchronous(self.connection)
        rows.record_changes(self.connection, self._changes.append)

    def begin(self) -> rows.DatabaseState:
        """Lock the database for writing, and complete the change of a writer that died."""
        self.connection.execute("BEGIN IMMEDIATE")
        state = rows.read_state(self.connection)
        if state is None or self._journal.size() != state.position:
            state = self._resynchronized(state)
        if state.position > max(_JOURNAL_BYTES, 4 * self._journal.first_size):
            state = self._restart_journal(state)
        self._changes.clear()
        return state

    def commit(self, state: rows.DatabaseState) -> None:
        """Commit the changes since `begin`."""
        if self._changes:
            record = encode_record(state.sequence + 1, self._changes)
            rows.write_state(self.connection, rows.next_state(state, self._changes, len(record)))
            try:
                self._journal.append(record, state.position)
            except OSError as error:
                raise LogError(
                    f"Could not write {self._journal.path}: {error.strerror}. Nothing was committed; free some space "
                    "or check the disk."
                ) from error
        self.connection.execute("COMMIT")

    def roll_back(self, state: rows.DatabaseState | None) -> None:
        """Undo the changes since `begin`."""
        try:
            if state is not None and self._journal.size() > state.position:
                self._journal.cut(state.position)
        finally:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the files."""
        self.connection.close()
        self._journal.close()
        self._folder_lock.close()

    def _create_journal(self) -> None:
        """Create the journal of a new catalogue."""
        if self._journal.exists() or (self._path.exists() and self._path.stat().st_size > 0):
            return
        if any((self._folder / "topics").glob("*@*")):
            raise CorruptLogError(
                f"{self._folder} holds topics but no catalogue: put back {DATABASE} and {self._journal.path.name} "
                "from a backup, or choose another folder for a new log."
            )
        self._journal.replace(1, rows.empty())

    def _upgrade(self, database: sqlite3.Connection) -> None:
        """Create the journal of a catalogue of format 1, and add the tables of later formats."""
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version == 1:
                _leave_wal(database, self._folder)
                self._journal.replace(1, _tables_of_format_1(database, str(self._path)))
            elif rows.OLDEST_JOURNALED <= version < rows.VERSION:
                _leave_wal(database, self._folder)
                rows.add_tables(database)
        except reconciliation.DAMAGE as error:
            if reconciliation.is_transient(error) or not self._journal.exists():
                raise
            return
        if version > rows.VERSION:
            raise LogFormatError(
                f"{self._folder} has format {version}, this kstreams reads up to {rows.VERSION}. Upgrade kstreams; if "
                f"nothing newer ever wrote it, it is damaged: `kstreams log repair --log-dir {self._folder}`."
            )

    def _open_consistent(self, is_alone: bool) -> tuple[sqlite3.Connection, bytes]:
        """Open the database, make both copies equal, and return it with the boot of the last change."""
        database = self._connect()
        try:
            self._upgrade(database)
            contents = _locked_contents(database)
            journal = self._read_journal()
            authority = self._decide(self._folder, journal, contents)
            if contents is None:
                database.close()
                database = self._recreate(is_alone)
            self._repair_other_copy(database, authority, journal, contents)
            rows.check_tables(rows.read_tables(database), str(self._path))
            database.execute("COMMIT")
            return database, b"" if journal is None else journal.boot
        except BaseException:
            database.close()
            raise

    def _resynchronized(self, state: rows.DatabaseState | None) -> rows.DatabaseState:
        self._journal.reopen()
        if state is None or self._journal.size() != state.position:
            contents = reconciliation.read_contents(self.connection)
            journal = self._read_journal()
            authority = self._decide(self._folder, journal, contents)
            if contents is None:
                raise self._in_use()
            self._repair_other_copy(self.connection, authority, journal, contents)
        state = rows.read_state(self.connection)
        if state is None:
            raise self._in_use()
        return state

    def _repair_other_copy(
        self,
        database: sqlite3.Connection,
        authority: reconciliation.AuthoritativeCopy,
        journal: JournalContents | None,
        contents: reconciliation.DatabaseContents | None,
    ) -> None:
        """Make the other copy equal to the complete one."""
        if authority is reconciliation.AuthoritativeCopy.SAME:
            return
        if authority is reconciliation.AuthoritativeCopy.JOURNAL and journal is not None and journal.tables is not None:
            if journal.sequence > 1:
                state = "was damaged" if contents is None else f"ended with change {contents.state.sequence}"
                self._log_repair(f"{self._path} {state}: taken from its journal, up to change {journal.sequence}")
            self._journal.cut(journal.end)
            rows.write_tables(database, journal.tables)
            rows.write_state(database, rows.state_of(journal.tables, journal.sequence, journal.end))
        elif contents is not None:
            sequence = contents.state.sequence
            damage = "was missing" if journal is None else f"ended with change {journal.sequence}"
            self._log_repair(f"{self._journal.path} {damage}: rewritten from {DATABASE}, change {sequence}")
            size = self._journal.replace(sequence, contents.tables)
            rows.write_state(database, rows.state_of(contents.tables, sequence, size))
        else:
            raise self._in_use()

    def _log_repair(self, sentence: str) -> None:
        self.repairs.append(sentence)
        _logger.warning("%s", sentence)

    def _restart_journal(self, state: rows.DatabaseState) -> rows.DatabaseState:
        """Replace the journal, which has grown far larger than the rows, by a new one."""
        tables = rows.read_tables(self.connection)
        if state != rows.state_of(tables, state.sequence, state.position):
            raise self._in_use()
        shorter = rows.state_of(tables, state.sequence, self._journal.replace(state.sequence, tables))
        rows.write_state(self.connection, shorter)
        return shorter

    def _read_journal(self) -> JournalContents | None:
        raw = self._journal.read()
        return None if raw is None else read_journal(raw)

    def _connect(self) -> sqlite3.Connection:
        # Never open the database file without SQLite: closing the file would release SQLite's locks of this process.
        if not self._path.exists():
            os.close(create_file(self._path))  # SQLite creates its other files with the mode of the database
        self._path.chmod(0o600)
        return sqlite3.connect(self._path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)

    def _recreate(self, is_alone: bool) -> sqlite3.Connection:
        if not is_alone:
            raise self._in_use()
        for path in (self._path, *self._side_files()):
            path.unlink(missing_ok=True)
        database = self._connect()
        self._set_synchronous(database)
        rows.create_tables(database)
        database.execute("BEGIN IMMEDIATE")
        return database

    def _set_synchronous(self, database: sqlite3.Connection) -> None:
        database.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")

    def _side_files(self) -> list[Path]:
        return [self._path.with_name(DATABASE + suffix) for suffix in _SIDE_FILES]

    def _in_use(self) -> CorruptLogError:
        return CorruptLogError(
            f"The catalogue {self._path} is damaged while it is in use: stop all processes that use the log and start "
            "them again; the first one rebuilds it from its journal."
        )


def _locked_contents(database: sqlite3.Connection) -> reconciliation.DatabaseContents | None:
    """Lock the database for writing and return its contents; None if it is damaged."""
    try:
        database.execute("BEGIN IMMEDIATE")
    except reconciliation.DAMAGE as error:
        if reconciliation.is_transient(error):
            raise
        return None
    return reconciliation.read_contents(database)


def _leave_wal(database: sqlite3.Connection, folder: Path) -> None:
    """Leave WAL mode, which requires that no other process has the database open."""
    try:
        database.execute("PRAGMA busy_timeout = 2000")
        database.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError:
        raise LogError(
            f"{folder} was written by an older kstreams that still runs: stop it, so that the log can be upgraded."
        ) from None


def _tables_of_format_1(database: sqlite3.Connection, path: str) -> rows.Tables:
    tables = rows.read_tables(database)
    for name, greatest in database.execute("SELECT name, seq FROM sqlite_sequence"):
        if name in rows.TABLES:
            tables["marks"][(f"last of {name}",)] = (f"last of {name}", greatest)
    rows.check_tables(tables, path)
    return tables
