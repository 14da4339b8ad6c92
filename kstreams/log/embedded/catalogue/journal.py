"""`Journal`: the journal of the catalogue, to which each change is written, with a checksum, before SQLite has it.

Its first record holds all rows, each record after it one change. So the journal alone is enough to rebuild the
catalogue, with changes that SQLite has lost.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import msgspec

from kstreams.errors import LogFormatError
from kstreams.kernel.decoders import decode_json
from kstreams.log.embedded.catalogue.rows import TABLES, VERSION, RowChange, Tables, empty
from kstreams.log.embedded.disk import Disk, boot_id, create_file, open_file

NAME = "catalogue.journal"
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
        tables = empty() if tables is None else tables
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
        self.path = folder / NAME
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
