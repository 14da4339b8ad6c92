"""`reader`: a compiled function from a message to a value of a class, or to a dict."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.class_shapes import ClassField, MessageShape
from kstreams.serdes.protobuf.compiled_source import CompiledSource, about
from kstreams.serdes.protobuf.fields import (
    ANY,
    Pair,
    alternatives,
    any_info,
    is_map,
    limits_of,
    pairs,
    shape_for,
    shown,
)
from kstreams.serdes.protobuf.leaves import kind_of, leaf, members
from kstreams.serdes.protobuf.names import attribute


class Reading(NamedTuple):
    """A function that reads messages of one type.

    Parameters
    ----------
    read : callable
        `message -> value`. Raises errors of Python and protobuf for messages that do not fit the type.
    place_of : callable
        `error -> text`: the field at which the error occurred, for error messages.
    """

    read: Callable[[Any], Any]
    place_of: Callable[[BaseException], str]


def reader(message: Descriptor, info: object) -> Reading:
    """Return a function that reads messages of one type as values of a Python type.

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
    source = _ReadingSource()
    name = source.of_message(message, info)
    return Reading(source.function(name), source.place_of)


class _ReadingSource(CompiledSource):
    """Source text of functions that read messages: one function for each message type and class."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[tuple[str, Any], str] = {}
        self.numbers = count()

    def of_message(self, message: Descriptor, info: object) -> str:
        """Return the name of the function for a message. It may call itself."""
        shape = shape_for(message, info)
        if shape is None:
            raise SerdeError(f"the message {message.full_name} cannot be read as {shown(info)}")
        key = (message.full_name, shape.cls)
        if key not in self.functions:
            self.functions[key] = f"read{next(self.numbers)}"
            try:
                body = self._body(message, shape)
            except SerdeError:
                del self.functions[key]  # the caller may try another type
                raise
            self.lines += [f"def {self.functions[key]}(m):", *(f"    {line}" for line in body)]
        return self.functions[key]

    def _body(self, message: Descriptor, shape: MessageShape) -> list[str]:
        always: list[str] = []
        sometimes: list[str] = []
        places = list(shape.places)
        for pair in pairs(message, shape):
            if is_nowhere(pair):
                _demand_default(message, pair.of_class)
                places = []  # all further arguments are passed by keyword
            elif may_lack(pair, shape):
                presence = self._presence(pair, shape)
                lines = [f"if {presence}:", f"    d[{pair.of_class.name!r}] = {self._present(pair)}"]
                sometimes += about(pair.of_class.wire_name, lines)
            else:
                is_next = places[:1] == [pair.of_class.name]
                places = places[1:] if is_next else []
                argument = self._value(pair, shape) if is_next else self._argument(pair, shape)
                always += about(pair.of_class.wire_name, [f"    {argument},"])
        return self._made(always, sometimes, shape)

    def _argument(self, pair: Pair, shape: MessageShape) -> str:
        value = self._value(pair, shape)
        if shape.of_dict is not None:
            return f"{pair.of_class.wire_name!r}: {value}"
        return f"{pair.of_class.name!r}: {value}" if shape.are_keys else f"{pair.of_class.name}={value}"

    def _made(self, always: list[str], sometimes: list[str], shape: MessageShape) -> list[str]:
        """Return the lines that create a value, with one field per line."""
        if shape.of_dict is not None:
            return [f"return {self.bound(shape.of_dict)}({{", *always, "})"]
        if not shape.are_keys:
            return [f"return {self.bound(shape.cls)}(", *always, ")"]
        return ["d = {", *always, "}", *sometimes, "return d"] if sometimes else ["return {", *always, "}"]

    def _value(self, pair: Pair, shape: MessageShape) -> str:
        """Return the expression of a field's value, including its value if it is absent."""
        presence = self._presence(pair, shape)
        present = self._present(pair)
        return f"({present} if {presence} else {self._absent(pair)})" if presence else present

    def _presence(self, pair: Pair, shape: MessageShape) -> str:
        """Return the condition that a field is present, or an empty string if it always is."""
        field = pair.of_message
        if field is None:
            return f"m.WhichOneof({pair.oneof.name!r}) is not None" if pair.oneof else ""
        if field.is_repeated:
            return attribute("m", field.name) if empty_is_absent(pair, shape) else ""
        needs_no_default = field.has_default_value and not alternatives(pair.of_class.info).optional
        return f"m.HasField({field.name!r})" if field.has_presence and not needs_no_default else ""

    def _absent(self, pair: Pair) -> str:
        """Return the expression of the value of an absent field."""
        field = pair.of_class
        if alternatives(field.info).optional or isinstance(field.info, inspect.AnyType):
            return "None"
        if not field.required:
            return f"{self.bound(field.default)}()"
        return f"{self.bound(_absent)}({field.wire_name!r})"

    def _present(self, pair: Pair) -> str:
        if pair.oneof is not None:
            return self._oneof(pair.oneof, pair.of_class.info)
        if pair.of_message is None:
            return "None"
        value = attribute("m", pair.of_message.name)
        types = alternatives(pair.of_class.info).types
        return self._limited(self._first(pair.of_message, types, value), types)

    def _limited(self, expression: str, types: Any) -> str:
        check = limits_of(types[0]) if len(types) == 1 else None
        return expression if check is None else f"{self.bound(check)}({expression})"

    def _first(self, field: FieldDescriptor, types: Any, value: str) -> str:
        """Read by the first of several types that fits the field."""
        for info in types[:-1]:
            try:
                return self._of_type(field, info, value)
            except SerdeError:
                continue
        return self._of_type(field, types[-1], value)

    def _of_type(self, field: FieldDescriptor, info: object, value: str) -> str:
        if field.is_repeated and isinstance(info, inspect.AnyType):
            info = any_info(field)
        if is_map(field):
            return self._map(field, info, value)
        return self._repeated(field, info, value) if field.is_repeated else self._single(field, info, value)

    def _map(self, field: FieldDescriptor, info: object, value: str) -> str:
        if not isinstance(info, inspect.DictType):
            raise mismatch(field, info)
        of_key = field.message_type.fields_by_name["key"]
        of_value = field.message_type.fields_by_name["value"]
        key = self._single(of_key, info.key_type, "k")
        part = self._single(of_value, info.value_type, "x")
        return f"{{{key}: {part} for k, x in {value}.items()}}"

    def _repeated(self, field: FieldDescriptor, info: Any, value: str) -> str:
        make = _COLLECTIONS.get(type(info))
        if make is None:
            raise mismatch(field, info)
        part = self._single(field, info.item_type, "x")
        if part == "x":
            return f"{make}({value})"
        return f"[{part} for x in {value}]" if make == "list" else f"{make}([{part} for x in {value}])"

    def _single(self, field: FieldDescriptor, info: object, value: str) -> str:
        conversion = leaf(field, info)
        if conversion is not None:
            checked = value if conversion.read is None else f"{self.bound(conversion.read)}({value})"
            return checked if value == attribute("m", field.name) else self._limited(checked, (info,))
        if field.message_type is None or shape_for(field.message_type, info) is None:
            raise mismatch(field, info)
        return f"{self.of_message(field.message_type, info)}({value})"

    def _oneof(self, oneof: OneofDescriptor, info: object) -> str:
        """Return the expression that reads the member of a oneof that is set."""
        readers = self.bound({})
        for member in members(oneof, info):
            value = self._single(member.field, member.info, attribute("m", member.field.name))
            self.lines += about(member.field.name, [f"{readers}[{member.field.name!r}] = lambda m: {value}"])
        return f"{readers}[m.WhichOneof({oneof.name!r})](m)"


