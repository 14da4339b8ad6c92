"""`RecordCursors` and `RecordPieces` read and write Avro's binary encoding of many records at once, with numpy arrays.

This module supports only the types that have columns. fastavro reads and writes records one by one, and handles all
records that this module refuses.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError

Int64Array: TypeAlias = "np.typing.NDArray[np.int64]"
Octets: TypeAlias = "np.typing.NDArray[np.uint8]"

_SEVEN = np.uint64(7)


class RecordCursors:
    """The positions of many records that are read at once.

    Parameters
    ----------
    data : numpy uint8 array
        The bytes of all records.
    starts, ends : numpy int64 array, shape (n,)
        The next position to read in each record, which reading advances, and the end of each record.
    """

    __slots__ = ("data", "ends", "starts")

    def __init__(self, data: Octets, starts: Int64Array, ends: Int64Array) -> None:
        self.data = data
        self.starts = starts
        self.ends = ends

    def select(self, rows: Int64Array) -> RecordCursors:
        """Return the cursors of some records. After reading from them, pass them to `resume`."""
        return RecordCursors(self.data, self.starts[rows], self.ends[rows])

    def resume(self, rows: Int64Array, cursors: RecordCursors) -> None:
        """Advance the positions of some records to those of other cursors."""
        self.starts[rows] = cursors.starts

    def skip(self, lengths: Int64Array | int) -> Int64Array:
        """Advance the positions, and return the previous positions.

        Raises
        ------
        SerdeError
            If a record ends before the new position.
        """
        previous = self.starts
        following = previous + lengths
        if (following > self.ends).any():
            raise SerdeError("a record ends too early")
        self.starts = following
        return previous

    def octets(self, width: int) -> Octets:
        """Read the next bytes of each record, shape (n, width)."""
        positions = self.skip(width)
        octets: Octets = self.data[positions[:, None] + np.arange(width)]
        return octets

    def numbers(self, bits: int = 64) -> Int64Array:
        """Read the next number of each record: a zigzag integer of variable length, 7 bits per byte."""
        first_bytes = self.data[self.skip(1)]
        unfinished_rows = np.flatnonzero(first_bytes >= 0x80)
        zigzag = (first_bytes & 0x7F).astype(np.uint64) if len(unfinished_rows) else first_bytes.astype(np.uint64)
        shift = _SEVEN
        while len(unfinished_rows):
            unfinished = self.select(unfinished_rows)
            next_bytes = self.data[unfinished.skip(1)]
            self.resume(unfinished_rows, unfinished)
            if shift == 63 and (next_bytes > 1).any():
                raise SerdeError("a number has more than 64 bits")
            zigzag[unfinished_rows] |= (next_bytes & 0x7F).astype(np.uint64) << shift
            unfinished_rows = unfinished_rows[next_bytes >= 0x80]
            shift = shift + _SEVEN
        if bits < 64 and (zigzag >> np.uint64(bits)).any():
            raise SerdeError(f"a number has more than {bits} bits")
        return (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)

    def lengths(self) -> Int64Array:
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


def _ranges(starts: Int64Array, lengths: Int64Array) -> Int64Array:
    """Return all positions of the ranges with these starts and lengths, one range after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


class RecordPieces:
    """Records that are written at once, as a list of pieces. Each piece holds the next bytes of every record.

    Parameters
    ----------
    count : int
        The number of records.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pieces: list[tuple[Int64Array, Octets]] = []

    def add(self, lengths: Int64Array, octets: Octets, rows: Int64Array | None = None) -> None:
        """Append `lengths` bytes to each record, or to the records in `rows`."""
        if rows is not None:
            lengths_of_all = np.zeros(self._count, np.int64)
            lengths_of_all[rows] = lengths
            lengths = lengths_of_all
        self._pieces.append((lengths, octets))

    def add_same(self, octets: bytes) -> None:
        """Append the same bytes to each record."""
        self.add(np.full(self._count, len(octets)), np.tile(np.frombuffer(octets, np.uint8), self._count))

    def add_numbers(self, numbers: Int64Array, rows: Int64Array | None = None) -> None:
        """Append a number to each record, or to the records in `rows`."""
        zigzag = (numbers.astype(np.uint64) << np.uint64(1)) ^ (numbers >> 63).astype(np.uint64)
        max_length = (int(zigzag.max(initial=0)).bit_length() + 6) // 7
        if max_length <= 1:
            self.add(np.ones(len(zigzag), np.int64), zigzag.astype(np.uint8), rows)
            return
        parts = zigzag[:, None] >> np.arange(max_length, dtype=np.uint64) * _SEVEN
        octets = (parts & np.uint64(0x7F)).astype(np.uint8)
        has_next = parts[:, 1:] > 0
        octets[:, :-1] |= has_next.view(np.uint8) << 7
        is_written = np.concatenate([np.ones((len(zigzag), 1), np.bool_), has_next], axis=1)
        self.add(is_written.sum(axis=1), octets[is_written], rows)

    def add_fixed(self, octets: Octets, rows: Int64Array | None = None) -> None:
        """Append a row of an array of shape (n, width) to each record, or to the records in `rows`."""
        self.add(np.full(len(octets), octets.shape[1]), octets.ravel(), rows)

    def add_texts(self, texts: pa.Array, rows: Int64Array | None = None) -> None:
        """Append a string to each record, or to the records in `rows`. The array has no nulls."""
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
