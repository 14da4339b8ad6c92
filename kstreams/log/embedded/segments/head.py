"""The head of a partition: a small file with the end of the log, rewritten after every append; and its recovery.

Readers trust the head: frames before the end must be valid, bytes after it are not yet published. A writer that dies
after it has written a frame and before it writes the head leaves bytes that the next writer cuts. The head is trusted
only in the boot of the machine in which it was written: after a power failure, it may be ahead of the frames.

A lost or untrusted head is recovered by reading the last segment. Bytes after its last valid frame are the torn end of
a write that was never acknowledged, and are cut. A damaged frame before a valid one is no torn end: it stays, and
reading it raises CorruptLogError.
"""

from __future__ import annotations

import logging
import os
import struct
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from kstreams.errors import CorruptLogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.embedded.disk import Disk, boot_id, create_file
from kstreams.log.embedded.segments.index import NO_TIME, index_path
from kstreams.log.embedded.segments.segment import SUFFIX, Segment, segment_path

START_SUFFIX = ".start"
_logger = logging.getLogger("kstreams.log")
_MAGIC = b"KSLH"
_VERSION = 1
_LAYOUT = struct.Struct("<4sI16sqqqqqqq4xI")
HEAD_SIZE = _LAYOUT.size
_TORN_READS = 100  # a read may see half of a write, which takes microseconds


class ValidEnd(NamedTuple):
    """The end of the valid part of a segment."""

    position: int
    offset: int
    max_timestamp: int


def recover(folder: Path, source: TopicPartition, disk: Disk, stale: PartitionHead | None) -> PartitionHead:
    """Return the head as it follows from the files, and cut a torn end; the caller must hold the partition's lock.

    Parameters
    ----------
    stale : PartitionHead or None
        The head of an earlier boot, if it exists: invalid bytes that were synced then are damage, not a torn end.
    """
    start = marked_start(folder)
    bases = _drop_empty_tail(folder, sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}")))
    if not bases:
        os.close(create_file(segment_path(folder, start)))
        bases = [start]
    path = segment_path(folder, bases[-1])
    stale_head = stale if stale is not None and stale.segment == bases[-1] else None
    end = valid_end(path, source)
    size = path.stat().st_size
    if stale_head is not None and end.position < stale_head.synced <= size:
        _logger.error(
            "%s: bytes that were synced before byte %d of %s are damaged after byte %d",
            source,
            stale_head.synced,
            path,
            end.position,
        )
        end = ValidEnd(stale_head.position, stale_head.end_offset, stale_head.max_timestamp)
    elif end.position < size:
        _cut(path, disk, end, size)
    created_ms = stale_head.created_ms if stale_head is not None else 0
    return PartitionHead(max(bases[0], start), end.offset, bases[-1], end.position, created_ms, end.max_timestamp)


def valid_end(path: Path, source: TopicPartition) -> ValidEnd:
    """Return the end of the last valid frame of a segment; damage before it is logged, and stays."""
    segment = Segment(path, source)
    segment.map_all()
    end = ValidEnd(0, segment.base_offset, NO_TIME)
    while end.position < segment.limit:
        try:
            end = _next_end(segment, end)
        except CorruptLogError as damage:
            position = segment.find_frame(end.position + 8, end.offset)
            if position is None:
                break
            _logger.error("%s", damage)
            end = ValidEnd(position, segment.header_at(position).base_offset, end.max_timestamp)
    return end


def marked_start(folder: Path) -> int:
    """Return the start that `delete_records` has set; 0 without one."""
    return max((int(path.stem) for path in folder.glob(f"*{START_SUFFIX}")), default=0)


def _next_end(segment: Segment, end: ValidEnd) -> ValidEnd:
    header = segment.checked_header(end.position, end.offset)
    segment.checked_body(end.position, header)
    greatest = max(end.max_timestamp, header.max_timestamp) if header.records else end.max_timestamp
    return ValidEnd(end.position + header.size, header.next_offset, greatest)


def _drop_empty_tail(folder: Path, bases: list[int]) -> list[int]:
    # A writer that dies while it rolls leaves an empty segment after the active one.
    while len(bases) > 1 and segment_path(folder, bases[-1]).stat().st_size == 0:
        segment_path(folder, bases.pop()).unlink()
    return bases


def _cut(path: Path, disk: Disk, end: ValidEnd, size: int) -> None:
    _logger.warning("%s ends in a torn write: %d bytes after offset %d are cut", path, size - end.position, end.offset)
    index_path(path).unlink(missing_ok=True)
    fd = create_file(path)
    try:
        disk.cut(fd, end.position)
        disk.sync(fd)
    finally:
        os.close(fd)


class PartitionHead(NamedTuple):
    """The start and the end of a partition's log."""

    start_offset: int  # records before it are deleted, even if a segment still has them
    end_offset: int  # of the next record to be appended
    segment: int  # base offset of the active segment
    position: int  # bytes of the active segment that are published
    created_ms: int  # time of the first record in the active segment
    max_timestamp: int  # of the records in the active segment
    synced: int = 0  # bytes of the active segment that are known to be on the disk
    boot: bytes = b""


def encode_head(head: PartitionHead) -> bytes:
    """Encode the head file, stamped with this boot."""
    raw = _LAYOUT.pack(_MAGIC, _VERSION, boot_id(), *head[:7], 0)
    return raw[:-4] + int(google_crc32c.value(raw[:-4])).to_bytes(4, "little")


def decode_head(raw: bytes) -> PartitionHead | None:
    """Decode a head; None if the bytes are not valid."""
    if len(raw) != HEAD_SIZE:
        return None
    magic, version, boot, *fields, crc = _LAYOUT.unpack(raw)
    if magic != _MAGIC or version != _VERSION or google_crc32c.value(raw[:-4]) != crc:
        return None
    return PartitionHead(*fields)._replace(boot=boot)


def read_head(fd: int) -> PartitionHead | None:
    """Read the head of an open file; None if it is not valid."""
    for _ in range(_TORN_READS):
        head = decode_head(os.pread(fd, HEAD_SIZE, 0))
        if head is not None:
            return head
    return None


def is_trusted(head: PartitionHead | None) -> bool:
    """Return whether the head was written in this boot."""
    return head is not None and head.boot == boot_id()
