"""`proto_text`: a FileDescriptorProto as `.proto` text."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

_LABELS = {
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
    FieldDescriptorProto.LABEL_OPTIONAL: "",
}
_MAX_FIELD_NUMBER = 2**29 - 1


def proto_text(file: FileDescriptorProto) -> str:
    """Return the text of a file without comments, services and custom options.

    Examples
    --------
    >>> file = FileDescriptorProto(name="order.proto", syntax="proto3")
    >>> field = file.message_type.add(name="Order").field.add(name="id", number=1, type=3, label=1)
    >>> print(proto_text(file))
    syntax = "proto3";
    <BLANKLINE>
    message Order {
      int64 id = 1;
    }
    """
    printer = _ProtoPrinter(file)
    return "\n".join(printer.lines())


class _ProtoPrinter:
    """Printer of one file as `.proto` text."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._is_proto2 = file.syntax in ("", "proto2")
        self._scope = f".{file.package}." if file.package else "."

    def lines(self) -> Iterator[str]:
        yield self._syntax()
        if self._file.package:
            yield ""
            yield f"package {self._file.package};"
        if self._file.dependency:
            yield ""
        for index, path in enumerate(self._file.dependency):
            yield f'import {"public " if index in self._file.public_dependency else ""}"{path}";'
        for message in self._file.message_type:
            yield ""
            yield from self._message(message)
        for enum in self._file.enum_type:
            yield ""
            yield from _enum(enum)

    def _syntax(self) -> str:
        if self._file.syntax == "editions":
            return f'edition = "{Edition.Name(self._file.edition).removeprefix("EDITION_")}";'
        return f'syntax = "{self._file.syntax or "proto2"}";'

    def _message(self, message: DescriptorProto) -> Iterator[str]:
        yield f"message {message.name} {{"
        entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        yield from _indented(self._reserved(message))
        for enum in message.enum_type:
            yield from _indented(_enum(enum))
        for nested in message.nested_type:
            if nested.name not in entries:
                yield from _indented(self._message(nested))
        yield from _indented(self._fields(message, entries))
        yield "}"

    def _fields(self, message: DescriptorProto, entries: dict[str, DescriptorProto]) -> Iterator[str]:
        printed_oneofs: set[int] = set()
        for field in message.field:
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield self._field(field, entries)
            elif field.oneof_index not in printed_oneofs:
                printed_oneofs.add(field.oneof_index)
                members = [candidate for candidate in message.field if _is_member(candidate, field.oneof_index)]
                yield f"oneof {message.oneof_decl[field.oneof_index].name} {{"
                yield from _indented(self._field(member, entries) for member in members)
                yield "}"

    def _field(self, field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> str:
        entry = entries.get(field.type_name.rpartition(".")[2]) if field.type_name else None
        if entry is None:
            declaration = f"{self._label(field)}{self._type(field)}"
        else:
            declaration = f"map<{', '.join(map(self._type, entry.field))}>"
        return f"{declaration} {field.name} = {field.number}{_options(field)};"

    def _label(self, field: FieldDescriptorProto) -> str:
        is_singular = field.label == FieldDescriptorProto.LABEL_OPTIONAL and not field.HasField("oneof_index")
        if field.proto3_optional or (self._is_proto2 and is_singular):
            return "optional "
        return _LABELS[field.label]

    def _type(self, field: FieldDescriptorProto) -> str:
        if not field.type_name:
            return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()
        return str(field.type_name).removeprefix(self._scope).removeprefix(".")

    def _reserved(self, message: DescriptorProto) -> Iterator[str]:
        ranges = [_range(reserved.start, reserved.end - 1) for reserved in message.reserved_range]
        if ranges:
            yield f"reserved {', '.join(ranges)};"
        if message.reserved_name:
            names = ", ".join(f'"{name}"' for name in message.reserved_name)
            yield f"reserved {names};"


def _is_member(field: FieldDescriptorProto, oneof: int) -> bool:
    return field.HasField("oneof_index") and field.oneof_index == oneof and not field.proto3_optional


def _range(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= _MAX_FIELD_NUMBER else last}"


def _options(field: FieldDescriptorProto) -> str:
    options = []
    if field.HasField("default_value"):
        is_text = field.type in (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES)
        options.append(f"default = {_quoted(field.default_value) if is_text else field.default_value}")
    if field.HasField("json_name"):
        options.append(f'json_name = "{field.json_name}"')
    if field.options.HasField("packed"):
        options.append(f"packed = {str(field.options.packed).lower()}")
    if field.options.deprecated:
        options.append("deprecated = true")
    return f" [{', '.join(options)}]" if options else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    if enum.options.allow_alias:
        yield "  option allow_alias = true;"
    for value in enum.value:
        yield f"  {value.name} = {value.number};"
    yield "}"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
