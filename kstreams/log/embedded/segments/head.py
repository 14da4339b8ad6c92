"""The head of a partition: a small file that says where the log ends, rewritten after every append.

Readers trust it: what lies before the end must be sound, what lies after it is not there yet. A writer that dies
between its frame and the head leaves bytes that the next writer cuts. The head is only believed in the boot of
the machine in which it was written: after a power failure the disk may hold a head that is ahead of its frames.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

import google_crc32c

from kstreams.log.embedded.boot import boot_id

_MAGIC = b"KSLH"
_VERSION = 1
_LAYOUT = struct.Struct("<4sI16sqqqqqqq4xI")
HEAD_SIZE = _LAYOUT.size
_TORN_READS = 100  # a read may meet a write half way; it is over in microseconds


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
