"""`AvroWriter`: converts values of a class to dicts and lists, and writes them as Avro with fastavro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa
from fastavro._write import write_data  # type: ignore[attr-defined]

from kstreams.errors import SerdeError
from kstreams.serdes.avro.columns import AvroColumnWriter, NoColumnsError
from kstreams.serdes.avro.decoding import for_writing, is_endless
from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.misfits import FAILURES, FieldError
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
        The kind of the values; `PLAIN` for dicts, lists and scalars.
    frame : bytes
        The bytes before each value.

    Raises
    ------
    SerdeError
        If no value of the kind can be written with the schema; the message names the field.
    """

    def __init__(self, schema: AvroSchema, kind: Kind, frame: bytes = b"") -> None:
        self._schema = schema
        self._kind = kind
        self._frame = frame
        self._prepared = for_writing(schema)
        plainness = PlainValues(schema)
        try:
            self._plain = plainness.of(schema.root, kind)
        except FieldError as error:
            raise SerdeError(str(error)) from None
        is_uncertain = plainness.is_uncertain or is_endless(schema)
        self._check = AvroReader(schema, schema, kind, len(frame)) if is_uncertain else None

    def one(self, value: object) -> bytes:
        """Write one value. Raises SerdeError if it does not fit the schema or the class."""
        try:
            data = self._bytes(value)
        except FAILURES as error:
            raise SerdeError(f"{_shown(value)} does not fit {self._kind}: {self._reason(value, error)}") from error
        except RecursionError as error:
            raise SerdeError(f"{_shown(value)} does not fit {self._kind}: it is nested too deeply") from error
        if self._check is not None:
            _require_same(value, self._check.one(data))
        return data

    def many(self, values: list[Any]) -> list[bytes]:
        """Write many values. Raises SerdeError if one of them does not fit."""
        if self._check is None:
            try:
                return list(map(self._bytes, values))
            except (*FAILURES, RecursionError):
                pass  # writing one by one raises an error that names the value
        return list(map(self.one, values))

    @cached_property
    def columns(self) -> Callable[[Mapping[str, pa.Array]], pa.Array]:
        """The writer of the columns of all fields. It raises NoColumnsError if a part has no column."""
        try:
            return AvroColumnWriter(self._schema, self._frame).written
        except NoColumnsError:
            return self._no_columns

    @staticmethod
    def _no_columns(columns: object) -> pa.Array:
        raise NoColumnsError("the schema has parts that columns cannot hold")

    def _bytes(self, value: object) -> bytes:
        data = bytearray(self._frame)
        write_data(data, self._plain.of(value), self._prepared.root, self._prepared.names, "", _NO_OPTIONS)
        return bytes(data)

    def _reason(self, value: object, error: Exception) -> str:
        """Return the reason of an error. If fastavro's error names no field, a careful conversion finds the field."""
        if not isinstance(error, FieldError):
            try:
                PlainValues(self._schema, careful=True).of(self._schema.root, self._kind).of(value)
            except FAILURES as field_error:
                return str(field_error)
        return str(error)


def _require_same(value: object, read: object) -> None:
    if not same_value(value, read):
        raise SerdeError(f"{value!r} would be read back as {read!r}")


def _shown(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__}"
