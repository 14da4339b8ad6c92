"""Consistency of the catalogue with the segments: it knows every transaction and every topic that they hold.

A transaction's row is there before its first frame. So a catalogue that misses one is an older copy, or the machine
lost what it had not written when its power failed.
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
from kstreams.log.embedded.catalogue.journaled_database import existing_log
from kstreams.log.embedded.catalogue.reconciliation import choose_copy_with_loss
from kstreams.log.embedded.catalogue.transactions import outdated_catalogue, unknown_transactions
from kstreams.log.embedded.disk import Disk, boot_id
from kstreams.log.embedded.segments.head import decode_head, is_trusted
from kstreams.log.embedded.segments.index import last_entry
from kstreams.log.embedded.segments.partition import segment_bases
from kstreams.log.embedded.segments.segment import Segment, segment_path

_logger = logging.getLogger("kstreams.log")


def repair(folder: str | Path) -> list[str]:
    """Take the copy of the catalogue that has more, and abort what the segments hold beyond it.

    Parameters
    ----------
    folder : str or Path
        A log's folder; no process may have it open.

    Returns
    -------
    list of str
        What was done and lost, a sentence each; empty when the catalogue is sound.

    Raises
    ------
    LogError
        When the folder holds no log, or nothing of its catalogue.

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
        done = [*catalogue.repairs, *forget_unknown(catalogue, root)]
    advice = "Applications that ran on it start anew from its offsets: delete their state folders before."
    return [f"{each}." for each in done] + ([advice] if done else [])


class TransactionReference(NamedTuple):
    """A transaction that a frame names."""

    transaction: int
    file: str
    position: int


def check_against_segments(catalogue: Catalogue, folder: Path, durability: str) -> None:
    """Compare the catalogue with the last frames of every partition.

    Raises
    ------
    CorruptLogError
        When it is older than they are, unless power failed and `durability` allows for that: then what it does not
        know is aborted, with a warning.
    """
    partitions = partition_folders(folder)
    tails = (reference for path, source in partitions for reference in _references(path, source, whole=False))
    missing = missing_in(catalogue, tails, partitions)
    if not missing:
        return
    if durability == "fsync" or catalogue.boot == boot_id():
        raise outdated_catalogue(folder, missing[0])
    for sentence in forget_unknown(catalogue, folder):
        _logger.warning("%s lost what was not yet on the disk when the machine went down: %s", folder, sentence)


def missing_in(
    catalogue: Catalogue, references: Iterable[TransactionReference], partitions: Iterable[tuple[Path, TopicPartition]]
) -> list[str]:
    """What the catalogue does not know of these transactions and folders, in words."""
    seen = {reference.transaction: reference for reference in references}
    unknown = unknown_transactions(catalogue, seen)
    found = [f"transaction {number} is in {seen[number].file} at byte {seen[number].position}" for number in unknown]
    newest = catalogue.newest_id("topics")
    strange = [path for path, _ in partitions if topic_id(path) > newest and has_records(path)]
    newest = catalogue.newest_id("topics")  # once more: a topic that was made meanwhile is none
    return found + [f"the topic {path.parent} is there" for path in strange if topic_id(path) > newest]


def forget_unknown(catalogue: Catalogue, folder: Path) -> list[str]:
    """Abort every transaction in the segments that the catalogue does not know; says what that was."""
    partitions = partition_folders(folder)
    seen = {each.transaction for path, source in partitions for each in _references(path, source, whole=True)}
    unknown = unknown_transactions(catalogue, seen)
    newest = max((topic_id(path) for path, _ in partitions), default=0)
    with catalogue.write() as database:
        sql = "INSERT INTO transactions VALUES (?, 0, 0, 'aborted', 0)"
        database.executemany(sql, [(number,) for number in unknown])
    catalogue.raise_id("topics", newest)
    done = [f"{len(unknown)} transactions are aborted"] if unknown else []
    known = {topic.id for topic in catalogue.topics().values()}
    strange = sorted({path.parent.name for path, _ in partitions if topic_id(path) not in known})
    return done + [f"topics/{name} belongs to no topic" for name in strange]


def partition_folders(root: Path) -> list[tuple[Path, TopicPartition]]:
    """Every partition's folder in a log's folder, and what it holds."""
    folders = [head.parent for head in sorted((root / "topics").glob("*@*/*/head"))]
    return [
        (folder, TopicPartition(folder.parent.name.rpartition("@")[0], int(folder.name)))
        for folder in folders
        if folder.name.isdecimal() and folder.parent.name.rpartition("@")[2].isdecimal()
    ]


def _references(folder: Path, source: TopicPartition, *, whole: bool) -> Iterator[TransactionReference]:
    """The transactions in a partition; where not all are asked for, those in its last frames."""
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
            for position, header in segment.sound_frames(*start):
                if header.transaction_id:
                    yield TransactionReference(header.transaction_id, str(segment.path), position)


def _last_filled(folder: Path, bases: list[int]) -> list[int]:
    return next(([base] for base in reversed(bases) if segment_path(folder, base).stat().st_size), [])


def topic_id(partition: Path) -> int:
    """The number of the topic to which a partition's folder belongs."""
    return int(partition.parent.name.rpartition("@")[2])


def has_records(partition: Path) -> bool:
    """Whether anything was ever written there."""
    with suppress(FileNotFoundError):
        return any(segment_path(partition, base).stat().st_size for base in segment_bases(partition))
    return False
