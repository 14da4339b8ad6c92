"""`AvroReader`: the reader of Avro bytes. It reads dicts and lists with fastavro, and converts these to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
from fastavro.read import SchemaResolutionError

from kstreams.errors import SerdeError
from kstreams.schemas.compatibility.avro import AvroType, differences
from kstreams.schemas.compatibility.incompatibility import Incompatibility
from kstreams.serdes.avro.columns import AvroColumnReader, NoColumnsError
from kstreams.serdes.avro.decoding import (
    Decode,
    Prepared,
    decoder,
    first_fields,
    is_endless,
    prepare_reader,
    prepare_written,
)
from kstreams.serdes.avro.field_errors import FAILURES, UnresolvedError, in_field
from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.schema_parts import outline
from kstreams.serdes.avro.to_objects import Conversions, needs_tags
from kstreams.serdes.schemas.codecs import UnreadableSchemaError

_PADDING = b"\0"
"""A byte after the last value. It reveals a read past the end, which fastavro does not report if it skips bytes."""

_MAX_DIFFERENCES = 3
"""The limit of differences between schemas that an error lists."""


class AvroReader:
    """A reader of values of a kind, for one writer's schema and one reader's schema.

    Parameters
    ----------
    written, reader : AvroSchema
        The schemas of writer and reader.
    kind : Kind
        The kind of the values. `PLAIN` for dicts, lists and scalars.
    start : int
        The length of the frame before a value.

    Raises
    ------
    SerdeError
        If values of the reader's schema do not fit the kind. The message names the field.
    """

    def __init__(self, written: AvroSchema, reader: AvroSchema, kind: Kind, start: int = 0) -> None:
        self._written = written
        self._reader = reader
        self._kind = kind
        self._start = start
        self._prepared = prepare_written(written)
        self._is_tagged = needs_tags(reader)
        self._is_careful = is_endless(written)
        is_same = written.root == reader.root or (not self._is_tagged and outline(written) == outline(reader))
        self._reader_schema = None if is_same else prepare_reader(reader, written)
        self._decode = self._decoder(self._prepared)
        try:
            convert = Conversions(reader, None if is_same else written, tagged=self._is_tagged).of(reader.root, kind)
        except UnresolvedError as error:
            raise SerdeError(str(error)) from None
        self._convert = _unchanged if convert is None else convert

    def _decoder(self, written: Prepared) -> Decode:
        return decoder(written, self._reader_schema, tagged=self._is_tagged, careful=self._is_careful)

    def one(self, data: bytes) -> Any:
        """Read one value. Raises SerdeError if the bytes do not decode, or more bytes follow the value."""
        try:
            return self._values([data])[0]
        except (*FAILURES, SchemaResolutionError, RecursionError) as error:
            raise self._error(data, error) from error

    def many(self, rows: list[bytes]) -> list[Any]:
        """Read many values. Raises SerdeError if one of them does not decode."""
        try:
            return self._values(rows)
        except (*FAILURES, SchemaResolutionError, RecursionError):
            return list(map(self.one, rows))

    def fields(self, fields: Sequence[str]) -> Callable[[pa.Array], dict[str, pa.Array]]:
        """Return the reader of fields as columns. Raises NoColumnsError if schemas differ or a part has no column."""
        if self._reader_schema is not None:
            raise NoColumnsError("records are read with another schema than they were written with")
        return AvroColumnReader(self._written, self._start, fields).columns

    def _values(self, rows: list[bytes]) -> list[object]:
        stream = BytesIO(b"".join((*rows, _PADDING)))
        values: list[Any] = []
        end = 0
        for data in rows:
            stream.seek(end + self._start)
            value = self._decode(stream)
            end += len(data)
            if stream.tell() != end:
                raise EOFError if stream.tell() > end else ValueError("bytes remain after the value")
            values.append(self._convert(value))
        return values

    def _error(self, data: bytes, error: Exception) -> SerdeError:
        if isinstance(error, RecursionError):
            return _not_decoded(data, "it is nested too deeply")
        if isinstance(error, UnresolvedError):
            return UnreadableSchemaError(str(error))
        if isinstance(error, SchemaResolutionError):
            return UnreadableSchemaError(self._difference() or "the schemas differ")
        if isinstance(error, EOFError | IndexError):
            error = ValueError("the bytes end too early" if isinstance(error, EOFError) else str(error))
        name = self._broken_field(data)
        return _not_decoded(data, str(in_field(name, error) if name else error))

    def _difference(self) -> str:
        """Describe why the reader's schema cannot read the writer's. fastavro's error only shows both schemas."""
        writer_type = AvroType(self._written.root, self._written.names)
        reader_type = AvroType(self._reader.root, self._reader.names)
        incompatibilities = differences(reader_type, writer_type)[:_MAX_DIFFERENCES]
        reasons = [_in_words(incompatibility, reader_type.name) for incompatibility in incompatibilities]
        has_other_name = reader_type.short_name != writer_type.short_name
        if self._kind.shape is not None and writer_type.kind == "record" and has_other_name:
            example = f"ks.Avro({self._kind}, name={writer_type.name!r})"
            reasons.append(f"Avro compares records by name, so give the class the name of the record, as in {example}")
        return "; ".join(reasons)

    def _broken_field(self, data: bytes) -> str:
        """Return the first field of a record that does not decode. Empty if all fields decode."""
        root = self._prepared.root
        fields = root.get("fields", ()) if isinstance(root, dict) else ()
        for count, field in enumerate(fields, 1):
            stream = BytesIO(data)
            stream.seek(self._start)
            try:
                self._decoder(first_fields(self._prepared, count))(stream)
            except (*FAILURES, SchemaResolutionError, RecursionError):
                return str(field["name"])
        return ""


def _not_decoded(data: bytes, reason: str) -> SerdeError:
    return SerdeError(f"{data[:40]!r}{'…' if len(data) > 40 else ''} does not decode: {reason}")


def _in_words(difference: Incompatibility, root: str) -> str:
    """Describe a difference between schemas with the path of the field, as in other errors."""
    path = difference.path.removeprefix(root).removeprefix(".")
    return difference.reason if difference.path == "(root)" else f"field {path}: {difference.reason}"


def _unchanged(value: object) -> Any:
    return value
