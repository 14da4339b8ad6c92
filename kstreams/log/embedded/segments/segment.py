"""`Segment`: a file of consecutive frames, named by its first offset."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.errors import CorruptLogError, LogFormatError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.embedded.disk import refuse_links
from kstreams.log.embedded.segments import frame
from kstreams.os.open_files import retry_open

SUFFIX = ".log"
_ALIGNMENT = 8  # of frames
_WINDOW = 1 << 20


class Damage(NamedTuple):
    """Damage at a position in a file."""

    file: str
    position: int  # byte in the file
    offset: int  # of the record expected there; -1 in files without records
    what: str

    def __str__(self) -> str:
        return f"{self.file} is damaged at byte {self.position} (offset {self.offset}): {self.what}"


def segment_path(folder: Path, base_offset: int) -> Path:
    """Return the file of the segment that starts at an offset.

    Examples
    --------
    >>> segment_path(Path("words-0"), 42).name
    '00000000000000000042.log'
    """
    return folder / f"{base_offset:020d}{SUFFIX}"


class ReplacedSegmentError(Exception):
    """Error when compaction has replaced the file of a segment that is being read."""


class Segment:
    """One segment file, mapped for reading. Mapped bytes stay readable after the file is replaced or removed.

    No descriptor stays open: the map keeps the file alive, as long as this object or a batch refers to it.
    """

    def __init__(self, path: Path, source: TopicPartition) -> None:
        refuse_links(path)
        self.path = path
        self.source = source
        self.base_offset = int(path.name.removesuffix(SUFFIX))
        self.limit = 0
        self._identity: tuple[int, int] | None = None
        self._buffer = pa.py_buffer(b"")
        self._view = memoryview(self._buffer)

    def map(self, limit: int) -> None:
        """Make the bytes up to `limit` readable.

        Raises
        ------
        FileNotFoundError, ReplacedSegmentError
        CorruptLogError
            When the file is shorter.
        """
        if limit != self.limit or self._identity is None:
            whole = self._map_file()
            if whole.size < limit:
                raise self.damaged(
                    whole.size, self.base_offset, f"it ends there, {limit - whole.size} bytes are missing"
                )
            self._show(whole.slice(0, limit))

    def map_all(self) -> None:
        """Make the whole file readable."""
        self._show(self._map_file())

    def _map_file(self) -> pa.Buffer:
        with retry_open(partial(pa.memory_map, str(self.path))) as file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            if self._identity not in (None, identity):
                raise ReplacedSegmentError(str(self.path))
            self._identity = identity
            if not file.size():
                return pa.py_buffer(b"")
            # One byte, because the system would read all requested bytes from the disk at once.
            first = file.read_buffer(1)
            return pa.foreign_buffer(first.address, file.size(), base=first)

    def _show(self, buffer: pa.Buffer) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)
        self.limit = buffer.size

    def header_at(self, position: int) -> frame.FrameHeader:
        """Return the header of the frame at `position`; BadFrameError if there is no whole frame."""
        header = frame.decode_header(bytes(self._view[position : position + frame.HEADER_SIZE]))
        if position + header.size > self.limit:
            raise frame.BadFrameError(f"a frame of {header.size} bytes where only {self.limit - position} are left")
        return header

    def body_at(self, position: int, header: frame.FrameHeader) -> Batch:
        """Return the records of the frame at `position`; BadFrameError if its body is damaged."""
        return frame.decode_body(
            header, self._buffer.slice(position + frame.HEADER_SIZE, header.body_size), self.source
        )

    def frames(self, position: int = 0, offset: int | None = None) -> Iterator[tuple[int, frame.FrameHeader]]:
        """Yield positions and headers from `position` up to the limit; bodies are not read.

        Raises
        ------
        CorruptLogError
            At the first header that is damaged, or does not start at the offset where the frame before it ended.
        """
        expected = self.base_offset if offset is None else offset
        while position < self.limit:
            header = self.checked_header(position, expected)
            yield position, header
            position = position + header.size
            expected = header.next_offset

    def valid_frames(self, position: int = 0, offset: int | None = None) -> Iterator[tuple[int, frame.FrameHeader]]:
        """Yield positions and headers as `frames`, skipping damage up to the next valid frame."""
        expected = self.base_offset if offset is None else offset
        while position < self.limit:
            try:
                header = self.checked_header(position, expected)
            except CorruptLogError:
                next_position = self.find_frame(position + 8, expected)
                if next_position is None:
                    return
                position = next_position
                header = self.header_at(next_position)
            yield position, header
            position = position + header.size
            expected = header.next_offset

    def checked_header(self, position: int, offset: int) -> frame.FrameHeader:
        """Return the header of the frame at `position`, which must start at `offset`; CorruptLogError if not."""
        try:
            header = self.header_at(position)
            if header.base_offset != offset:
                raise frame.BadFrameError(f"the frame begins at offset {header.base_offset}")
        except frame.BadFrameError as bad:
            raise self.damaged(position, offset, str(bad)) from None
        except frame.NewerFormatError as newer:
            raise LogFormatError(f"{self.path} holds {newer}. Upgrade kstreams to read it.") from None
        return header

    def checked_body(self, position: int, header: frame.FrameHeader) -> Batch:
        """Return the records of the frame at `position`; CorruptLogError if its body is damaged."""
        try:
            return self.body_at(position, header)
        except frame.BadFrameError as bad:
            raise self.damaged(position, header.base_offset, str(bad)) from None

    def find_frame(self, position: int, offset: int) -> int | None:
        """Return the position of the first valid frame at or after `position` with records from `offset` on."""
        for candidate in self._magic_positions(position):
            try:
                header = self.header_at(candidate)
                if header.base_offset >= offset:
                    self.body_at(candidate, header)
                    return candidate
            except frame.BadFrameError:
                continue
            except frame.NewerFormatError:
                return candidate
        return None

    def damaged(self, position: int, offset: int, finding: str) -> CorruptLogError:
        """Return the error for damage in this file."""
        damage = Damage(str(self.path), position, offset, finding)
        return CorruptLogError(f"{damage}. Nothing was dropped; `kstreams log verify` lists all damage.")

    def _magic_positions(self, position: int) -> Iterator[int]:
        magic = int.from_bytes(frame.MAGIC, "little")
        for start in range(position + -position % _ALIGNMENT, self.limit, _WINDOW):
            end = min(start + _WINDOW, self.limit - self.limit % _ALIGNMENT)
            words = np.frombuffer(self._view[start:end], "<u4") if end > start else np.zeros(0, "<u4")
            yield from (start + _ALIGNMENT * int(index) for index in np.flatnonzero(words[::2] == magic))
