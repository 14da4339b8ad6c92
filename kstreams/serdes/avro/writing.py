"""`AvroWriter`: the writer of Avro bytes. It converts values to dicts and lists, and writes these with fastavro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
from fastavro._write import write_data  # type: ignore[attr-defined]

from kstreams.errors import SerdeError
from kstreams.serdes.avro.columns import AvroColumnWriter, NoColumnsError
from kstreams.serdes.avro.decoding import is_endless, prepare_writing
from kstreams.serdes.avro.field_errors import FAILURES, FieldError
from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.reading import AvroReader
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.to_plain import PlainValues
from kstreams.serdes.typed import same_value

_NO_OPTIONS: dict[str, object] = {}


class AvroWriter:
    """A writer of values of a kind with a schema.

    Parameters
    ----------
    schema : AvroSchema
    kind : Kind
        The kind of the values. `PLAIN` for dicts, lists and scalars.
    frame : bytes
        The bytes before each value.

    Raises
    ------
    SerdeError
        If no value of the kind can be written with the schema. The message names the field.
    """

    def __init__(self, schema: AvroSchema, kind: Kind, frame: bytes = b"") -> None:
        self._schema = schema
        self._kind = kind
        self._frame = frame
        self._prepared = prepare_writing(schema)
        conversions = PlainValues(schema)
        try:
            self._to_plain = conversions.of(schema.root, kind)
        except FieldError as error:
            raise SerdeError(str(error)) from None
        needs_reading_back = conversions.needs_reading_back or is_endless(schema)
        self._reader = AvroReader(schema, schema, kind, len(frame)) if needs_reading_back else None

    def one(self, value: object) -> bytes:
        """Write one value. Raises SerdeError if it does not fit the schema or the class."""
        try:
            data = self._bytes(value)
        except FAILURES as error:
            raise SerdeError(f"{_repr_of(value)} does not fit {self._kind}: {self._reason(value, error)}") from error
        except RecursionError as error:
            raise SerdeError(f"{_repr_of(value)} does not fit {self._kind}: it is nested too deeply") from error
        if self._reader is not None:
            _require_same(value, self._reader.one(data))
        return data

    def many(self, values: list[Any]) -> list[bytes]:
        """Write many values. Raises SerdeError if one of them does not fit."""
        if self._reader is None:
            try:
                return list(map(self._bytes, values))
            except (*FAILURES, RecursionError):
                pass  # writing one by one raises an error that names the value
        return list(map(self.one, values))

    @cached_property
    def columns(self) -> Callable[[Mapping[str, pa.Array]], pa.Array]:
        """The encoder of the columns of all fields. It raises NoColumnsError if a part has no columnar form."""
        try:
            return AvroColumnWriter(self._schema, self._frame).encode
        except NoColumnsError:
            return self._no_columns

    @staticmethod
    def _no_columns(columns: object) -> pa.Array:
        raise NoColumnsError("the schema has parts without a columnar form")

    def _bytes(self, value: object) -> bytes:
        data = bytearray(self._frame)
        write_data(data, self._to_plain.of(value), self._prepared.root, self._prepared.names, "", _NO_OPTIONS)
        return bytes(data)

    def _reason(self, value: object, error: Exception) -> str:
        """Return the reason of an error. If the error names no field, a careful conversion finds the field."""
        if not isinstance(error, FieldError):
            try:
                PlainValues(self._schema, careful=True).of(self._schema.root, self._kind).of(value)
            except FAILURES as field_error:
                return str(field_error)
        return str(error)


def _require_same(value: object, read: object) -> None:
    if not same_value(value, read):
        raise SerdeError(f"{value!r} would be read back as {read!r}")


def _repr_of(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__}"
