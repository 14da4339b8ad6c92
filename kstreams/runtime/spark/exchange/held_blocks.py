"""The blocks that a task is handed, held until it has read them: the first in memory, the others in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa

from kstreams.runtime.spark.exchange.blocks import Block

IN_MEMORY = 64 << 20
"""Bytes that one task holds in memory."""


def held(blocks: Iterable[Block], folder: Path, in_memory: int = IN_MEMORY) -> list[Block]:
    """Take all blocks; the rows beyond a size lie in a file that goes with the last block that needs it.

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
    """Where the rows of a block begin in the file, and their size; None for a block without."""
    return None if block.rows is None else (file.tell(), file.write(block.rows))
