"""The catalogue's journal: each change of the catalogue is written there, with number and checksum, before SQLite.

Its first record holds all rows; the records after it hold what changed. So the journal alone makes the catalogue
anew, and whatever SQLite forgot is known.
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
    """Bytes that are no record; says what is wrong with them."""


class JournalRecord(NamedTuple):
    """One change of the catalogue."""

    sequence: int
    boot: bytes
    changes: list[Any]
    size: int


class JournalContents(NamedTuple):
    """What a journal says."""

    tables: Tables | None  # after its sound beginning; None when not even the first record is sound
    sequence: int  # of the last record of the sound beginning
    end: int  # bytes of it
    boot: bytes  # in which its last record was written
    newest: int  # greatest number of any sound record, also of those behind damage
    damage: str  # what is wrong at `end`; empty when the journal is whole

    @property
    def is_whole(self) -> bool:
        """Whether nothing but a write that the machine's end cut off is missing."""
        torn = self.newest == self.sequence and self.boot != boot_id()
        return self.tables is not None and (not self.damage or torn)


def encode_record(sequence: int, changes: Iterable[RowChange]) -> bytes:
    """The bytes of one record."""
    rows = [
        ["-", table, (old or ())[: TABLES[table].key]] if new is None else ["+", table, new]
        for table, old, new in changes
    ]
    body = msgspec.json.encode(rows)
    head = _LAYOUT.pack(_MAGIC, VERSION, sequence, boot_id(), len(body), 0)[: -_CRC.size]
    return head + _CRC.pack(google_crc32c.extend(google_crc32c.value(head), body)) + body


def encode_tables(sequence: int, tables: Tables) -> bytes:
    """The first record of a journal: all rows there are after a change."""
    rows = (RowChange(name, None, row) for name, table in tables.items() for row in table.values())
    return encode_record(sequence, rows)


def decode_record(raw: bytes, place: int) -> JournalRecord:
    """The record at a place; BadRecordError when none that is sound lies there."""
    if len(raw) - place < _LAYOUT.size:
        raise BadRecordError(f"{len(raw) - place} bytes where a record begins with {_LAYOUT.size}")
    magic, version, sequence, boot, size, crc = _LAYOUT.unpack_from(raw, place)
    start = place + _LAYOUT.size
    if magic != _MAGIC:
        raise BadRecordError("no record starts here")
    body = raw[start : start + size]
    if google_crc32c.extend(google_crc32c.value(raw[place : start - _CRC.size]), body) != crc or len(body) < size:
        raise BadRecordError("the record fails its checksum")
    if version > VERSION:
        raise LogFormatError(f"The catalogue has format {version}, this kstreams reads up to {VERSION}. Upgrade it.")
    return JournalRecord(sequence, boot, decode_json(body), _LAYOUT.size + size)


def read_journal(raw: bytes, up_to: int = 2**63) -> JournalContents:
    """What the bytes of a journal say, up to the record with the number `up_to`."""
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
            return JournalContents(tables, sequence, end, boot, max(sequence, _newest_behind(raw, end)), str(bad))
        tables = empty() if tables is None else tables
        _apply(tables, record.changes)
        sequence = record.sequence
        end = end + record.size
        boot = record.boot
    return JournalContents(tables, sequence, end, boot, sequence, "" if tables is not None else "the journal is empty")


def _apply(tables: Tables, changes: list[Any]) -> None:
    for kind, name, values in changes:
        if kind == "+":
            tables[name][tuple(values[: TABLES[name].key])] = tuple(values)
        else:
            tables[name].pop(tuple(values), None)


def _newest_behind(raw: bytes, place: int) -> int:
    newest = -1
    while (place := raw.find(_MAGIC, place + 1)) >= 0:
        try:
            newest = max(newest, decode_record(raw, place).sequence)
        except BadRecordError:
            continue
    return newest


class Journal:
    """The journal file of an open catalogue. Only whoever holds the database's write lock writes to it."""

    def __init__(self, folder: Path, disk: Disk, durability: str) -> None:
        self.path = folder / NAME
        self._disk = disk
        self._durability = durability
        self._file: Any = None
        self.first_size = 0  # bytes of the first record: all rows there were

    def exists(self) -> bool:
        """Whether there is a journal."""
        return self.path.exists()

    def reopen(self) -> None:
        """Take the file that has the journal's name now."""
        self.close()
        with suppress(FileNotFoundError):
            self._file = os.fdopen(open_file(self.path, os.O_RDWR), "r+b", buffering=0)
            head = os.pread(self._file.fileno(), _LAYOUT.size, 0)
            self.first_size = _LAYOUT.unpack(head)[4] if len(head) == _LAYOUT.size else 0

    def read(self) -> bytes | None:
        """Its bytes; None when it is not there."""
        self.reopen()
        return None if self._file is None else bytes(self._file.read())

    def size(self) -> int:
        """Bytes in it now; -1 when another process replaced it since it was read, or it is gone."""
        if self._file is None:
            return -1
        now = os.fstat(self._file.fileno())
        return now.st_size if now.st_nlink else -1

    def append(self, record: bytes, position: int) -> None:
        """Write a record, which is durable then as far as `durability` says."""
        self._disk.write_at(self._file.fileno(), [record], position)
        if self._durability == "fsync":
            self._disk.sync(self._file.fileno())

    def cut(self, position: int) -> None:
        """Take back what lies behind `position`."""
        self._disk.cut(self._file.fileno(), position)

    def replace(self, sequence: int, tables: Tables) -> int:
        """Begin a new journal with all rows in the place of the old one; returns its size."""
        spare = self.path.with_suffix(".new")
        spare.unlink(missing_ok=True)
        record = encode_tables(sequence, tables)
        with os.fdopen(create_file(spare, os.O_EXCL), "r+b", buffering=0) as file:
            self._disk.write_at(file.fileno(), [record], 0)
            if self._durability == "fsync":
                self._disk.sync(file.fileno())
        self._disk.replace(spare, self.path)
        if self._durability == "fsync":
            self._disk.sync_folder(self.path.parent)
        self.reopen()
        return len(record)

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()
        self._file = None
