"""`RecordCursor`: how far the loop over the records of a batch has come."""

from __future__ import annotations

from operator import length_hint
from typing import Any, TypeAlias

import numpy as np

from kstreams.batch import Batch
from kstreams.record import Headers


class RecordCursor:
    """A batch that is being processed, record by record, and how far the loop over it has come.

    Offset and stream time are looked up when somebody asks: so they cost nothing for each record.

    Parameters
    ----------
    batch : Batch
        What was read; the records of the run are some of it, or all.
    offsets, stream_times : numpy int64 array, shape (n,)
        Of each record: its offset, and the highest timestamp up to and with it.
    timestamps : list of int, length n
        Event time of each record in milliseconds; the loop takes them from `cursor`.
    """

    __slots__ = ("batch", "cursor", "offsets", "stream_times")

    def __init__(
        self,
        batch: Batch,
        offsets: np.ndarray[Any, np.dtype[np.int64]],
        stream_times: np.ndarray[Any, np.dtype[np.int64]],
        timestamps: list[int],
    ) -> None:
        self.batch, self.offsets, self.stream_times = batch, offsets, stream_times
        self.cursor = iter(timestamps)

    @property
    def topic(self) -> str:
        """Where its records came from."""
        return self.batch.source.topic

    @property
    def row(self) -> int:
        """Which record was taken last, from 0."""
        return len(self.offsets) - 1 - length_hint(self.cursor)

    @property
    def taken(self) -> int:
        """How many records were taken."""
        return self.row + 1

    def here(self) -> RecordCursor:
        """A run that stands at this record, for what goes on with it when the loop is elsewhere."""
        row = self.row
        return RecordCursor(self.batch, self.offsets[row : row + 1], self.stream_times[row : row + 1], [])


Origin: TypeAlias = tuple[RecordCursor | None, int, Headers]
"""An input record, to be found again: its run, how much of that was left, and the headers that its output had come to.
One is made for every row that is written where a handler may ask for it: so it is a plain tuple, and read later."""
