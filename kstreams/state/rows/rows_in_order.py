"""`RowsInOrder`: persisted rows that are read again in the order in which they were written, and not by their keys.

A row's value is, big endian: its number in that order (8 bytes), its timestamp (8), and what the store keeps.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.state.api import Changes
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.rows.byte_columns import big_endian, cut, integers, join

_NUMBER = 8
_TIMES = 16


class RowsInOrder:
    """The rows of a store in a column family.

    Parameters
    ----------
    family : ColumnFamily
    """

    def __init__(self, family: ColumnFamily) -> None:
        self._family = family
        self._next = 0

    def numbered(self, changes: Changes) -> ByteRows:
        """Changelog records as rows to persist, with the next numbers."""
        first, self._next = self._next, self._next + len(changes)
        numbers = big_endian(pa.array(np.arange(first, self._next)))
        return ByteRows(changes.keys, join(numbers, big_endian(changes.timestamps), changes.values))

    def read(self) -> Changes:
        """All persisted rows as changelog records, in the order in which they were written last."""
        parts = [chunk.columns() for chunk in self._family.chunks(b"", None)]
        keys, values = (pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
        numbers = integers(cut(values, 0, _NUMBER))
        self._next = 1 + int(np.max(np.asarray(numbers), initial=-1))
        turn = pa.array(np.argsort(np.asarray(numbers)))
        times = integers(cut(values, _NUMBER, _TIMES))
        return Changes(keys.take(turn), cut(values, _TIMES).take(turn), times.take(turn))
