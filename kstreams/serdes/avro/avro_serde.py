"""`Avro`: the serde of keys and values in Avro, with their schemas in a registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kstreams.errors import SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry
from kstreams.serdes.avro.derived import derived_schema
from kstreams.serdes.avro.kinds import PLAIN, kind_of
from kstreams.serdes.avro.mapping import CLASSES
from kstreams.serdes.avro.schema import PRIMITIVES, loaded, parsed
from kstreams.serdes.base import FieldColumns, FieldWriter
from kstreams.serdes.class_fields import field_types
from kstreams.serdes.schemas import SchemaOptions, SchemaReader, SchemaSerde, SchemaWriter
from kstreams.serdes.schemas.schema_columns import SchemaColumns


class Avro(SchemaSerde):
    """Keys or values in Avro, preceded by the id of their schema, in the format of Confluent's serializers.

    Parameters
    ----------
    kind : type or str or Path, optional
        A dataclass, msgspec Struct, TypedDict, named tuple or pydantic model, from which the schema is derived. Or the
        text of a schema, or the path of a file with one (`"order.avsc"`): values are then dicts. By default, records
        are read as dicts with the schema that they were written with.
    type : type, optional
        The class of the values if `kind` is a schema.
    name : str, optional
        The name of the record with its namespace, as in `"com.acme.Order"`. Default: the name of the class.
    subject : str or callable, optional
        The subject of the schema: `"topic"`, `"record"`, `"topic-record"`, or a function
        `(topic, is_key, record name) -> subject`. Default: `value.subject.name.strategy`.
    auto_register, use_latest_version, normalize : bool, optional
        Default: the settings `auto.register.schemas`, `use.latest.version` and `normalize.schemas`.
    use_schema_id : int, optional
        The id of the schema to write with. Default: `use.schema.id`.
    strict : bool, default True
        True to refuse a schema of `use_latest_version` or `use_schema_id` that cannot read values of the declared one.
    schema_id : {"prefix", "header"}, optional
        `"prefix"` for an id before the bytes, `"header"` for a GUID in a header. Default: `value.schema.id.serializer`.
    references : sequence of SchemaReference
        Schemas of other subjects that the schema refers to.

    Raises
    ------
    SerdeError
        If a part of a class has no counterpart in Avro, or a text is not a schema.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     id: int
    ...     customer: str
    >>> topology = ks.StreamsBuilder()
    >>> orders = topology.stream("orders", key=str, value=ks.Avro(Order))
    """

    schema_type = "AVRO"

    def __init__(
        self,
        kind: Any = None,
        *,
        type: Any = None,
        name: str = "",
        subject: str | Callable[[str, bool, str], str] | None = None,
        auto_register: bool | None = None,
        use_latest_version: bool | None = None,
        use_schema_id: int | None = None,
        normalize: bool | None = None,
        strict: bool = True,
        schema_id: str | None = None,
        references: Sequence[SchemaReference] = (),
    ) -> None:
        options = SchemaOptions(
            subject=subject,
            auto_register=auto_register,
            use_latest_version=use_latest_version,
            use_schema_id=use_schema_id,
            normalize=normalize,
            strict=strict,
            schema_id=schema_id,
            references=tuple(references),
        )
        super().__init__(options)
        is_schema = kind is None or isinstance(kind, str | Path)
        self._text = _schema_text(kind) if is_schema else derived_schema(kind, name)
        self._class = type if is_schema else kind
        self._kind = PLAIN if self._class is None else kind_of(self._class).resolved()
        self.type = _type_without_class(self._text) if self._class is None else self._class
        if self._text is not None and not references:
            parsed(self._text)

    def declared_schema(self) -> Schema | None:
        return None if self._text is None else Schema(self._text, "AVRO", self.options.references)

    def record_name(self, schema: Schema) -> str:
        return _full_name_in(schema.text)

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        from kstreams.serdes.avro.reading import AvroReader  # needs fastavro

        writer_schema = loaded(written.schema, registry)
        declared = self.declared_schema()
        reader_schema = writer_schema if declared is None else loaded(declared, registry)
        try:
            reader = AvroReader(writer_schema, reader_schema, self._kind, start)
        except SerdeError as error:
            raise SerdeError(f"schema id {written.id} cannot be read as {self!r}: {error}") from None
        return SchemaReader(reader.one, reader.many, reader.fields)

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        from kstreams.serdes.avro.writing import AvroWriter  # needs fastavro

        try:
            writer = AvroWriter(loaded(registered.schema, registry), self._kind, frame)
        except SerdeError as error:
            raise SerdeError(f"{self!r} cannot be written with schema id {registered.id}: {error}") from None
        return SchemaWriter(writer.one, writer.many, writer.columns)

    def field_columns(self, fields: Sequence[str]) -> FieldColumns:
        return SchemaColumns(self._schemas, field_types(self.type, fields))

    def field_writer(self, kind: object, fields: Sequence[str]) -> FieldWriter | None:
        if self._class is None or kind is not self._class:
            return None
        try:
            types = field_types(kind, fields)
        except SerdeError:
            return None
        return SchemaColumns(self._schemas, types).encode

    def _arguments(self) -> tuple[object, ...]:
        return self._text, self._class, self.options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Avro) and self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((Avro, self._text))

    def __repr__(self) -> str:
        if self._class is not None:
            return f"Avro({getattr(self._class, '__name__', self._class)})"
        return "Avro()" if self._text is None else f"Avro({_full_name_in(self._text)})"


def _schema_text(schema: str | Path | None) -> str | None:
    """Return the text of a schema, or of the file at a path."""
    if schema is None:
        return None
    if isinstance(schema, str) and schema in PRIMITIVES:
        return json.dumps(schema)
    if isinstance(schema, str) and schema.lstrip()[:1] in ("{", "[", '"'):
        return schema
    try:
        return Path(schema).expanduser().read_text()
    except OSError as error:
        raise SerdeError(
            f"{str(schema)!r} is neither an Avro schema in JSON nor a file with one: {error.strerror or error}"
        ) from None


def _type_without_class(text: str | None) -> object:
    """Return the type of the values of a schema without a class."""
    schema = None if text is None else json.loads(text)
    if isinstance(schema, str):
        return CLASSES[schema]
    return dict[str, Any] if isinstance(schema, dict) and schema.get("type") == "record" else Any


def _full_name_in(text: str) -> str:
    """Return the full name of the type that a schema defines."""
    schema = json.loads(text)
    if not isinstance(schema, dict):
        return "union" if isinstance(schema, list) else str(schema)
    name = str(schema.get("name", schema.get("type")))
    namespace = schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name
