"""Finding the end of a log when its head is lost or from an earlier boot: the last segment is read through.

What follows the last sound frame is the torn end of a write that was never acknowledged: it is cut. A damaged
frame with sound ones after it is no torn end: nothing is cut there, and whoever reads it gets CorruptLogError.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

from kstreams.batch import TopicPartition
from kstreams.errors import CorruptLogError
from kstreams.log.embedded.disk import Disk, create_file
from kstreams.log.embedded.segments.head import PartitionHead
from kstreams.log.embedded.segments.index import NO_TIME, index_path
from kstreams.log.embedded.segments.segment import SUFFIX, Segment, segment_path

START_SUFFIX = ".start"
_logger = logging.getLogger("kstreams.log")


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
