"""The files of a schema as FileDescriptorProtos: the schema itself and the schemas that it refers to."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kstreams.errors import RegistryError, SerdeError
from kstreams.schemas import Schema, SchemaReference, SchemaRegistry
from kstreams.schemas.known_protos import is_known
from kstreams.schemas.proto_compiler import compile_file, compile_texts
from kstreams.schemas.serialized_proto import deserialized, is_serialized

_IMPORT = re.compile(r"""^\s*import\s+(?:public\s+|weak\s+)?["']([^"']+)["']""", re.MULTILINE)


def files_of(schema: Schema, registry: SchemaRegistry, path: str = "schema.proto") -> Sequence[FileDescriptorProto]:
    """Return the files of a schema, each after the files that it imports. The last file is that of the schema itself.

    Parameters
    ----------
    schema : Schema
        The text is a `.proto` file, or a FileDescriptorProto in base64, which needs no compiler.
    registry : SchemaRegistry
        The registry of the schemas that the schema refers to.
    path : str
        The path of the file of the schema itself.
    """
    files: dict[str, FileDescriptorProto] = {}
    for reference in schema.references:
        if not is_known(reference.name):
            imported = registry.version(reference.subject, reference.version).schema
            files |= {file.name: file for file in files_of(imported, registry, reference.name)}
    file = file_from_text(schema.text, path, list(files.values()))
    return [*(other_file for name, other_file in files.items() if name != file.name), file]


def file_from_text(text: str, path: str, imported: Sequence[FileDescriptorProto] = ()) -> FileDescriptorProto:
    """Compile or decode the text of a schema."""
    try:
        return deserialized(text, path) if is_serialized(text) else compile_texts({path: text}, path, imported)[-1]
    except RegistryError as error:
        raise SerdeError(str(error)) from error


def files_at(file: Path, registry: Callable[[], SchemaRegistry]) -> Sequence[FileDescriptorProto]:
    """Return a `.proto` file on disk after its imports. Imports outside of its folder are subjects of the registry."""
    if not file.is_file():
        raise SerdeError(f"there is no file {file}: pass the path of a .proto file")
    imported: dict[str, FileDescriptorProto] = {}
    for path in _imports_outside(file.parent, file.name, set()):
        schema = registry().version(path).schema
        imported |= {imported_file.name: imported_file for imported_file in files_of(schema, registry(), path)}
    try:
        return compile_file(file.parent, file.name, imported.values())
    except RegistryError as error:
        raise SerdeError(str(error)) from error


def imports_of(text: str) -> list[str]:
    """Return the paths that a `.proto` file imports.

    Examples
    --------
    >>> imports_of('syntax = "proto3"; import "acme/customer.proto"; ')
    []
    >>> imports_of('import "acme/customer.proto";')
    ['acme/customer.proto']
    """
    return _IMPORT.findall(text)


def _imports_outside(folder: Path, path: str, visited: set[str]) -> list[str]:
    """Return the direct and indirect imports of a file that are not in the folder."""
    paths: list[str] = []
    for imported in imports_of((folder / path).read_text(encoding="utf-8")):
        if imported in visited or is_known(imported):
            continue
        visited.add(imported)
        is_in_folder = (folder / imported).is_file()
        paths += _imports_outside(folder, imported, visited) if is_in_folder else [imported]
    return paths


def schema_of(file: FileDescriptor, imported: Sequence[SchemaReference] = ()) -> Schema:
    """Return the schema of a file in base64. Every registry accepts this form, and reading it needs no compiler."""
    return Schema(base64.b64encode(file.serialized_pb).decode("ascii"), "PROTOBUF", tuple(imported))


def registered_imports(
    file: FileDescriptor, registry: SchemaRegistry, *, register: bool
) -> tuple[SchemaReference, ...]:
    """Return references to the imports of a file. The subject of an import is its path, as in Confluent's serializers.

    Parameters
    ----------
    file : google.protobuf.descriptor.FileDescriptor
    registry : SchemaRegistry
    register : bool
        True to register imports that the registry does not have.
    """
    register_or_look_up = registry.register if register else registry.lookup
    references = []
    for imported in file.dependencies:
        if not is_known(imported.name):
            schema = schema_of(imported, registered_imports(imported, registry, register=register))
            version = register_or_look_up(imported.name, schema).version
            references.append(SchemaReference(imported.name, imported.name, version))
    return tuple(references)
