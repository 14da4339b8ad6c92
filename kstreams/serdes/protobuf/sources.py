"""Where the message comes from that a serde writes, and what it reads records of other schemas as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message

from kstreams.decoders import type_info
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


class MessageSource(Protocol):
    """What a serde declares."""

    def message(self) -> Descriptor | None:
        """The message that it declares; None where it declares none."""
        ...

    def decoder(self, written: Descriptor) -> Decode:
        """What reads records of a message of a schema in the registry."""
        ...

    def encoder(self, message: Descriptor) -> Encode:
        """What writes values as a message."""
        ...


@dataclass(frozen=True, slots=True)
class NoMessage:
    """Nothing was declared: dicts, with the schemas of the registry."""

    def message(self) -> None:
        return None

    def decoder(self, written: Descriptor) -> Decode:
        return value_decoder(written, Any)

    def encoder(self, message: Descriptor) -> Encode:
        return value_encoder(message, Any)


@dataclass(frozen=True)
class GeneratedClass:
    """A message class that protoc generated."""

    cls: type[Message]
    keep_unknown: bool

    def message(self) -> Descriptor:
        return self.cls.DESCRIPTOR

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self.cls.DESCRIPTOR.name)
        demand_readable(written, self.cls.DESCRIPTOR)
        return message_decoder(self.cls, self.keep_unknown)

    def encoder(self, message: Descriptor) -> Encode:
        return message_encoder(self.cls)


class DerivedMessage:
    """The message that is derived from a class; records of other schemas are read by the names of their fields.

    Parameters
    ----------
    kind : type
    name : str, optional
        The full name of the message; the name of the class unless given.
    """

    def __init__(self, kind: Any, name: str | None) -> None:
        info = type_info(kind)
        package, _, own_name = (name or "").rpartition(".")
        self._file = derived_file(info, package, own_name)
        self._message = _messages(pool_of([self._file]).FindFileByName(self._file.name))[0]
        self._kind = kind

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self._message.name)
        return value_decoder(written, self._kind)

    def encoder(self, message: Descriptor) -> Encode:
        return value_encoder(message, self._kind)


class FileMessage:
    """A message of a `.proto` file; records of other schemas are read by the numbers of its fields.

    Parameters
    ----------
    files : sequence of FileDescriptorProto
        The file is the last.
    name : str, optional
        Of the message; the first one unless given.
    kind : type
        What its records become.
    """

    def __init__(self, files: Sequence[FileDescriptorProto], name: str | None, kind: Any) -> None:
        self._message = named_message(pool_of(files).FindFileByName(files[-1].name), name)
        self._kind = kind

    def message(self) -> Descriptor:
        return self._message

    def decoder(self, written: Descriptor) -> Decode:
        demand_named(written, self._message.name)
        demand_readable(written, self._message)
        return value_decoder(self._message, self._kind)

    def encoder(self, message: Descriptor) -> Encode:
        return value_encoder(message, self._kind)


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """The files of a `.proto` file, as bytes that travel to other machines.

    Parameters
    ----------
    data : bytes
        A FileDescriptorSet.
    """

    data: bytes

    @classmethod
    def at(cls, path: Path, registry: Callable[[], SchemaRegistry]) -> ProtoFile:
        """Compile a file; what its folder has not of its imports, a registry has."""
        return cls(FileDescriptorSet(file=files_at(path, registry)).SerializeToString())

    @classmethod
    def of_text(cls, text: str) -> ProtoFile:
        """Compile the text of a file."""
        return cls(FileDescriptorSet(file=[compiled_text("schema.proto", text)]).SerializeToString())

    def files(self) -> Sequence[FileDescriptorProto]:
        return list(FileDescriptorSet.FromString(self.data).file)


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
