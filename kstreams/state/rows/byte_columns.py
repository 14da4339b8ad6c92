"""Columns of bytes that are joined, cut and read as integers without a Python object per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EMPTY = b""  # no Arrow scalar: making one imports pandas
_TO_THE_END = 2**31 - 1  # Arrow's own default overflows (pyarrow 26: "Negative buffer resize")
_BIG_ENDIAN = np.dtype(">i8")


def join(*parts: pa.Array | pa.Scalar | bytes) -> pa.Array:
    """Row by row, the parts one after the other; null where a part is null."""
    return pc.binary_join_element_wise(*parts, _EMPTY)


def prefixed(prefix: bytes, column: pa.Array) -> pa.Array:
    """`prefix` in front of every row."""
    return join(pa.scalar(prefix, pa.binary()), column)


def cut(column: pa.Array, start: int, stop: int = _TO_THE_END) -> pa.Array:
    """Row by row `[start:stop]`, negative positions count from the end as in Python."""
    return pc.binary_slice(column, start, stop)


def big_endian(numbers: pa.Array) -> pa.Array:
    """Integers as 8 bytes, big endian: Kafka's Long."""
    data = np.asarray(numbers, dtype=np.int64).astype(_BIG_ENDIAN).tobytes()
    fixed = pa.Array.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(data)])
    return fixed.cast(pa.binary())


def integers(column: pa.Array) -> pa.Array:
    """Rows of 8 bytes, big endian, as integers; 0 where the row is null. The column must come from `cut`."""
    whole = column.fill_null(bytes(8)) if column.null_count else column
    data = contents(whole)[: 8 * len(whole)]
    return pa.array(data.view(_BIG_ENDIAN).astype(np.int64))


def contents(column: pa.Array) -> np.typing.NDArray[np.uint8]:
    """The bytes of all rows, one after the other; for columns fresh from a kernel, which begin at offset 0."""
    data = column.buffers()[2]
    return np.frombuffer(data if data is not None else b"", np.uint8)


def timestamped(values: pa.Array, timestamps: pa.Array) -> pa.Array:
    """A timestamped store's rows: 8 bytes of timestamp, then the value; null where the value is null."""
    return join(big_endian(timestamps), values)
