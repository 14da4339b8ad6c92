"""`Rows` and `RecordPieces`: read and write Avro's binary encoding of many records at once, with numpy arrays.

Each record has a position in `data` (`starts`), which reading advances. fastavro reads and writes records one by one.
This module handles only types with columns, and leaves unusual records to fastavro.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError

Places: TypeAlias = "np.typing.NDArray[np.int64]"
"""A position in the data, or a length, for each row."""
Octets: TypeAlias = "np.typing.NDArray[np.uint8]"

_SEVEN = np.uint64(7)


class Rows:
    """Records that are being read.

    Parameters
    ----------
    data : numpy uint8 array
        The bytes of all records.
    starts, ends : numpy int64 array, shape (n,)
        The next position to read in each record, and the end of each record.
    """

    __slots__ = ("data", "ends", "starts")

    def __init__(self, data: Octets, starts: Places, ends: Places) -> None:
        self.data = data
        self.starts = starts
        self.ends = ends

    def only(self, rows: Places) -> Rows:
        """Return some of the records; pass the result to `resume` after reading from it."""
        return Rows(self.data, self.starts[rows], self.ends[rows])

    def resume(self, rows: Places, read: Rows) -> None:
        """Take over the positions of some of the records."""
        self.starts[rows] = read.starts

    def skip(self, lengths: Places | int) -> Places:
        """Advance the positions, and return the positions before.

        Raises
        ------
        SerdeError
            If a record ends earlier.
        """
        before = self.starts
        after = before + lengths
        if (after > self.ends).any():
            raise SerdeError("a record ends too early")
        self.starts = after
        return before

    def octets(self, width: int) -> Octets:
        """Read the next bytes of each record, shape (n, width)."""
        at = self.skip(width)
        octets: Octets = self.data[at[:, None] + np.arange(width)]
        return octets

    def numbers(self, bits: int = 64) -> Places:
        """Read the next number of each record."""
        first = self.data[self.skip(1)]
        continued = np.flatnonzero(first >= 0x80)
        folded = (first & 0x7F).astype(np.uint64) if len(continued) else first.astype(np.uint64)
        shift = _SEVEN
        while len(continued):
            part = self.only(continued)
            following = self.data[part.skip(1)]
            self.resume(continued, part)
            if shift == 63 and (following > 1).any():
                raise SerdeError("a number has more than 64 bits")
            folded[continued] |= (following & 0x7F).astype(np.uint64) << shift
            continued = continued[following >= 0x80]
            shift = shift + _SEVEN
        if bits < 64 and (folded >> np.uint64(bits)).any():
            raise SerdeError(f"a number has more than {bits} bits")
        return (folded >> np.uint64(1)).astype(np.int64) ^ -(folded & np.uint64(1)).astype(np.int64)

    def lengths(self) -> Places:
        """Read the next number of each record as a length."""
        lengths = self.numbers()
        if (lengths < 0).any():
            raise SerdeError("a length is negative")
        return np.minimum(lengths, len(self.data) + 1)  # the limit keeps sums from overflowing

    def texts(self) -> pa.Array:
        """Read the next string of each record."""
        lengths = self.lengths()
        starts = self.skip(lengths)
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        octets = self.data[_ranges(starts, lengths)]
        array = pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(octets)])
        return array.cast(pa.string())  # the cast validates UTF-8


def _ranges(starts: Places, lengths: Places) -> Places:
    """Return all positions of runs with these starts and lengths, one run after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


class RecordPieces:
    """Records that are being written, as a list of pieces; each piece holds the next bytes of every record.

    Parameters
    ----------
    count : int
        The number of records.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pieces: list[tuple[Places, Octets]] = []

    def add(self, lengths: Places, octets: Octets, rows: Places | None = None) -> None:
        """Append `lengths` bytes to each record, or to the records in `rows`."""
        if rows is not None:
            spread = np.zeros(self._count, np.int64)
            spread[rows] = lengths
            lengths = spread
        self._pieces.append((lengths, octets))

    def add_same(self, octets: bytes) -> None:
        """Append the same bytes to each record."""
        self.add(np.full(self._count, len(octets)), np.tile(np.frombuffer(octets, np.uint8), self._count))

    def add_numbers(self, numbers: Places, rows: Places | None = None) -> None:
        """Append a number to each record, or to the records in `rows`."""
        folded = (numbers.astype(np.uint64) << np.uint64(1)) ^ (numbers >> 63).astype(np.uint64)
        longest = (int(folded.max(initial=0)).bit_length() + 6) // 7
        if longest <= 1:
            self.add(np.ones(len(folded), np.int64), folded.astype(np.uint8), rows)
            return
        parts = folded[:, None] >> np.arange(longest, dtype=np.uint64) * _SEVEN
        octets = (parts & np.uint64(0x7F)).astype(np.uint8)
        goes_on = parts[:, 1:] > 0
        octets[:, :-1] |= goes_on.view(np.uint8) << 7
        is_written = np.concatenate([np.ones((len(folded), 1), np.bool_), goes_on], axis=1)
        self.add(is_written.sum(axis=1), octets[is_written], rows)

    def add_fixed(self, octets: Octets, rows: Places | None = None) -> None:
        """Append a row of an array of shape (n, width) to each record, or to the records in `rows`."""
        self.add(np.full(len(octets), octets.shape[1]), octets.ravel(), rows)

    def add_texts(self, texts: pa.Array, rows: Places | None = None) -> None:
        """Append a string to each record, or to the records in `rows`; the array has no nulls."""
        _, offset_buffer, octet_buffer = texts.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        octets = np.frombuffer(octet_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
        lengths = np.diff(offsets).astype(np.int64)
        self.add_numbers(lengths, rows)
        self.add(lengths, octets, rows)

    def joined(self) -> pa.Array:
        """Return the records as an Arrow binary array."""
        lengths = np.sum([lengths for lengths, _ in self._pieces], axis=0)
        ends = np.cumsum(lengths)
        offsets = np.concatenate([[0], ends])
        octets = np.empty(int(offsets[-1]), np.uint8)
        starts = offsets[:-1]
        for piece_lengths, piece in self._pieces:
            octets[_ranges(starts, piece_lengths)] = piece
            starts = starts + piece_lengths
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(octets)]
        return pa.Array.from_buffers(pa.binary(), self._count, buffers)
