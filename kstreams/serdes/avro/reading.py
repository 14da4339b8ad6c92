"""`AvroReader`: a function compiled once for a writer's schema, a reader's schema and a class.

fastavro looks at both schemas again for each value; what it looks at is known here before the first record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.reading_code import ReadingCode
from kstreams.serdes.avro.reading_source import ReadingSource
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.wire import UnresolvedError

UNREADABLE = (
    ValueError,  # DamagedError, UnresolvedError, UnicodeDecodeError, pydantic's ValidationError
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
    msgspec.MsgspecError,
    SerdeError,
)
"""What reading damaged bytes raises, or a class that refuses its fields."""


class AvroReader:
    """Reads bytes of a writer's schema as values of a kind, by way of the reader's schema.

    Parameters
    ----------
    written, wanted : AvroSchema
    kind : Kind
        Of the values; `PLAIN`: dicts and what stands in them.
    start : int
        Where the value begins, behind the frame.

    Raises
    ------
    SerdeError
        When no value of the writer's schema can be read; names the field.
    """

    def __init__(self, written: AvroSchema, wanted: AvroSchema, kind: Kind, start: int = 0) -> None:
        self._source = ReadingSource()
        try:
            names = ReadingCode(written, wanted, self._source, _default_reader).write(kind, start)
        except UnresolvedError as error:
            raise SerdeError(str(error)) from None
        self._one, self._many = self._source.functions(*names)

    def one(self, data: bytes) -> Any:
        """The value of bytes; raises SerdeError when they stand for none, or go on behind it."""
        try:
            return self._one(data)
        except UNREADABLE as error:
            raise self._failure(data, error) from error

    def many(self, rows: list[bytes]) -> list[Any]:
        """The values of many; raises SerdeError when one of them stands for none."""
        try:
            values: list[Any] = self._many(rows)
        except UNREADABLE as error:
            raise SerdeError(self._reason(error)) from error
        return values

    def _failure(self, data: bytes, error: Exception) -> SerdeError:
        shown = data[:40]
        return SerdeError(f"{shown!r}{'…' if len(data) > 40 else ''} does not decode: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        place = "" if isinstance(error, UnresolvedError) else self._source.field_of(error)
        reason = "the bytes end too early" if isinstance(error, IndexError | struct.error) else str(error)
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else reason
        return f"field {place}: {reason}" if place else reason


def _default_reader(schema: AvroSchema, kind: Kind) -> Callable[[bytes], Any]:
    return AvroReader(schema, schema, kind).one
