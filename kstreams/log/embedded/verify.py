"""Checking a whole log without changing it: every frame of every segment, the heads, the catalogue."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from pathlib import Path

from kstreams.batch import TopicPartition
from kstreams.errors import CorruptLogError, LogError
from kstreams.log.embedded.frame import BadFrameError, NewerFormatError
from kstreams.log.embedded.head import HEAD_SIZE, Head, decode_head, is_trusted
from kstreams.log.embedded.partition import segment_bases
from kstreams.log.embedded.segment import Damage, Segment, segment_path


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
    root = Path(folder)
    if not (root / "catalogue.sqlite").exists():
        raise LogError(f"{root} holds no log: there is no catalogue.sqlite in it.")
    found = list(_verify_catalogue(root / "catalogue.sqlite"))
    for partition in partition_folders(root):
        found += verify_partition(*partition)
    return found


def partition_folders(root: Path) -> list[tuple[Path, TopicPartition]]:
    """Every partition's folder in a log's folder, and what it holds."""
    folders = sorted((root / "topics").glob("*@*/*/head"))
    return [
        (head.parent, TopicPartition(head.parent.parent.name.rpartition("@")[0], int(head.parent.name)))
        for head in folders
    ]


def verify_partition(folder: Path, source: TopicPartition) -> Iterator[Damage]:
    """All damage in one partition."""
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
        end = yield from _verify_frames(segment)
        expected = max(expected, end)
    if head is not None and head.segment not in bases:
        missing = segment_path(folder, head.segment)
        yield Damage(str(missing), 0, head.segment, "the active segment is missing")


def _map(segment: Segment, head: Head | None) -> Iterator[Damage]:
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


def _verify_frames(segment: Segment) -> Generator[Damage, None, int]:
    """Damage in the mapped part of a segment; returns the offset after its last sound frame."""
    position, offset = 0, segment.base_offset
    while position < segment.limit:
        try:
            header = segment.header_at(position)
            if header.base_offset != offset:
                raise BadFrameError(f"the frame begins at offset {header.base_offset}")
            segment.body_at(position, header)
            position, offset = position + header.size, header.next_offset
        except (BadFrameError, NewerFormatError) as bad:
            yield Damage(str(segment.path), position, offset, str(bad))
            place = segment.find_frame(position + 8, offset)
            if place is None:
                return offset
            position, offset = place, segment.header_at(place).base_offset
    return offset


def _verify_catalogue(path: Path) -> Iterator[Damage]:
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        report = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        connection.close()
    except sqlite3.DatabaseError as error:
        report = [str(error)]
    for line in report:
        if line != "ok":
            yield Damage(str(path), 0, -1, line)
