"""`Protobuf`: keys and values as Protobuf messages, with their schemas in a registry."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import Message

from kstreams.errors import SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.protobuf.compatible import demand_readable
from kstreams.serdes.protobuf.message_index import encoded, index_length, message_index
from kstreams.serdes.protobuf.messages_of_schema import MessagesOfSchema, reader_by_index
from kstreams.serdes.protobuf.pools import pool_of
from kstreams.serdes.protobuf.schema_files import files_of, registered_imports, schema_of
from kstreams.serdes.protobuf.sources import (
    DerivedMessage,
    FileMessage,
    GeneratedClass,
    MessageSource,
    NoMessage,
    ProtoFile,
)
from kstreams.serdes.schemas import Reader, SchemaOptions, SchemaSerde, Writer
from kstreams.serdes.schemas.frame import frame_of


class Protobuf(SchemaSerde[Any]):
    """Protobuf messages whose schemas are in a registry, as Confluent's serializers write them.

    Parameters
    ----------
    source : type or path, optional
        A message class that protoc generated; a dataclass, Struct, TypedDict or pydantic model, from which a schema is
        derived; or a `.proto` file (its path or its text), which is compiled when the application starts. Without one,
        records are read with the schemas that they were written with, as dicts.
    type : type, optional
        What records of a `.proto` file become: a class with fields. Dicts unless given.
    message : str, optional
        The name of the message: which one of a `.proto` file; of a class, what its message is called, such as
        `acme.Order`.
    unknown : {"keep", "drop"}, default "keep"
        Whether messages of a generated class hold on to fields that the class does not know. Of other values they are
        dropped.
    **options
        As of `ks.Avro`: `subject`, `auto_register`, `use_latest_version`, `use_schema_id`, `normalize`, `schema_id`.

    Examples
    --------
    >>> import kstreams as ks
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     id: int
    ...     coupon: str | None = None
    >>> ks.Protobuf(Order)
    Protobuf(Order)
    """

    schema_type = "PROTOBUF"

    def __init__(
        self,
        source: Any = None,
        *,
        type: Any = None,
        message: str | None = None,
        unknown: Literal["keep", "drop"] = "keep",
        **options: Any,
    ) -> None:
        super().__init__(SchemaOptions(**options))
        self._source, self._message_name, self._keep_unknown = source, message, unknown == "keep"
        self._shown = _shown(source)
        if _is_file(source):
            self.type = type
        elif type is not None:
            raise SerdeError("type= says what the records of a .proto file become: name the file first")
        else:
            self.type = source

    def of_topic(self, use: SerdeUse) -> Self:
        compiled = copy(self)
        if _is_path(self._source):
            compiled._source = ProtoFile.at(Path(self._source), use.registry)
        return super(Protobuf, compiled).of_topic(use)

    @cached_property
    def _declared(self) -> MessageSource:
        source = self._source
        if source is None:
            return NoMessage()
        if isinstance(source, ProtoFile) or _is_file(source):
            file = source if isinstance(source, ProtoFile) else ProtoFile.of_text(source)
            return FileMessage(file.files(), self._message_name, Any if self.type is None else self.type)
        if isinstance(source, type) and issubclass(source, Message):
            return GeneratedClass(source, self._keep_unknown)
        return DerivedMessage(source, self._message_name)

    def declared_schema(self) -> Schema | None:
        message = self._declared.message()
        return None if message is None else schema_of(message.file, self.options.references)

    def imported(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]:
        message = self._declared.message()
        return () if message is None else registered_imports(message.file, registry, register=register)

    def record_name(self, schema: Schema) -> str:
        message = self._declared.message()
        return "" if message is None else str(message.full_name)

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> Reader:
        return reader_by_index(self._messages(written, registry), self._declared, start)

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> Writer:
        message = self._message_to_write(registered, registry)
        head = frame + encoded(message_index(message))
        encode = self._declared.encoder(message)
        return Writer(lambda value: head + encode(value), lambda values: [head + encode(value) for value in values])

    def _message_to_write(self, registered: RegisteredSchema, registry: SchemaRegistry) -> Descriptor:
        declared, own = self._declared.message(), self.declared_schema()
        if declared is not None and own is not None and own.text == registered.schema.text:
            return declared
        name = self._message_name or (declared and declared.full_name)
        return self._messages(registered, registry).named(name)

    def unreadable(self, latest: RegisteredSchema, declared: Schema, registry: SchemaRegistry) -> Sequence[str]:
        own = self._declared.message()
        assert own is not None  # it declares a schema
        try:
            demand_readable(own, self._message_to_write(latest, registry))
        except SerdeError as error:
            return [str(error)]
        return ()

    def header_length(self, data: bytes) -> int:
        start = len(frame_of(data))
        return start + index_length(data, start)

    def _messages(self, registered: RegisteredSchema, registry: SchemaRegistry) -> MessagesOfSchema:
        files = files_of(registered.schema, registry, f"schema-{registered.id}.proto")
        file: FileDescriptor = pool_of(files).FindFileByName(files[-1].name)
        return MessagesOfSchema(file, registered.id)

    def __getstate__(self) -> dict[str, Any]:
        """Descriptors do not travel: they are made anew."""
        return {name: value for name, value in self.__dict__.items() if name != "_declared"}

    def __repr__(self) -> str:
        return f"Protobuf({self._shown})"


def _is_file(source: Any) -> bool:
    return isinstance(source, str | PathLike)


def _is_path(source: Any) -> bool:
    return isinstance(source, PathLike) or (isinstance(source, str) and source.endswith(".proto"))


def _shown(source: Any) -> str:
    if source is None:
        return ""
    return repr(str(source).partition("\n")[0]) if _is_file(source) else getattr(source, "__name__", str(source))
