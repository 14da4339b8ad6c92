"""Where the message comes from that a serde writes, and what it reads records of other schemas as."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

from kstreams.errors import SerdeError
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.protobuf.codecs import (
    Decode,
    Encode,
    message_decoder,
    message_encoder,
    value_decoder,
    value_encoder,
)
from kstreams.serdes.protobuf.compatible import demand_named, demand_readable
from kstreams.serdes.protobuf.compiler import compiled_text
from kstreams.serdes.protobuf.derived import derived_file
from kstreams.serdes.protobuf.pools import pool_of
from kstreams.serdes.protobuf.schema_files import files_at
from kstreams.serdes.protobuf.type_infos import info_of


class MessageSource(Protocol):
    """What a serde declares. Its text is what the serde shows of it."""

    @property
    def type(self) -> Any:
        """The class of the values; None where they are dicts."""
        ...

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> MessageSource:
        """Itself, with its file compiled where it is one; what its folder has not of its imports, a registry has."""
        ...

    def message(self) -> Descriptor | None:
        """The message that it declares; None where it declares none."""
        ...

    def decoder(self, written: Descriptor) -> Decode:
        """What reads records of a message of a schema in the registry."""
        ...

    def encoder(self, message: Descriptor) -> Encode:
        """What writes values as a message."""
        ...


def declaration(kind: Any, type: Any, message: str | None, *, keep_unknown: bool) -> MessageSource:
    """What the arguments of a serde declare."""
    if isinstance(kind, str | PathLike):
        return MessageInFile(kind, message, type)
    if type is not None:
        raise SerdeError("type= is the class of the values beside a .proto file: give the file first")
    if kind is None:
        return NoMessage()
    if isinstance(kind, builtins.type) and issubclass(kind, Message):
        return GeneratedClass(kind, keep_unknown)
    return DerivedMessage(kind, message)


@dataclass(frozen=True)
class NoMessage:
    """Nothing was declared: dicts, with the schemas of the registry."""

    type: Any = None

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> NoMessage:
        return self

    def message(self) -> None:
        return None

    def decoder(self, written: Descriptor) -> Decode:
        return value_decoder(written, Any)

    def encoder(self, message: Descriptor) -> Encode:
        return value_encoder(message, Any)

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

    def encoder(self, message: Descriptor) -> Encode:
        return message_encoder(self.type)

    def __str__(self) -> str:
        return str(self.type.__name__)


@dataclass(frozen=True)
class DerivedMessage:
    """The message that is derived from a class; records of other schemas are read by the names of their fields.

    Parameters
    ----------
    type : type
    name : str, optional
        The full name of the message; the name of the class unless given.
    """

    type: Any
    name: str | None

    def __post_init__(self) -> None:
        self._message  # noqa: B018 (a class that no message can hold is refused at once)

    @cached_property
    def _message(self) -> Descriptor:
        package, _, own_name = (self.name or "").rpartition(".")
        try:
            file = derived_file(info_of(self.type), package, own_name)
        except (TypeError, NameError) as error:
            raise SerdeError(f"no Protobuf message can be derived from {self.type!r}: {error}") from error
        return _messages(pool_of([file]).FindFileByName(file.name))[0]

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> DerivedMessage:
        return self

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self._message.name)
        return value_decoder(written, self.type)

    def encoder(self, message: Descriptor) -> Encode:
        return value_encoder(message, self.type)

    def __reduce__(self) -> Any:
        return DerivedMessage, (self.type, self.name)

    def __str__(self) -> str:
        return str(getattr(self.type, "__name__", self.type))


@dataclass(frozen=True)
class MessageInFile:
    """A message of a `.proto` file that is not compiled yet.

    Parameters
    ----------
    source : str or Path
        The path of the file, or its text.
    name : str, optional
        Of the message.
    type : type, optional
        The class of the values.
    """

    source: str | PathLike[str]
    name: str | None
    type: Any

    def compiled(self, registry: Callable[[], SchemaRegistry]) -> CompiledMessage:
        if isinstance(self.source, str) and not self.source.endswith(".proto"):
            files: Sequence[FileDescriptorProto] = [compiled_text("schema.proto", self.source)]
        else:
            files = files_at(Path(self.source).expanduser(), registry)
        return CompiledMessage(FileDescriptorSet(file=files).SerializeToString(), self.name, self.type)

    def message(self) -> Descriptor:
        return self._alone().message()

    def decoder(self, written: Descriptor) -> Decode:
        return self._alone().decoder(written)

    def encoder(self, message: Descriptor) -> Encode:
        return self._alone().encoder(message)

    def _alone(self) -> CompiledMessage:
        return self.compiled(_no_registry)

    def __str__(self) -> str:
        shown = str(self.type.__name__ if self.type is not None else self.name or "")
        return ", ".join(filter(None, (repr(str(self.source).strip().partition("\n")[0]), shown)))


@dataclass(frozen=True)
class CompiledMessage:
    """A message of a compiled `.proto` file; records of other schemas are read by the numbers of its fields.

    Parameters
    ----------
    data : bytes
        A FileDescriptorSet, of which the file is the last: so it travels to other machines.
    name : str, optional
        Of the message; the only one unless given.
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

    def encoder(self, message: Descriptor) -> Encode:
        return value_encoder(message, self._kind())

    def _kind(self) -> Any:
        return Any if self.type is None else self.type

    def __reduce__(self) -> Any:
        return CompiledMessage, (self.data, self.name, self.type)

    def __str__(self) -> str:
        return str(self.type.__name__ if self.type is not None else self._message.full_name)


def _no_registry() -> SchemaRegistry:
    raise SerdeError("a .proto file whose imports are in a registry is compiled for a topic: give the serde to one")


def _messages(file: FileDescriptor) -> list[Descriptor]:
    return list(file.message_types_by_name.values())


def named_message(file: FileDescriptor, name: str | None) -> Descriptor:
    """A message of a file by its name, with the package or without; the first one of all without a name."""
    messages = _within(_messages(file))
    if not messages:
        raise SerdeError(f"{file.name} has no message")
    if name is None and len(_messages(file)) == 1:
        return messages[0]
    for message in messages:
        if name in (message.full_name, message.full_name.removeprefix(f"{file.package}."), message.name):
            return message
    names = ", ".join(message.full_name for message in messages)
    which = f"{file.name} has no message {name}" if name else f"{file.name} has several messages"
    raise SerdeError(f"{which}: write message= with one of {names}")


def _within(messages: Sequence[Descriptor]) -> list[Descriptor]:
    """Messages with those that lie in them, the outer ones first."""
    nested = [inner for message in messages for inner in message.nested_types if not inner.GetOptions().map_entry]
    return [*messages, *_within(nested)] if nested else list(messages)
