"""Operations on columns of bytes that create no Python object per row: concatenate, cut, sort, read as integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EMPTY = b""  # not an Arrow scalar, whose creation imports pandas
_TO_THE_END = 2**31 - 1  # Arrow's own default overflows (pyarrow 26: "Negative buffer resize")
_BIG_ENDIAN = np.dtype(">i8")


def join(*parts: pa.Array | pa.Scalar | bytes) -> pa.Array:
    """Concatenate parts row by row; a row is null if a part is null."""
    return pc.binary_join_element_wise(*parts, _EMPTY)


def prefixed(prefix: bytes, column: pa.Array) -> pa.Array:
    """Add a prefix to every row."""
    return join(pa.scalar(prefix, pa.binary()), column)


def cut(column: pa.Array, start: int, stop: int = _TO_THE_END) -> pa.Array:
    """Return the bytes `[start:stop]` of every row; negative positions count from the end as in Python."""
    return pc.binary_slice(column, start, stop)


def big_endian(numbers: pa.Array) -> pa.Array:
    """Encode integers as 8 bytes, big endian, as Kafka's LongSerializer."""
    data = np.asarray(numbers, dtype=np.int64).astype(_BIG_ENDIAN).tobytes()
    fixed = pa.Array.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(data)])
    return fixed.cast(pa.binary())


def integers(column: pa.Array) -> pa.Array:
    """Decode rows of 8 bytes, big endian, as integers; a null row is 0. The column must come from `cut`."""
    whole = column.fill_null(bytes(8)) if column.null_count else column
    data = contents(whole)[: 8 * len(whole)]
    return pa.array(data.view(_BIG_ENDIAN).astype(np.int64))


def contents(column: pa.Array) -> np.typing.NDArray[np.uint8]:
    """Return the bytes of all rows, one after the other. The column must be the result of a kernel, at offset 0."""
    data = column.buffers()[2]
    return np.frombuffer(data if data is not None else b"", np.uint8)


def timestamped(values: pa.Array, timestamps: pa.Array) -> pa.Array:
    """Return rows of a timestamped store: 8 bytes of timestamp, then the value; null if the value is null."""
    return join(big_endian(timestamps), values)


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
