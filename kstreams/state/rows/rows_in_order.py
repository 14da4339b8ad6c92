"""`RowsInOrder`: persisted rows that are read again in the order in which they were written, not by their keys.

The value of a row is its number in this order (8 bytes, big endian), its timestamp (8 bytes), and the store's value.
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
        """Return changelog records as rows to persist, with the next numbers."""
        first, self._next = self._next, self._next + len(changes)
        numbers = big_endian(pa.array(np.arange(first, self._next)))
        return ByteRows(changes.keys, join(numbers, big_endian(changes.timestamps), changes.values))

    def read(self) -> Changes:
        """Return all persisted rows as changelog records, in the order of their last writes."""
        parts = [chunk.columns() for chunk in self._family.chunks(b"", None)]
        keys, values = (pa.concat_arrays(columns) for columns in zip(*parts, strict=True))
        numbers = integers(cut(values, 0, _NUMBER))
        self._next = 1 + int(np.max(np.asarray(numbers), initial=-1))
        turn = pa.array(np.argsort(np.asarray(numbers)))
        times = integers(cut(values, _NUMBER, _TIMES))
        return Changes(keys.take(turn), cut(values, _TIMES).take(turn), times.take(turn))
