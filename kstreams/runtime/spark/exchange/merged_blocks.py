"""`MergedBlocks`: the rows that several tasks wrote to one topic partition, merged into their reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from mmap import ACCESS_READ, mmap
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.runtime.spark.exchange.blocks import MOST_ROWS, Block
from kstreams.runtime.spark.exchange.rows import Longs, batch_of

IN_MEMORY = 64 << 20
"""The bytes of rows that one task holds in memory."""


def held(blocks: Iterable[Block], folder: Path, in_memory: int = IN_MEMORY) -> list[Block]:
    """Read all blocks. Rows beyond a size go to a file, which is deleted with the last block that uses it.

    Spark gives the rows of a shuffle once, and in no order between writers. A task reads some of them before others,
    and all of them twice where it finds its state damaged.

    Parameters
    ----------
    blocks : iterable of Block
    folder : Path
        On the disk of the executor; made where it is missing.
    in_memory : int
        Bytes of rows that stay in memory.
    """
    blocks_in_memory = list[Block]()
    size = 0
    remaining = iter(blocks)
    while size < in_memory and (block := next(remaining, None)) is not None:
        blocks_in_memory.append(block)
        size += 0 if block.rows is None else len(block.rows)
    return blocks_in_memory + list(_in_a_file(remaining, folder))


def _in_a_file(blocks: Iterator[Block], folder: Path) -> Iterator[Block]:
    first = next(blocks, None)
    if first is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as file:
        places = [(block._replace(rows=None), _written(block, file)) for block in chain([first], blocks)]
        file.flush()
        whole = pa.py_buffer(mmap(file.fileno(), 0, access=ACCESS_READ) if file.tell() else b"")
    for block, place in places:
        yield block if place is None else block._replace(rows=whole.slice(*place))


def _written(block: Block, file: IO[bytes]) -> tuple[int, int] | None:
    """Write the rows of a block, and return their position in the file and their size; None without rows."""
    return None if block.rows is None else (file.tell(), file.write(block.rows))


@dataclass(frozen=True)
class MergedBlocks:
    """The rows of one topic partition. Each iteration merges them again, batch by batch.

    They come in the order of the stream times at which they were written; of equal ones the writer with the lower
    origin goes first. The rows of one writer keep their order.

    Parameters
    ----------
    source : TopicPartition
    blocks : sequence of Block
        In order of origins, those of one writer in order of their numbers.
    rows_ahead : int
        At least so many rows of each writer are held, if there are any.
    """

    source: TopicPartition
    blocks: Sequence[Block]
    rows_ahead: int = MOST_ROWS

    def __iter__(self) -> Iterator[Batch]:
        writers = [_Writer(mine, self.rows_ahead) for _, mine in groupby(self.blocks, attrgetter("origin"))]
        while writers := [writer for writer in writers if writer.fill()]:
            unfinished = [(writer.last, place) for place, writer in enumerate(writers) if writer.has_more]
            until = min(unfinished, default=None)
            pieces = [writer.take(until, place) for place, writer in enumerate(writers)]
            yield batch_of(self.source, *_in_order([piece for piece in pieces if len(piece[1])]))


BEFORE_ALL = -(2**63)
"""A time before all rows."""

Piece = tuple[pa.Table, Longs]
"""Rows, and the times by which they are merged."""


class _Writer:
    """The buffered rows of one writer."""

    def __init__(self, blocks: Iterable[Block], rows_ahead: int) -> None:
        self._blocks = list(blocks)[::-1]
        self._rows_ahead = rows_ahead
        self._ahead: list[pa.RecordBatch] = []
        self._times: Longs = np.zeros(0, np.int64)
        self._reached = BEFORE_ALL

    @property
    def has_more(self) -> bool:
        """True if there are more rows than the buffered ones."""
        return bool(self._blocks)

    @property
    def last(self) -> int:
        """The time of the last buffered row: no later row has a lower time."""
        return int(self._times[-1])

    def fill(self) -> bool:
        """Buffer more rows. Return False if there are none left."""
        num_missing = self._rows_ahead - len(self._times)
        added = list[pa.RecordBatch]()
        while self._blocks and num_missing > 0:
            added.append(self._blocks.pop().content())
            num_missing -= len(added[-1])
        if added:
            times = np.concatenate([[self._reached], *(rows["stream_time"].to_numpy() for rows in added)])
            self._times = np.concatenate([self._times, np.maximum.accumulate(times)[1:]])
            self._ahead = [*self._ahead, *added]
            self._reached = self.last
        return len(self._times) > 0

    def take(self, until: tuple[int, int] | None, place: int) -> Piece:
        """Remove and return the rows before `until`: the last time of the writer at a position; None for all rows."""
        count = len(self._times)
        if until is not None:
            time, of_other = until
            count = int(np.searchsorted(self._times, time, side="right" if place <= of_other else "left"))
        table = pa.Table.from_batches(self._ahead)
        times = self._times
        self._ahead = table.slice(count).to_batches()
        self._times = times[count:]
        return table.slice(0, count), times[:count]


def _in_order(pieces: Sequence[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    rows = pa.concat_tables([table for table, _ in pieces])
    times = np.concatenate([times for _, times in pieces])
    order = np.argsort(times, kind="stable")
    return rows.take(pa.array(order)), times[order]


def merged(blocks: Iterable[Block]) -> dict[TopicPartition, MergedBlocks]:
    """Group blocks, which may be in any order, by the topic partition to which they were written."""
    groups = groupby(sorted(blocks, key=_by_writer), attrgetter("topic", "partition"))
    return {TopicPartition(*source): MergedBlocks(TopicPartition(*source), list(mine)) for source, mine in groups}


_by_writer = attrgetter("topic", "partition", "origin", "number")
