"""`verify`: checks a whole log without changing it: frames, heads, indexes, and both copies of the catalogue."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from kstreams.errors import CorruptLogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.embedded.catalogue.journaled_database import (
    DAMAGE,
    DATABASE,
    JOURNAL,
    DatabaseContents,
    JournalContents,
    begin_write,
    existing_log,
    faults,
    read_contents,
    read_journal,
)
from kstreams.log.embedded.catalogue.rows import Tables, check_tables, read_tables
from kstreams.log.embedded.disk import FolderLock
from kstreams.log.embedded.segments.frame import BadFrameError, NewerFormatError
from kstreams.log.embedded.segments.index import index_path, wrong_entries
from kstreams.log.embedded.segments.partition import HEAD_SIZE, PartitionHead, decode_head, is_trusted, segment_bases
from kstreams.log.embedded.segments.segment import Damage, Segment, segment_path
from kstreams.log.embedded.upkeep.consistency import TransactionReference, has_records, partition_folders, topic_id


class CatalogueView(NamedTuple):
    """Both copies of the catalogue at one moment, and the damage in the database."""

    contents: DatabaseContents | None
    journal: JournalContents | None
    faults: list[str]


def verify_catalogue(root: Path, references: Mapping[int, TransactionReference]) -> Iterator[Damage]:
    """Yield all damage in the catalogue.

    Parameters
    ----------
    root : Path
        The log's folder.
    references : mapping of transaction id to TransactionReference
        The transactions in the segments.
    """
    try:
        with closing(FolderLock(root)) as folder_lock, folder_lock.opening() as alone:
            view = _view(root, alone)
    except OSError:  # a folder that is not writable has no writers
        view = _view(root, alone=True)
    yield from (Damage(str(root / DATABASE), 0, -1, fault) for fault in view.faults)
    yield from _verify_journal(root, view)
    tables = _newest_tables(view)
    if tables is not None:
        yield from _verify_tables(root, tables, references)


def _view(root: Path, alone: bool) -> CatalogueView:
    """Read both copies; if other processes have the log open, under the write lock, so that no change is half done."""
    if not (root / DATABASE).exists():
        return CatalogueView(
            None,
            _read_journal(root),
            ["it is missing; the next opening rebuilds it from the journal"],
        )
    mode = "ro" if alone else "rw"
    try:
        with closing(
            sqlite3.connect(f"file:{root / DATABASE}?mode={mode}", uri=True, isolation_level=None)
        ) as database:
            if alone:
                database.execute("BEGIN")
            else:
                begin_write(database, root / DATABASE)
            if database.execute("PRAGMA user_version").fetchone()[0] == 1:
                return _view_of_format_1(database)
            return CatalogueView(read_contents(database), _read_journal(root), list(faults(database)))
    except DAMAGE as error:
        return CatalogueView(None, _read_journal(root), [str(error)])


def _view_of_format_1(database: sqlite3.Connection) -> CatalogueView:
    """Read a catalogue of format 1, which has no journal to compare it with."""
    lines = [line for (line,) in database.execute("PRAGMA integrity_check") if line != "ok"]
    tables = read_tables(database)
    return CatalogueView(None, JournalContents(tables, 0, 0, b"", 0, ""), lines)


def _read_journal(root: Path) -> JournalContents | None:
    try:
        return read_journal((root / JOURNAL).read_bytes())
    except FileNotFoundError:
        return None


def _newest_tables(view: CatalogueView) -> Tables | None:
    contents = view.contents
    journal = view.journal
    if journal is None or (contents is not None and contents.state.sequence >= journal.sequence):
        return None if contents is None else contents.tables
    return journal.tables


def _verify_journal(root: Path, view: CatalogueView) -> Iterator[Damage]:
    contents = view.contents
    journal = view.journal
    if journal is None:
        yield Damage(str(root / JOURNAL), 0, -1, "it is missing")
        return
    if journal.damage and not journal.is_whole:
        yield Damage(str(root / JOURNAL), journal.end, -1, journal.damage)
    if contents is None:
        return
    if journal.newest > contents.state.sequence:
        finding = f"it ends with change {contents.state.sequence}, its journal with {journal.newest}"
        yield Damage(str(root / DATABASE), 0, -1, finding)
    elif journal.sequence < contents.state.sequence:
        finding = f"it ends with change {journal.sequence}, {DATABASE} with {contents.state.sequence}"
        yield Damage(str(root / JOURNAL), journal.end, -1, finding)
    elif journal.tables != contents.tables:
        yield Damage(str(root / JOURNAL), 0, -1, f"its rows differ from those of {DATABASE}")


def _verify_tables(root: Path, tables: Tables, references: Mapping[int, TransactionReference]) -> Iterator[Damage]:
    path = str(root / DATABASE)
    try:
        check_tables(tables, path)
    except CorruptLogError as impossible:
        yield Damage(path, 0, -1, str(impossible))
        return
    marks = {name: value for name, value in tables["marks"].values()}
    for number, reference in references.items():
        if number and (number,) not in tables["transactions"] and number >= marks.get("settled", 0):
            finding = f"a frame of transaction {number}, which is not in the catalogue"
            yield Damage(reference.file, reference.position, -1, finding)
    yield from _verify_topics(root, tables, marks.get("last of topics", 0))


def _verify_topics(root: Path, tables: Tables, newest: int) -> Iterator[Damage]:
    for number, name, partitions, _ in tables["topics"].values():
        folder = root / "topics" / f"{name}@{number}"
        for partition in range(partitions):
            if not (folder / str(partition) / "head").exists():
                yield Damage(str(folder / str(partition)), 0, -1, "the partition has no folder with a head")
    for path, _ in partition_folders(root):
        if newest and topic_id(path) > newest and has_records(path):
            yield Damage(str(path), 0, -1, "a partition of a topic that is not in the catalogue")


def verify(folder: str | Path) -> list[Damage]:
    """Return all damage in a log's folder; an empty list if there is none.

    Bytes after the published end are no damage: a dead writer left them, and the next writer cuts them.

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
    references: dict[int, TransactionReference] = {}
    damage_in_partitions = [
        damage for path, source in partition_folders(root) for damage in verify_partition(path, source, references)
    ]
    return [*verify_catalogue(root, references), *damage_in_partitions]


