"""Descriptors of registered Protobuf schemas. Schemas that are texts are compiled with grpcio-tools."""

from __future__ import annotations

import functools

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.incompatibility import importing
from kstreams.schemas.references import ResolvedSchema
from kstreams.schemas.serialized_proto import clear_default_json_names, deserialized, is_serialized

with importing("Protobuf schemas"):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    from kstreams.schemas.proto_compiler import NotCompiledError, compile_texts

_PATH = "schema.proto"


@functools.lru_cache(maxsize=1_000)
def file_of(schema: ResolvedSchema) -> FileDescriptorProto:
    """Return the descriptor of a `.proto` text, without its imports.

    Raises
    ------
    RegistryError
        If the text does not compile, or the compiler is not installed.

    Examples
    --------
    >>> text = 'syntax = "proto3"; message Order { int64 id = 1; }'
    >>> [message.name for message in file_of(ResolvedSchema(text, "PROTOBUF")).message_type]
    ['Order']
    """
    return next(file for file in files_of(schema).file if file.name == _PATH)


@functools.lru_cache(maxsize=1_000)
def files_of(schema: ResolvedSchema) -> FileDescriptorSet:
    """Return the descriptors of the imports of a `.proto` text, and its own last, under the path `schema.proto`.

    For a serialized FileDescriptorProto, only its own descriptor is returned.
    """
    if is_serialized(schema.text):
        return FileDescriptorSet(file=[deserialized(schema.text, _PATH)])
    texts = {name: text for name, text in schema.imports if not is_serialized(text)}
    files = [deserialized(text, name) for name, text in schema.imports if is_serialized(text)]
    try:
        return FileDescriptorSet(file=compile_texts({**texts, _PATH: schema.text}, _PATH, files))
    except NotCompiledError as error:
        raise RegistryError(f"this is no Protobuf schema: {error.compiler_message}") from None


def is_same_file(schema: ResolvedSchema, other: ResolvedSchema) -> bool:
    """True if a text and a serialized FileDescriptorProto are the same file."""
    if is_serialized(schema.text) == is_serialized(other.text):
        return False
    files = [FileDescriptorProto.FromString(file_of(resolved).SerializeToString()) for resolved in (schema, other)]
    for file in files:
        clear_default_json_names(file.message_type)
    return bool(files[0] == files[1])
