"""`RecordCursor`: the position of the record loop in a batch."""

from __future__ import annotations

from operator import length_hint
from typing import NamedTuple, TypeAlias

import numpy as np

from kstreams.kernel.batch import Batch
from kstreams.record import Headers


class RecordCursor:
    """A position within records of one batch, which are processed one by one.

    Offset and stream time are looked up only when they are read, so that they cost no time per record.

    Parameters
    ----------
    batch : Batch
        The batch that was read; the cursor moves over some of its records, or all.
    offsets, stream_times : numpy int64 array, shape (n,)
        The offset of each record, and the highest timestamp up to this record.
    timestamps : list of int, length n
        Event time of each record in milliseconds; the loop takes them from the attribute `timestamps`.
    """

    __slots__ = ("batch", "offsets", "stream_times", "timestamps")

    def __init__(
        self,
        batch: Batch,
        offsets: np.typing.NDArray[np.int64],
        stream_times: np.typing.NDArray[np.int64],
        timestamps: list[int],
    ) -> None:
        self.batch = batch
        self.offsets = offsets
        self.stream_times = stream_times
        self.timestamps = iter(timestamps)

    @property
    def topic(self) -> str:
        """The topic of its records."""
        return self.batch.source.topic

    @property
    def row(self) -> int:
        """The row of the record that was taken last, from 0."""
        return len(self.offsets) - 1 - length_hint(self.timestamps)

    @property
    def taken(self) -> int:
        """The number of records that were taken."""
        return self.row + 1

    @property
    def offset(self) -> int:
        """The offset of the record that was taken last."""
        return int(self.offsets[self.row])

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) up to the record that was taken last."""
        return int(self.stream_times[self.row])

    def at_record(self) -> RecordCursor:
        """Return a cursor that stays at this record, for an operator that processes it after the loop has moved on."""
        row = self.row
        return RecordCursor(self.batch, self.offsets[row : row + 1], self.stream_times[row : row + 1], [])


Origin: TypeAlias = tuple[RecordCursor | None, int, Headers]
"""The identity of an input record: its cursor, the number of records after it, and the headers of its results.
If a handler may need it, one is created per written row, so it is a plain tuple."""


class DelayedRecord(NamedTuple):
    """A record that an operator holds back, with its headers, its place in the input and its progress."""

    key: object
    value: object
    timestamp: int
    headers: Headers
    cursor: RecordCursor | None
    reached: int
