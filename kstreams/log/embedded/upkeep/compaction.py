"""Compaction: keep the last record of each key, at its offset, and remove tombstones after `delete.retention.ms`.

Inactive segments are rewritten one group at a time, small ones into one new segment, which replaces them by a rename.
A crash between the rename and the removal of the old segments leaves segments whose offsets the new one holds too:
readers pass over them, and the next compaction removes them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.embedded.catalogue.transactions import TransactionState
from kstreams.log.embedded.disk import create_file
from kstreams.log.embedded.segments.frame import HAS_OFFSETS, FrameHeader, byte_size, encode_body, encode_header, join
from kstreams.log.embedded.segments.index import index_path
from kstreams.log.embedded.segments.partition import Partition
from kstreams.log.embedded.segments.reader import StateOf
from kstreams.log.embedded.segments.segment import Segment, segment_path
from kstreams.log.embedded.segments.topic_settings import TopicSettings
from kstreams.os.file_lock import try_lock

_DIRTY_SHARE = 0.5  # Kafka's min.cleanable.dirty.ratio
_KEYS_AT_ONCE = 1_000_000
_EMPTY = {
    "keys": pa.nulls(0, pa.binary()),
    "values": pa.nulls(0, pa.binary()),
    "timestamps": pa.nulls(0, pa.int64()),
}

Offsets: TypeAlias = "np.typing.NDArray[np.int64]"


class InactiveSegment(NamedTuple):
    """An inactive segment, before it is compacted."""

    base: int
    size: int
    dirty: bool  # whether it has frames that were never compacted
    end: int  # offset after its last record
    max_timestamp: int
    horizon_ms: int  # time after which the first of its tombstones may be removed; 0 without tombstones


def compact(
    partition: Partition, settings: TopicSettings, stable_end: int, state_of: StateOf, now_ms: int, *, eager: bool
) -> None:
    """Compact a partition's inactive segments, unless another process is compacting them.

    Parameters
    ----------
    partition : Partition
    settings : TopicSettings
    stable_end : int
        Only segments that end at or before it are compacted: later records may still be aborted.
    state_of : callable
        Returns the state of a transaction.
    now_ms : int
    eager : bool
        Compact even if less than half of the bytes were never compacted.
    """
    fd = create_file(partition.folder / "compaction.lock")
    try:
        if not try_lock(fd):
            return
        for unfinished in partition.folder.glob("*.cleaned"):
            unfinished.unlink()
        segments = _compactable(partition, settings, stable_end, now_ms)
        if _is_worthwhile(segments, now_ms, eager=eager):
            _compact(partition, settings, segments, state_of, now_ms)
    finally:
        os.close(fd)


def _compact(
    partition: Partition, settings: TopicSettings, segments: list[InactiveSegment], state_of: StateOf, now_ms: int
) -> None:
    last_offsets = _last_offsets(partition, segments, state_of)
    for group in _groups(segments, settings.limits.segment_bytes):
        target = segment_path(partition.folder, group[0].base)
        rewritten = target.with_suffix(".cleaned")
        fd = create_file(rewritten, os.O_TRUNC)
        try:
            rewriter = _Rewriter(partition, fd, group[0].base, settings)
            for header, batch in _visible(partition, group, state_of):
                rewriter.add(header, batch, last_offsets, now_ms)
            rewriter.finish()
            partition.disk.sync(fd)
        except Exception:
            rewritten.unlink(missing_ok=True)  # a full disk needs the room
            raise
        finally:
            os.close(fd)
        _swap(partition, group)


def _compactable(partition: Partition, settings: TopicSettings, stable_end: int, now_ms: int) -> list[InactiveSegment]:
    head = partition.head()
    lag_ms = settings.min_compaction_lag_ms
    segments: list[InactiveSegment] = []
    for base in partition.segments():
        if base >= head.segment:
            break
        inactive = _inactive_segment(partition, base)
        too_young = inactive.max_timestamp > now_ms - lag_ms if lag_ms else False
        if inactive.end > stable_end or too_young:
            break
        segments.append(inactive)
    return segments


def _inactive_segment(partition: Partition, base: int) -> InactiveSegment:
    path = segment_path(partition.folder, base)
    status = path.stat()
    return _read_segment(path, partition.source, status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=10_000)
def _read_segment(path: Path, source: TopicPartition, inode: int, changed_ns: int) -> InactiveSegment:
    """Read the headers of a segment, once per inode and time of change: housekeeping calls this every few minutes."""
    segment = Segment(path, source)
    segment.map_all()
    headers = [header for _, header in segment.frames()]
    horizons = [header.delete_horizon_ms for header in headers if header.delete_horizon_ms]
    dirty = any(not header.flags & HAS_OFFSETS for header in headers)
    greatest = max((header.max_timestamp for header in headers if header.records), default=0)
    end = headers[-1].next_offset if headers else segment.base_offset
    return InactiveSegment(segment.base_offset, segment.limit, dirty, end, greatest, min(horizons, default=0))


def _is_worthwhile(segments: list[InactiveSegment], now_ms: int, *, eager: bool) -> bool:
    dirty = sum(inactive.size for inactive in segments if inactive.dirty or 0 < inactive.horizon_ms <= now_ms)
    if eager:
        return dirty > 0
    return dirty > 0 and dirty >= _DIRTY_SHARE * sum(inactive.size for inactive in segments)


def _groups(segments: list[InactiveSegment], max_bytes: int) -> Iterator[list[InactiveSegment]]:
    group: list[InactiveSegment] = []
    for inactive in segments:
        if group and sum(each.size for each in group) + inactive.size > max_bytes:
            yield group
            group = []
        group.append(inactive)
    if group:
        yield group


def _visible(
    partition: Partition, group: Sequence[InactiveSegment], state_of: StateOf
) -> Iterator[tuple[FrameHeader, Batch | None]]:
    """Yield the frames of the segments in offset order; None in place of the records of aborted transactions."""
    next_offset = group[0].base
    for inactive in group:
        segment = Segment(segment_path(partition.folder, inactive.base), partition.source)
        segment.map_all()
        for place, header in segment.frames():
            if header.next_offset <= next_offset:
                continue
            next_offset = header.next_offset
            aborted = header.transaction_id and state_of(header.transaction_id) is TransactionState.ABORTED
            yield header, None if aborted else segment.checked_body(place, header)


def _last_offsets(partition: Partition, segments: list[InactiveSegment], state_of: StateOf) -> Offsets:
    """Return the offsets of the last record of every key, ascending."""
    tables = [pa.table({"key": pa.array([], pa.binary()), "offset": pa.array([], pa.int64())})]
    for _, batch in _visible(partition, segments, state_of):
        if batch is not None:
            tables.append(pa.table({"key": batch.keys, "offset": pa.array(batch.offsets)}))
            if sum(table.num_rows for table in tables[1:]) >= _KEYS_AT_ONCE:
                tables = [_last_of_each_key(tables)]
    offsets: Offsets = np.sort(_last_of_each_key(tables)["offset"].to_numpy())
    return offsets


def _last_of_each_key(tables: list[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(tables).group_by("key").aggregate([("offset", "max")])
    return pa.table({"key": grouped["key"], "offset": grouped["offset_max"]})


class _Rewriter:
    """A writer of the remaining records into a new segment, whose frames cover every offset of the old segments."""

    def __init__(self, partition: Partition, fd: int, base_offset: int, settings: TopicSettings) -> None:
        self._partition = partition
        self._fd = fd
        self._settings = settings
        self._position = 0
        self._base = self._next = base_offset
        self._batches: list[Batch] = []
        self._bytes = 0
        self._horizon_ms = 0
        self._compression = "none"

    def add(self, header: FrameHeader, batch: Batch | None, last_offsets: Offsets, now_ms: int) -> None:
        """Take the records of a frame that remain."""
        remaining = None if batch is None else self._remaining(header, batch, last_offsets, now_ms)
        if remaining is not None and len(remaining):
            size = byte_size(remaining)
            if self._batches and self._bytes + size > self._settings.max_message_bytes:
                self._write()
            self._batches.append(remaining)
            self._bytes += size
            self._compression = header.compression
            if remaining.values.null_count:
                horizon_ms = header.delete_horizon_ms or now_ms + self._settings.delete_retention_ms
                self._horizon_ms = max(self._horizon_ms, horizon_ms)
        self._next = header.next_offset

    def finish(self) -> None:
        """Write the buffered records; a frame without records covers offsets at the end whose records are gone."""
        if self._next > self._base:
            self._write()

    def _remaining(self, header: FrameHeader, batch: Batch, last_offsets: Offsets, now_ms: int) -> Batch:
        places = np.searchsorted(last_offsets, batch.offsets)
        places[places == len(last_offsets)] = 0
        keep = last_offsets[places] == batch.offsets if len(last_offsets) else np.zeros(len(batch), dtype=bool)
        if 0 < header.delete_horizon_ms <= now_ms:
            keep &= ~batch.values.is_null().to_numpy(zero_copy_only=False)
        return batch if keep.all() else _filter(batch, keep)

    def _write(self) -> None:
        empty = Batch(self._partition.source, np.zeros(0, dtype=np.int64), **_EMPTY)
        batch = join(self._batches) if self._batches else empty
        compression = self._settings.compression
        body = encode_body(
            batch, self._compression if compression == "producer" else compression, keep_offsets_from=self._base
        )
        header = encode_header(body, self._base, next_offset=self._next, delete_horizon_ms=self._horizon_ms)
        self._partition.disk.write_at(self._fd, [header, body.data], self._position)
        self._position += len(header) + body.data.size
        self._base = self._next
        self._batches = []
        self._bytes = 0
        self._horizon_ms = 0


def _filter(batch: Batch, keep: np.typing.NDArray[np.bool_]) -> Batch:
    mask = pa.array(keep)
    return Batch(
        batch.source,
        batch.offsets[keep],
        batch.keys.filter(mask),
        batch.values.filter(mask),
        batch.timestamps.filter(mask),
        None if batch.headers is None else batch.headers.filter(mask),
    )


def _swap(partition: Partition, group: Sequence[InactiveSegment]) -> None:
    """Replace the group by the rewritten segment, unless retention has removed a segment meanwhile."""
    target = segment_path(partition.folder, group[0].base)
    rewritten = target.with_suffix(".cleaned")
    with partition.locked():
        if not {inactive.base for inactive in group} <= set(partition.segments()):
            rewritten.unlink()
            return
        index_path(target).unlink(missing_ok=True)
        partition.disk.replace(rewritten, target)
        partition.disk.sync_folder(partition.folder)
        for inactive in group[1:]:
            path = segment_path(partition.folder, inactive.base)
            index_path(path).unlink(missing_ok=True)
            path.unlink()
        partition.disk.sync_folder(partition.folder)
