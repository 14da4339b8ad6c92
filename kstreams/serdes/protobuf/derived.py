"""`derived_file`: the `.proto` file that is derived from a class, as a FileDescriptorProto."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.class_shapes import ClassField, MessageShape, class_shape
from kstreams.serdes.protobuf.fields import alternatives, class_of, type_in_words
from kstreams.serdes.protobuf.names import is_identifier, snake_case

_SCALARS: dict[type, object] = {
    inspect.BoolType: FieldDescriptorProto.TYPE_BOOL,
    inspect.IntType: FieldDescriptorProto.TYPE_INT64,
    inspect.FloatType: FieldDescriptorProto.TYPE_DOUBLE,
    inspect.StrType: FieldDescriptorProto.TYPE_STRING,
    inspect.BytesType: FieldDescriptorProto.TYPE_BYTES,
    inspect.ByteArrayType: FieldDescriptorProto.TYPE_BYTES,
    inspect.UUIDType: FieldDescriptorProto.TYPE_STRING,
}
_MESSAGES: dict[type, tuple[str, str]] = {
    inspect.DateTimeType: (".google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    inspect.TimeDeltaType: (".google.protobuf.Duration", "google/protobuf/duration.proto"),
    inspect.DateType: (".google.type.Date", "google/type/date.proto"),
    inspect.TimeType: (".google.type.TimeOfDay", "google/type/timeofday.proto"),
    inspect.DecimalType: (".confluent.type.Decimal", "confluent/type/decimal.proto"),
    inspect.AnyType: (".google.protobuf.Value", "google/protobuf/struct.proto"),
}
_KEY_TYPES = (inspect.StrType, inspect.IntType, inspect.BoolType)
_COLLECTIONS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)


def derived_file(info: object, package: str = "", name: str = "") -> FileDescriptorProto:
    """Return the file of a class: a message for the class, then a message for each class inside it.

    Fields are numbered from 1 in the order of the class. A union takes one number for each of its types. The
    values of an enum are its numbers if all of them are integers and one is 0. Otherwise the numbers count from 0.

    Parameters
    ----------
    info : msgspec.inspect.Type
        A class with fields.
    package : str, optional
    name : str, optional
        The name of the first message. Default: the name of the class.

    Raises
    ------
    SerdeError
        If the type of a field has no counterpart in Protobuf.

    Examples
    --------
    >>> import msgspec
    >>> from kstreams.kernel.decoders import type_info
    >>> class Order(msgspec.Struct):
    ...     id: int
    ...     coupon: str | None = None
    >>> [(field.name, field.number) for field in derived_file(type_info(Order)).message_type[0].field]
    [('id', 1), ('coupon', 2)]
    """
    return _FileBuilder(package).of_classes([info], name)


def derived_file_of_classes(infos: Sequence[object], package: str = "") -> FileDescriptorProto:
    """Return the file of several classes, with their messages first."""
    return _FileBuilder(package).of_classes(infos, "")


class _FileBuilder:
    """A file under construction."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.names: dict[type, str] = {}
        self.classes: dict[str, type] = {}
        self.messages: dict[str, DescriptorProto] = {}
        self.enums: dict[str, EnumDescriptorProto] = {}
        self.imports: set[str] = set()

    def of_classes(self, infos: Sequence[object], name: str) -> FileDescriptorProto:
        shapes = [_shape_of(info) for info in infos]
        for shape in shapes:
            self.names[shape.cls] = name or shape.cls.__name__
            self.messages[self.names[shape.cls]] = DescriptorProto()  # reserves a position before nested classes
        for shape in shapes:
            self.message(shape)
        return FileDescriptorProto(
            name=f"{snake_case(self.names[shapes[0].cls])}.proto",
            package=self.package,
            syntax="proto3",
            dependency=sorted(self.imports),
            message_type=self.messages.values(),
            enum_type=self.enums.values(),
        )

    def message(self, shape: MessageShape) -> str:
        """Return the full name of the message for a class. Add the message on first use."""
        name = self.names.get(shape.cls, shape.cls.__name__)
        if self._is_new(name, shape.cls):
            message = self.messages[name] = self.messages.get(name, DescriptorProto())
            message.name = name
            for field in shape.fields:
                _MessageBuilder(self, message, shape).add(field)
            _add_oneofs_of_optional_fields(message)
        return self.full_name(name)

    def enum(self, cls: type[Enum]) -> str:
        """Return the full name of an enum. Add the enum on first use.

        The names of its values begin with the name of the enum, since all enums of a file share a scope.
        """
        name = cls.__name__
        if self._is_new(name, cls):
            enum = self.enums[name] = EnumDescriptorProto(name=name)
            prefix = snake_case(name).upper()
            for member, number in _numbered(cls):
                enum.value.add(name=f"{prefix}_{_require_identifier(member.name, cls)}", number=number)
        return self.full_name(name)

    def full_name(self, name: str) -> str:
        return f".{self.package}.{name}" if self.package else f".{name}"

    def _is_new(self, name: str, cls: type) -> bool:
        if self.classes.setdefault(_require_identifier(name, cls), cls) is not cls:
            raise SerdeError(f"two classes are called {name}: a .proto file cannot hold both, so rename one")
        return name not in self.enums and not (name in self.messages and self.messages[name].name)


