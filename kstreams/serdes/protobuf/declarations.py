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
from kstreams.serdes.protobuf.derived import derived_file, derived_file_of_classes
from kstreams.serdes.protobuf.fields import alternatives, class_of, require_name, require_readable
from kstreams.serdes.protobuf.message_index import encoded, message_at, message_index
from kstreams.serdes.protobuf.messages_of_schema import MessagesOfSchema, message_named, pool_of
from kstreams.serdes.protobuf.schema_files import file_from_text, files_at
from kstreams.serdes.protobuf.type_infos import info_of


class MessageSource(Protocol):
    """The declaration of the messages of a serde. The `repr` of the serde contains its `str()`."""

    @property
    def type(self) -> Any:
        """The class of the values, or None for dicts."""
        ...

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> MessageSource:
        """Compile the file of the declaration. Imports outside of the folder of the file come from the registry."""
        ...

    def message(self) -> Descriptor | None:
        """Return the declared message. None if no message is declared."""
        ...

    def decoder(self, written: Descriptor) -> Decode:
        """Return the decoder of records of a writer's message."""
        ...

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        """Return the encoder to a message of a schema. The frame and the message index precede the message."""
        ...


def declaration(kind: object, type: object, message: str | None, *, keep_unknown: bool) -> MessageSource:
    """Return the declaration for the arguments of a serde."""
    if isinstance(kind, str | PathLike):
        return MessageInFile(kind, message, type)
    if type is not None:
        raise SerdeError(
            "type= names the class of the values of a .proto file, but no file is passed: pass the file first"
        )
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
    """The declaration of no message: values are dicts, with schemas of the registry."""

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
        require_name(written, self.type.DESCRIPTOR.name)
        require_readable(written, self.type.DESCRIPTOR)
        return message_decoder(self.type, self.keep_unknown)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        message = messages.named(self.type.DESCRIPTOR.full_name)
        return _framed(message_encoder(self.type), message, frame)

    def __str__(self) -> str:
        return str(self.type.__name__)


@dataclass(frozen=True)
class DerivedMessage:
    """A message that is derived from a class. Fields of records with other schemas are matched by name.

    Parameters
    ----------
    type : type
    name : str, optional
        The full name of the message. Default: the name of the class.
    """

    type: Any
    name: str | None

    def __post_init__(self) -> None:
        self._message  # noqa: B018 (raises at once if no message can be derived)

    @cached_property
    def _message(self) -> Descriptor:
        package, _, short_name = (self.name or "").rpartition(".")
        try:
            file = derived_file(info_of(self.type), package, short_name)
        except (TypeError, NameError) as error:
            raise SerdeError(f"no Protobuf message can be derived from {self.type!r}: {error}") from error
        return message_at(pool_of([file]).FindFileByName(file.name), (0,))

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> DerivedMessage:
        return self

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        require_name(written, self._message.name)
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
    """Messages that are derived from a union of classes. The message index of a record determines its class.

    Parameters
    ----------
    type : type
        The union.
    """

    type: Any

    def __post_init__(self) -> None:
        self._message  # noqa: B018 (raises at once if no message can be derived)

    @cached_property
    def _classes(self) -> dict[str, builtins.type]:
        classes = map(class_of, alternatives(info_of(self.type)).types)
        return {cls.__name__: cls for cls in classes}

    @cached_property
    def _message(self) -> Descriptor:
        file = derived_file_of_classes(alternatives(info_of(self.type)).types)
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
            files: Sequence[FileDescriptorProto] = [file_from_text(self.source, "schema.proto")]
        else:
            files = files_at(Path(self.source).expanduser(), registry)
        return CompiledMessage(FileDescriptorSet(file=files).SerializeToString(), self.name, self.type)

    def message(self) -> Descriptor:
        return self._compiled_without_registry().message()

    def decoder(self, written: Descriptor) -> Decode:
        return self._compiled_without_registry().decoder(written)

    def encoder(self, messages: MessagesOfSchema, frame: bytes) -> Encode:
        return self._compiled_without_registry().encoder(messages, frame)

    def _compiled_without_registry(self) -> CompiledMessage:
        return self.compiled(_no_registry)

    def __str__(self) -> str:
        name = str(self.type.__name__ if self.type is not None else self.name or "")
        return ", ".join(filter(None, (repr(str(self.source).strip().partition("\n")[0]), name)))


@dataclass(frozen=True)
class CompiledMessage:
    """A message of a compiled `.proto` file. Fields of records with other schemas are matched by number.

    Parameters
    ----------
    data : bytes
        A serialized FileDescriptorSet, whose last file is the declared file. It can be sent to other machines.
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
        return message_named(pool_of(files).FindFileByName(files[-1].name), self.name)

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> CompiledMessage:
        return self

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        require_name(written, self._message.name)
        require_readable(written, self._message)
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
    prefix = frame + encoded(message_index(message))
    return lambda value: prefix + encode(value)


def _no_registry() -> SchemaRegistry:
    raise SerdeError("a .proto file has imports in a registry, and this serde has none: pass the serde to a topic")
