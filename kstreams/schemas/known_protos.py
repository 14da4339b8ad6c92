"""The `.proto` files that every schema may import: Protobuf's own, Google's common types, and Confluent's."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from kstreams.errors import RegistryError

_MODULE_OF_PATH = {
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
_DECIMAL_PATH = "confluent/type/decimal.proto"


def is_known(path: str) -> bool:
    """True if readers bring a file themselves, so that no registry has to hold it."""
    return path in _MODULE_OF_PATH or path.startswith(("google/protobuf/", "google/type/", "confluent/"))


@cache
def known_file(path: str) -> FileDescriptorProto | None:
    """Return a file of Protobuf, of Google's common types or of Confluent, or None for another path.

    Raises
    ------
    RegistryError
        If Google's common types are not installed.
    """
    if path == _DECIMAL_PATH:
        return _decimal_file()
    if path not in _MODULE_OF_PATH:
        return None
    try:
        file = FileDescriptorProto.FromString(import_module(_MODULE_OF_PATH[path]).DESCRIPTOR.serialized_pb)
    except ImportError as error:
        raise RegistryError(
            f"{path} is not installed: install it with `pip install 'kstreams-dsl[registry]'`"
        ) from error
    return file


def confluent_files() -> list[FileDescriptorProto]:
    """Return the installed files that Confluent's converters import, each after the files that it imports."""
    files = [_decimal_file()]
    if find_spec("confluent_kafka") is not None:
        files += [
            file for path in _MODULE_OF_PATH if path.startswith("confluent/") and (file := known_file(path)) is not None
        ]
    paths = {path for file in files for path in file.dependency if path.startswith("google/protobuf/")}
    return [*(file for path in sorted(paths) if (file := known_file(path)) is not None), *files]


def _decimal_file() -> FileDescriptorProto:
    """Return the file of the decimal type that Confluent's clients and connectors write."""
    file = FileDescriptorProto(name=_DECIMAL_PATH, package="confluent.type", syntax="proto3")
    message = file.message_type.add(name="Decimal")
    fields = {
        "value": FieldDescriptorProto.TYPE_BYTES,
        "precision": FieldDescriptorProto.TYPE_UINT32,
        "scale": FieldDescriptorProto.TYPE_INT32,
    }
    for number, (name, field_type) in enumerate(fields.items(), start=1):
        message.field.add(name=name, number=number, type=field_type, label=FieldDescriptorProto.LABEL_OPTIONAL)
    return file
