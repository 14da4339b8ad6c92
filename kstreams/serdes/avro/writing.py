"""`AvroWriter`: a function compiled once for a schema and a class, which writes values and looks at them as it goes.

A value that would not be read back as it is has no bytes: the generated function raises, and the error names the field.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.reading import AvroReader
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.source import Source
from kstreams.serdes.avro.wire import MisfitError
from kstreams.serdes.avro.writing_code import NAMES, WritingCode
from kstreams.serdes.same_value import same_value

UNWRITABLE = (
    ValueError,  # MisfitError, UnicodeEncodeError
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
    msgspec.MsgspecError,
)


class AvroWriter:
    """Writes values of a kind with a schema.

    Parameters
    ----------
    schema : AvroSchema
    kind : Kind
        Of the values; `PLAIN`: dicts and what stands in them.
    frame : bytes
        Stands in front of what is written.

    Raises
    ------
    SerdeError
        When no value of the kind can be written with the schema; names the field.
    """

    def __init__(self, schema: AvroSchema, kind: Kind, frame: bytes = b"") -> None:
        self._kind, self._source = kind, Source(**NAMES)
        code = WritingCode(schema, self._source)
        try:
            names = code.write(kind, frame)
        except MisfitError as error:
            raise SerdeError(str(error)) from None
        self._one, self._many = self._source.functions(*names)
        self._check = AvroReader(schema, schema, kind, len(frame)) if code.is_uncertain else None

    def one(self, value: Any) -> bytes:
        """The bytes of a value; raises SerdeError for one that the schema, or the class, has no place for."""
        try:
            data: bytes = self._one(value)
        except UNWRITABLE as error:
            raise self._failure(value, error) from error
        if self._check is not None:
            self._require_same(value, self._check.one(data))
        return data

    def many(self, values: list[Any]) -> list[bytes]:
        """The bytes of many; raises SerdeError when one of them has none."""
        if self._check is not None:
            return [self.one(value) for value in values]
        try:
            rows: list[bytes] = self._many(values)
        except UNWRITABLE as error:
            raise SerdeError(self._reason(error)) from error
        return rows

    def _require_same(self, value: Any, read: Any) -> None:
        if not same_value(value, read):
            raise SerdeError(f"{value!r} would be read back as {read!r}")

    def _failure(self, value: Any, error: Exception) -> SerdeError:
        return SerdeError(f"{_shown(value)} does not fit {self._kind}: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        place = self._source.field_of(error)
        reason = f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else reason
        return f"field {place}: {reason}" if place else reason


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__}"