def _add_oneofs_of_optional_fields(message: DescriptorProto) -> None:
    """Add a oneof for each `optional` field, after the named oneofs, as protoc does."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _shape_of(info: object) -> MessageShape:
    shape = class_shape(info)
    if shape is None:
        raise SerdeError(
            f"no Protobuf message can be derived from {type_in_words(info)}: give ks.Protobuf a class with fields, a "
            "generated message class, or a .proto file"
        )
    return shape


class _MessageBuilder:
    """The fields of a message under construction."""

    def __init__(self, file: _FileBuilder, message: DescriptorProto, shape: MessageShape) -> None:
        self.file = file
        self.message = message
        self.shape = shape

    def add(self, field: ClassField) -> None:
        """Add the field of a class: a oneof for a union, otherwise a field."""
        alternative_types = alternatives(field.info)
        types = alternative_types.types
        name = _require_identifier(field.wire_name, self.shape.cls)
        if len(types) > 1:
            self._add_oneof(name, types)
        elif types and not isinstance(types[0], inspect.NoneType):
            may_lack_key = self.shape.are_keys and not field.required
            self._add_field_or_map(name, types[0], alternative_types.optional or may_lack_key)
        else:
            raise SerdeError(
                f"{self._field_in_words(name)} is always None, for which Protobuf has no type: remove the field"
            )

    def _add_oneof(self, name: str, types: Sequence[inspect.Type]) -> None:
        index = len(self.message.oneof_decl)
        self.message.oneof_decl.add(name=name)
        for info in types:
            self._add_field(f"{name}_{snake_case(class_of(info).__name__)}", info).oneof_index = index

    def _add_field_or_map(self, name: str, info: object, optional: bool) -> None:
        if isinstance(info, _COLLECTIONS):
            self._add_field(name, info.item_type).label = FieldDescriptorProto.LABEL_REPEATED
        elif isinstance(info, inspect.DictType):
            self._add_map(name, info)
        else:
            field = self._add_field(name, info)
            field.proto3_optional = optional and field.type != FieldDescriptorProto.TYPE_MESSAGE

    def _add_field(self, name: str, info: object) -> FieldDescriptorProto:
        field = self.message.field.add(name=name, number=self._next_number(), label=FieldDescriptorProto.LABEL_OPTIONAL)
        self._set_type(field, info)
        return field

    def _next_number(self) -> int:
        number = len(self.message.field) + 1
        return number if number < 19_000 else number + 1000  # Protobuf reserves 19,000 to 19,999

    def _set_type(self, field: FieldDescriptorProto, info: object) -> None:
        scalar = _SCALARS.get(type(info))
        message = _MESSAGES.get(type(info))
        shape = class_shape(info)
        if scalar is not None:
            field.type = scalar
        elif message is not None:
            self._set_type_name(field, FieldDescriptorProto.TYPE_MESSAGE, message[0])
            self.file.imports.add(message[1])
        elif shape is not None:
            self._set_type_name(field, FieldDescriptorProto.TYPE_MESSAGE, self.file.message(shape))
        elif isinstance(info, inspect.EnumType):
            self._set_type_name(field, FieldDescriptorProto.TYPE_ENUM, self.file.enum(info.cls))
        elif isinstance(info, inspect.LiteralType) and type(info.values[0]) in _LITERAL_TYPES:
            field.type = _LITERAL_TYPES[type(info.values[0])]
        else:
            raise SerdeError(
                f"{self._field_in_words(field.name)} is a {type_in_words(info)} without a counterpart in Protobuf: "
                "make a class for it"
            )

    def _set_type_name(self, field: FieldDescriptorProto, kind: object, name: str) -> None:
        field.type = kind
        field.type_name = name

    def _add_map(self, name: str, info: inspect.DictType) -> None:
        """Add a map: a repeated message of a key and a value."""
        if not isinstance(info.key_type, _KEY_TYPES):
            raise SerdeError(
                f"the keys of {self._field_in_words(name)} are {type_in_words(info.key_type)}: use str, int or bool"
            )
        entry_name = "".join(part.capitalize() for part in name.split("_")) + "Entry"
        entry = DescriptorProto(name=entry_name)
        entry.options.map_entry = True
        entries = _MessageBuilder(self.file, entry, self.shape)
        entries._add_field("key", info.key_type)
        entries._add_field("value", info.value_type)
        field = self.message.field.add(name=name, number=self._next_number(), label=FieldDescriptorProto.LABEL_REPEATED)
        self._set_type_name(
            field, FieldDescriptorProto.TYPE_MESSAGE, f"{self.file.full_name(self.message.name)}.{entry_name}"
        )
        self.message.nested_type.append(entry)

    def _field_in_words(self, name: str) -> str:
        return f"{self.shape.cls.__name__}.{name}"


_LITERAL_TYPES: dict[type, object] = {str: FieldDescriptorProto.TYPE_STRING, int: FieldDescriptorProto.TYPE_INT64}


def _numbered(cls: type[Enum]) -> list[tuple[Enum, int]]:
    """Return the members of an enum with their numbers. The member with number 0 is the first."""
    members = list(cls)
    values = [member.value for member in members]
    if all(type(value) is int and abs(value) < 2**31 for value in values) and 0 in values:
        return sorted(((member, member.value) for member in members), key=lambda pair: pair[1] != 0)
    return [(member, number) for number, member in enumerate(members)]


def _require_identifier(name: str, cls: type) -> str:
    if not is_identifier(name):
        raise SerdeError(
            f"{cls.__name__} has the name {name!r}, which is no name in a .proto file: use letters, digits, _"
        )
    return name
