"""Texts of `.proto` files as descriptors, by the compiler of grpcio-tools."""

from __future__ import annotations

import functools

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.incompatibility import importing
from kstreams.schemas.references import ResolvedSchema
from kstreams.schemas.serialized_proto import deserialized, is_serialized, leave_out_json_names

with importing("Protobuf schemas"):
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    from kstreams.schemas.proto_compiler import NotCompiledError, compiled_texts

MAIN = "schema.proto"


@functools.lru_cache(maxsize=1_000)
def file_of(schema: ResolvedSchema) -> FileDescriptorProto:
    """The descriptor of a `.proto` text, without those of its imports.

    Raises
    ------
    RegistryError
        With what the compiler says, or when it is not installed.

    Examples
    --------
    >>> text = 'syntax = "proto3"; message Order { int64 id = 1; }'
    >>> [message.name for message in file_of(ResolvedSchema(text, "PROTOBUF")).message_type]
    ['Order']
    """
    return next(file for file in files_of(schema).file if file.name == MAIN)


@functools.lru_cache(maxsize=1_000)
def files_of(schema: ResolvedSchema) -> FileDescriptorSet:
    """The descriptors of a `.proto` text, named `schema.proto`, after those of its imports.

    Of a file that comes as a FileDescriptorProto, the imports are left out.
    """
    if is_serialized(schema.text):
        return FileDescriptorSet(file=[deserialized(schema.text, MAIN)])
    texts = {name: text for name, text in schema.imports if not is_serialized(text)}
    files = [deserialized(text, name) for name, text in schema.imports if is_serialized(text)]
    try:
        return FileDescriptorSet(file=compiled_texts({**texts, MAIN: schema.text}, MAIN, files))
    except NotCompiledError as error:
        raise RegistryError(f"this is no Protobuf schema: {error.complaint}") from None


def is_same_file(schema: ResolvedSchema, other: ResolvedSchema) -> bool:
    """Whether two schemas are the same `.proto` file, of which one comes as a text and the other one does not."""
    if is_serialized(schema.text) == is_serialized(other.text):
        return False
    files = [FileDescriptorProto.FromString(file_of(resolved).SerializeToString()) for resolved in (schema, other)]
    for file in files:
        leave_out_json_names(file.message_type)
    return bool(files[0] == files[1])
