"""Serdes of single values, in the bytes of Kafka's own serdes."""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error, register

_INT64 = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StringSerde(Serde[str]):
    """`str` as UTF-8."""

    type = str

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

    def encode_rows(self, values: list[str | None]) -> pa.Array:
        try:
            return pa.array(values, pa.string()).cast(pa.binary())
        except (pa.ArrowException, UnicodeEncodeError):
            return super().encode_rows(values)

    def decode_rows(self, column: pa.Array) -> list[str | None]:
        try:
            rows: list[str | None] = column.cast(pa.string()).to_pylist()
        except pa.ArrowException:
            return super().decode_rows(column)
        return rows


class BytesSerde(Serde[bytes]):
    """`bytes` as they are."""

    type = bytes

    def serialize(self, value: bytes) -> bytes:
        return bytes(value)

    def deserialize(self, data: bytes) -> bytes:
        return data


class IntSerde(Serde[int]):
    """`int` as 8 bytes, big endian, signed (Kafka's Long)."""

    type = int

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


class FloatSerde(Serde[float]):
    """`float` as 8 bytes, big endian (Kafka's Double)."""

    type = float

    def serialize(self, value: float) -> bytes:
        try:
            return _DOUBLE.pack(value)
        except struct.error as error:
            raise SerdeError(f"{value!r} is not a number") from error

    def deserialize(self, data: bytes) -> float:
        try:
            value: float = _DOUBLE.unpack(data)[0]
        except struct.error as error:
            raise decode_error("a double of 8 bytes", data, error) from error
        return value


class BoolSerde(Serde[bool]):
    """`bool` as one byte, 0 or 1."""

    type = bool

    def serialize(self, value: bool) -> bytes:
        return b"\x01" if value else b"\x00"

    def deserialize(self, data: bytes) -> bool:
        if data not in (b"\x00", b"\x01"):
            raise decode_error("a boolean", data, "it must be one byte, 0 or 1")
        return data == b"\x01"


class DatetimeSerde(Serde[datetime]):
    """An aware `datetime` as microseconds since the epoch, 8 bytes big endian; read back in UTC."""

    type = datetime

    def serialize(self, value: datetime) -> bytes:
        if value.tzinfo is None:
            raise SerdeError(f"{value!r} has no time zone: give it one, for example tzinfo=UTC")
        return _INT64.pack((value - _EPOCH) // timedelta(microseconds=1))

    def deserialize(self, data: bytes) -> datetime:
        try:
            return _EPOCH + timedelta(microseconds=_INT64.unpack(data)[0])
        except (struct.error, OverflowError) as error:
            raise decode_error("a datetime of 8 bytes", data, error) from error


class UuidSerde(Serde[uuid.UUID]):
    """`uuid.UUID` as its text, as Kafka's UUIDSerde."""

    type = uuid.UUID

    def serialize(self, value: uuid.UUID) -> bytes:
        return str(value).encode()

    def deserialize(self, data: bytes) -> uuid.UUID:
        try:
            return uuid.UUID(data.decode())
        except ValueError as error:
            raise decode_error("a UUID", data, error) from error


for _serde in (StringSerde(), BytesSerde(), IntSerde(), FloatSerde(), BoolSerde(), DatetimeSerde(), UuidSerde()):
    register(_serde.type, _serde)
