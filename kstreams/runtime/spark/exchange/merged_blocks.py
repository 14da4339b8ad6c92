"""`MergedBlocks`: the rows that several tasks wrote to one topic partition, merged into their reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from mmap import ACCESS_READ, mmap
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, Integers, TopicPartition
from kstreams.processor.task.partition_group import Place
from kstreams.runtime.spark.exchange.blocks import MAX_ROWS, Block
from kstreams.runtime.spark.exchange.rows import batch_of

MEMORY_BYTES = 64 << 20
"""The bytes of rows that one task buffers in memory."""


def spilled(blocks: Iterable[Block], folder: Path, memory_bytes: int = MEMORY_BYTES) -> list[Block]:
    """Read all blocks, and spill rows beyond a size to a file, which is deleted with the last block that uses it.

    Spark returns the rows of a shuffle only once, and without an order between writers. A task reads them in order of
    time, and reads them again if its state is damaged.

    Parameters
    ----------
    blocks : iterable of Block
    folder : Path
        A folder on the disk of the executor, which is created if it does not exist.
    memory_bytes : int
        The bytes of rows that stay in memory.
    """
    blocks_in_memory = list[Block]()
    size = 0
    remaining = iter(blocks)
    while size < memory_bytes and (block := next(remaining, None)) is not None:
        blocks_in_memory.append(block)
        size += 0 if block.rows is None else len(block.rows)
    return blocks_in_memory + list(_in_a_file(remaining, folder))


def _in_a_file(blocks: Iterator[Block], folder: Path) -> Iterator[Block]:
    first = next(blocks, None)
    if first is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as file:
        blocks_and_slices = [(block._replace(rows=None), _written(block, file)) for block in chain([first], blocks)]
        file.flush()
        content = pa.py_buffer(mmap(file.fileno(), 0, access=ACCESS_READ) if file.tell() else b"")
    for block, file_slice in blocks_and_slices:
        yield block if file_slice is None else block._replace(rows=content.slice(*file_slice))


def _written(block: Block, file: IO[bytes]) -> tuple[int, int] | None:
    """Write the rows of a block, and return their position in the file and their size; None without rows."""
    return None if block.rows is None else (file.tell(), file.write(block.rows))


@dataclass(frozen=True)
class MergedBlocks:
    """The rows of one topic partition. Each iteration merges them again, batch by batch.

    Rows are in the order of the stream times at which they were written, then of their ranks. Of equal ones, the writer
    with the lower origin goes first. The rows of one writer keep their order.

    Parameters
    ----------
    source : TopicPartition
    blocks : sequence of Block
        The blocks in order of (origin, number).
    buffered_rows : int
        The number of rows of each writer that are buffered at least, if it has so many.
    """

    source: TopicPartition
    blocks: Sequence[Block]
    buffered_rows: int = MAX_ROWS

    def __iter__(self) -> Iterator[Batch]:
        by_writer = groupby(self.blocks, attrgetter("origin"))
        writers = [_Writer(blocks, self.buffered_rows) for _, blocks in by_writer]
        has_ranks = self._has_ranks()
        while writers := [writer for writer in writers if writer.fill()]:
            unfinished = [(writer.last_place, index) for index, writer in enumerate(writers) if writer.has_more]
            until = min(unfinished, default=None)
            sorted_rows = [writer.take(until, index) for index, writer in enumerate(writers)]
            rows, times, ranks = _merge([rows for rows in sorted_rows if len(rows.times)])
            yield batch_of(self.source, rows, times, ranks if has_ranks else None)

    def _has_ranks(self) -> bool:
        return bool(self.blocks[0].content()["rank"].null_count == 0)


BEFORE_ALL = -(2**63)
"""A time before all rows."""


class PlacedRows(NamedTuple):
    """Rows, and the times and ranks by which they are merged."""

    rows: pa.Table
    times: Integers
    ranks: Integers


class _Writer:
    """The buffered rows of one writer."""

    def __init__(self, blocks: Iterable[Block], buffered_rows: int) -> None:
        self._blocks = list(blocks)[::-1]
        self._buffered_rows = buffered_rows
        self._buffer: list[pa.RecordBatch] = []
        self._times: Integers = np.zeros(0, np.int64)
        self._ranks: Integers = np.zeros(0, np.int64)
        self._stream_time = BEFORE_ALL

    @property
    def has_more(self) -> bool:
        """True if there are more rows than the buffered ones."""
        return bool(self._blocks)

    @property
    def last_place(self) -> Place:
        """The place of the last buffered row: no later row has a lower one."""
        return Place(int(self._times[-1]), int(self._ranks[-1]))

    def fill(self) -> bool:
        """Buffer more rows. Return False if there are no more rows."""
        num_missing = self._buffered_rows - len(self._times)
        added = list[pa.RecordBatch]()
        while self._blocks and num_missing > 0:
            added.append(self._blocks.pop().content())
            num_missing -= len(added[-1])
        if added:
            times = np.concatenate([[self._stream_time], *(rows["stream_time"].to_numpy() for rows in added)])
            self._times = np.concatenate([self._times, np.maximum.accumulate(times)[1:]])
            ranks = (rows["rank"].fill_null(0).to_numpy() for rows in added)
            self._ranks = np.concatenate([self._ranks, *ranks])
            self._buffer = [*self._buffer, *added]
            self._stream_time = self.last_place.time_ms
        return len(self._times) > 0

    def take(self, until: tuple[Place, int] | None, index: int) -> PlacedRows:
        """Remove and return the rows that precede the unbuffered rows of all writers.

        Parameters
        ----------
        until : (Place, int) or None
            The last buffered place of a writer, and the index of this writer; None if all rows are buffered.
        index : int
            The index of this writer.
        """
        count = len(self._times)
        if until is not None:
            (time_ms, rank), index_of_other = until
            start, stop = (int(np.searchsorted(self._times, time_ms, side)) for side in ("left", "right"))
            side: Literal["left", "right"] = "right" if index <= index_of_other else "left"
            count = start + int(np.searchsorted(self._ranks[start:stop], rank, side))
        table = pa.Table.from_batches(self._buffer)
        taken = PlacedRows(table.slice(0, count), self._times[:count], self._ranks[:count])
        self._buffer = table.slice(count).to_batches()
        self._times = self._times[count:]
        self._ranks = self._ranks[count:]
        return taken


def _merge(rows_of_writers: Sequence[PlacedRows]) -> PlacedRows:
    if len(rows_of_writers) == 1:
        return rows_of_writers[0]
    rows = pa.concat_tables([placed.rows for placed in rows_of_writers])
    times = np.concatenate([placed.times for placed in rows_of_writers])
    ranks = np.concatenate([placed.ranks for placed in rows_of_writers])
    order = np.lexsort((ranks, times))
    return PlacedRows(rows.take(pa.array(order)), times[order], ranks[order])


def merged(blocks: Iterable[Block]) -> dict[TopicPartition, MergedBlocks]:
    """Group blocks, which may be in any order, by the topic partition to which they were written."""
    groups = groupby(sorted(blocks, key=_by_writer), attrgetter("topic", "partition"))
    sources = {TopicPartition(*topic_partition): list(of_partition) for topic_partition, of_partition in groups}
    return {source: MergedBlocks(source, of_partition) for source, of_partition in sources.items()}


_by_writer = attrgetter("topic", "partition", "origin", "number")
