"""`reader`: the compiled function that reads a message as a value of a class, or as a dict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.compiled_source import CompiledSource, indented, marked
from kstreams.serdes.protobuf.class_shapes import ClassField, MessageShape
from kstreams.serdes.protobuf.fields import (
    ANY,
    FieldPair,
    alternatives,
    any_info,
    field_pairs,
    is_map,
    limits_check,
    shape_for,
    type_in_words,
)
from kstreams.serdes.protobuf.names import attribute
from kstreams.serdes.protobuf.value_conversions import field_kind, oneof_members, value_conversion


class MessageReader(NamedTuple):
    """A function that reads messages of one type.

    Parameters
    ----------
    read : callable
        `message -> value`. Raises errors of Python and protobuf for messages that do not fit the type.
    place_of : callable
        `error -> text`: the path of the field that caused an error, for messages.
    """

    read: Callable[[Any], Any]
    place_of: Callable[[BaseException], str]


def reader(message: Descriptor, info: object) -> MessageReader:
    """Return the function that reads messages of one type as values of a Python type.

    Parameters
    ----------
    message : google.protobuf.descriptor.Descriptor
    info : msgspec.inspect.Type
        A class with fields, or `Any` for dicts.

    Raises
    ------
    SerdeError
        If a field of the class has another type in the message, or is not in the message and has no default.
    """
    source = _ReaderSource()
    name = source.function_for(message, info)
    return MessageReader(source.function(name), source.place_of)


class _ReaderSource(CompiledSource):
    """Source text of functions that read messages, with one function for each message type and class."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[tuple[str, type], str] = {}
        self.numbers = count()

    def function_for(self, message: Descriptor, info: object) -> str:
        """Return the name of the function that reads a message. The function may call itself."""
        shape = shape_for(message, info)
        if shape is None:
            raise SerdeError(f"the message {message.full_name} cannot be read as {type_in_words(info)}")
        key = (message.full_name, shape.cls)
        if key not in self.functions:
            self.functions[key] = f"read{next(self.numbers)}"
            try:
                body = self._body(message, shape)
            except SerdeError:
                del self.functions[key]  # the caller may try another type
                raise
            self.lines += [f"def {self.functions[key]}(m):", *indented(body)]
        return self.functions[key]

    def _body(self, message: Descriptor, shape: MessageShape) -> list[str]:
        """Return the lines that create a value of a class from a message `m`."""
        arguments: list[str] = []
        conditional_lines: list[str] = []
        remaining_positional = list(shape.positional)
        for pair in field_pairs(message, shape):
            if is_unmatched(pair):
                _require_default(message, pair.class_field)
                remaining_positional = []  # all further arguments must be keywords
            elif may_lack_key(pair, shape):
                presence = self._presence(pair, shape)
                lines = [f"if {presence}:", f"    d[{pair.class_field.name!r}] = {self._present(pair)}"]
                conditional_lines += marked(pair.class_field.wire_name, lines)
            else:
                is_positional = remaining_positional[:1] == [pair.class_field.name]
                remaining_positional = remaining_positional[1:] if is_positional else []
                argument = self._value(pair, shape) if is_positional else self._keyword_argument(pair, shape)
                arguments += marked(pair.class_field.wire_name, [f"    {argument},"])
        return self._creation(arguments, conditional_lines, shape)

    def _keyword_argument(self, pair: FieldPair, shape: MessageShape) -> str:
        value = self._value(pair, shape)
        if shape.from_dict is not None:
            return f"{pair.class_field.wire_name!r}: {value}"
        return f"{pair.class_field.name!r}: {value}" if shape.are_keys else f"{pair.class_field.name}={value}"

    def _creation(self, arguments: list[str], conditional_lines: list[str], shape: MessageShape) -> list[str]:
        """Return the lines that create a value, with one field per line."""
        if shape.from_dict is not None:
            return [f"return {self.bound(shape.from_dict)}({{", *arguments, "})"]
        if not shape.are_keys:
            return [f"return {self.bound(shape.cls)}(", *arguments, ")"]
        if not conditional_lines:
            return ["return {", *arguments, "}"]
        return ["d = {", *arguments, "}", *conditional_lines, "return d"]

    def _value(self, pair: FieldPair, shape: MessageShape) -> str:
        """Return the expression of a field's value, whether the field is present or absent."""
        presence = self._presence(pair, shape)
        present = self._present(pair)
        return f"({present} if {presence} else {self._absent(pair)})" if presence else present

    def _presence(self, pair: FieldPair, shape: MessageShape) -> str:
        """Return the condition that a field is present. Empty if the field is always present."""
        field = pair.message_field
        if field is None:
            return f"m.WhichOneof({pair.oneof.name!r}) is not None" if pair.oneof else ""
        if field.is_repeated:
            return attribute("m", field.name) if empty_is_absent(pair, shape) else ""
        needs_no_default = field.has_default_value and not alternatives(pair.class_field.info).optional
        return f"m.HasField({field.name!r})" if field.has_presence and not needs_no_default else ""

    def _absent(self, pair: FieldPair) -> str:
        """Return the expression of the value of an absent field."""
        field = pair.class_field
        if alternatives(field.info).optional or isinstance(field.info, inspect.AnyType):
            return "None"
        if not field.required:
            return f"{self.bound(field.default)}()"
        return f"{self.bound(_refuse_absent)}({field.wire_name!r})"

    def _present(self, pair: FieldPair) -> str:
        """Return the expression of the value of a present field."""
        if pair.oneof is not None:
            return self._oneof(pair.oneof, pair.class_field.info)
        if pair.message_field is None:
            return "None"
        value = attribute("m", pair.message_field.name)
        types = alternatives(pair.class_field.info).types
        return self._limited(self._first_fitting(pair.message_field, types, value), types)

    def _limited(self, expression: str, types: Sequence[inspect.Type]) -> str:
        check = limits_check(types[0]) if len(types) == 1 else None
        return expression if check is None else f"{self.bound(check)}({expression})"

    def _first_fitting(self, field: FieldDescriptor, types: Sequence[inspect.Type], value: str) -> str:
        """Return the expression that reads a field as the first of several types that fits."""
        for info in types[:-1]:
            try:
                return self._of_type(field, info, value)
            except SerdeError:
                continue
        return self._of_type(field, types[-1], value)

    def _of_type(self, field: FieldDescriptor, info: inspect.Type, value: str) -> str:
        if field.is_repeated and isinstance(info, inspect.AnyType):
            info = any_info(field)
        if is_map(field):
            return self._map(field, info, value)
        return self._repeated(field, info, value) if field.is_repeated else self._single(field, info, value)

    def _map(self, field: FieldDescriptor, info: inspect.Type, value: str) -> str:
        if not isinstance(info, inspect.DictType):
            raise mismatch(field, info)
        key_field = field.message_type.fields_by_name["key"]
        value_field = field.message_type.fields_by_name["value"]
        key_expression = self._single(key_field, info.key_type, "k")
        value_expression = self._single(value_field, info.value_type, "x")
        return f"{{{key_expression}: {value_expression} for k, x in {value}.items()}}"

    def _repeated(self, field: FieldDescriptor, info: Any, value: str) -> str:
        collection = _COLLECTIONS.get(type(info))
        if collection is None:
            raise mismatch(field, info)
        item = self._single(field, info.item_type, "x")
        if item == "x":
            return f"{collection}({value})"
        items = f"[{item} for x in {value}]"
        return items if collection == "list" else f"{collection}({items})"

    def _single(self, field: FieldDescriptor, info: inspect.Type, value: str) -> str:
        conversion = value_conversion(field, info)
        if conversion is not None:
            converted = value if conversion.read is None else f"{self.bound(conversion.read)}({value})"
            is_whole_field = value == attribute("m", field.name)  # then `_present` adds the check of limits
            return converted if is_whole_field else self._limited(converted, (info,))
        if field.message_type is None or shape_for(field.message_type, info) is None:
            raise mismatch(field, info)
        return f"{self.function_for(field.message_type, info)}({value})"

    def _oneof(self, oneof: OneofDescriptor, info: inspect.Type) -> str:
        """Return the expression that reads the present member of a oneof."""
        readers = self.bound({})
        for member in oneof_members(oneof, info):
            value = self._single(member.field, member.info, attribute("m", member.field.name))
            self.lines += marked(member.field.name, [f"{readers}[{member.field.name!r}] = lambda m: {value}"])
        return f"{readers}[m.WhichOneof({oneof.name!r})](m)"