def empty_is_absent(pair: Pair, shape: MessageShape) -> bool:
    """True if an empty list is read as None or as an absent key, since a message cannot tell them apart."""
    field = pair.of_class
    if may_lack(pair, shape):
        return True
    return alternatives(field.info).optional and not field.required and field.default() is None


def is_nowhere(pair: Pair) -> bool:
    return pair.of_message is None and pair.oneof is None


def may_lack(pair: Pair, shape: MessageShape) -> bool:
    """True if a dict has no key for an absent field."""
    if not shape.are_keys or shape.cls is dict or pair.of_class.required:
        return False
    field = pair.of_message
    return field is None or field.is_repeated or field.has_presence


def _demand_default(message: Descriptor, field: ClassField) -> None:
    if field.required:
        raise SerdeError(
            f"the message {message.full_name} has no field {field.wire_name}: give {field.name} a default, or a name "
            f"that the message has"
        )


def mismatch(field: FieldDescriptor, info: object) -> SerdeError:
    """Return the error for a field whose type differs from that of the class."""
    many = "map of " if is_map(field) else "repeated " if field.is_repeated else ""
    return SerdeError(f"the field {field.full_name} is {many}{kind_of(field)}, and not {shown(info)}")


def _absent(name: str) -> object:
    raise ValueError(f"the record has no {name}, and the class no default for it")


_COLLECTIONS: dict[type, str] = {
    inspect.ListType: "list",
    inspect.SetType: "set",
    inspect.FrozenSetType: "frozenset",
    inspect.VarTupleType: "tuple",
    type(ANY): "list",
}
