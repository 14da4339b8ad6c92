"""`JournaledDatabase`: the two copies of the catalogue. Every change goes to the journal, then to the database.

A process may die between the two, so that the database lacks a change of the journal. The next process that opens the
catalogue or writes to it copies the change to the database: `choose_copy` says which copy is complete.

The first record of the `Journal` holds all rows, each record after it one change, with a checksum. So the journal alone
is enough to rebuild the catalogue, with changes that SQLite has lost.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import msgspec

from kstreams.errors import CorruptLogError, LogError, LogFormatError
from kstreams.kernel.decoders import decode_json
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
    empty_tables,
    next_state,
    read_state,
    read_tables,
    record_changes,
    schema_of,
    state_of,
    write_state,
    write_tables,
)
from kstreams.log.embedded.disk import Disk, FolderLock, boot_id, create_file, open_file, refuse_links
from kstreams.os.stopped_holders import HeldLock

_logger = logging.getLogger("kstreams.log")

JOURNAL = "catalogue.journal"
_MAGIC = b"KSLJ"
_LAYOUT = struct.Struct("<4sIq16sII")  # magic, version, sequence, boot, size of the changes, CRC
_CRC = struct.Struct("<I")


class BadRecordError(Exception):
    """Error for bytes that are no valid record, with the reason."""


class JournalRecord(NamedTuple):
    """One change of the catalogue."""

    sequence: int
    boot: bytes
    changes: list[Any]
    size: int


class JournalContents(NamedTuple):
    """The contents of a journal."""

    tables: Tables | None  # after its valid records; None if the first record is not valid
    sequence: int  # of the last valid record before any damage
    end: int  # size of the valid records
    boot: bytes  # of the machine, in which its last record was written
    newest: int  # greatest sequence of any valid record, also after damage
    damage: str  # description of the damage at `end`; empty if there is none

    @property
    def is_whole(self) -> bool:
        """True if the journal has all changes, except a write that was torn when the machine went down."""
        torn = self.newest == self.sequence and self.boot != boot_id()
        return self.tables is not None and (not self.damage or torn)


def encode_record(sequence: int, changes: Iterable[RowChange]) -> bytes:
    """Encode one record."""
    rows = [
        ["-", table, (old or ())[: TABLES[table].key]] if new is None else ["+", table, new]
        for table, old, new in changes
    ]
    body = msgspec.json.encode(rows)
    head = _LAYOUT.pack(_MAGIC, VERSION, sequence, boot_id(), len(body), 0)[: -_CRC.size]
    return head + _CRC.pack(google_crc32c.extend(google_crc32c.value(head), body)) + body


def encode_tables(sequence: int, tables: Tables) -> bytes:
    """Encode the first record of a journal, with all rows after a change."""
    rows = (RowChange(name, None, row) for name, table in tables.items() for row in table.values())
    return encode_record(sequence, rows)


def decode_record(raw: bytes, position: int) -> JournalRecord:
    """Decode the record at a position; BadRecordError if it is not valid."""
    if len(raw) - position < _LAYOUT.size:
        raise BadRecordError(f"{len(raw) - position} bytes where a record begins with {_LAYOUT.size}")
    magic, version, sequence, boot, size, crc = _LAYOUT.unpack_from(raw, position)
    start = position + _LAYOUT.size
    if magic != _MAGIC:
        raise BadRecordError("no record starts here")
    body = raw[start : start + size]
    if google_crc32c.extend(google_crc32c.value(raw[position : start - _CRC.size]), body) != crc or len(body) < size:
        raise BadRecordError("the record fails its checksum")
    if version > VERSION:
        raise LogFormatError(f"The catalogue has format {version}, this kstreams reads up to {VERSION}. Upgrade it.")
    return JournalRecord(sequence, boot, decode_json(body), _LAYOUT.size + size)


def read_journal(raw: bytes, up_to: int = 2**63) -> JournalContents:
    """Read a journal up to the record with the sequence `up_to`."""
    tables = None
    sequence = -1
    end = 0
    boot = b""
    while end < len(raw) and sequence < up_to:
        try:
            record = decode_record(raw, end)
            if sequence >= 0 and record.sequence != sequence + 1:
                raise BadRecordError(f"record {record.sequence} follows record {sequence}")
        except BadRecordError as bad:
            return JournalContents(tables, sequence, end, boot, max(sequence, _newest_after(raw, end)), str(bad))
        tables = empty_tables() if tables is None else tables
        _apply_changes(tables, record.changes)
        sequence = record.sequence
        end = end + record.size
        boot = record.boot
    return JournalContents(tables, sequence, end, boot, sequence, "" if tables is not None else "the journal is empty")


def _apply_changes(tables: Tables, changes: list[Any]) -> None:
    for kind, name, values in changes:
        if kind == "+":
            tables[name][tuple(values[: TABLES[name].key])] = tuple(values)
        else:
            tables[name].pop(tuple(values), None)


def _newest_after(raw: bytes, position: int) -> int:
    newest = -1
    while (position := raw.find(_MAGIC, position + 1)) >= 0:
        try:
            newest = max(newest, decode_record(raw, position).sequence)
        except BadRecordError:
            continue
    return newest


class Journal:
    """The journal file of an open catalogue. Only a process with the database's write lock writes to it."""

    def __init__(self, folder: Path, disk: Disk, durability: str) -> None:
        self.path = folder / JOURNAL
        self._disk = disk
        self._durability = durability
        self._file: Any = None
        self.first_size = 0  # bytes of the first record, which holds all rows

    def exists(self) -> bool:
        """Return whether the journal exists."""
        return self.path.exists()

    def reopen(self) -> None:
        """Open the file that has the journal's name now."""
        self.close()
        with suppress(FileNotFoundError):
            self._file = os.fdopen(open_file(self.path, os.O_RDWR), "r+b", buffering=0)
            head = os.pread(self._file.fileno(), _LAYOUT.size, 0)
            self.first_size = _LAYOUT.unpack(head)[4] if len(head) == _LAYOUT.size else 0

    def read(self) -> bytes | None:
        """Return its bytes; None if it does not exist."""
        self.reopen()
        return None if self._file is None else bytes(self._file.read())

    def size(self) -> int:
        """Return its size; -1 if it was replaced or removed since it was opened."""
        if self._file is None:
            return -1
        status = os.fstat(self._file.fileno())
        return status.st_size if status.st_nlink else -1

    def append(self, record: bytes, position: int) -> None:
        """Write a record, and sync it if `durability` is `fsync`."""
        self._disk.write_at(self._file.fileno(), [record], position)
        if self._durability == "fsync":
            self._disk.sync(self._file.fileno())

    def cut(self, position: int) -> None:
        """Remove the bytes after `position`."""
        self._disk.cut(self._file.fileno(), position)

    def replace(self, sequence: int, tables: Tables) -> int:
        """Replace the journal by a new one with all rows; return its size."""
        replacement = self.path.with_suffix(".new")
        replacement.unlink(missing_ok=True)
        record = encode_tables(sequence, tables)
        with os.fdopen(create_file(replacement, os.O_EXCL), "r+b", buffering=0) as file:
            self._disk.write_at(file.fileno(), [record], 0)
            if self._durability == "fsync":
                self._disk.sync(file.fileno())
        self._disk.replace(replacement, self.path)
        if self._durability == "fsync":
            self._disk.sync_folder(self.path.parent)
        self.reopen()
        return len(record)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None


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
        raise _damage_error(folder, f"{JOURNAL} is missing")
    if contents is not None and contents.state.sequence >= journal.newest:
        if (contents.state.sequence, contents.state.position) != (journal.sequence, journal.end) or journal.damage:
            return AuthoritativeCopy.DATABASE
        if contents.tables == journal.tables:
            return AuthoritativeCopy.SAME
        raise _damage_error(folder, f"catalogue.sqlite and {JOURNAL} differ in the same change")
    if journal.is_whole:
        return AuthoritativeCopy.JOURNAL
    state = "is damaged" if contents is None else f"ends with change {contents.state.sequence}"
    raise _damage_error(
        folder, f"{JOURNAL} is damaged at byte {journal.end} ({journal.damage}), and catalogue.sqlite {state}"
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
            f"Both copies of the catalogue of {folder} are lost: put back a copy of catalogue.sqlite and {JOURNAL}."
        )
    return AuthoritativeCopy.JOURNAL


