"""`MessagesOfSchema`: the messages of one registered schema, and descriptor pools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from kstreams.errors import RegistryError, SerdeError
from kstreams.schemas import RegisteredSchema, SchemaRegistry
from kstreams.schemas.known_protos import known_file
from kstreams.serdes.protobuf.message_index import message_at
from kstreams.serdes.protobuf.schema_files import files_of


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Return a pool with files and the known files that they import.

    Parameters
    ----------
    files : iterable of FileDescriptorProto
        Each file after the files that it imports.

    Raises
    ------
    SerdeError
        If protobuf refuses a file.
    """
    pool = DescriptorPool()
    added: set[str] = set()
    for file in files:
        for dependency in (*_known_imports(file), file):
            if dependency.name not in added:
                added.add(dependency.name)
                _add_to_pool(pool, dependency)
    return pool


def _known_imports(file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
    """Yield the known files that a file imports, each after the files that it imports."""
    for path in file.dependency:
        imported = _known_file(path)
        if imported is not None:
            yield from _known_imports(imported)
            yield imported


def _known_file(path: str) -> FileDescriptorProto | None:
    try:
        return known_file(path)
    except RegistryError as error:
        raise SerdeError(str(error)) from error


def _add_to_pool(pool: DescriptorPool, file: FileDescriptorProto) -> None:
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
        raise SerdeError(f"{file.name} is no valid .proto file: {reason}") from error


@dataclass(frozen=True, slots=True)
class MessagesOfSchema:
    """The messages of a file that is registered with an id."""

    file: FileDescriptor
    id: int

    @classmethod
    def of(cls, registered: RegisteredSchema, registry: SchemaRegistry) -> MessagesOfSchema:
        """Parse a registered schema and the schemas that it refers to."""
        files = files_of(registered.schema, registry, f"schema-{registered.id}.proto")
        return cls(pool_of(files).FindFileByName(files[-1].name), registered.id)

    def named(self, name: str | None) -> Descriptor:
        """Return the message with a full or short name. Return the first message if the name is None."""
        return message_named(self.file, name) if name else self.at((0,))

    def begins_with(self, message: Descriptor | None) -> bool:
        """True if the first message has the name of another message. Most records then are of this message."""
        return message is not None and self.at((0,)).name == message.name

    def at(self, index: tuple[int, ...]) -> Descriptor:
        """Return the message at an index."""
        try:
            return message_at(self.file, index)
        except SerdeError as error:
            raise SerdeError(f"the schema with id {self.id} has no message at the index {list(index)}") from error


def message_named(file: FileDescriptor, name: str | None) -> Descriptor:
    """Return the message of a file with a name, which may lack the package. None selects the only message.

    Raises
    ------
    SerdeError
        If the file has no message with this name, or has several messages and the name is None.
    """
    outer_messages = list(file.message_types_by_name.values())
    messages = _with_nested(outer_messages)
    if not messages:
        raise SerdeError(f"{file.name} has no message")
    if name is None and len(outer_messages) == 1:
        return outer_messages[0]
    for message in messages:
        if name in (message.full_name, message.full_name.removeprefix(f"{file.package}."), message.name):
            return message
    names = ", ".join(message.full_name for message in messages)
    problem = f"{file.name} has no message {name}" if name else f"{file.name} has several messages"
    raise SerdeError(f"{problem}: write message= with one of {names}")


def _with_nested(messages: Sequence[Descriptor]) -> list[Descriptor]:
    """Return messages and all messages nested inside them, the outer messages first."""
    nested = [inner for message in messages for inner in message.nested_types if not inner.GetOptions().map_entry]
    return [*messages, *_with_nested(nested)] if nested else list(messages)
