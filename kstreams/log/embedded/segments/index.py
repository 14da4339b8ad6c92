"""The sparse index of a segment, from offsets and times to positions. A lost or wrong index is rebuilt."""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import numpy as np

from kstreams.log.embedded.disk import create_file
from kstreams.log.embedded.segments.frame import BadFrameError, NewerFormatError
from kstreams.log.embedded.segments.segment import Segment

INTERVAL = 64 * 1024
_LAYOUT = struct.Struct("<qqq4xI")
_TABLE = np.dtype([("offset", "<i8"), ("position", "<i8"), ("max_before", "<i8"), ("pad", "<u4"), ("crc", "<u4")])
_logger = logging.getLogger("kstreams.log")

Table = np.ndarray[Any, np.dtype[Any]]


class IndexEntry(NamedTuple):
    """A frame's first offset and position, and the greatest timestamp of the records before it in the segment."""

    offset: int
    position: int
    max_before: int


NO_TIME = -(2**63)


def index_path(segment: Path) -> Path:
    """Return the index file of a segment file."""
    return segment.with_suffix(".index")


def append_entry(segment: Path, entry: IndexEntry) -> None:
    """Add an entry; called by an appender after a frame that ends in another interval than it starts."""
    _store(index_path(segment), _encode(entry), os.O_APPEND)


def entry_for_offset(segment: Segment, offset: int) -> IndexEntry:
    """Return the last indexed frame that starts at or before `offset`."""
    return _lookup(segment, "offset", offset, inclusive=True)


def entry_before_time(segment: Segment, timestamp_ms: int) -> IndexEntry:
    """Return the last indexed frame before which every record of the segment is older than `timestamp_ms`."""
    return _lookup(segment, "max_before", timestamp_ms, inclusive=False)


def last_entry(segment: Segment) -> IndexEntry:
    """Return the last indexed frame."""
    return _lookup(segment, "offset", 2**63 - 1, inclusive=True)


def wrong_entries(segment: Segment) -> Iterator[int]:
    """Yield the positions in a segment's index whose entry does not name a frame."""
    try:
        raw = index_path(segment.path).read_bytes()
    except FileNotFoundError:
        return
    for position in range(0, len(raw), _LAYOUT.size):
        *fields, crc = _LAYOUT.unpack(raw[position : position + _LAYOUT.size].ljust(_LAYOUT.size, b"\0"))
        entry = IndexEntry._make(fields)
        if crc != _crc(entry) or (entry.position < segment.limit and not _is_frame(segment, entry)):
            yield position


def _lookup(segment: Segment, column: str, bound: int, *, inclusive: bool) -> IndexEntry:
    first = IndexEntry(segment.base_offset, 0, NO_TIME)
    if segment.limit <= INTERVAL:
        return first
    table = _load(segment.path)
    entry = None if table is None else _find_entry(segment, table, column, bound, inclusive, first)
    if entry is None:
        entry = _find_entry(segment, _rebuild(segment), column, bound, inclusive, first)
    return entry or first


def _find_entry(
    segment: Segment, table: Table, column: str, bound: int, inclusive: bool, first: IndexEntry
) -> IndexEntry | None:
    """Return the entry for a bound; None if the table is wrong."""
    table = table[table["position"] < segment.limit]
    count = int(np.searchsorted(table[column], bound, side="right" if inclusive else "left"))
    if count == 0:
        return first
    row = table[count - 1]
    entry = IndexEntry(int(row["offset"]), int(row["position"]), int(row["max_before"]))
    value = entry.offset if column == "offset" else entry.max_before
    is_before = value <= bound if inclusive else value < bound
    return entry if is_before and int(row["crc"]) == _crc(entry) and _is_frame(segment, entry) else None


def _is_frame(segment: Segment, entry: IndexEntry) -> bool:
    try:
        return entry.position >= 0 and segment.header_at(entry.position).base_offset == entry.offset
    except (BadFrameError, NewerFormatError):
        return False


def _load(segment: Path) -> Table | None:
    try:
        raw = index_path(segment).read_bytes()
    except OSError:
        return None
    return np.frombuffer(raw, dtype=_TABLE) if raw and len(raw) % _LAYOUT.size == 0 else None


def _rebuild(segment: Segment) -> Table:
    greatest = NO_TIME
    block = 0
    entries = []
    for position, header in segment.valid_frames():
        if position // INTERVAL != block:
            block = position // INTERVAL
            entries.append(_encode(IndexEntry(header.base_offset, position, greatest)))
        greatest = max(greatest, header.max_timestamp) if header.records else greatest
    raw = b"".join(entries)
    replacement = segment.path.with_suffix(f".index.{os.getpid()}")
    if _store(replacement, raw, os.O_TRUNC):
        os.replace(replacement, index_path(segment.path))
    return np.frombuffer(raw, dtype=_TABLE)


def _store(path: Path, raw: bytes, flags: int) -> bool:
    # Reads work without an index: an error must not make anything else fail.
    try:
        with os.fdopen(create_file(path, flags), "wb") as file:
            file.write(raw)
    except OSError as error:
        _logger.warning("The index %s could not be written (%s); looking up offsets is slower without it.", path, error)
        return False
    return True


def _encode(entry: IndexEntry) -> bytes:
    return _LAYOUT.pack(*entry, _crc(entry))


def _crc(entry: IndexEntry) -> int:
    return int(google_crc32c.value(struct.pack("<qqq", *entry)))
