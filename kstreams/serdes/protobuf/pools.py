"""Descriptor pools: the files that every `.proto` may import, and those of one schema with its references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from kstreams.errors import SerdeError

_MODULES = {
    f"{package}/{name}.proto": f"{package.replace('/', '.')}.{name}_pb2"
    for package, names in {
        "google/protobuf": (
            "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp",
            "type", "wrappers",
        ),
        "google/type": (
            "calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction", "interval",
            "latlng", "localized_text", "money", "month", "phone_number", "postal_address", "quaternion", "timeofday",
        ),
    }.items()
    for name in names
} | {
    "confluent/meta.proto": "confluent_kafka.schema_registry.confluent.meta_pb2",
    "confluent/type/variant.proto": "confluent_kafka.schema_registry.confluent.type.variant_pb2",
    "confluent/types/decimal.proto": "confluent_kafka.schema_registry.confluent.types.decimal_pb2",
}  # fmt: skip
_DECIMAL = "confluent/type/decimal.proto"


def is_known(path: str) -> bool:
    """Whether a file is one that every reader has, so that no registry needs to hold it."""
    return path in _MODULES or path.startswith(("google/protobuf/", "google/type/", "confluent/"))


@cache
def known_file(path: str) -> FileDescriptorProto | None:
    """A file of Protobuf, of Google's common types, or Confluent's decimal; None for any other.

    Raises
    ------
    SerdeError
        When Google's common types are not installed.
    """
    if path == _DECIMAL:
        return _decimal_file()
    if path not in _MODULES:
        return None
    try:
        file = FileDescriptorProto.FromString(import_module(_MODULES[path]).DESCRIPTOR.serialized_pb)
    except ImportError as error:
        raise SerdeError(f"{path} is missing: pip install 'kstreams-dsl[registry]' brings it") from error
    return file


def _decimal_file() -> FileDescriptorProto:
    """The type of decimals that Confluent's clients and connectors write."""
    file = FileDescriptorProto(name=_DECIMAL, package="confluent.type", syntax="proto3")
    message = file.message_type.add(name="Decimal")
    kinds = (FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_UINT32, FieldDescriptorProto.TYPE_INT32)
    for number, (name, kind) in enumerate(zip(("value", "precision", "scale"), kinds, strict=True), start=1):
        message.field.add(name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    return file


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """A pool of files, with those that they import of the known ones.

    Parameters
    ----------
    files : iterable of FileDescriptorProto
        Each behind those that it imports.

    Raises
    ------
    SerdeError
        When they do not fit together.
    """
    pool = DescriptorPool()
    added: set[str] = set()
    for file in files:
        for each in (*_known_imports(file), file):
            if each.name not in added:
                added.add(each.name)
                _add(pool, each)
    return pool


def _known_imports(file: FileDescriptorProto) -> Iterator[FileDescriptorProto]:
    """The known files that a file imports, each behind those that it imports itself."""
    for path in file.dependency:
        imported = known_file(path)
        if imported is not None:
            yield from _known_imports(imported)
            yield imported


def _add(pool: DescriptorPool, file: FileDescriptorProto) -> None:
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
        raise SerdeError(f"{file.name} is no valid .proto file: {reason}") from error
