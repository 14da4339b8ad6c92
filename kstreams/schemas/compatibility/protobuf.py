"""Compatibility of Protobuf schemas, by Confluent's documented rules: numbers and wire types count, not names.

These changes are incompatible: a message is removed, the package or the wire type of a field changes, a `required`
field is added or removed, or a field enters or leaves an existing `oneof`. Fields, enums and their constants may be
added and removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kstreams.schemas.compatibility.incompatibility import Incompatibility, importing
from kstreams.schemas.proto_files import file_of
from kstreams.schemas.references import ResolvedSchema

with importing("Protobuf schemas"):
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

Incompatibilities = Iterator[Incompatibility]

_VARINT = "varint"
_WIRE_TYPES = {
    "INT32": _VARINT,
    "UINT32": _VARINT,
    "INT64": _VARINT,
    "UINT64": _VARINT,
    "BOOL": _VARINT,
    "ENUM": _VARINT,
    "SINT32": "zigzag",
    "SINT64": "zigzag",
    "FIXED32": "four bytes",
    "SFIXED32": "four bytes",
    "FIXED64": "eight bytes",
    "SFIXED64": "eight bytes",
    "STRING": "bytes",
    "BYTES": "bytes",
}
_NEVER_PACKED = {"STRING", "BYTES", "MESSAGE", "MAP"}


@dataclass(frozen=True, slots=True)
class ProtoField:
    """The attributes of a field that determine its compatibility.

    Parameters
    ----------
    name : str
    kind : str
        `INT32`, `STRING`, `MESSAGE`, `MAP`, ...
    type_name : str
        The full name of the message type. `""` for a field of another type.
    label : str
        `OPTIONAL`, `REPEATED` or `REQUIRED`.
    oneof : str
        The name of the `oneof` that contains the field. `""` without a `oneof`.
    """

    name: str
    kind: str
    type_name: str
    label: str
    oneof: str


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message type.

    Parameters
    ----------
    fields : mapping of int to ProtoField
        The fields by their numbers.
    is_map_entry : bool
        True if Protobuf's compiler generated the message for a map.
    """

    fields: Mapping[int, ProtoField]
    is_map_entry: bool


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """A `.proto` file: its package, and its messages by name."""

    package: str
    messages: Mapping[str, ProtoMessage]


def incompatibilities(reader: ResolvedSchema, writer: ResolvedSchema) -> list[Incompatibility]:
    """Return the reasons why the reader cannot read records of the writer. Empty if it can."""
    return list(_compare_files(parsed(reader), parsed(writer)))


def parsed(schema: ResolvedSchema) -> ProtoFile:
    """Compile a `.proto` text. Raises RegistryError if it does not compile."""
    file = file_of(schema)
    maps: set[str] = set()
    for message in file.message_type:
        maps.update(_map_entry_names(f".{file.package}" if file.package else "", message))
    messages: dict[str, ProtoMessage] = {}
    for message in file.message_type:
        messages.update(_named_messages("", message, maps))
    return ProtoFile(file.package, messages)


def _map_entry_names(prefix: str, message: DescriptorProto) -> Iterator[str]:
    name = f"{prefix}.{message.name}"
    if message.options.map_entry:
        yield name
    for nested in message.nested_type:
        yield from _map_entry_names(name, nested)


def _named_messages(prefix: str, message: DescriptorProto, maps: set[str]) -> Iterator[tuple[str, ProtoMessage]]:
    name = f"{prefix}{message.name}"
    fields = {field.number: _proto_field(field, message, maps) for field in message.field}
    yield name, ProtoMessage(fields, bool(message.options.map_entry))
    for nested in message.nested_type:
        yield from _named_messages(f"{name}.", nested, maps)


def _proto_field(field: FieldDescriptorProto, message: DescriptorProto, maps: set[str]) -> ProtoField:
    kind = str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_")
    is_map = field.type_name in maps
    is_in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    return ProtoField(
        name=field.name,
        kind="MAP" if is_map else "MESSAGE" if kind == "GROUP" else kind,
        type_name="" if is_map or kind == "ENUM" else field.type_name.lstrip("."),
        label=str(FieldDescriptorProto.Label.Name(field.label)).removeprefix("LABEL_"),
        oneof=message.oneof_decl[field.oneof_index].name if is_in_oneof else "",
    )


def _compare_files(reader: ProtoFile, writer: ProtoFile) -> Incompatibilities:
    if reader.package != writer.package:
        yield Incompatibility("package", f"was {writer.package or 'none'} and is {reader.package or 'none'}")
        return
    for name, written in writer.messages.items():
        read = reader.messages.get(name)
        if read is not None:
            yield from _compare_messages(name, read, written)
        elif not written.is_map_entry:
            yield Incompatibility(name, "the message is gone")


def _compare_messages(name: str, reader: ProtoMessage, writer: ProtoMessage) -> Incompatibilities:
    for number in sorted(reader.fields.keys() | writer.fields.keys()):
        read = reader.fields.get(number)
        written = writer.fields.get(number)
        if read is not None and written is not None:
            yield from _compare_fields(f"{name}.{written.name}", read, written)
        elif read is not None and read.label == "REQUIRED":
            yield Incompatibility(f"{name}.{read.name}", "is required, and was not there before")
        elif written is not None and written.label == "REQUIRED":
            yield Incompatibility(f"{name}.{written.name}", "was required, and is gone")
    yield from _compare_oneofs(name, reader, writer)


def _compare_fields(path: str, read: ProtoField, written: ProtoField) -> Incompatibilities:
    if read.kind != written.kind and _wire_type(read) != _wire_type(written):
        yield Incompatibility(path, f"was {_description(written)} and is {_description(read)}")
    elif read.type_name != written.type_name:
        yield Incompatibility(path, f"was {written.type_name} and is {read.type_name}")
    if read.label == written.label:
        return
    if read.label == "REQUIRED":
        yield Incompatibility(path, f"was {written.label.lower()} and is required")
    elif "REPEATED" in (read.label, written.label) and not {read.kind, written.kind} <= _NEVER_PACKED:
        yield Incompatibility(path, f"was {written.label.lower()} and is {read.label.lower()}: numbers are packed")


def _wire_type(field: ProtoField) -> str:
    return _WIRE_TYPES.get(field.kind, field.kind)


def _description(field: ProtoField) -> str:
    return field.type_name or field.kind.lower()


def _compare_oneofs(name: str, reader: ProtoMessage, writer: ProtoMessage) -> Incompatibilities:
    """Yield the fields that entered or left a `oneof`.

    A reader would overwrite a field that entered a `oneof`, and lose a field that left one.
    """
    read = _numbers_by_oneof(reader)
    written = _numbers_by_oneof(writer)
    for oneof, numbers in written.items():
        for number in sorted(numbers - read.get(oneof, numbers)):
            yield Incompatibility(f"{name}.{writer.fields[number].name}", f"has left the oneof {oneof}")
    for oneof, numbers in read.items():
        earlier_numbers = {number for number in numbers if number in writer.fields}
        entered = {number for number in earlier_numbers if not writer.fields[number].oneof}
        if entered and len(earlier_numbers) > 1:
            names = ", ".join(reader.fields[number].name for number in sorted(entered))
            yield Incompatibility(
                f"{name}.{oneof}", f"{names} entered a oneof of several fields that were there before"
            )


def _numbers_by_oneof(message: ProtoMessage) -> dict[str, set[int]]:
    numbers: dict[str, set[int]] = {}
    for number, field in message.fields.items():
        if field.oneof:
            numbers.setdefault(field.oneof, set()).add(number)
    return numbers
