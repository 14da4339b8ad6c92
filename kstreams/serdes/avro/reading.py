"""`AvroReader`: values of a class, of bytes that fastavro reads as dicts and lists."""

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
from kstreams.serdes.avro.decoding import Decode, Prepared, decoder, first_fields, for_reader, for_writer, is_endless
from kstreams.serdes.avro.kinds import Kind
from kstreams.serdes.avro.misfits import FAILURES, UnresolvedError, in_field
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.schema_parts import outline
from kstreams.serdes.avro.to_objects import Conversions, needs_tags
from kstreams.serdes.schemas.codecs import UnreadableSchemaError

_BEYOND = b"\0"
"""Behind the bytes of a value: fastavro skips what ends too early, and would not say so."""


_SHOWN = 3
"""Of differences between schemas, in errors."""


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
        When the kind has no place for values of the reader's schema; names the field.
    """

    def __init__(self, written: AvroSchema, reader: AvroSchema, kind: Kind, start: int = 0) -> None:
        self._written = written
        self._wanted = reader
        self._kind = kind
        self._start = start
        self._prepared = for_writer(written)
        self._tagged = needs_tags(reader)
        self._careful = is_endless(written)
        is_same = written.root == reader.root or (not self._tagged and outline(written) == outline(reader))
        self._reader_schema = None if is_same else for_reader(reader, written)
        self._decode = self._decoder(self._prepared)
        try:
            convert = Conversions(reader, None if is_same else written, tagged=self._tagged).of(reader.root, kind)
        except UnresolvedError as error:
            raise SerdeError(str(error)) from None
        self._convert = _as_it_is if convert is None else convert

    def _decoder(self, written: Prepared) -> Decode:
        return decoder(written, self._reader_schema, tagged=self._tagged, careful=self._careful)

    def one(self, data: bytes) -> Any:
        """The value of bytes; raises SerdeError when they stand for none, or go on behind it."""
        try:
            return self._values([data])[0]
        except (*FAILURES, SchemaResolutionError, RecursionError) as error:
            raise self._failure(data, error) from error

    def many(self, rows: list[bytes]) -> list[Any]:
        """The values of many; raises SerdeError when one of them stands for none."""
        try:
            return self._values(rows)
        except (*FAILURES, SchemaResolutionError, RecursionError):
            return list(map(self.one, rows))

    def fields(self, fields: Sequence[str]) -> Callable[[pa.Array], dict[str, pa.Array]]:
        """What reads fields of many as columns; raises NoColumnsError where schemas differ, or a part is no column."""
        if self._reader_schema is not None:
            raise NoColumnsError("records are read by another schema than they were written with")
        return AvroColumnReader(self._written, self._start, fields).columns

    def _values(self, rows: list[bytes]) -> list[Any]:
        stream = BytesIO(b"".join((*rows, _BEYOND)))
        values: list[Any] = []
        end = 0
        for data in rows:
            stream.seek(end + self._start)
            value = self._decode(stream)
            end += len(data)
            if stream.tell() != end:
                raise EOFError if stream.tell() > end else ValueError("bytes are left over behind the value")
            values.append(self._convert(value))
        return values

    # what went wrong

    def _failure(self, data: bytes, error: Exception) -> SerdeError:
        if isinstance(error, RecursionError):
            return _undecoded(data, "it is nested too deeply")
        if isinstance(error, UnresolvedError):
            return UnreadableSchemaError(str(error))
        if isinstance(error, SchemaResolutionError):
            return UnreadableSchemaError(self._difference() or "the schemas differ")
        if isinstance(error, EOFError | IndexError):
            error = ValueError("the bytes end too early" if isinstance(error, EOFError) else str(error))
        name = self._broken_field(data)
        return _undecoded(data, str(in_field(name, error) if name else error))

    def _difference(self) -> str:
        """Why the reader's schema does not take what the writer's has, in words: fastavro shows both schemas whole."""
        written = _type_of(self._written)
        reader_type = _type_of(self._wanted)
        reasons = [_in_words(difference, reader_type.name) for difference in differences(reader_type, written)[:_SHOWN]]
        if self._kind.shape is not None and reader_type.short_name != written.short_name and written.kind == "record":
            cure = f"ks.Avro({self._kind}, name={written.name!r})"
            reasons.append(f"records are told by their names, so give the class this one, as in {cure}")
        return "; ".join(reasons)

    def _broken_field(self, data: bytes) -> str:
        """The field of a record that cannot be decoded; empty where they all can."""
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


def _undecoded(data: bytes, reason: str) -> SerdeError:
    return SerdeError(f"{data[:40]!r}{'…' if len(data) > 40 else ''} does not decode: {reason}")


def _in_words(difference: Incompatibility, root: str) -> str:
    """A difference between schemas, which names the field as other errors do."""
    path = difference.path.removeprefix(root).removeprefix(".")
    return difference.reason if difference.path == "(root)" else f"field {path}: {difference.reason}"


def _type_of(schema: AvroSchema) -> AvroType:
    return AvroType(schema.root, dict(schema.names))


def _as_it_is(value: object) -> Any:
    return value
