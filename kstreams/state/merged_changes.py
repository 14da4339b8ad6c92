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
Longs = np.ndarray[Any, np.dtype[np.int64]]


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
    together = Changes(*(pa.concat_arrays(columns) for columns in zip(*parts, strict=True)))
    if builder.history_retention_ms is not None:
        return _histories(together, builder.history_retention_ms)
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


def _histories(rows: Changes, history_ms: int) -> Changes:
    """Of a versioned store every version that may still be asked for, by time: so a replay rejects none of them."""
    times = np.asarray(rows.timestamps, dtype=np.int64)
    keys = np.asarray(pc.dictionary_encode(rows.keys).indices, dtype=np.int64)
    order = np.lexsort((np.arange(len(times)), times, keys))
    same_key = _equals_next(keys[order])
    order = order[~(same_key & _equals_next(times[order]))]  # of one key and time, what was written last
    same_key, limit_ms = _equals_next(keys[order]), times.max(initial=0) - history_ms
    has_ended = same_key & (np.append(times[order][1:], 0) <= limit_ms)
    order = order[~has_ended]
    return _of_living(rows, order, keys, times < limit_ms)


def _of_living(rows: Changes, order: Longs, keys: Longs, is_old: np.ndarray[Any, Any]) -> Changes:
    """The versions at these places by time, without keys of which nothing is left but an old deletion."""
    deleted = np.asarray(rows.values.is_null()) & is_old
    is_alone = ~_equals_next(keys[order]) & ~np.roll(_equals_next(keys[order]), 1)
    order = order[~(is_alone & deleted[order])]
    times = np.asarray(rows.timestamps)[order]
    return _taken(rows, order[np.argsort(times, kind="stable")])


def _equals_next(numbers: Longs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each is equal to the one behind it; the last one is not."""
    return np.append(numbers[1:] == numbers[:-1], np.zeros(min(1, len(numbers)), np.bool_))


def _taken(rows: Changes, places: Longs) -> Changes:
    wanted = pa.array(places)
    return Changes(*(column.take(wanted) for column in rows))


def _filtered(rows: Changes, mask: pa.Array) -> Changes:
    return Changes(*(column.filter(mask) for column in rows))
