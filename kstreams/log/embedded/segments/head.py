"""The head of a partition: a small file that says where the log ends, rewritten after every append.

Readers trust it: what lies before the end must be sound, what lies after it is not there yet. A writer that dies
between its frame and the head leaves bytes that the next writer cuts. The head is only believed in the boot of
the machine in which it was written: after a power failure the disk may hold a head that is ahead of its frames.
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
_TORN_READS = 100  # a read may meet a write half way; it is over in microseconds


class SoundEnd(NamedTuple):
    """Where the sound part of a segment ends."""

    position: int
    offset: int
    max_timestamp: int


def recover(folder: Path, source: TopicPartition, disk: Disk, stale: PartitionHead | None) -> PartitionHead:
    """The head as the files show it; the torn end is cut. Only under the partition's lock.

    Parameters
    ----------
    stale : PartitionHead or None
        The head of an earlier boot if it is there: what it says was synced is damaged, not torn, when it is not sound.
    """
    start = marked_start(folder)
    bases = _drop_empty_tail(folder, sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}")))
    if not bases:
        os.close(create_file(segment_path(folder, start)))
        bases = [start]
    path = segment_path(folder, bases[-1])
    known = stale if stale is not None and stale.segment == bases[-1] else None
    end = sound_end(path, source)
    size = path.stat().st_size
    if known is not None and end.position < known.synced <= size:
        _logger.error(
            "%s: what was synced before byte %d of %s is damaged after byte %d", source, known.synced, path, end[0]
        )
        end = SoundEnd(known.position, known.end_offset, known.max_timestamp)
    elif end.position < size:
        _cut(path, disk, end, size)
    created_ms = known.created_ms if known is not None else 0
    return PartitionHead(max(bases[0], start), end.offset, bases[-1], end.position, created_ms, end.max_timestamp)


def sound_end(path: Path, source: TopicPartition) -> SoundEnd:
    """Where the last sound frame of a segment ends; damage before it is logged and left where it is."""
    segment = Segment(path, source)
    segment.map_all()
    end = SoundEnd(0, segment.base_offset, NO_TIME)
    while end.position < segment.limit:
        try:
            end = _step(segment, end)
        except CorruptLogError as damage:
            place = segment.find_frame(end.position + 8, end.offset)
            if place is None:
                break
            _logger.error("%s", damage)
            end = SoundEnd(place, segment.header_at(place).base_offset, end.max_timestamp)
    return end


def marked_start(folder: Path) -> int:
    """Where `delete_records` said the log starts; 0 if it never did."""
    return max((int(path.stem) for path in folder.glob(f"*{START_SUFFIX}")), default=0)


def _step(segment: Segment, end: SoundEnd) -> SoundEnd:
    header = segment.checked_header(end.position, end.offset)
    segment.checked_body(end.position, header)
    greatest = max(end.max_timestamp, header.max_timestamp) if header.records else end.max_timestamp
    return SoundEnd(end.position + header.size, header.next_offset, greatest)


def _drop_empty_tail(folder: Path, bases: list[int]) -> list[int]:
    # A writer that died while it rolled leaves an empty segment behind the one that is still written to.
    while len(bases) > 1 and segment_path(folder, bases[-1]).stat().st_size == 0:
        segment_path(folder, bases.pop()).unlink()
    return bases


def _cut(path: Path, disk: Disk, end: SoundEnd, size: int) -> None:
    _logger.warning("%s ends in a torn write: %d bytes after offset %d are cut", path, size - end.position, end.offset)
    index_path(path).unlink(missing_ok=True)
    fd = create_file(path)
    try:
        disk.cut(fd, end.position)
        disk.sync(fd)
    finally:
        os.close(fd)


class PartitionHead(NamedTuple):
    """Where a partition's log starts and ends."""

    start_offset: int  # records before it are gone, even where a segment still holds them
    end_offset: int  # of the next record to be appended
    segment: int  # base offset of the active segment
    position: int  # bytes of the active segment that are published
    created_ms: int  # when the active segment was begun
    max_timestamp: int  # of the records in the active segment
    synced: int = 0  # bytes of the active segment that are known to be on the disk
    boot: bytes = b""


def encode_head(head: PartitionHead) -> bytes:
    """The bytes of the head file, stamped with this boot."""
    raw = _LAYOUT.pack(_MAGIC, _VERSION, boot_id(), *head[:7], 0)
    return raw[:-4] + int(google_crc32c.value(raw[:-4])).to_bytes(4, "little")


def decode_head(raw: bytes) -> PartitionHead | None:
    """The head, or None when the bytes are not one."""
    if len(raw) != HEAD_SIZE:
        return None
    magic, version, boot, *fields, crc = _LAYOUT.unpack(raw)
    if magic != _MAGIC or version != _VERSION or google_crc32c.value(raw[:-4]) != crc:
        return None
    return PartitionHead(*fields)._replace(boot=boot)


def read_head(fd: int) -> PartitionHead | None:
    """The head in an open file, or None when there is none that is sound."""
    for _ in range(_TORN_READS):
        head = decode_head(os.pread(fd, HEAD_SIZE, 0))
        if head is not None:
            return head
    return None


def is_trusted(head: PartitionHead | None) -> bool:
    """Whether the head was written in this boot."""
    return head is not None and head.boot == boot_id()