def verify_partition(
    folder: Path, source: TopicPartition, references: dict[int, TransactionReference]
) -> Iterator[Damage]:
    """Yield all damage in one partition, and add its transactions to `references` (by id)."""
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
        yield from _map_segment(segment, active)
        end = yield from _verify_frames(segment, references)
        yield from _verify_index(segment)
        expected = max(expected, end)
    if head is not None and head.segment not in bases:
        active_path = segment_path(folder, head.segment)
        yield Damage(str(active_path), 0, head.segment, "the active segment is missing")


def _map_segment(segment: Segment, head: PartitionHead | None) -> Iterator[Damage]:
    """Map the published part of a segment; all of it if the head is from another boot, and so may be wrong."""
    if head is None or not is_trusted(head):
        segment.map_all()
        return
    try:
        segment.map(head.position)
    except CorruptLogError:
        segment.map_all()
        yield Damage(str(segment.path), segment.limit, -1, f"{head.position - segment.limit} bytes are missing here")


def _verify_frames(segment: Segment, references: dict[int, TransactionReference]) -> Generator[Damage, None, int]:
    """Yield damage in the mapped part of a segment; return the offset after its last valid frame."""
    position = 0
    offset = segment.base_offset
    while position < segment.limit:
        try:
            header = segment.header_at(position)
            if header.base_offset != offset:
                raise BadFrameError(f"the frame begins at offset {header.base_offset}")
            segment.body_at(position, header)
            references.setdefault(
                header.transaction_id, TransactionReference(header.transaction_id, str(segment.path), position)
            )
            position = position + header.size
            offset = header.next_offset
        except (BadFrameError, NewerFormatError) as bad:
            yield Damage(str(segment.path), position, offset, str(bad))
            next_position = segment.find_frame(position + 8, offset)
            if next_position is None:
                return offset
            position = next_position
            offset = segment.header_at(next_position).base_offset
    return offset


def _verify_index(segment: Segment) -> Iterator[Damage]:
    for position in wrong_entries(segment):
        finding = "an entry that names no frame; the index is rebuilt when it is needed"
        yield Damage(str(index_path(segment.path)), position, -1, finding)
