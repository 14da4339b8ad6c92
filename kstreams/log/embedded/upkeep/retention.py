"""Retention: removes old segments by age, by size or on request; always whole segments, never the active one."""

from __future__ import annotations

import itertools
import os

from kstreams.errors import LogError
from kstreams.log.embedded.disk import create_file
from kstreams.log.embedded.segments.index import index_path, last_entry
from kstreams.log.embedded.segments.partition import START_SUFFIX, Partition, PartitionHead
from kstreams.log.embedded.segments.segment import Segment, segment_path
from kstreams.log.embedded.segments.topic_settings import TopicSettings


def apply_retention(partition: Partition, settings: TopicSettings, now_ms: int) -> None:
    """Remove segments beyond `retention.ms` and `retention.bytes`; the log then starts at a segment's first offset."""
    head = partition.head()
    inactive = [base for base in partition.segments() if base < head.segment]
    expired = _expired(partition, inactive, settings, now_ms)
    start = [*inactive, head.segment][max(expired, _surplus(partition, inactive, head, settings))]
    if start > head.start_offset:
        move_start(partition, start)


def is_expired(head: PartitionHead, settings: TopicSettings, now_ms: int) -> bool:
    """Return whether all records of the active segment are too old, so that it should be rolled."""
    if not settings.delete or settings.retention_ms < 0 or settings.retention_by_record:
        return False
    return head.position > 0 and head.max_timestamp < now_ms - settings.retention_ms


def move_start(partition: Partition, offset: int) -> None:
    """Delete the records before `offset`; LogError for an offset after the end."""
    with partition.locked():
        head = partition.head_locked()
        if offset > head.end_offset:
            raise LogError(f"{partition.source} ends at offset {head.end_offset}: nothing before {offset} to delete.")
        if offset <= head.start_offset:
            return
        # The marker file keeps the start in case the head is lost; readers use the head.
        create_mark(partition, offset)
        partition.publish(head._replace(start_offset=offset))
        drop_before(partition, head, offset)


def create_mark(partition: Partition, offset: int) -> None:
    """Store the start of the log in the name of an empty file."""
    old = list(partition.folder.glob(f"*{START_SUFFIX}"))
    os.close(create_file(partition.folder / f"{offset:020d}{START_SUFFIX}"))
    for path in old:
        path.unlink()


def drop_before(partition: Partition, head: PartitionHead, offset: int) -> None:
    """Remove the inactive segments without records at or after `offset`, the oldest first."""
    bases = [base for base in partition.segments() if base <= head.segment]
    for base, next_base in itertools.pairwise(bases):
        if next_base > offset:
            break
        path = segment_path(partition.folder, base)
        index_path(path).unlink(missing_ok=True)
        path.unlink()


def greatest_timestamp(partition: Partition, base: int) -> int:
    """Return the greatest timestamp in an inactive segment."""
    segment = Segment(segment_path(partition.folder, base), partition.source)
    segment.map_all()
    entry = last_entry(segment)
    times = [header.max_timestamp for _, header in segment.valid_frames(entry.position, entry.offset) if header.records]
    return max([entry.max_before, *times])


def _expired(partition: Partition, inactive: list[int], settings: TopicSettings, now_ms: int) -> int:
    if settings.retention_ms < 0:
        return 0
    times = [greatest_timestamp(partition, base) for base in inactive]
    if settings.retention_by_record:
        # When an old year is replayed, its windows are in use: their changelog must not be deleted.
        now_ms = min(now_ms, max(times, default=now_ms))
    return next((count for count, time in enumerate(times) if time >= now_ms - settings.retention_ms), len(times))


def _surplus(partition: Partition, inactive: list[int], head: PartitionHead, settings: TopicSettings) -> int:
    if settings.retention_bytes < 0:
        return 0
    sizes = [segment_path(partition.folder, base).stat().st_size for base in inactive]
    surplus = sum(sizes) + head.position - settings.retention_bytes
    count = 0
    while count < len(sizes) and surplus >= sizes[count]:
        surplus -= sizes[count]
        count += 1
    return count
