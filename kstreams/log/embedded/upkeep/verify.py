"""Checking a whole log without changing it: every frame of every segment, heads, indexes, the catalogue."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

from kstreams.batch import TopicPartition
from kstreams.errors import CorruptLogError
from kstreams.log.embedded.catalogue.journaled_database import existing_log
from kstreams.log.embedded.segments.frame import BadFrameError, NewerFormatError
from kstreams.log.embedded.segments.head import HEAD_SIZE, PartitionHead, decode_head, is_trusted
from kstreams.log.embedded.segments.index import index_path, wrong_entries
from kstreams.log.embedded.segments.partition import segment_bases
from kstreams.log.embedded.segments.segment import Damage, Segment, segment_path
from kstreams.log.embedded.upkeep.consistency import TransactionReference, partition_folders
from kstreams.log.embedded.upkeep.verify_catalogue import verify_catalogue


def verify(folder: str | Path) -> list[Damage]:
    """All damage in a log's folder; an empty list when it is sound.

    Bytes after the published end are what a dead writer left and no damage: the next writer cuts them.

    Parameters
    ----------
    folder : str or Path

    Raises
    ------
    LogError
        When the folder holds no log.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.log import open_log
    >>> folder = tempfile.mkdtemp()
    >>> open_log(folder).close()
    >>> verify(folder)
    []
    """
    root = existing_log(folder)
    seen: dict[int, TransactionReference] = {}
    found = [damage for partition in partition_folders(root) for damage in verify_partition(*partition, seen)]
    return [*verify_catalogue(root, seen), *found]


def verify_partition(folder: Path, source: TopicPartition, seen: dict[int, TransactionReference]) -> Iterator[Damage]:
    """All damage in one partition; the transactions in it are added to `seen`."""
    raw = (folder / "head").read_bytes()
    head = decode_head(raw)
    if head is None:
        yield Damage(
            str(folder / "head"), 0, -1, f"{len(raw)} bytes that are no head of {HEAD_SIZE}; it will be rebuilt"
        )
    bases = [base for base in segment_bases(folder) if head is None or base <= head.segment]
    expected = bases[0] if bases else 0
    for base in bases:
        segment = Segment(segment_path(folder, base), source)
        if base > expected:
            yield Damage(str(segment.path), 0, expected, f"the records from offset {expected} to {base} are missing")
        active = head if head is not None and base == head.segment else None
        yield from _map(segment, active)
        end = yield from _verify_frames(segment, seen)
        yield from _verify_index(segment)
        expected = max(expected, end)
    if head is not None and head.segment not in bases:
        missing = segment_path(folder, head.segment)
        yield Damage(str(missing), 0, head.segment, "the active segment is missing")


def _map(segment: Segment, head: PartitionHead | None) -> Iterator[Damage]:
    """Map what is published; a head of another boot may be ahead of its frames, so there the whole file counts."""
    try:
        if head is not None and is_trusted(head):
            segment.map(head.position)
        else:
            segment.map_all()
    except CorruptLogError:
        assert head is not None
        segment.map_all()
        yield Damage(str(segment.path), segment.limit, -1, f"{head.position - segment.limit} bytes are missing here")


def _verify_frames(segment: Segment, seen: dict[int, TransactionReference]) -> Generator[Damage, None, int]:
    """Damage in the mapped part of a segment; returns the offset after its last sound frame."""
    position = 0
    offset = segment.base_offset
    while position < segment.limit:
        try:
            header = segment.header_at(position)
            if header.base_offset != offset:
                raise BadFrameError(f"the frame begins at offset {header.base_offset}")
            segment.body_at(position, header)
            seen.setdefault(
                header.transaction_id, TransactionReference(header.transaction_id, str(segment.path), position)
            )
            position = position + header.size
            offset = header.next_offset
        except (BadFrameError, NewerFormatError) as bad:
            yield Damage(str(segment.path), position, offset, str(bad))
            place = segment.find_frame(position + 8, offset)
            if place is None:
                return offset
            position = place
            offset = segment.header_at(place).base_offset
    return offset


def _verify_index(segment: Segment) -> Iterator[Damage]:
    for position in wrong_entries(segment):
        what = "an entry that names no frame; the index is made anew when it is needed"
        yield Damage(str(index_path(segment.path)), position, -1, what)
