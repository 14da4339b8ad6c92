"""Operations on columns of bytes that create no Python object per row: concatenate, cut, read as integers."""

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
