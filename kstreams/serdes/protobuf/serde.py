"""`Protobuf`: keys and values as Protobuf messages, with their schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal, Self

from kstreams.errors import SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.protobuf.codecs import Decode
from kstreams.serdes.protobuf.declarations import MessageSource, declaration
from kstreams.serdes.protobuf.fields import require_readable
from kstreams.serdes.protobuf.message_index import decoded, index_length
from kstreams.serdes.protobuf.messages_of_schema import MessagesOfSchema
from kstreams.serdes.protobuf.schema_files import registered_imports, schema_of
from kstreams.serdes.schemas import SchemaOptions, SchemaReader, SchemaSerde, SchemaWriter
from kstreams.serdes.schemas.frame import frame_of

_FIRST_MESSAGE = b"\x00"  # the encoded index of the first message


def reader_by_index(messages: MessagesOfSchema, source: MessageSource, start: int) -> SchemaReader:
    """Return a reader of the records of a schema. The frame ends at `start`, and the message index follows."""
    decoders: dict[tuple[int, ...], Decode] = {}
    after_index = start + 1  # for the first message, whose index has one byte

    def decoder(index: tuple[int, ...]) -> Decode:
        decode = decoders.get(index)
        if decode is None:
            try:
                decode = decoders[index] = source.decoder(messages.at(index))
            except RecursionError:
                raise SerdeError(f"the messages of schema id {messages.id} are nested too deeply") from None
            except SerdeError as error:
                raise SerdeError(f"schema id {messages.id} cannot be read as Protobuf({source}): {error}") from error
        return decode

    if messages.begins_with(source.message()):
        decoder((0,))  # a schema that cannot be read raises at once

    def one(data: bytes) -> Any:
        if data[start:after_index] == _FIRST_MESSAGE:
            return decoder((0,))(data[after_index:])
        index, end = decoded(data, start)
        return decoder(index)(data[end:])

    def many(rows: list[bytes]) -> list[Any]:
        if all(row[start:after_index] == _FIRST_MESSAGE for row in rows):
            decode = decoder((0,))
            return [decode(row[after_index:]) for row in rows]
        return [one(row) for row in rows]

    return SchemaReader(one, many)


class Protobuf(SchemaSerde):
    """Protobuf messages preceded by the id of their schema, as Confluent's serializers write them.

    Parameters
    ----------
    kind : type or str or Path, optional
        One of these declarations. By default, records are read as dicts with the schema that they were written with.

        - A message class that protoc generated.
        - A dataclass, msgspec Struct, TypedDict, named tuple or pydantic model, from which the schema is derived.
        - A union of such classes. Each record is of one class.
        - The path or the text of a `.proto` file, which is compiled when the application starts. Values are dicts.
    type : type, optional
        The class of the values if `kind` is a `.proto` file.
    message : str, optional
        The name of the message. It selects a message of a `.proto` file, and names the message of a class, such as
        `acme.Order`.
    unknown : {"keep", "drop"}, default "keep"
        `"keep"` to preserve unknown fields in messages of a generated class. Other classes and dicts always drop them.
    subject : str or callable, optional
        The subject of the schema: `"topic"`, `"record"`, `"topic-record"`, or a function
        `(topic, is_key, message name) -> subject`. Default: `value.subject.name.strategy`.
    auto_register, use_latest_version, normalize : bool, optional
        Default: the settings `auto.register.schemas`, `use.latest.version` and `normalize.schemas`.
    use_schema_id : int, optional
        The id of the schema to write with. Default: `use.schema.id`.
    strict : bool, default True
        True to refuse a schema of `use_latest_version` or `use_schema_id` that cannot read values of the declared one.
    schema_id : {"prefix", "header"}, optional
        `"prefix"` for an id before the bytes, `"header"` for a GUID in a header. Default: `value.schema.id.serializer`.

    Raises
    ------
    SerdeError
        If a part of a class has no counterpart in Protobuf, or a file does not compile.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     id: int
    ...     coupon: str | None = None
    >>> topology = ks.StreamsBuilder()
    >>> orders = topology.stream("orders", key=str, value=ks.Protobuf(Order))
    """

    schema_type = "PROTOBUF"

    def __init__(
        self,
        kind: Any = None,
        *,
        type: Any = None,
        message: str | None = None,
        unknown: Literal["keep", "drop"] = "keep",
        subject: str | Callable[[str, bool, str], str] | None = None,
        auto_register: bool | None = None,
        use_latest_version: bool | None = None,
        use_schema_id: int | None = None,
        normalize: bool | None = None,
        strict: bool = True,
        schema_id: str | None = None,
    ) -> None:
        options = SchemaOptions(
            subject=subject,
            auto_register=auto_register,
            use_latest_version=use_latest_version,
            use_schema_id=use_schema_id,
            normalize=normalize,
            strict=strict,
            schema_id=schema_id,
        )
        super().__init__(options)
        self._declared = declaration(kind, type, message, keep_unknown=unknown == "keep")
        self.type = self._declared.type

    def of_topic(self, use: SerdeUse) -> Self:
        compiled = copy(self)
        compiled._declared = self._declared.compiled(use.registry)
        return super(Protobuf, compiled).of_topic(use)

    def declared_schema(self) -> Schema | None:
        message = self._declared.message()
        return None if message is None else schema_of(message.file)

    def references_to_imports(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]:
        message = self._declared.message()
        return () if message is None else registered_imports(message.file, registry, register=register)

    def record_name(self, schema: Schema) -> str:
        message = self._declared.message()
        return "" if message is None else str(message.full_name)

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        return reader_by_index(MessagesOfSchema.of(written, registry), self._declared, start)

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        try:
            return SchemaWriter.of(self._declared.encoder(self._messages_to_write(registered, registry), frame))
        except RecursionError:
            raise SerdeError(f"the messages of schema id {registered.id} are nested too deeply") from None

    def _messages_to_write(self, registered: RegisteredSchema, registry: SchemaRegistry) -> MessagesOfSchema:
        """Return the messages of a schema. The declared schema is not parsed again."""
        message = self._declared.message()
        if message is not None and schema_of(message.file).text == registered.schema.text:
            return MessagesOfSchema(message.file, registered.id)
        return MessagesOfSchema.of(registered, registry)

    def write_incompatibilities(
        self, selected: RegisteredSchema, declared: Schema, registry: SchemaRegistry
    ) -> Sequence[str]:
        message = self._declared.message()
        if message is None:
            return ()
        try:
            require_readable(message, self._messages_to_write(selected, registry).named(message.full_name))
        except SerdeError as error:
            return [str(error)]
        return ()

    def header_length(self, data: bytes) -> int:
        start = len(frame_of(data))
        return start + index_length(data, start)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Protobuf) and (self._declared, self.options) == (other._declared, other.options)

    def __hash__(self) -> int:
        return hash((Protobuf, repr(self)))

    def __repr__(self) -> str:
        return f"Protobuf({self._declared})"
