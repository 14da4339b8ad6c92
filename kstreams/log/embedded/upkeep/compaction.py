"""Compaction: of each key only the last record stays, at its offset; deleted keys go after a time.

Sealed segments are rewritten one group at a time, small ones together into one, and swapped in by a rename. A crash
between the rename and the removal of the segments that went into it leaves segments whose offsets the new one holds
too: readers pass over them, and the next compaction removes them.
"""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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

_DIRTY_SHARE = 0.5  # Kafka's min.cleanable.dirty.ratio
_KEYS_AT_ONCE = 1_000_000
_EMPTY = {
    "keys": pa.nulls(0, pa.binary()),
    "values": pa.nulls(0, pa.binary()),
    "timestamps": pa.nulls(0, pa.int64()),
}

Offsets = np.ndarray[Any, np.dtype[np.int64]]


class InactiveSegment(NamedTuple):
    """What is known of an inactive segment before it is compacted."""

    base: int
    size: int
    dirty: bool
    end: int
    max_timestamp: int
    horizon_ms: int  # earliest time after which a tombstone in it may go; 0 when it has none


def compact(
    partition: Partition, settings: TopicSettings, stable_end: int, state_of: StateOf, now_ms: int, *, eager: bool
) -> None:
    """Compact a partition's inactive segments, unless another process is at it.

    Parameters
    ----------
    partition : Partition
    settings : TopicSettings
    stable_end : int
        Only segments that end at or before it are compacted: what lies after may still be aborted.
    fate_of : callable
    now_ms : int
    eager : bool
        Compact whatever can be; else only when half of the bytes were never compacted.
    """
    fd = create_file(partition.folder / "compaction.lock")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left_over in partition.folder.glob("*.cleaned"):
            left_over.unlink()
        ready = _ready(partition, settings, stable_end, now_ms)
        if _is_worth_it(ready, now_ms, eager):
            _compact(partition, settings, ready, state_of, now_ms)
    except BlockingIOError:
        return
    finally:
        os.close(fd)


def _compact(
    partition: Partition, settings: TopicSettings, ready: list[InactiveSegment], state_of: StateOf, now_ms: int
) -> None:
    last_offsets = _last_offsets(partition, ready, state_of)
    for group in _groups(ready, settings.limits.segment_bytes):
        target = segment_path(partition.folder, group[0].base)
        spare = target.with_suffix(".cleaned")
        fd = create_file(spare, os.O_TRUNC)
        try:
            rewriter = _Rewriter(partition, fd, group[0].base, settings)
            for header, batch in _visible(partition, group, state_of):
                rewriter.add(header, batch, last_offsets, now_ms)
            rewriter.finish()
            partition.disk.sync(fd)
        except Exception:
            spare.unlink(missing_ok=True)  # a full disk needs the room
            raise
        finally:
            os.close(fd)
        _swap(partition, group)


def _ready(partition: Partition, settings: TopicSettings, stable_end: int, now_ms: int) -> list[InactiveSegment]:
    head = partition.head()
    lag_ms = settings.min_compaction_lag_ms
    ready: list[InactiveSegment] = []
    for base in partition.segments():
        if base >= head.segment:
            break
        inactive = _look_at(partition, base)
        too_young = inactive.max_timestamp > now_ms - lag_ms if lag_ms else False
        if inactive.end > stable_end or too_young:
            break
        ready.append(inactive)
    return ready


def _look_at(partition: Partition, base: int) -> InactiveSegment:
    path = segment_path(partition.folder, base)
    about = path.stat()
    return _sealed(path, partition.source, about.st_ino, about.st_mtime_ns)


@functools.lru_cache(maxsize=10_000)
def _sealed(path: Path, source: TopicPartition, inode: int, changed_ns: int) -> InactiveSegment:
    """The same, remembered as long as it is the same file: housekeeping looks at all of them again and again."""
    segment = Segment(path, source)
    segment.map_all()
    headers = [header for _, header in segment.frames()]
    horizons = [header.delete_horizon_ms for header in headers if header.delete_horizon_ms]
    dirty = any(not header.flags & HAS_OFFSETS for header in headers)
    greatest = max((header.max_timestamp for header in headers if header.records), default=0)
    end = headers[-1].next_offset if headers else segment.base_offset
    return InactiveSegment(segment.base_offset, segment.limit, dirty, end, greatest, min(horizons, default=0))


