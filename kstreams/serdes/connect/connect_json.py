"""`ConnectJson`: the serde of JSON in the form of Kafka Connect's JsonConverter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.serdes.avro.kinds import PLAIN, Kind, kind_of
from kstreams.serdes.base import FieldColumns, Serde, decode_error
from kstreams.serdes.connect.codec import READ_ERRORS, Codec, CodecBuilder
from kstreams.serdes.connect.columns import PayloadColumns
from kstreams.serdes.connect.derived import derived_schema
from kstreams.serdes.connect.logical import Conventions
from kstreams.serdes.connect.payload_reader import PayloadReader
from kstreams.serdes.connect.schema import ConnectSchema, schema_of
from kstreams.serdes.connect.wrapped import SCHEMALESS, prefix_of
from kstreams.serdes.non_finite import json_forms
from kstreams.serdes.plain_check import plain_check
from kstreams.serdes.typed import UNWRITABLE, same_value

T = TypeVar("T")
_DECIMALS = ("base64", "numeric")
_encode = msgspec.json.Encoder().encode


class ConnectJson(Serde[T], Generic[T]):
    """JSON as Kafka Connect's JsonConverter writes it: with a schema before the payload, or the payload alone.

    Both forms are read. Kafka Connect: `org.apache.kafka.connect.json.JsonConverter`.

    Parameters
    ----------
    kind : type, optional
        A dataclass, msgspec Struct, TypedDict or scalar. Default: plain Python values, which a schema in the record
        makes dates, decimals and bytes.
    schemas : bool, default True
        True to write the schema with every record, as `schemas.enable=true`. It is derived from `kind`.
    schema : mapping, optional
        The schema to write, as JSON, instead of the derived one.
    field : str, optional
        The only field of a struct that is the value itself: `ConnectJson(int, field="id")` reads `{"id": 7}` as 7.
    decimals : {"base64", "numeric"}, default "base64"
        How decimals are written, as `decimal.format`. Both are read; Base64 without a schema needs the scale, as in
        `Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]`.

    Raises
    ------
    SerdeError
        If the type has no form in Kafka Connect.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> @dataclass
    ... class Order:
    ...     id: int
    >>> ks.ConnectJson(Order, schemas=False).serialize(Order(1))
    b'{"id":1}'
    >>> ks.ConnectJson(str).serialize("tea")
    b'{"schema":{"type":"string","optional":false},"payload":"tea"}'
    """

    def __init__(
        self,
        kind: type[T] | Any = None,
        *,
        schemas: bool = True,
        schema: Mapping[str, Any] | None = None,
        field: str | None = None,
        decimals: str = "base64",
    ) -> None:
        if decimals not in _DECIMALS:
            raise SerdeError(f"decimals={decimals!r} is no form of decimals: write 'base64' or 'numeric'")
        self.type = Any if kind is None else kind
        self.schemas = schemas
        self.schema = schema
        self.field = field
        self.decimals = decimals
        self._conventions = Conventions(decimals=decimals)
        self._kind = _kind_of(self.type)
        self._reader = PayloadReader(self._codec_for_reading)
        self._written = self._written_schema()
        self._writer = self._in_field(CodecBuilder(self._conventions, checks_width=True), self._written)
        self._prefix, self._suffix = self._frame(self._written)
        self._is_plain = plain_check(self.type).one

    def _codec_for_reading(self, schema: ConnectSchema | None) -> Codec:
        return self._in_field(CodecBuilder(self._conventions), schema)

    def _in_field(self, builder: CodecBuilder, schema: ConnectSchema | None) -> Codec:
        """Return the codec of the values. `field` names the field of a struct that holds them."""
        name = self.field
        if name is None:
            return builder.of(self._kind, schema)
        return single_field(name, builder.of(self._kind, None if schema is None else schema.fields.get(name)))

    def _written_schema(self) -> ConnectSchema | None:
        if self.schema is not None:
            return schema_of(self.schema)
        if not self.schemas or self._kind.is_plain:
            return None
        schema = derived_schema(self._kind, self._conventions)
        return schema if self.field is None else ConnectSchema(type="struct", fields={self.field: schema})

    def _frame(self, schema: ConnectSchema | None) -> tuple[bytes, bytes]:
        """Return the bytes before and after a payload."""
        if not self.schemas:
            return b"", b""
        return prefix_of(SCHEMALESS if schema is None else _encode(schema.to_json())), b"}"

    def serialize(self, value: T) -> bytes:
        try:
            payload = self._writer.write(value)
            data = self._prefix + _encode(payload) + self._suffix
        except (*UNWRITABLE, ArithmeticError, AttributeError) as error:
            raise SerdeError(f"{value!r} cannot be written as JSON of Kafka Connect: {error}") from error
        return data if self._is_plain(value) else self._readable_form(value, payload, data)

    def _readable_form(self, value: object, payload: object, data: bytes) -> bytes:
        """Return the first form of a value that reads back equal. Raises SerdeError if no form does."""
        reason = ""
        for form in self._forms(value, payload, data):
            try:
                read_value = self.deserialize(form)
            except SerdeError as error:
                reason = f"{error.__cause__ or error}"
            else:
                if value == read_value or same_value(value, read_value):
                    return form
                reason = f"it would be read back as {read_value!r}"
        raise SerdeError(f"{value!r} does not fit {self._kind}: {reason}")

    def _forms(self, value: Any, payload: object, data: bytes) -> Iterator[bytes]:
        """Yield the usual form of a value, and those with NaN and infinities as text."""
        yield data
        builder = CodecBuilder(self._conventions, checks_width=True, writes_non_finite=True)
        with suppress(*UNWRITABLE):
            yield self._prefix + _encode(self._in_field(builder, self._written).write(value)) + self._suffix
            for form in json_forms(msgspec.to_builtins(payload, str_keys=True)):
                yield self._prefix + form + self._suffix

    def deserialize(self, data: bytes) -> T:
        try:
            value: T = self._reader.read(data)
            return value
        except READ_ERRORS as error:
            raise decode_error(f"JSON of Kafka Connect for {self._kind}", data, error) from error

    def field_columns(self, fields: Sequence[str]) -> FieldColumns:
        if self.field is not None:
            raise SerdeError(f"{self!r} has no fields that can be read as columns")
        return PayloadColumns(self.type, fields)

    def decode_rows(self, column: pa.Array) -> list[T | None]:
        deserialize = self.deserialize
        return [None if data is None else deserialize(data) for data in column.to_pylist()]

    def _arguments(self) -> tuple[Any, ...]:
        return self.type, self.schemas, self.schema, self.field, self.decimals

    def __reduce__(self) -> Any:
        return _connect_json, self._arguments()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConnectJson) and self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((ConnectJson, str(self.type), self.schemas, self.field))

    def __repr__(self) -> str:
        options = [
            "" if self.type is Any else str(self._kind),
            "" if self.field is None else f"field={self.field!r}",
            "" if self.schemas else "schemas=False",
        ]
        return f"ConnectJson({', '.join(filter(None, options))})"


def _connect_json(kind: Any, schemas: bool, schema: Any, field: str | None, decimals: str) -> ConnectJson[Any]:
    return ConnectJson(kind, schemas=schemas, schema=schema, field=field, decimals=decimals)


def single_field(name: str, inner: Codec) -> Codec:
    """Return the codec of a struct with one field, whose values are those of the field."""
    wire = msgspec.defstruct("Struct", [("value", inner.wire, msgspec.field(name=name))])
    read = inner.read
    write = inner.write
    return Codec(wire, lambda struct: read(struct.value), lambda value: {name: write(value)})


def _kind_of(hint: object) -> Kind:
    if hint is Any:
        return PLAIN
    try:
        return kind_of(hint)
    except SerdeError as error:
        raise SerdeError(f"{error}".replace("Avro", "Kafka Connect")) from None
