"""`LineBlocks`: blocks of whole lines of a file from a byte on, also of a compressed one."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa

from kstreams.errors import ConnectorError

_BLOCK_BYTES = 1 << 20
_MAX_LINE_BYTES = 64 << 20
_NEWLINE = ord("\n")

EndOfRecords = Callable[[bytes], int]
"""Returns the number of bytes up to the end of the last whole record in a block; 0 if there is none."""


def decompressed(file: BinaryIO, name: str) -> BinaryIO:
    """Return a stream of the content of a file, by the end of its name."""
    if name.endswith(".gz"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if name.endswith(".bz2"):
        return cast(BinaryIO, bz2.BZ2File(file))
    if name.endswith((".zst", ".zstd")):
        return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(file), "zstd"))
    return file


def last_newline(block: bytes) -> int:
    """Return the number of bytes up to the end of the last whole line.

    Examples
    --------
    >>> last_newline(b"one\\ntwo")
    4
    """
    return block.rfind(b"\n") + 1


def last_newline_outside_quotes(quote: str) -> EndOfRecords:
    """Return the function that finds the last newline of a CSV block that is not within a quoted value.

    Examples
    --------
    >>> last_newline_outside_quotes('"')(b'1,"a\\nb"\\n2,"c\\nd')
    8
    """
    code = ord(quote)

    def end(block: bytes) -> int:
        octets = np.frombuffer(block, np.uint8)
        is_outside = np.cumsum(octets == code) % 2 == 0
        newlines = np.flatnonzero((octets == _NEWLINE) & is_outside)
        return int(newlines[-1]) + 1 if len(newlines) else 0

    return end


class LineBlocks:
    """The blocks of a file, each of whole records.

    Parameters
    ----------
    file : BinaryIO
        Not at its end.
    name : str
        The name of the file, for errors.
    position : int
        The byte of the content at which the first block begins.
    end_of_records : callable
    grows : bool
        True if the file is appended to. A record without a newline at its end is then incomplete.
    """

    def __init__(self, file: Any, name: str, position: int, end_of_records: EndOfRecords, *, grows: bool) -> None:
        self._file = file
        self._name = name
        self._end_of_records = end_of_records
        self._grows = grows
        self._rest = b""
        self.position = position
        """The byte after the last block."""
        self._skip(position)

    def next(self) -> bytes:
        """Return the next block. Empty if there is none now."""
        while True:
            data = bytes(self._file.read(_BLOCK_BYTES))
            self._rest += data
            end = self._end_of_records(self._rest) if data or self._grows else len(self._rest)
            if end or not data:
                break
            if len(self._rest) > _MAX_LINE_BYTES:
                raise ConnectorError(
                    f"{self._name} has a record of more than {_MAX_LINE_BYTES >> 20} MiB at byte {self.position}: is a "
                    "quote missing?"
                )
        block = self._rest[:end]
        self._rest = self._rest[end:]
        self.position += end
        return block

    def _skip(self, count: int) -> None:
        if self._file.seekable():
            self._file.seek(count)
            return
        while count > 0:
            data = self._file.read(min(count, _BLOCK_BYTES))
            if not data:
                return
            count -= len(data)
