"""The snapshot of a store, from its records since the first: what compaction would leave of its changelog.

It is worked out of bytes: no store is opened and no value decoded. It may hold rows that have expired of late; whoever
restores them forgets them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.rows.byte_columns import cut, integers
from kstreams.state.rows.byte_order import last_of_each
from kstreams.state.segments import segment_ms

MOST_BYTES = 2**31 - 1
_TIME_BYTES = 8


def merged(builder: StoreBuilder, parts: Sequence[Changes], most_bytes: int = MOST_BYTES) -> Changes:
    """Of every key the last record, in the order in which they were written; no deletions, nothing expired.

    Parameters
    ----------
    builder : StoreBuilder
    parts : sequence of Changes
        All records of the store, oldest first; the first part may be a snapshot.
    most_bytes : int
        Of keys, and of values.

    Raises
    ------
    StateError
        When there is more: a column of Arrow holds no more than that.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> def records(keys, values):
    ...     return Changes(pa.array(keys), pa.array(values, pa.binary()), pa.array([0] * len(keys)))
    >>> parts = [records([b"a", b"b", b"c"], [b"1", b"1", b"1"]), records([b"c", b"a"], [None, b"2"])]
    >>> found = merged(Stores.key_value("totals", key=str, value=int), parts)
    >>> list(zip(found.keys.to_pylist(), found.values.to_pylist()))
    [(b'b', b'1'), (b'a', b'2')]
    """
    for column in ([part.keys for part in parts], [part.values for part in parts]):
        if (size := sum(array.nbytes for array in column)) > most_bytes:
            raise StateError(
                f"The store {builder.name!r} has {size:,} bytes of records in one task; at most {most_bytes:,} are "
                "merged. Give the topics more partitions, so that each task holds less."
            )
    current = map(builder.kind.current_form, parts)
    together = Changes(*(pa.concat_arrays(columns) for columns in zip(*current, strict=True)))
    last = _taken(together, np.sort(np.asarray(last_of_each(together.keys))))
    return _filtered(last, pc.and_(last.values.is_valid(), _alive(builder, together.keys, last.keys)))


def _alive(builder: StoreBuilder, all_keys: pa.Array, keys: pa.Array) -> pa.Array | pa.Scalar:
    """Which rows may not have expired, by the latest time of all."""
    begin = builder.kind.time_in_key
    if begin is None or builder.retention_ms is None or len(keys) == 0:
        return pa.scalar(True)
    stop = begin + _TIME_BYTES
    newest_ms = int(np.max(np.asarray(integers(cut(all_keys, begin, stop)))))
    kept_ms = builder.retention_ms + (segment_ms(builder) or 0)
    return pc.greater(integers(cut(keys, begin, stop)), newest_ms - kept_ms)


def _taken(rows: Changes, places: np.ndarray[Any, np.dtype[np.int64]]) -> Changes:
    indices = pa.array(places)
    return Changes(*(column.take(indices) for column in rows))


def _filtered(rows: Changes, mask: pa.Array) -> Changes:
    return Changes(*(column.filter(mask) for column in rows))
