"""Numbers, texts and the like of many records at once, in Avro's binary encoding: numpy arrays in and out.

Rows are known by where they go on (`starts`, one place in `data` for each); reading moves these places on. fastavro
reads and writes records one by one; here only what columns can hold is read, and whatever is unusual is left to it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError

Places: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
"""A place in the data, or a length, for each row."""
Octets: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

_SEVEN = np.uint64(7)


class Rows:
    """Records that are being read, as far as they have been.

    Parameters
    ----------
    data : numpy uint8 array
        The bytes of all records.
    starts, ends : numpy int64 array, shape (n,)
        Where each record goes on, and where it ends.
    """

    __slots__ = ("data", "ends", "starts")

    def __init__(self, data: Octets, starts: Places, ends: Places) -> None:
        self.data = data
        self.starts = starts
        self.ends = ends

    def only(self, rows: Places) -> Rows:
        """Some of the records; `resume` says how far they were read."""
        return Rows(self.data, self.starts[rows], self.ends[rows])

    def resume(self, rows: Places, read: Rows) -> None:
        """Go on behind what was read of some of the records."""
        self.starts[rows] = read.starts

    def skip(self, lengths: Places | int) -> Places:
        """Move on; where the records were.

        Raises
        ------
        SerdeError
            When a record is shorter.
        """
        before = self.starts
        after = before + lengths
        if (after > self.ends).any():
            raise SerdeError("a record ends too early")
        self.starts = after
        return before

    def octets(self, width: int) -> Octets:
        """The next bytes of each record, shape (n, width)."""
        at = self.skip(width)
        octets: Octets = self.data[at[:, None] + np.arange(width)]
        return octets

    def numbers(self, bits: int = 64) -> Places:
        """The next number of each record."""
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
        """The next number of each record, as the length of what follows."""
        lengths = self.numbers()
        if (lengths < 0).any():
            raise SerdeError("a length is negative")
        return np.minimum(lengths, len(self.data) + 1)  # so that no sum overflows

    def texts(self) -> pa.Array:
        """The next text of each record."""
        lengths = self.lengths()
        starts = self.skip(lengths)
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        octets = self.data[_ranges(starts, lengths)]
        array = pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(octets)])
        return array.cast(pa.string())  # which looks at each character


def _ranges(starts: Places, lengths: Places) -> Places:
    """All places of runs that begin at `starts`, one run after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


class RecordPieces:
    """Records that are being written: pieces of each, one after the other.

    Parameters
    ----------
    count : int
        How many records.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pieces: list[tuple[Places, Octets]] = []

    def add(self, lengths: Places, octets: Octets, rows: Places | None = None) -> None:
        """Let so many bytes follow in each record, or in some of them."""
        if rows is not None:
            spread = np.zeros(self._count, np.int64)
            spread[rows] = lengths
            lengths = spread
        self._pieces.append((lengths, octets))

    def add_same(self, octets: bytes) -> None:
        """Let the same bytes follow in each record."""
        self.add(np.full(self._count, len(octets)), np.tile(np.frombuffer(octets, np.uint8), self._count))

    def add_numbers(self, numbers: Places, rows: Places | None = None) -> None:
        """Let a number follow."""
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
        """Let the bytes of a row of an array of shape (n, width) follow."""
        self.add(np.full(len(octets), octets.shape[1]), octets.ravel(), rows)

    def add_texts(self, texts: pa.Array, rows: Places | None = None) -> None:
        """Let a text follow; the array has no nulls."""
        _, offset_buffer, octet_buffer = texts.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        octets = np.frombuffer(octet_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
        lengths = np.diff(offsets).astype(np.int64)
        self.add_numbers(lengths, rows)
        self.add(lengths, octets, rows)

    def joined(self) -> pa.Array:
        """The records, as an Arrow binary array."""
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