def empty_is_absent(pair: FieldPair, shape: MessageShape) -> bool:
    """True if an empty list is read as None or as an absent key, since a message does not distinguish them."""
    field = pair.class_field
    if may_lack_key(pair, shape):
        return True
    return alternatives(field.info).optional and not field.required and field.default() is None


def is_unmatched(pair: FieldPair) -> bool:
    """True if a field of a class has no counterpart in the message."""
    return pair.message_field is None and pair.oneof is None


def may_lack_key(pair: FieldPair, shape: MessageShape) -> bool:
    """True if a dict has no key for an absent field."""
    if not shape.are_keys or shape.cls is dict or pair.class_field.required:
        return False
    field = pair.message_field
    return field is None or field.is_repeated or field.has_presence


def _require_default(message: Descriptor, field: ClassField) -> None:
    if field.required:
        raise SerdeError(
            f"the message {message.full_name} has no field {field.wire_name}: give {field.name} a default, or a name "
            "that the message has"
        )


def mismatch(field: FieldDescriptor, info: object) -> SerdeError:
    """Return the error for a field whose type in the message does not fit the type in the class."""
    prefix = "map of " if is_map(field) else "repeated " if field.is_repeated else ""
    return SerdeError(f"the field {field.full_name} is {prefix}{field_kind(field)}, and not {type_in_words(info)}")


def _refuse_absent(name: str) -> object:
    raise ValueError(f"the record has no {name}, and the class has no default for {name}")


_COLLECTIONS: dict[type, str] = {
    inspect.ListType: "list",
    inspect.SetType: "set",
    inspect.FrozenSetType: "frozenset",
    inspect.VarTupleType: "tuple",
    type(ANY): "list",
}
