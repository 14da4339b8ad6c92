"""`writer`: a compiled function that fills a message from a value of a class, or from a dict."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.protobuf.class_shapes import MessageShape
from kstreams.serdes.protobuf.compiled_source import CompiledSource, about
from kstreams.serdes.protobuf.fields import Pair, alternatives, any_info, is_map, pairs, shape_for, shown
from kstreams.serdes.protobuf.leaves import Leaf, kind_of, leaf, members
from kstreams.serdes.protobuf.names import attribute
from kstreams.serdes.protobuf.reading import empty_is_absent, is_nowhere, may_lack, mismatch

Lines = list[str]


@dataclass(frozen=True, slots=True)
class Writing:
    """A function that writes values into messages.

    Parameters
    ----------
    fill : callable
        `(value, message)`. Raises errors of Python and protobuf for values that do not fit the type.
    place_of : callable
        `error -> text`: the field at which the error occurred, for error messages.
    is_exact : bool
        True if each value of exactly the classes of the type is either read back equal or refused.
    """

    fill: Callable[[object, Message], None]
    place_of: Callable[[BaseException], str]
    is_exact: bool


def writer(message: Descriptor, info: object) -> Writing:
    """Return a function that fills messages of one type from values of a Python type.

    Raises
    ------
    SerdeError
        If a field of the class has another type in the message, or is not in the message.
    """
    source = _WritingSource()
    name = source.of_message(message, info)
    return Writing(source.function(name), source.place_of, source.is_exact)


class _WritingSource(CompiledSource):
    """Source text of functions that fill messages: one function for each message type and class."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[tuple[str, Any], str] = {}
        self.numbers = count()
        self.is_exact = True

    def of_message(self, message: Descriptor, info: object) -> str:
        """Return the name of the function for a message. It may call itself."""
        shape = shape_for(message, info)
        if shape is None:
            raise SerdeError(f"{shown(info)} cannot be written as the message {message.full_name}")
        key = (message.full_name, shape.cls)
        if key not in self.functions:
            self.functions[key] = f"write{next(self.numbers)}"
            try:
                body = self._body(message, shape)
            except SerdeError:
                del self.functions[key]  # the caller may try another type
                raise
            self.lines += [f"def {self.functions[key]}(v, m):", *_indented(body or ["pass"])]
        return self.functions[key]

    def _body(self, message: Descriptor, shape: MessageShape) -> Lines:
        lines: Lines = []
        fields = pairs(message, shape)
        self._check_oneofs(fields)
        for pair in fields:
            lines += about(pair.of_class.wire_name, self._field(message, pair, shape))
        return lines

    def _check_oneofs(self, fields: list[Pair]) -> None:
        """Require reading back if fields share a oneof, since only one of them can be written."""
        fields_of_oneofs = [pair.of_message for pair in fields if pair.of_message and pair.of_message.containing_oneof]
        shared = [field.containing_oneof.name for field in fields_of_oneofs]
        if len(set(shared)) < len(shared):
            self.is_exact = False

    def _field(self, message: Descriptor, pair: Pair, shape: MessageShape) -> Lines:
        name = pair.of_class.wire_name if shape.cls is dict else pair.of_class.name
        if is_nowhere(pair):
            return self._nowhere(message, pair, shape)
        if shape.cls is dict:
            self.is_exact = False
            return [f"x = v.get({name!r})", "if x is not None:", *_indented(self._present(pair))]
        if may_lack(pair, shape):
            return [f"if {name!r} in v:", f"    x = v[{name!r}]", *_indented(self._value(pair, shape))]
        return [f"x = v[{name!r}]" if shape.are_keys else f"x = v.{name}", *self._value(pair, shape)]

    def _nowhere(self, message: Descriptor, pair: Pair, shape: MessageShape) -> Lines:
        """Return the lines that refuse a value other than the default for a field that is not in the message."""
        field = pair.of_class
        if field.required:
            raise SerdeError(
                f"the message {message.full_name} has no field {field.wire_name}: give {field.name} a default"
            )
        refuse = f"{self.bound(_refuse_without_field)}({field.name!r}, {message.full_name!r})"
        if may_lack(pair, shape):
            return [f"if {field.name!r} in v: {refuse}"]
        value = f"v[{field.name!r}]" if shape.are_keys else f"v.{field.name}"
        return [f"if {value} != {self.bound(field.default)}(): {refuse}"]

    def _value(self, pair: Pair, shape: MessageShape) -> Lines:
        """Return the lines that write a value `x`, which may be None if the type is optional."""
        field = pair.of_message
        lines = self._present(pair)
        if field is not None and field.is_repeated and empty_is_absent(pair, shape):
            lines = [f"if not x: {self.bound(_refuse_empty)}({pair.of_class.name!r}, x)", *lines]
        if not _may_be_none(pair):
            return lines
        if self._has_none(pair, shape):
            return ["if x is not None:", *_indented(lines)]
        return [f"if x is None: {self.bound(_refuse_none)}({pair.of_class.name!r})", *lines]

    def _has_none(self, pair: Pair, shape: MessageShape) -> bool:
        """True if the message can tell None from every other value."""
        field = pair.of_message
        if may_lack(pair, shape):
            return False
        if field is None:
            return True
        return empty_is_absent(pair, shape) if field.is_repeated else field.has_presence

    def _present(self, pair: Pair) -> Lines:
        if pair.oneof is not None:
            return self._oneof(pair.oneof, pair.of_class.info)
        field = pair.of_message
        if field is None:
            return []
        types = alternatives(pair.of_class.info).types
        if len(types) > 1:
            self.is_exact = False
        for info in types[:-1]:
            try:
                return self._of_type(field, info)
            except SerdeError:
                continue
        return self._of_type(field, types[-1] if types else pair.of_class.info)

    def _of_type(self, field: FieldDescriptor, info: object) -> Lines:
        if isinstance(info, inspect.AnyType) and kind_of(field) != "google.protobuf.Value":
            self.is_exact = False
        if field.is_repeated and isinstance(info, inspect.AnyType):
            info = any_info(field)
        if is_map(field):
            return self._map(field, info)
        return self._repeated(field, info) if field.is_repeated else self._single(field, info, "x")

    def _map(self, field: FieldDescriptor, info: object) -> Lines:
        if not isinstance(info, inspect.DictType):
            raise mismatch(field, info)
        of_key = field.message_type.fields_by_name["key"]
        of_value = field.message_type.fields_by_name["value"]
        key = self._scalar(leaf(of_key, info.key_type), "k")
        if key is None:
            raise mismatch(field, info)
        part = leaf(of_value, info.value_type)
        value = self._scalar(part, "y") if of_value.message_type is None else None
        entries = [f"t = {attribute('m', field.name)}", "for k, y in x.items():"]
        if value is not None:
            return [*entries, f"    t[{key}] = {value}"]
        return [*entries, f"    {self._filler(of_value, info.value_type)}(y, t[{key}])"]

    def _repeated(self, field: FieldDescriptor, info: object) -> Lines:
        if not isinstance(info, _COLLECTIONS):
            raise mismatch(field, info)
        target = attribute("m", field.name)
        if field.message_type is not None:
            return [f"t = {target}.add", f"for y in x: {self._filler(field, info.item_type)}(y, t())"]
        part = self._scalar(leaf(field, info.item_type), "y")
        if part is None:
            raise mismatch(field, info)
        return [f"{target}.extend({'x' if part == 'y' else f'[{part} for y in x]'})"]

    def _single(self, field: FieldDescriptor, info: object, value: str) -> Lines:
        if field.message_type is None:
            scalar = self._scalar(leaf(field, info), value)
            if scalar is None:
                raise mismatch(field, info)
            if keyword.iskeyword(field.name):
                return [f"setattr(m, {field.name!r}, {scalar})"]
            return [f"m.{field.name} = {scalar}"]
        filler = self._filler(field, info)
        part = attribute("m", field.name)
        return [f"{part}.SetInParent()", f"{filler}({value}, {part})"]

    def _scalar(self, conversion: Leaf | None, value: str) -> str | None:
        """Return the expression of the protobuf value, or None if the type does not fit."""
        if conversion is None:
            return None
        return value if conversion.write is None else f"{self.bound(conversion.write)}({value})"

    def _filler(self, field: FieldDescriptor, info: object) -> str:
        """Return the name of the function that fills the message of a field."""
        conversion = leaf(field, info)
        if conversion is not None:
            return self.bound(conversion.write)
        if shape_for(field.message_type, info) is None:
            raise mismatch(field, info)
        return self.of_message(field.message_type, info)

    def _oneof(self, oneof: OneofDescriptor, info: object) -> Lines:
        """Return the lines that write a oneof by the class of the value."""
        writers: dict[type, object] = {}
        name = self.bound(writers)
        for member in members(oneof, info):
            kind = self.bound(member.kind)
            function = f"{name}_{member.field.name}"
            lines = self._single(member.field, member.info, "x")
            member_lines = [f"def {function}(x, m):", *_indented(lines), f"{name}[{kind}] = {function}"]
            self.lines += about(member.field.name, member_lines)
        return [f"{name}[type(x)](x, m)"]


def _indented(lines: Lines) -> Lines:
    return [f"    {line}" for line in lines]


def _refuse_without_field(name: str, message: str) -> None:
    raise ValueError(f"{message} has no field {name}, and would be read back without it")


def _may_be_none(pair: Pair) -> bool:
    """True if None means that a field is absent. In a `google.protobuf.Value`, None is a value."""
    if not isinstance(pair.of_class.info, inspect.AnyType):
        return alternatives(pair.of_class.info).optional
    field = pair.of_message
    return field is not None and field.has_presence and kind_of(field) != "google.protobuf.Value"


def _refuse_none(name: str) -> None:
    raise ValueError(f"{name} is None, which its field cannot tell from a value that is absent or empty")


def _refuse_empty(name: str, value: object) -> None:
    if value is not None:
        raise ValueError(f"{name} is {value!r}, which would be read back as None: repeated fields have no None")


_COLLECTIONS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