def _damage_error(folder: Path, damage: str) -> CorruptLogError:
    return CorruptLogError(
        f"The catalogue of {folder} is damaged: {damage}. Put back both files from one backup, or run "
        f"`kstreams log repair --log-dir {folder}`, which keeps the intact part and reports the loss."
    )


DATABASE = "catalogue.sqlite"
Decide = Callable[[Path, JournalContents | None, DatabaseContents | None], AuthoritativeCopy]

_WAIT_S = 5.0
_WAITS = 12
_WRITE_LOCK = 120  # the byte of `-shm` that a writer locks, see "WAL-Mode File Format" of SQLite
_SIDE_FILES = ("-wal", "-shm")
_JOURNAL_BYTES = 256 * 1024
# The journal survives a power failure, so the database is never synced for a commit.
_SYNCHRONOUS = {"fsync": "NORMAL", "os": "NORMAL", "none": "OFF"}


def holds_log(folder: Path) -> bool:
    """Return whether a folder has a copy of a catalogue."""
    return (folder / DATABASE).exists() or (folder / JOURNAL).exists()


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
        with self._folder_lock.opening() as is_alone:
            self._create_journal()
            self.connection, self.boot = self._open_consistent(is_alone)
        self._set_synchronous(self.connection)
        record_changes(self.connection, self._changes.append)

    def begin(self) -> DatabaseState:
        """Lock the database for writing, and complete the change of a writer that died."""
        begin_write(self.connection, self._path)
        state = read_state(self.connection)
        if state is None or self._journal.size() != state.position:
            state = self._resynchronized(state)
        if state.position > max(_JOURNAL_BYTES, 4 * self._journal.first_size):
            state = self._restart_journal(state)
        self._changes.clear()
        return state

    def commit(self, state: DatabaseState) -> None:
        """Commit the changes since `begin`."""
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
        self._journal.replace(1, empty_tables())

    def _upgrade(self, database: sqlite3.Connection) -> None:
        """Create the journal of a catalogue of format 1, and add the tables of later formats."""
        try:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version == 1:
                _leave_wal(database, self._folder)
                self._journal.replace(1, _tables_of_format_1(database, str(self._path)))
            elif OLDEST_JOURNALED <= version < VERSION:
                _leave_wal(database, self._folder)
                add_tables(database)
        except DAMAGE as error:
            if is_transient(error) or not self._journal.exists():
                raise
            return
        if version > VERSION:
            raise LogFormatError(
                f"{self._folder} has format {version}, this kstreams reads up to {VERSION}. Upgrade kstreams; if "
                f"nothing newer ever wrote it, it is damaged: `kstreams log repair --log-dir {self._folder}`."
            )

    def _open_consistent(self, is_alone: bool) -> tuple[sqlite3.Connection, bytes]:
        """Open the database, make both copies equal, and return it with the boot of the last change."""
        database = self._connect()
        try:
            self._upgrade(database)
            contents = _locked_contents(database, self._path)
            journal = self._read_journal()
            authority = self._decide(self._folder, journal, contents)
            if contents is None:
                database.close()
                database = self._recreate(is_alone)
            self._repair_other_copy(database, authority, journal, contents)
            check_tables(read_tables(database), str(self._path))
            database.execute("COMMIT")
            return database, b"" if journal is None else journal.boot
        except BaseException:
            database.close()
            raise

    def _resynchronized(self, state: DatabaseState | None) -> DatabaseState:
        self._journal.reopen()
        if state is None or self._journal.size() != state.position:
            contents = read_contents(self.connection)
            journal = self._read_journal()
            authority = self._decide(self._folder, journal, contents)
            if contents is None:
                raise self._in_use()
            self._repair_other_copy(self.connection, authority, journal, contents)
        state = read_state(self.connection)
        if state is None:
            raise self._in_use()
        return state

    def _repair_other_copy(
        self,
        database: sqlite3.Connection,
        authority: AuthoritativeCopy,
        journal: JournalContents | None,
        contents: DatabaseContents | None,
    ) -> None:
        """Make the other copy equal to the complete one."""
        if authority is AuthoritativeCopy.SAME:
            return
        if authority is AuthoritativeCopy.JOURNAL and journal is not None and journal.tables is not None:
            if journal.sequence > 1:
                state = "was damaged" if contents is None else f"ended with change {contents.state.sequence}"
                self._log_repair(f"{self._path} {state}: taken from its journal, up to change {journal.sequence}")
            self._journal.cut(journal.end)
            write_tables(database, journal.tables)
            write_state(database, state_of(journal.tables, journal.sequence, journal.end))
        elif contents is not None:
            sequence = contents.state.sequence
            damage = "was missing" if journal is None else f"ended with change {journal.sequence}"
            self._log_repair(f"{self._journal.path} {damage}: rewritten from {DATABASE}, change {sequence}")
            size = self._journal.replace(sequence, contents.tables)
            write_state(database, state_of(contents.tables, sequence, size))
        else:
            raise self._in_use()

    def _log_repair(self, sentence: str) -> None:
        self.repairs.append(sentence)
        _logger.warning("%s", sentence)

    def _restart_journal(self, state: DatabaseState) -> DatabaseState:
        """Replace the journal, which has grown far larger than the rows, by a new one."""
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
        create_tables(database)
        begin_write(database, self._path)
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


def begin_write(database: sqlite3.Connection, path: Path) -> None:
    """Lock the database for writing; a process that is stopped while it has the lock is killed."""
    lock = HeldLock(f"{path}-shm", first_byte=_WRITE_LOCK)
    stopped: set[int] = set()
    for wait in range(_WAITS):
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_transient(error) or wait + 1 == _WAITS:
                raise
            before, stopped = stopped, lock.stopped_holders()
            lock.kill_stopped(before & stopped)


def _locked_contents(database: sqlite3.Connection, path: Path) -> DatabaseContents | None:
    """Lock the database for writing and return its contents; None if it is damaged."""
    try:
        begin_write(database, path)
    except DAMAGE as error:
        if is_transient(error):
            raise
        return None
    return read_contents(database)


def _leave_wal(database: sqlite3.Connection, folder: Path) -> None:
    """Leave WAL mode, which requires that no other process has the database open."""
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