def _is_worth_it(ready: list[InactiveSegment], now_ms: int, eager: bool) -> bool:
    dirty = sum(inactive.size for inactive in ready if inactive.dirty or 0 < inactive.horizon_ms <= now_ms)
    if eager:
        return dirty > 0
    return dirty > 0 and dirty >= _DIRTY_SHARE * sum(inactive.size for inactive in ready)


def _groups(ready: list[InactiveSegment], most_bytes: int) -> Iterator[list[InactiveSegment]]:
    group: list[InactiveSegment] = []
    for inactive in ready:
        if group and sum(each.size for each in group) + inactive.size > most_bytes:
            yield group
            group = []
        group.append(inactive)
    if group:
        yield group


def _visible(
    partition: Partition, group: Sequence[InactiveSegment], state_of: StateOf
) -> Iterator[tuple[FrameHeader, Batch | None]]:
    """The frames of the segments in offset order; without records where they were aborted."""
    done = group[0].base
    for inactive in group:
        segment = Segment(segment_path(partition.folder, inactive.base), partition.source)
        segment.map_all()
        for place, header in segment.frames():
            if header.next_offset <= done:
                continue
            done = header.next_offset
            aborted = header.transaction_id and state_of(header.transaction_id) is TransactionState.ABORTED
            yield header, None if aborted else segment.checked_body(place, header)


def _last_offsets(partition: Partition, ready: list[InactiveSegment], state_of: StateOf) -> Offsets:
    """Offsets of the last record of every key, ascending."""
    table = pa.table({"key": pa.array([], pa.binary()), "offset": pa.array([], pa.int64())})
    waiting = [table]
    for _, batch in _visible(partition, ready, state_of):
        if batch is not None:
            waiting.append(pa.table({"key": batch.keys, "offset": pa.array(batch.offsets)}))
            if sum(part.num_rows for part in waiting[1:]) >= _KEYS_AT_ONCE:
                waiting = [_last_of_each(waiting)]
    found: Offsets = np.sort(_last_of_each(waiting)["offset"].to_numpy())
    return found


def _last_of_each(tables: list[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(tables).group_by("key").aggregate([("offset", "max")])
    return pa.table({"key": grouped["key"], "offset": grouped["offset_max"]})


class _Rewriter:
    """Writes the records that stay into a new segment whose frames cover every offset of the old ones."""

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
        """Take over what stays of a frame."""
        kept = None if batch is None else self._keep(header, batch, last_offsets, now_ms)
        if kept is not None and len(kept):
            size = byte_size(kept)
            if self._batches and self._bytes + size > self._settings.max_message_bytes:
                self._write()
            self._batches.append(kept)
            self._bytes += size
            self._compression = header.compression
            if kept.values.null_count:
                horizon_ms = header.delete_horizon_ms or now_ms + self._settings.delete_retention_ms
                self._horizon_ms = max(self._horizon_ms, horizon_ms)
        self._next = header.next_offset

    def finish(self) -> None:
        """Write what waits, with a frame without records where nothing stayed at the end."""
        if self._next > self._base:
            self._write()

    def _keep(self, header: FrameHeader, batch: Batch, last_offsets: Offsets, now_ms: int) -> Batch:
        places = np.searchsorted(last_offsets, batch.offsets)
        places[places == len(last_offsets)] = 0
        keep = last_offsets[places] == batch.offsets if len(last_offsets) else np.zeros(len(batch), dtype=bool)
        if 0 < header.delete_horizon_ms <= now_ms:
            keep &= ~batch.values.is_null().to_numpy(zero_copy_only=False)
        return batch if keep.all() else _filter(batch, keep)

    def _write(self) -> None:
        none = Batch(self._partition.source, np.zeros(0, dtype=np.int64), **_EMPTY)
        batch = join(self._batches) if self._batches else none
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


def _filter(batch: Batch, keep: np.ndarray[Any, np.dtype[np.bool_]]) -> Batch:
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
    """Put the rewritten segment in the place of the group, unless retention was faster."""
    target = segment_path(partition.folder, group[0].base)
    spare = target.with_suffix(".cleaned")
    with partition.locked():
        if not {inactive.base for inactive in group} <= set(partition.segments()):
            spare.unlink()
            return
        index_path(target).unlink(missing_ok=True)
        partition.disk.replace(spare, target)
        partition.disk.sync_folder(partition.folder)
        for inactive in group[1:]:
            path = segment_path(partition.folder, inactive.base)
            index_path(path).unlink(missing_ok=True)
            path.unlink()
        partition.disk.sync_folder(partition.folder)
