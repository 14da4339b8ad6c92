"""Compatibility of Protobuf schemas, by Confluent's documented rules: numbers and wire types count, not names.

Incompatible are: a removed message, another package, another wire type of a field, `required` fields that are added or
removed, and fields that enter or leave an existing `oneof`. Fields, enums and their constants may be added and removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.schemas.compatibility.incompatibility import Incompatibility, importing
from kstreams.schemas.proto_files import file_of
from kstreams.schemas.references import ResolvedSchema

with importing("Protobuf schemas"):
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

Incompatibilities = Iterator[Incompatibility]

_VARINT = "varint"
_WIRE = {
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
_MAY_REPEAT = {"STRING", "BYTES", "MESSAGE", "MAP"}


@dataclass(frozen=True, slots=True)
class ProtoField:
    """The attributes of a field that decide about compatibility.

    Parameters
    ----------
    name : str
    kind : str
        `INT32`, `STRING`, `MESSAGE`, `MAP`, ...
    named : str
        The full name, if the field is a message.
    label : str
        `OPTIONAL`, `REPEATED` or `REQUIRED`.
    oneof : str
        The name of its `oneof`, or an empty string.
    """

    name: str
    kind: str
    named: str
    label: str
    oneof: str


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message: its fields by number, and whether it is a map entry."""

    fields: Mapping[int, ProtoField]
    is_map: bool


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """A file: its package, and its messages by name."""

    package: str
    messages: Mapping[str, ProtoMessage]


def incompatibilities(reader: ResolvedSchema, writer: ResolvedSchema) -> list[Incompatibility]:
    """Return the reasons why the reader cannot read records of the writer. Empty if it can."""
    return list(_compare_files(parsed(reader), parsed(writer)))


def parsed(schema: ResolvedSchema) -> ProtoFile:
    """Parse a `.proto` text. Raises RegistryError if it does not compile."""
    file = file_of(schema)
    maps: set[str] = set()
    for message in file.message_type:
        maps.update(_map_entries(f".{file.package}" if file.package else "", message))
    messages: dict[str, ProtoMessage] = {}
    for message in file.message_type:
        messages.update(_messages("", message, maps))
    return ProtoFile(file.package, messages)


def _map_entries(prefix: str, message: DescriptorProto) -> Iterator[str]:
    name = f"{prefix}.{message.name}"
    if message.options.map_entry:
        yield name
    for nested in message.nested_type:
        yield from _map_entries(name, nested)


def _messages(prefix: str, message: DescriptorProto, maps: set[str]) -> Iterator[tuple[str, ProtoMessage]]:
    name = f"{prefix}{message.name}"
    fields = {field.number: _field(field, message, maps) for field in message.field}
    yield name, ProtoMessage(fields, bool(message.options.map_entry))
    for nested in message.nested_type:
        yield from _messages(f"{name}.", nested, maps)


def _field(field: FieldDescriptorProto, message: DescriptorProto, maps: set[str]) -> ProtoField:
    kind = _name(FieldDescriptorProto.Type, field.type, "TYPE_")
    is_in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    return ProtoField(
        field.name,
        "MAP" if field.type_name in maps else "MESSAGE" if kind == "GROUP" else kind,
        "" if kind == "ENUM" or field.type_name in maps else field.type_name.lstrip("."),
        _name(FieldDescriptorProto.Label, field.label, "LABEL_"),
        message.oneof_decl[field.oneof_index].name if is_in_oneof else "",
    )


def _name(names: Any, number: int, prefix: str) -> str:
    return str(names.Name(number)).removeprefix(prefix)


def _compare_files(reader: ProtoFile, writer: ProtoFile) -> Incompatibilities:
    if reader.package != writer.package:
        yield Incompatibility("package", f"was {writer.package or 'none'} and is {reader.package or 'none'}")
        return
    for name, written in writer.messages.items():
        read = reader.messages.get(name)
        if read is not None:
            yield from _compare_messages(name, read, written)
        elif not written.is_map:
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
    if read.kind != written.kind and _wire(read) != _wire(written):
        yield Incompatibility(path, f"was {_description(written)} and is {_description(read)}")
    elif read.named != written.named:
        yield Incompatibility(path, f"was {written.named} and is {read.named}")
    if read.label == written.label:
        return
    if read.label == "REQUIRED":
        yield Incompatibility(path, f"was {written.label.lower()} and is required")
    elif "REPEATED" in (read.label, written.label) and not {read.kind, written.kind} <= _MAY_REPEAT:
        yield Incompatibility(path, f"was {written.label.lower()} and is {read.label.lower()}: numbers are packed")


def _wire(field: ProtoField) -> str:
    return _WIRE.get(field.kind, field.kind)


def _description(field: ProtoField) -> str:
    return field.named or field.kind.lower()


def _compare_oneofs(name: str, reader: ProtoMessage, writer: ProtoMessage) -> Incompatibilities:
    """Yield fields that entered or left a `oneof`. Readers would overwrite the former, and lose the latter."""
    read = _oneofs(reader)
    written = _oneofs(writer)
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


def _oneofs(message: ProtoMessage) -> dict[str, set[int]]:
    numbers: dict[str, set[int]] = {}
    for number, field in message.fields.items():
        if field.oneof:
            numbers.setdefault(field.oneof, set()).add(number)
    return numbers
