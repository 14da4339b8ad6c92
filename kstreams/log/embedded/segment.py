"""A segment: a file of frames, each beginning where the one before ends, named by its first offset."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import CorruptLogError, LogFormatError
from kstreams.log.embedded.frame import (
    HEADER_SIZE,
    MAGIC,
    BadFrameError,
    FrameHeader,
    NewerFormatError,
    decode_body,
    decode_header,
)

SUFFIX = ".log"


class Damage(NamedTuple):
    """A place in a file that is not what it should be."""

    file: str
    position: int  # byte in the file
    offset: int  # of the record expected there; -1 where a file holds none
    what: str

    def __str__(self) -> str:
        return f"{self.file} is damaged at byte {self.position} (offset {self.offset}): {self.what}"


def segment_path(folder: Path, base_offset: int) -> Path:
    """The file of the segment that begins at an offset.

    Examples
    --------
    >>> segment_path(Path("words-0"), 42).name
    '00000000000000000042.log'
    """
    return folder / f"{base_offset:020d}{SUFFIX}"


class Segment:
    """One segment file, mapped for reading; stays readable after the file is replaced or removed."""

    def __init__(self, path: Path, source: TopicPartition) -> None:
        self.path, self.source = path, source
        self.base_offset = int(path.name.removesuffix(SUFFIX))
        self._file = path.open("rb", buffering=0)
        self._start = self.limit = 0
        self._view: mmap.mmap | bytes = b""
        self._buffer = pa.py_buffer(b"")

    def map(self, limit: int, from_position: int = 0) -> None:
        """Make the bytes up to `limit` readable; those before `from_position` need not stay so."""
        size = self._file.seek(0, 2)
        if size < limit:
            raise self.damaged(size, self.base_offset, f"the file ends there, {limit - size} bytes are missing")
        if limit == self.limit and from_position >= self._start:
            return
        self._start = from_position - from_position % mmap.ALLOCATIONGRANULARITY
        self.limit = limit
        if limit > self._start:
            # Older maps live as long as batches look into them.
            length = limit - self._start
            self._view = mmap.mmap(self._file.fileno(), length, prot=mmap.PROT_READ, offset=self._start)
            self._buffer = pa.py_buffer(self._view)

    def map_all(self, from_position: int = 0) -> None:
        """Make the whole file readable."""
        self.map(self._file.seek(0, 2), from_position)

    def header_at(self, position: int) -> FrameHeader:
        """The header of the frame at `position`; BadFrameError when no whole frame lies there."""
        start = position - self._start
        header = decode_header(self._view[start : start + HEADER_SIZE])
        if position + header.size > self.limit:
            raise BadFrameError(f"a frame of {header.size} bytes where only {self.limit - position} are left")
        return header

    def body_at(self, position: int, header: FrameHeader) -> Batch:
        """The records of the frame at `position`; BadFrameError when its body is not sound."""
        start = position - self._start + HEADER_SIZE
        return decode_body(header, self._buffer.slice(start, header.body_size), self.source)

    def frames(self, position: int = 0, offset: int | None = None) -> Iterator[tuple[int, FrameHeader]]:
        """Positions and headers from `position` up to the limit; bodies are not looked at.

        Raises
        ------
        CorruptLogError
            At the first header that is not sound or does not go on where the frame before it ended.
        """
        expected = self.base_offset if offset is None else offset
        while position < self.limit:
            header = self.checked_header(position, expected)
            yield position, header
            position, expected = position + header.size, header.next_offset

    def sound_frames(self, position: int = 0, offset: int | None = None) -> Iterator[tuple[int, FrameHeader]]:
        """The same, but passing over damage to the next sound frame."""
        expected = self.base_offset if offset is None else offset
        while position < self.limit:
            try:
                header = self.checked_header(position, expected)
            except CorruptLogError:
                found = self.find_frame(position + 8, expected)
                if found is None:
                    return
                position, header = found, self.header_at(found)
            yield position, header
            position, expected = position + header.size, header.next_offset

    def checked_header(self, position: int, offset: int) -> FrameHeader:
        """The header of the frame at `position`, which must begin at `offset`; CorruptLogError if not."""
        try:
            header = self.header_at(position)
            if header.base_offset != offset:
                raise BadFrameError(f"the frame begins at offset {header.base_offset}")
        except BadFrameError as bad:
            raise self.damaged(position, offset, str(bad)) from None
        except NewerFormatError as newer:
            raise LogFormatError(f"{self.path} holds {newer}. Upgrade kstreams to read it.") from None
        return header

    def checked_body(self, position: int, header: FrameHeader) -> Batch:
        """The records of the frame at `position`; CorruptLogError when its body is not sound."""
        try:
            return self.body_at(position, header)
        except BadFrameError as bad:
            raise self.damaged(position, header.base_offset, str(bad)) from None

    def find_frame(self, position: int, offset: int) -> int | None:
        """Position of the first sound frame at or after `position` whose records come at or after `offset`."""
        for place in self._magic_places(position):
            try:
                header = self.header_at(place)
                if header.base_offset >= offset:
                    self.body_at(place, header)
                    return place
            except BadFrameError:
                continue
            except NewerFormatError:
                return place
        return None

    def damaged(self, position: int, offset: int, what: str) -> CorruptLogError:
        """The error for damage in this file."""
        damage = Damage(str(self.path), position, offset, what)
        return CorruptLogError(f"{damage}. Nothing was dropped; `kstreams log verify` lists all damage.")

    def close(self) -> None:
        """Give the file back; batches that were read stay valid."""
        self._file.close()

    def _magic_places(self, position: int) -> Iterator[int]:
        place = self._view.find(MAGIC, max(position - self._start, 0))
        while place >= 0:
            if (place + self._start) % 8 == 0:
                yield place + self._start
            place = self._view.find(MAGIC, place + 1)
