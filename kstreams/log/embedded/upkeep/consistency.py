"""Consistency of the catalogue with the segments, whose transactions and topics it must have; and its repair.

A transaction's row exists before its first frame. So a catalogue without a transaction of the segments is an older
copy, or the machine lost unwritten changes in a power failure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.embedded.catalogue.journaled_database import choose_copy_with_loss, existing_log
from kstreams.log.embedded.catalogue.transactions import outdated_catalogue, unknown_transactions
from kstreams.log.embedded.disk import Disk, boot_id
from kstreams.log.embedded.segments.index import last_entry
from kstreams.log.embedded.segments.partition import decode_head, is_trusted, segment_bases
from kstreams.log.embedded.segments.segment import Segment, segment_path

_logger = logging.getLogger("kstreams.log")


def repair(folder: str | Path) -> list[str]:
    """Use the copy of the catalogue with more changes, and abort transactions of the segments that it does not have.

    Parameters
    ----------
    folder : str or Path
        A log's folder; no process may have it open.

    Returns
    -------
    list of str
        One sentence for each change and loss; empty if the catalogue is not damaged.

    Raises
    ------
    LogError
        When the folder has no log, or both copies of the catalogue are lost.

    Examples
    --------
    >>> import tempfile
    >>> from kstreams.log import open_log
    >>> folder = tempfile.mkdtemp()
    >>> open_log(folder).close()
    >>> repair(folder)
    []
    """
    root = existing_log(folder)
    with closing(Catalogue(root, "os", Disk(), choose_copy_with_loss)) as catalogue:
        changes = [*catalogue.repairs, *abort_unknown(catalogue, root)]
    advice = "Applications of this log start again from its offsets: delete their state folders before."
    return [f"{each}." for each in changes] + ([advice] if changes else [])


class TransactionReference(NamedTuple):
    """A frame with its transaction."""

    transaction: int
    file: str
    position: int


def check_against_segments(catalogue: Catalogue, folder: Path, durability: str) -> None:
    """Compare the catalogue with the last frames of every partition.

    Raises
    ------
    CorruptLogError
        When it is older than the segments. After a power failure that `durability` does not cover, unknown transactions
        are aborted instead, with a warning.
    """
    partitions = partition_folders(folder)
    tails = (reference for path, source in partitions for reference in _references(path, source, whole=False))
    findings = missing_entries(catalogue, tails, partitions)
    if not findings:
        return
    if durability == "fsync" or catalogue.boot == boot_id():
        raise outdated_catalogue(folder, findings[0])
    for sentence in abort_unknown(catalogue, folder):
        _logger.warning("%s lost changes that were not on the disk when the machine went down: %s", folder, sentence)


def missing_entries(
    catalogue: Catalogue, references: Iterable[TransactionReference], partitions: Iterable[tuple[Path, TopicPartition]]
) -> list[str]:
    """Describe the transactions and topics that the catalogue does not have."""
    by_transaction = {reference.transaction: reference for reference in references}
    unknown = [by_transaction[number] for number in unknown_transactions(catalogue, by_transaction)]
    findings = [f"transaction {frame.transaction} is in {frame.file} at byte {frame.position}" for frame in unknown]
    newest = catalogue.newest_id("topics")
    unknown_folders = [path for path, _ in partitions if topic_id(path) > newest and has_records(path)]
    newest = catalogue.newest_id("topics")  # read again: a topic may have been created meanwhile
    return findings + [f"the topic {path.parent} is there" for path in unknown_folders if topic_id(path) > newest]


def abort_unknown(catalogue: Catalogue, folder: Path) -> list[str]:
    """Abort every transaction in the segments that the catalogue does not have; return a description of each change."""
    partitions = partition_folders(folder)
    references = {each.transaction for path, source in partitions for each in _references(path, source, whole=True)}
    unknown = unknown_transactions(catalogue, references)
    newest = max((topic_id(path) for path, _ in partitions), default=0)
    with catalogue.write() as database:
        sql = "INSERT INTO transactions VALUES (?, 0, 0, 'aborted', 0)"
        database.executemany(sql, [(number,) for number in unknown])
    catalogue.raise_id("topics", newest)
    changes = [f"{len(unknown)} transactions are aborted"] if unknown else []
    existing_ids = {topic.id for topic in catalogue.topics().values()}
    unknown_folders = sorted({path.parent.name for path, _ in partitions if topic_id(path) not in existing_ids})
    return changes + [f"topics/{name} belongs to no topic" for name in unknown_folders]


def partition_folders(root: Path) -> list[tuple[Path, TopicPartition]]:
    """Return the folders of all partitions in a log's folder."""
    folders = [head.parent for head in sorted((root / "topics").glob("*@*/*/head"))]
    return [
        (folder, TopicPartition(folder.parent.name.rpartition("@")[0], int(folder.name)))
        for folder in folders
        if folder.name.isdecimal() and folder.parent.name.rpartition("@")[2].isdecimal()
    ]


def _references(folder: Path, source: TopicPartition, *, whole: bool) -> Iterator[TransactionReference]:
    """Yield the transactions in a partition; without `whole`, those in its last frames."""
    with suppress(FileNotFoundError, LogError):
        head = decode_head((folder / "head").read_bytes())
        bases = [base for base in segment_bases(folder) if head is None or base <= head.segment]
        for base in bases if whole else _last_filled(folder, bases):
            segment = Segment(segment_path(folder, base), source)
            if head is not None and base == head.segment and is_trusted(head):
                segment.map(head.position)
            else:
                segment.map_all()
            start = (0, base) if whole else last_entry(segment)[1::-1]
            for position, header in segment.valid_frames(*start):
                if header.transaction_id:
                    yield TransactionReference(header.transaction_id, str(segment.path), position)


def _last_filled(folder: Path, bases: list[int]) -> list[int]:
    return next(([base] for base in reversed(bases) if segment_path(folder, base).stat().st_size), [])


def topic_id(partition: Path) -> int:
    """Return the id of the topic of a partition's folder."""
    return int(partition.parent.name.rpartition("@")[2])


def has_records(partition: Path) -> bool:
    """Return whether a partition's folder has records."""
    with suppress(FileNotFoundError):
        return any(segment_path(partition, base).stat().st_size for base in segment_bases(partition))
    return False
