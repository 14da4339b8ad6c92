"""`MessageSource`: the declared message of a serde, from a generated class, a Python class or a `.proto` file."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

from kstreams.errors import SerdeError
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.base import without_none
from kstreams.serdes.protobuf.codecs import (
    Decode,
    Encode,
    message_decoder,
    message_encoder,
    value_decoder,
    value_encoder,
)
from kstreams.serdes.protobuf.derived import derived_file, derived_file_of
from kstreams.serdes.protobuf.fields import alternatives, demand_named, demand_readable
from kstreams.serdes.protobuf.message_index import encoded, message_at, message_index
from kstreams.serdes.protobuf.messages_of_schema import MessagesOfSchema, named_message, pool_of
from kstreams.serdes.protobuf.schema_files import file_of_text, files_at
from kstreams.serdes.protobuf.type_infos import info_of


class MessageSource(Protocol):
    """The declaration of a serde. `str()` of it is shown in the `repr` of the serde."""

    @property
    def type(self) -> Any:
        """The class of the values, or None for dicts."""
        ...

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> MessageSource:
        """Return the declaration with its file compiled. Imports that are not in its folder come from the registry."""
        ...

    def message(self) -> Descriptor | None:
        """Return the declared message, or None."""
        ...

    def decoder(self, written: Descriptor) -> Decode:
        """Return the decoder of records of a writer's message."""
        ...

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        """Return the encoder to a message of a schema, preceded by the frame and the message index."""
        ...


def declaration(kind: object, type: object, message: str | None, *, keep_unknown: bool) -> MessageSource:
    """Return the declaration for the arguments of a serde."""
    if isinstance(kind, str | PathLike):
        return MessageInFile(kind, message, type)
    if type is not None:
        raise SerdeError("type= is the class of the values beside a .proto file: give the file first")
    if kind is None:
        return NoMessage()
    kind = without_none(kind)
    if isinstance(kind, builtins.type) and issubclass(kind, Message):
        return GeneratedClass(kind, keep_unknown)
    if alternatives(info_of(kind)).types[1:]:
        return DerivedMessages(kind)
    return DerivedMessage(kind, message)


@dataclass(frozen=True)
class NoMessage:
    """No declaration: values are dicts, with the schemas of the registry."""

    type: Any = None

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> NoMessage:
        return self

    def message(self) -> None:
        return None

    def decoder(self, written: Descriptor) -> Decode:
        return value_decoder(written, Any)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        message = messages.at((0,))
        return _framed(value_encoder(message, Any), message, frame)

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True)
class GeneratedClass:
    """A message class that protoc generated."""

    type: Any
    keep_unknown: bool

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> GeneratedClass:
        return self

    def message(self) -> Descriptor:
        return self.type.DESCRIPTOR

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self.type.DESCRIPTOR.name)
        demand_readable(written, self.type.DESCRIPTOR)
        return message_decoder(self.type, self.keep_unknown)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        message = messages.named(self.type.DESCRIPTOR.full_name)
        return _framed(message_encoder(self.type), message, frame)

    def __str__(self) -> str:
        return str(self.type.__name__)


@dataclass(frozen=True)
class DerivedMessage:
    """A message that is derived from a class. Records of other schemas are read by the names of fields.

    Parameters
    ----------
    type : type
    name : str, optional
        The full name of the message. Default: the name of the class.
    """

    type: Any
    name: str | None

    def __post_init__(self) -> None:
        self._message  # noqa: B018 (refuses a class without a message at once)

    @cached_property
    def _message(self) -> Descriptor:
        package, _, own_name = (self.name or "").rpartition(".")
        try:
            file = derived_file(info_of(self.type), package, own_name)
        except (TypeError, NameError) as error:
            raise SerdeError(f"no Protobuf message can be derived from {self.type!r}: {error}") from error
        return message_at(pool_of([file]).FindFileByName(file.name), (0,))

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> DerivedMessage:
        return self

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self._message.name)
        return value_decoder(written, self.type)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        message = messages.named(self._message.full_name)
        return _framed(value_encoder(message, self.type), message, frame)

    def __reduce__(self) -> Any:
        return DerivedMessage, (self.type, self.name)

    def __str__(self) -> str:
        return str(getattr(self.type, "__name__", self.type))


