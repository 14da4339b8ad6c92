"""Serdes of scalar values, in the format of Kafka's serdes."""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, datetime, timedelta
from types import NoneType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, T, decode_error

_INT64 = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC) - _EPOCH
_LAST = datetime.max.replace(tzinfo=UTC) - _EPOCH
_MICROSECOND = timedelta(microseconds=1)


def _numbers(column: pa.Array, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return binary values of one width as numbers, with 0 for null, and a mask of the nulls."""
    width = np.dtype(dtype).itemsize
    fixed = column.cast(pa.binary(width))
    is_null = fixed.is_null().to_numpy(zero_copy_only=False)
    if is_null.any():
        fixed = fixed.fill_null(bytes(width))
    data = np.frombuffer(fixed.buffers()[1], dtype, len(fixed) + fixed.offset)[fixed.offset :]
    return data.astype(np.dtype(dtype).newbyteorder("=")), is_null


def _binary(numbers: np.ndarray, is_null: pa.Array) -> pa.Array:
    """Return numbers as binary values of their width, with null where the mask is true."""
    width = numbers.dtype.itemsize
    count = len(numbers)
    fixed = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(numbers.tobytes())])
    column = fixed.cast(pa.binary())
    return pc.if_else(is_null, pa.scalar(None, pa.binary()), column) if pc.any(is_null).as_py() else column


class _RowsAsColumns(Serde[T]):
    """Serde that converts rows as columns. Rows with a value of another class are encoded one by one."""

    def encode_rows(self, values: list[T | None]) -> pa.Array:
        if set(map(type, values)) <= {self.type, NoneType}:  # Arrow would also accept values of some other classes
            try:
                return self.encode_column(pa.array(values, self.arrow_type))
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                pass  # encoding row by row raises an error that names the value
        return super().encode_rows(values)

    def decode_rows(self, column: pa.Array) -> list[T | None]:
        try:
            rows: list[T | None] = self.decode_column(column).to_pylist()
        except pa.ArrowException:
            return super().decode_rows(column)
        return rows


class _NumberColumns(Serde[T]):
    """Serde whose columns are big-endian numbers."""

    number_type = ">i8"

    def decode_column(self, column: pa.Array) -> pa.Array:
        numbers, is_null = _numbers(column, self.number_type)
        return pa.array(numbers, mask=is_null).cast(self.arrow_type)

    def encode_column(self, column: pa.Array) -> pa.Array:
        numbers = column.cast(pa.float64() if self.number_type == ">f8" else pa.int64())
        return _binary(numbers.fill_null(0).to_numpy().astype(self.number_type), column.is_null())


class StringSerde(_RowsAsColumns[str]):
    """`str` as UTF-8."""

    type = str
    arrow_type = pa.string()

    def serialize(self, value: str) -> bytes:
        try:
            return value.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise SerdeError(f"{value!r} is not text that UTF-8 can hold: {error}") from error

    def deserialize(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise decode_error("UTF-8 text", data, error) from error

    def decode_column(self, column: pa.Array) -> pa.Array:
        return column.cast(pa.string())

    def encode_column(self, column: pa.Array) -> pa.Array:
        return column.cast(pa.binary())


class BytesSerde(Serde[bytes]):
    """`bytes`, unchanged."""

    type = bytes
    arrow_type = pa.binary()

    def serialize(self, value: bytes) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SerdeError(f"{value!r} is not bytes")
        return bytes(value)

    def deserialize(self, data: bytes) -> bytes:
        return data

    def decode_column(self, column: pa.Array) -> pa.Array:
        return column

    def encode_column(self, column: pa.Array) -> pa.Array:
        return column


class IntSerde(_RowsAsColumns[int], _NumberColumns[int]):
    """`int` as 8 bytes, big endian, signed (Kafka's Long)."""

    type = int
    arrow_type = pa.int64()

    def serialize(self, value: int) -> bytes:
        try:
            return _INT64.pack(value)
        except struct.error as error:
            raise SerdeError(f"{value!r} is not an integer of 64 bits") from error

    def deserialize(self, data: bytes) -> int:
        try:
            value: int = _INT64.unpack(data)[0]
        except struct.error as error:
            raise decode_error("an integer of 8 bytes", data, error) from error
        return value


class FloatSerde(_RowsAsColumns[float], _NumberColumns[float]):
    """`float` as 8 bytes, big endian (Kafka's Double)."""

    type = float
    arrow_type = pa.float64()
    number_type = ">f8"

    def serialize(self, value: float) -> bytes:
        try:
            data = _DOUBLE.pack(value)
        except (struct.error, OverflowError) as error:
            raise SerdeError(f"{value!r} is not a number of double precision: {error}") from error
        if type(value) is not float and self.deserialize(data) != value:
            raise SerdeError(f"{value!r} would be read back as {self.deserialize(data)!r}: convert it to a float")
        return data

    def deserialize(self, data: bytes) -> float:
        try:
            value: float = _DOUBLE.unpack(data)[0]
        except struct.error as error:
            raise decode_error("a double of 8 bytes", data, error) from error
        return value


class BoolSerde(Serde[bool]):
    """`bool` as one byte, 0 or 1."""

    type = bool
    arrow_type = pa.bool_()

    def serialize(self, value: bool) -> bytes:
        if value not in (0, 1):  # a tuple, not a set, since the value may not be hashable
            raise SerdeError(f"{value!r} is neither True nor False")
        return b"\x01" if value else b"\x00"

    def deserialize(self, data: bytes) -> bool:
        if data not in (b"\x00", b"\x01"):
            raise decode_error("a boolean", data, "it must be one byte, 0 or 1")
        return data == b"\x01"

    def decode_column(self, column: pa.Array) -> pa.Array:
        numbers, is_null = _numbers(column, "u1")
        if len(numbers) and numbers.max() > 1:
            raise decode_error("a boolean", bytes([numbers.max()]), "it must be one byte, 0 or 1")
        return pa.array(numbers.astype(bool), mask=is_null)

    def encode_column(self, column: pa.Array) -> pa.Array:
        return _binary(column.fill_null(False).cast(pa.uint8()).to_numpy(), column.is_null())


class DatetimeSerde(_NumberColumns[datetime]):
    """An aware `datetime` as microseconds since the epoch, 8 bytes, big endian. It is read back in UTC."""

    type = datetime
    arrow_type = pa.timestamp("us", "UTC")

    def serialize(self, value: datetime) -> bytes:
        if not isinstance(value, datetime):
            raise SerdeError(f"{value!r} is no datetime")
        if value.utcoffset() is None:
            raise SerdeError(f"{value!r} has no time zone: give it one, for example tzinfo=UTC")
        since_epoch = value - _EPOCH
        if not _FIRST <= since_epoch <= _LAST:
            raise SerdeError(f"{value!r} lies outside of the years 1 to 9999 in UTC")
        return _INT64.pack(since_epoch // _MICROSECOND)

    def deserialize(self, data: bytes) -> datetime:
        try:
            return _EPOCH + timedelta(microseconds=_INT64.unpack(data)[0])
        except (struct.error, OverflowError) as error:
            raise decode_error("a datetime of 8 bytes", data, error) from error

    def decode_column(self, column: pa.Array) -> pa.Array:
        times = super().decode_column(column)
        span = pc.min_max(times.cast(pa.int64()))
        for time in (span["min"].as_py(), span["max"].as_py()):
            if time is not None:
                self.deserialize(_INT64.pack(time))  # raises SerdeError for a time outside of datetime's range
        return times


class UuidSerde(Serde[uuid.UUID]):
    """`uuid.UUID` as text, as in Kafka's UUIDSerde."""

    type = uuid.UUID

    def serialize(self, value: uuid.UUID) -> bytes:
        if not isinstance(value, uuid.UUID):
            raise SerdeError(f"{value!r} is no UUID: make one, as uuid.UUID(text)")
        return str(value).encode()

    def deserialize(self, data: bytes) -> uuid.UUID:
        try:
            return uuid.UUID(data.decode())
        except ValueError as error:
            raise decode_error("a UUID", data, error) from error
