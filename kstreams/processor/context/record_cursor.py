"""`RecordCursor`: how far the loop over the records of a batch has come."""

from __future__ import annotations

from operator import length_hint
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kstreams.kernel.batch import Batch
from kstreams.record import Headers


class RecordCursor:
    """A position within records of one batch, which are processed one by one.

    Offset and stream time are looked up when they are asked for: so they cost nothing for each record.

    Parameters
    ----------
    batch : Batch
        The batch that was read; the cursor goes over some of its records, or all.
    offsets, stream_times : numpy int64 array, shape (n,)
        Of each record: its offset, and the highest timestamp up to and with it.
    timestamps : list of int, length n
        Event time of each record in milliseconds; the loop takes them from the attribute `timestamps`.
    """

    __slots__ = ("batch", "offsets", "stream_times", "timestamps")

    def __init__(
        self,
        batch: Batch,
        offsets: np.ndarray[Any, np.dtype[np.int64]],
        stream_times: np.ndarray[Any, np.dtype[np.int64]],
        timestamps: list[int],
    ) -> None:
        self.batch = batch
        self.offsets = offsets
        self.stream_times = stream_times
        self.timestamps = iter(timestamps)

    @property
    def topic(self) -> str:
        """Where its records came from."""
        return self.batch.source.topic

    @property
    def row(self) -> int:
        """Which record was taken last, from 0."""
        return len(self.offsets) - 1 - length_hint(self.timestamps)

    @property
    def taken(self) -> int:
        """How many records were taken."""
        return self.row + 1

    @property
    def offset(self) -> int:
        """The offset of the record that was taken last."""
        return int(self.offsets[self.row])

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) up to and with the record that was taken last."""
        return int(self.stream_times[self.row])

    def at_record(self) -> RecordCursor:
        """A cursor that stays at this record, for an operator that processes it after the loop has gone on."""
        row = self.row
        return RecordCursor(self.batch, self.offsets[row : row + 1], self.stream_times[row : row + 1], [])


Origin: TypeAlias = tuple[RecordCursor | None, int, Headers]
"""An input record, to be found again: its cursor, how many records were left, and the headers of what it led to.
One is made for every row that is written where a handler may ask for it: so it is a plain tuple, and read later."""


class DelayedRecord(NamedTuple):
    """A record that an operator holds back, with its headers, its place in the input and the stream time there."""

    key: object
    value: object
    timestamp: int
    headers: Headers
    cursor: RecordCursor | None
    reached: int
