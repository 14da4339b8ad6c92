"""`writer`: the compiled function that fills a message from a value of a class, or from a dict."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.compiled_source import CompiledSource, indented, marked
from kstreams.serdes.protobuf.class_shapes import MessageShape
from kstreams.serdes.protobuf.fields import (
    FieldPair,
    alternatives,
    any_info,
    field_pairs,
    is_map,
    shape_for,
    type_in_words,
)
from kstreams.serdes.protobuf.names import attribute
from kstreams.serdes.protobuf.reading import empty_is_absent, is_unmatched, may_lack_key, mismatch
from kstreams.serdes.protobuf.value_conversions import ValueConversion, field_kind, oneof_members, value_conversion

Lines = list[str]


class MessageWriter(NamedTuple):
    """A function that fills messages of one type from values.

    Parameters
    ----------
    fill : callable
        `(value, message)`. Raises errors of Python and protobuf for values that do not fit the type.
    place_of : callable
        `error -> text`: the path of the field that caused an error, for messages.
    is_exact : bool
        True if every value of exactly the classes of the type either reads back equal or is refused.
    """

    fill: Callable[[object, Message], None]
    place_of: Callable[[BaseException], str]
    is_exact: bool


def writer(message: Descriptor, info: object) -> MessageWriter:
    """Return the function that fills messages of one type from values of a Python type.

    Raises
    ------
    SerdeError
        If a field of the class has another type in the message, or is not in the message.
    """
    source = _WriterSource()
    name = source.function_for(message, info)
    return MessageWriter(source.function(name), source.place_of, source.is_exact)


class _WriterSource(CompiledSource):
    """Source text of functions that fill messages, with one function for each message type and class."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[tuple[str, type], str] = {}
        self.numbers = count()
        self.is_exact = True

    def function_for(self, message: Descriptor, info: object) -> str:
        """Return the name of the function that fills a message. The function may call itself."""
        shape = shape_for(message, info)
        if shape is None:
            raise SerdeError(f"{type_in_words(info)} cannot be written as the message {message.full_name}")
        key = (message.full_name, shape.cls)
        if key not in self.functions:
            self.functions[key] = f"write{next(self.numbers)}"
            try:
                body = self._body(message, shape)
            except SerdeError:
                del self.functions[key]  # the caller may try another type
                raise
            self.lines += [f"def {self.functions[key]}(v, m):", *indented(body or ["pass"])]
        return self.functions[key]

    def _body(self, message: Descriptor, shape: MessageShape) -> Lines:
        """Return the lines that fill a message `m` from a value `v`."""
        lines: Lines = []
        pairs = field_pairs(message, shape)
        self._check_oneofs(pairs)
        for pair in pairs:
            lines += marked(pair.class_field.wire_name, self._field(message, pair, shape))
        return lines

    def _check_oneofs(self, pairs: list[FieldPair]) -> None:
        """Clear `is_exact` if fields of the class share a oneof, since a message holds only one of these fields."""
        message_fields = [pair.message_field for pair in pairs if pair.message_field is not None]
        oneof_names = [field.containing_oneof.name for field in message_fields if field.containing_oneof]
        if len(set(oneof_names)) < len(oneof_names):
            self.is_exact = False

    def _field(self, message: Descriptor, pair: FieldPair, shape: MessageShape) -> Lines:
        name = pair.class_field.wire_name if shape.cls is dict else pair.class_field.name
        if is_unmatched(pair):
            return self._unmatched(message, pair, shape)
        if shape.cls is dict:
            self.is_exact = False
            return [f"x = v.get({name!r})", "if x is not None:", *indented(self._present(pair))]
        if may_lack_key(pair, shape):
            return [f"if {name!r} in v:", f"    x = v[{name!r}]", *indented(self._value(pair, shape))]
        return [f"x = v[{name!r}]" if shape.are_keys else f"x = v.{name}", *self._value(pair, shape)]

    def _unmatched(self, message: Descriptor, pair: FieldPair, shape: MessageShape) -> Lines:
        """Return the lines that refuse values other than the default for a field that is not in the message."""
        field = pair.class_field
        if field.required:
            raise SerdeError(
                f"the message {message.full_name} has no field {field.wire_name}: give {field.name} a default"
            )
        refuse = f"{self.bound(_refuse_without_field)}({field.name!r}, {message.full_name!r})"
        if may_lack_key(pair, shape):
            return [f"if {field.name!r} in v: {refuse}"]
        value = f"v[{field.name!r}]" if shape.are_keys else f"v.{field.name}"
        return [f"if {value} != {self.bound(field.default)}(): {refuse}"]

    def _value(self, pair: FieldPair, shape: MessageShape) -> Lines:
        """Return the lines that write a value `x`. It may be None if the type is optional."""
        field = pair.message_field
        lines = self._present(pair)
        if field is not None and field.is_repeated and empty_is_absent(pair, shape):
            lines = [f"if not x: {self.bound(_refuse_empty)}({pair.class_field.name!r}, x)", *lines]
        if not _may_be_none(pair):
            return lines
        if self._has_none(pair, shape):
            return ["if x is not None:", *indented(lines)]
        return [f"if x is None: {self.bound(_refuse_none)}({pair.class_field.name!r})", *lines]

    def _has_none(self, pair: FieldPair, shape: MessageShape) -> bool:
        """True if the message distinguishes None from all other values."""
        field = pair.message_field
        if may_lack_key(pair, shape):
            return False
        if field is None:
            return True
        return empty_is_absent(pair, shape) if field.is_repeated else field.has_presence

    def _present(self, pair: FieldPair) -> Lines:
        """Return the lines that write a value `x` that is not None."""
        if pair.oneof is not None:
            return self._oneof(pair.oneof, pair.class_field.info)
        field = pair.message_field
        if field is None:
            return []
        types = alternatives(pair.class_field.info).types
        if len(types) > 1:
            self.is_exact = False
        for info in types[:-1]:
            try:
                return self._of_type(field, info)
            except SerdeError:
                continue
        return self._of_type(field, types[-1] if types else pair.class_field.info)

    def _of_type(self, field: FieldDescriptor, info: object) -> Lines:
        if isinstance(info, inspect.AnyType) and field_kind(field) != "google.protobuf.Value":
            self.is_exact = False
        if field.is_repeated and isinstance(info, inspect.AnyType):
            info = any_info(field)
        if is_map(field):
            return self._map(field, info)
        return self._repeated(field, info) if field.is_repeated else self._single(field, info, "x")

    def _map(self, field: FieldDescriptor, info: object) -> Lines:
        if not isinstance(info, inspect.DictType):
            raise mismatch(field, info)
        key_field = field.message_type.fields_by_name["key"]
        value_field = field.message_type.fields_by_name["value"]
        key = self._scalar(value_conversion(key_field, info.key_type), "k")
        if key is None:
            raise mismatch(field, info)
        conversion = value_conversion(value_field, info.value_type)
        scalar = self._scalar(conversion, "y") if value_field.message_type is None else None
        loop = [f"t = {attribute('m', field.name)}", "for k, y in x.items():"]
        if scalar is not None:
            return [*loop, f"    t[{key}] = {scalar}"]
        return [*loop, f"    {self._filler(value_field, info.value_type)}(y, t[{key}])"]

    def _repeated(self, field: FieldDescriptor, info: object) -> Lines:
        if not isinstance(info, _COLLECTIONS):
            raise mismatch(field, info)
        target = attribute("m", field.name)
        if field.message_type is not None:
            return [f"t = {target}.add", f"for y in x: {self._filler(field, info.item_type)}(y, t())"]
        item = self._scalar(value_conversion(field, info.item_type), "y")
        if item is None:
            raise mismatch(field, info)
        return [f"{target}.extend({'x' if item == 'y' else f'[{item} for y in x]'})"]

    def _single(self, field: FieldDescriptor, info: object, value: str) -> Lines:
        if field.message_type is None:
            scalar = self._scalar(value_conversion(field, info), value)
            if scalar is None:
                raise mismatch(field, info)
            if keyword.iskeyword(field.name):
                return [f"setattr(m, {field.name!r}, {scalar})"]
            return [f"m.{field.name} = {scalar}"]
        filler = self._filler(field, info)
        target = attribute("m", field.name)
        return [f"{target}.SetInParent()", f"{filler}({value}, {target})"]

    def _scalar(self, conversion: ValueConversion | None, value: str) -> str | None:
        """Return the expression of the protobuf value. None if the type does not fit."""
        if conversion is None:
            return None
        return value if conversion.write is None else f"{self.bound(conversion.write)}({value})"

    def _filler(self, field: FieldDescriptor, info: object) -> str:
        """Return the name of the function that fills the message of a field."""
        conversion = value_conversion(field, info)
        if conversion is not None:
            return self.bound(conversion.write)
        if shape_for(field.message_type, info) is None:
            raise mismatch(field, info)
        return self.function_for(field.message_type, info)

    def _oneof(self, oneof: OneofDescriptor, info: inspect.Type) -> Lines:
        """Return the lines that write a oneof by the class of the value."""
        writers: dict[type, object] = {}
        name = self.bound(writers)
        for member in oneof_members(oneof, info):
            kind = self.bound(member.kind)
            function = f"{name}_{member.field.name}"
            lines = self._single(member.field, member.info, "x")
            member_lines = [f"def {function}(x, m):", *indented(lines), f"{name}[{kind}] = {function}"]
            self.lines += marked(member.field.name, member_lines)
        return [f"{name}[type(x)](x, m)"]


def _refuse_without_field(name: str, message: str) -> None:
    raise ValueError(f"{message} has no field {name}, and would be read back without it")


def _may_be_none(pair: FieldPair) -> bool:
    """True if None means that a field is absent. In a `google.protobuf.Value`, None is a value."""
    if not isinstance(pair.class_field.info, inspect.AnyType):
        return alternatives(pair.class_field.info).optional
    field = pair.message_field
    return field is not None and field.has_presence and field_kind(field) != "google.protobuf.Value"


def _refuse_none(name: str) -> None:
    raise ValueError(f"{name} is None, and its field does not distinguish None from an absent or empty value")


def _refuse_empty(name: str, value: object) -> None:
    if value is not None:
        raise ValueError(f"{name} is {value!r}, which would be read back as None: repeated fields have no None")


_COLLECTIONS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