@dataclass(frozen=True)
class DerivedMessages:
    """Messages that are derived from a union of classes. The message index of a record tells its class.

    Parameters
    ----------
    type : type
        The union.
    """

    type: Any

    def __post_init__(self) -> None:
        self._message  # noqa: B018 (refuses a class without a message at once)

    @cached_property
    def _classes(self) -> dict[str, Any]:
        return {member.cls.__name__: member.cls for member in alternatives(info_of(self.type)).types}

    @cached_property
    def _message(self) -> Descriptor:
        file = derived_file_of(alternatives(info_of(self.type)).types)
        return message_at(pool_of([file]).FindFileByName(file.name), (0,))

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> DerivedMessages:
        return self

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        kind = self._classes.get(written.name)
        if kind is None:
            names = ", ".join(self._classes)
            raise SerdeError(f"the record is the message {written.full_name}, but only {names} can be read")
        return value_decoder(written, kind)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        encoders: dict[object, Encode] = {}
        for name, kind in self._classes.items():
            message = messages.named(name)
            encoders[kind] = _framed(value_encoder(message, kind), message, frame)

        def encode(value: object) -> bytes:
            encoder = encoders.get(builtins.type(value))
            if encoder is None:
                raise SerdeError(f"{value!r} is none of {', '.join(self._classes)}")
            return encoder(value)

        return encode

    def __reduce__(self) -> Any:
        return DerivedMessages, (self.type,)

    def __str__(self) -> str:
        return " | ".join(self._classes)


@dataclass(frozen=True)
class MessageInFile:
    """A message of a `.proto` file that is not compiled yet.

    Parameters
    ----------
    source : str or Path
        The path of the file, or its text.
    name : str, optional
        The name of the message.
    type : type, optional
        The class of the values.
    """

    source: str | PathLike[str]
    name: str | None
    type: Any

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> CompiledMessage:
        if isinstance(self.source, str) and not self.source.endswith(".proto"):
            files: Sequence[FileDescriptorProto] = [file_of_text(self.source, "schema.proto")]
        else:
            files = files_at(Path(self.source).expanduser(), registry)
        return CompiledMessage(FileDescriptorSet(file=files).SerializeToString(), self.name, self.type)

    def message(self) -> Descriptor:
        return self._alone().message()

    def decoder(self, written: Descriptor) -> Decode:
        return self._alone().decoder(written)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        return self._alone().encoder(messages, frame)

    def _alone(self) -> CompiledMessage:
        return self.compiled(_no_registry)

    def __str__(self) -> str:
        name = str(self.type.__name__ if self.type is not None else self.name or "")
        return ", ".join(filter(None, (repr(str(self.source).strip().partition("\n")[0]), name)))


@dataclass(frozen=True)
class CompiledMessage:
    """A message of a compiled `.proto` file. Records of other schemas are read by the numbers of fields.

    Parameters
    ----------
    data : bytes
        A serialized FileDescriptorSet whose last file is the declared one. It can be sent to other machines.
    name : str, optional
        The name of the message. Default: the only message of the file.
    type : type, optional
        The class of the values.
    """

    data: bytes
    name: str | None
    type: Any

    @cached_property
    def _message(self) -> Descriptor:
        files = FileDescriptorSet.FromString(self.data).file
        return named_message(pool_of(files).FindFileByName(files[-1].name), self.name)

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> CompiledMessage:
        return self

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self._message.name)
        demand_readable(written, self._message)
        return value_decoder(self._message, self._kind())

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        message = messages.named(self._message.full_name)
        return _framed(value_encoder(message, self._kind()), message, frame)

    def _kind(self) -> object:
        return Any if self.type is None else self.type

    def __reduce__(self) -> Any:
        return CompiledMessage, (self.data, self.name, self.type)

    def __str__(self) -> str:
        return str(self.type.__name__ if self.type is not None else self._message.full_name)


def _framed(encode: Encode, message: Descriptor, frame: bytes) -> Encode:
    """Wrap an encoder so that the frame and the message index precede the bytes."""
    head = frame + encoded(message_index(message))
    return lambda value: head + encode(value)


def _no_registry() -> SchemaRegistry:
    raise SerdeError("a .proto file whose imports are in a registry is compiled for a topic: give the serde to one")
