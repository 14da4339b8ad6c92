"""The order of a column of keys as unsigned bytes, computed without a Python object per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.state.rows.byte_columns import contents, cut

_SHORT = 7


def last_of_each(keys: pa.Array) -> pa.Array:
    """Return the last position of each distinct key, in the order of the keys as unsigned bytes.

    If keys differ in at most 7 bytes, as most keys of a store do, each becomes an integer: numpy sorts integers several
    times faster than Arrow sorts bytes.

    Parameters
    ----------
    keys : pyarrow binary array without nulls

    Returns
    -------
    pyarrow int64 array
        Positions in `keys`.

    Examples
    --------
    >>> last_of_each(pa.array([b"b", b"a", b"b", b"a\\x00"])).to_pylist()
    [1, 3, 2]
    """
    if len(keys) == 0:
        return pa.array([], pa.int64())
    numbers = _as_numbers(keys)
    if numbers is not None:
        order = np.argsort(numbers)
        ordered = numbers[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return pa.array(np.maximum.reduceat(order, starts))
    order = pc.sort_indices(keys)  # stable: of equal keys, the last one comes last
    ordered = keys.take(order)
    is_last = np.append(np.asarray(pc.not_equal(ordered[:-1], ordered[1:])), True)
    return order.filter(pa.array(is_last)).cast(pa.int64())


def _as_numbers(keys: pa.Array) -> np.typing.NDArray[np.uint64] | None:
    """Return each key's bytes after the common prefix, and their number, as an integer; None if they exceed 7 bytes."""
    shared = _shared_prefix(keys)
    lengths = np.asarray(pc.binary_length(keys), dtype=np.int64) - shared
    if lengths.max() > _SHORT:
        return None
    rows = np.zeros((len(keys), _SHORT + 1), np.uint8)
    rows[:, :_SHORT][np.arange(_SHORT) < lengths[:, None]] = contents(cut(keys, shared))[: lengths.sum()]
    rows[:, _SHORT] = lengths  # the shorter of two keys with equal bytes, but for zeros, comes first
    return rows.view(">u8").ravel().astype(np.uint64)


def _shared_prefix(keys: pa.Array) -> int:
    """Return the length of the common prefix of all keys."""
    ends = pc.min_max(keys).as_py()
    pairs = zip(ends["min"], ends["max"], strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(ends["min"]))
