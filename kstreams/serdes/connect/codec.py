"""`Codec`: the conversion between values of a type and the JSON of a payload, with its schema or without one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from operator import attrgetter
from types import GenericAlias
from typing import Any, Final, NotRequired, Required, TypeAlias, TypedDict, Union

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import json_decoder
from kstreams.serdes.avro.kinds import PLAIN, Kind, RecordField, RecordShape
from kstreams.serdes.connect.logical import (
    ConnectLogicalType,
    Conventions,
    FieldSettings,
    logical_of_class,
    logical_of_schema,
)
from kstreams.serdes.connect.schema import INTEGER_BITS, SCALAR_CLASSES, ConnectSchema
from kstreams.serdes.non_finite import read_non_finite, with_texts

Convert: TypeAlias = Callable[[Any], Any]
NULL: Final = b"null"
READ_ERRORS: Final = (ValueError, TypeError, ArithmeticError, RecursionError, msgspec.MsgspecError)
"""Errors of a payload that does not fit its type."""
_LOGICAL_CLASSES: Final = (dt.date, dt.time, dt.datetime, dt.timedelta, Decimal)
_COLLECTIONS: Final = (list, tuple, set, frozenset)


def unchanged(value: Any) -> Any:
    """Return the value."""
    return value


@dataclass(frozen=True, eq=False)
class Codec:
    """The conversions of one type.

    Parameters
    ----------
    wire : object
        The type that msgspec decodes the JSON to, and encodes.
    read : callable
        `decoded JSON -> value`. Raises ValueError for a value that does not fit.
    write : callable
        `value -> value that msgspec encodes`. Raises ValueError for a value that does not fit.
    fields : mapping of str to Codec
        The fields of a class or a struct, by their names in JSON.
    create : callable
        `dict of fields -> object of the class`.
    """

    wire: Any
    read: Convert = unchanged
    write: Convert = unchanged
    fields: Mapping[str, Codec] = field(default_factory=dict)
    create: Convert = unchanged

    @property
    def is_direct(self) -> bool:
        """True if msgspec reads and writes the values themselves."""
        return self.read is unchanged and self.write is unchanged

    @cached_property
    def decoder(self) -> Any:
        """The decoder of `wire`."""
        return json_decoder(self.wire)

    def decode(self, data: bytes | msgspec.Raw) -> Any:
        """Return the value of some JSON.

        Raises
        ------
        ValueError
            If the JSON does not fit the type. A `msgspec.MsgspecError` is a ValueError.
        """
        try:
            return self.read(self.decoder.decode(data))
        except msgspec.ValidationError:
            if not any(word in bytes(data) for word in _NON_FINITE):
                raise
            return self._decode_non_finite(data)

    def _decode_non_finite(self, data: bytes | msgspec.Raw) -> Any:
        """Decode JSON with NaN or infinities, which JSON has as text."""
        return self.decode_fields(data, {}) if self.fields else self.read(read_non_finite(bytes(data), self.wire))

    def decode_fields(self, data: bytes | msgspec.Raw, replaced: Mapping[str, object]) -> Any:
        """Decode an object field by field.

        Parameters
        ----------
        data : bytes
        replaced : mapping of str to object
            The values of the fields whose JSON is not read.
        """
        raws = _RAW_FIELDS.decode(data)
        codecs = self.fields or dict.fromkeys(raws, Codec(Any))
        values = {
            name: replaced[name] if name in replaced else _in_field(name, codec.decode, raws[name])
            for name, codec in codecs.items()
            if name in raws
        }
        try:
            return self.create(values)
        except TypeError as error:
            raise ValueError(str(error)) from error


_RAW_FIELDS: Final = json_decoder(dict[str, msgspec.Raw])
_NON_FINITE: Final = (b"NaN", b"Infinity")


class CodecBuilder:
    """Builds the codecs of types.

    Parameters
    ----------
    conventions : Conventions
        How values are written where no schema says it.
    checks_width : bool, default False
        True to refuse, on writing, integers with more bits than their schema.
    writes_non_finite : bool, default False
        True to write NaN and infinities as text.
    """

    def __init__(
        self, conventions: Conventions, *, checks_width: bool = False, writes_non_finite: bool = False
    ) -> None:
        self._conventions = conventions
        self._checks_width = checks_width
        self._writes_non_finite = writes_non_finite
        self._enclosing: list[object] = []

    def of(self, kind: Kind, schema: ConnectSchema | None, place: str = "") -> Codec:
        """Return the codec of a type.

        Parameters
        ----------
        kind : Kind
            The type.
        schema : ConnectSchema or None
            The schema of the JSON. None if it has no schema.
        place : str
            The path of the field, for errors.

        Raises
        ------
        SerdeError
            If the type has no form in Kafka Connect.
        """
        if kind.base is Union:
            return self._union(kind, schema, place)
        if kind.is_plain:
            return Codec(Any) if schema is None else self._of_schema(schema, place)
        if kind.base in _LOGICAL_CLASSES:
            return self._logical(kind, schema, place)
        if kind.base in _COLLECTIONS:
            return self._collection(kind, schema, place)
        if kind.base is dict:
            return self._map(kind, schema, place)
        return self._scalar(kind.hint, schema) if kind.shape is None else self._class(kind, kind.shape, schema, place)

    def _scalar(self, wire: Any, schema: ConnectSchema | None) -> Codec:
        if self._writes_non_finite and wire is float:
            return Codec(float, write=with_texts)
        if not self._checks_width or schema is None or schema.type not in INTEGER_BITS:
            return Codec(wire)
        return Codec(wire, write=partial(_integer_of_width, schema.type))

    def _union(self, kind: Kind, schema: ConnectSchema | None, place: str) -> Codec:
        members = [member for member in kind.arguments if member.base is not type(None)]
        if len(members) == 1:
            return optional(self.of(members[0], schema, place))
        codecs = [self.of(member, schema, place) for member in members]
        if not all(codec.is_direct for codec in codecs):
            raise SerdeError(f"{_at(place)}{kind} has no form in Kafka Connect: a field has one type, or it and None")
        return Codec(kind.hint)

    def _logical(self, kind: Kind, schema: ConnectSchema | None, place: str) -> Codec:
        settings = FieldSettings(kind.extra, kind.is_naive)
        logical = logical_of_class(kind.base, settings, self._conventions)
        named = None if schema is None else logical_of_schema(schema, settings, self._conventions)
        if named is not None and named.cls is not kind.base:
            raise SerdeError(f"{_at(place)}the schema says {schema}, which is no {kind}")
        if named is None and schema is not None and kind.base is Decimal:
            named = self._decimal_of_scalar(kind, schema)
        return _codec_of(named or logical)

    def _decimal_of_scalar(self, kind: Kind, schema: ConnectSchema) -> ConnectLogicalType | None:
        """Return the decimals of a schema without a logical type: Debezium's text of digits is a plain string."""
        forms = {"string": "text", "double": "numeric", "float": "numeric"}
        conventions = Conventions(decimals=forms.get(schema.type, self._conventions.decimals))
        return logical_of_class(Decimal, FieldSettings(kind.extra, False), conventions)

    def _of_schema(self, schema: ConnectSchema, place: str) -> Codec:
        """Return the codec of plain Python values: dicts, lists, numbers and text, as the schema says."""
        logical = logical_of_schema(schema, FieldSettings({}, False), self._conventions)
        if logical is not None:
            codec = _codec_of(replace(logical, read=_or_unchanged(logical.read)))
        elif schema.type == "array":
            codec = _items(list, self._of_schema(schema.parts[0], place))
        elif schema.type == "map":
            keys, values = (self._of_schema(part, place) for part in schema.parts)
            codec = _entries(keys, values, has_text_keys=schema.parts[0].type == "string")
        elif schema.type == "struct":
            fields = {name: self._of_schema(part, f"{place}.{name}") for name, part in schema.fields.items()}
            required = frozenset(name for name, part in schema.fields.items() if not part.optional)
            codec = _dicts(fields, required)
        else:
            codec = self._scalar(SCALAR_CLASSES[schema.type], schema)
        return optional(codec) if schema.optional else codec

    def _collection(self, kind: Kind, schema: ConnectSchema | None, place: str) -> Codec:
        item = kind.arguments[0] if kind.arguments else PLAIN
        codec = self.of(item, _part(schema, 0), place)
        return Codec(kind.hint) if codec.is_direct and kind.arguments else _items(kind.base, codec)

    def _map(self, kind: Kind, schema: ConnectSchema | None, place: str) -> Codec:
        key, value = kind.arguments or (PLAIN, PLAIN)
        if schema is not None and schema.type == "struct":
            return _dicts_of_one_type(self.of(value, None, place))
        keys = self.of(key, _part(schema, 0), place)
        return _entries(keys, self.of(value, _part(schema, 1), place), has_text_keys=key.base is str or key.is_plain)

    def _class(self, kind: Kind, shape: RecordShape, schema: ConnectSchema | None, place: str) -> Codec:
        if shape.cls in self._enclosing:
            raise SerdeError(f"{_at(place)}{kind} holds itself, and Kafka Connect has no recursive schemas")
        if schema is not None and schema.type != "struct":
            raise SerdeError(f"{_at(place)}the schema says {schema}, which is no {kind}")
        self._enclosing.append(shape.cls)
        fields = {
            name: self.of(part.kind, None if schema is None else schema.fields.get(name), f"{place}.{name}")
            for name, part in shape.fields.items()
        }
        self._enclosing.pop()
        if all(codec.is_direct for codec in fields.values()) and not _is_model(shape):
            return Codec(kind.hint, fields=fields, create=creator_of(shape))
        return _objects(shape, fields)


def _integer_of_width(type_name: str, value: Any) -> Any:
    limit = 1 << (INTEGER_BITS[type_name] - 1)
    if type(value) is int and not -limit <= value < limit:
        raise ValueError(f"{value} is no {type_name}")
    return value


def _is_model(shape: RecordShape) -> bool:
    return hasattr(shape.cls, "model_validate")


def _at(place: str) -> str:
    return f"field {place.removeprefix('.')}: " if place else ""


def _part(schema: ConnectSchema | None, number: int) -> ConnectSchema | None:
    return schema.parts[number] if schema is not None and len(schema.parts) > number else None


def _or_unchanged(read: Convert) -> Convert:
    """Return a function that leaves a date or time unchanged that Python does not have, such as `24:00`."""

    def read_or_leave(raw: Any) -> Any:
        try:
            return read(raw)
        except ValueError:
            if isinstance(raw, int | str):
                return raw
            raise

    return read_or_leave


def _codec_of(logical: ConnectLogicalType | None) -> Codec:
    if logical is None:
        raise SerdeError("a decimal, date or time has no form in Kafka Connect")
    return Codec(logical.wire, logical.read, logical.write)


def optional(codec: Codec) -> Codec:
    """Return the codec that also takes None."""
    if codec.is_direct:
        return Codec(_or_none(codec.wire), fields=codec.fields, create=codec.create)
    read = codec.read
    write = codec.write
    if codec.wire is msgspec.Raw:
        return Codec(codec.wire, lambda raw: None if bytes(raw) == NULL else read(raw), _unless_none(write))
    return Codec(_or_none(codec.wire), _unless_none(read), _unless_none(write), codec.fields, codec.create)


def _or_none(wire: Any) -> Any:
    return wire | None


def _unless_none(convert: Convert) -> Convert:
    return unchanged if convert is unchanged else lambda value: None if value is None else convert(value)


def _items(cls: type, item: Codec) -> Codec:
    if item.is_direct and cls is list:
        return Codec(GenericAlias(list, (item.wire,)))
    read = item.read
    write = item.write
    return Codec(
        GenericAlias(list, (item.wire,)),
        lambda values: cls(map(read, values)),
        lambda values: list(map(write, values)),
    )


def _entries(keys: Codec, values: Codec, *, has_text_keys: bool) -> Codec:
    """Return the codec of maps: an object if the keys are text, otherwise a list of pairs."""
    if has_text_keys:
        if values.is_direct:
            return Codec(GenericAlias(dict, (str, values.wire)))
        return _dicts_of_one_type(values)
    pairs = GenericAlias(list, (GenericAlias(tuple, (keys.wire, values.wire)),))

    def read(entries: Any) -> dict[Any, Any]:
        if not entries:
            return {}
        return {keys.read(key): values.read(value) for key, value in entries}

    return Codec(
        pairs | dict[str, None],  # without a schema, JsonConverter writes an empty map as an empty object
        read,
        lambda entries: [(keys.write(key), values.write(value)) for key, value in entries.items()],
    )


def _dicts_of_one_type(values: Codec) -> Codec:
    read = values.read
    write = values.write
    return Codec(
        GenericAlias(dict, (str, values.wire)),
        lambda entries: {key: read(value) for key, value in entries.items()},
        lambda entries: {key: write(value) for key, value in entries.items()},
    )


def _dict_type(fields: Mapping[str, Codec], required: frozenset[str]) -> Any:
    hints = {
        name: Required[codec.wire] if name in required else NotRequired[codec.wire] for name, codec in fields.items()
    }
    return TypedDict("Fields", hints)  # type: ignore[operator]


def _struct_type(fields: Mapping[str, Codec], required: frozenset[str]) -> Any:
    """Return a Struct with the fields. Unlike a TypedDict, a Struct may have fields of `msgspec.Raw`."""
    declarations: list[Any] = [
        (f"f{number}", codec.wire, _declared(name, name in required))
        for number, (name, codec) in enumerate(fields.items())
    ]
    return msgspec.defstruct("Fields", declarations, kw_only=True, gc=False)


def _declared(name: str, is_required: bool) -> Any:
    return msgspec.field(name=name) if is_required else msgspec.field(name=name, default=msgspec.UNSET)


def _field_reader(fields: Mapping[str, Codec]) -> Callable[[Any], dict[str, Any]]:
    """Return the function that converts the fields of a Struct of `_struct_type` to a dict."""
    parts = [(name, attrgetter(f"f{number}"), codec.read) for number, (name, codec) in enumerate(fields.items())]

    def read(struct: Any) -> dict[str, Any]:
        values = {}
        name = ""
        try:
            for name, get, convert in parts:
                value = get(struct)
                if value is not msgspec.UNSET:
                    values[name] = convert(value)
        except READ_ERRORS as error:
            raise ValueError(f"field {name}: {error}") from error
        return values

    return read


def _dicts(fields: Mapping[str, Codec], required: frozenset[str]) -> Codec:
    """Return the codec of a struct as a dict."""
    if all(codec.is_direct for codec in fields.values()):
        return Codec(_dict_type(fields, required), unchanged, lambda value: _checked(value, fields), fields)

    def write(value: Any) -> dict[str, Any]:
        checked = _checked(value, fields)
        return {name: _in_field(name, codec.write, checked[name]) for name, codec in fields.items()}

    return Codec(_struct_type(fields, required), _field_reader(fields), write, fields)


def _checked(value: Any, fields: Mapping[str, Codec]) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no dict")
    unknown = [name for name in value if name not in fields]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no field of the schema")
    return {name: value.get(name) for name in fields}


def _in_field(name: str, convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except (*READ_ERRORS, AttributeError) as error:
        raise ValueError(f"field {name}: {error}") from error


def _objects(shape: RecordShape, fields: Mapping[str, Codec]) -> Codec:
    """Return the codec of a class whose fields are converted."""
    required = frozenset(name for name, part in shape.fields.items() if not part.has_default)
    writes = [(name, attribute_reader(shape, part), fields[name].write) for name, part in shape.fields.items()]
    create = creator_of(shape)
    read_fields = _field_reader(fields)

    def read(struct: Any) -> Any:
        return create(read_fields(struct))

    def write(value: Any) -> dict[str, Any]:
        return {name: _in_field(name, write_field, get(value)) for name, get, write_field in writes}

    return Codec(_struct_type(fields, required), read, write, fields, create)


def attribute_reader(shape: RecordShape, part: RecordField) -> Convert:
    """Return the function that reads a field of an object."""
    attribute = part.attribute
    if shape.is_dict:
        return lambda value: value.get(attribute)
    return lambda value: getattr(value, attribute)


def creator_of(shape: RecordShape) -> Callable[[dict[str, Any]], Any]:
    """Return the function that creates an object from its fields, by their names in JSON. It checks no types."""
    create = shape.create
    renamed = {name: part.keyword for name, part in shape.fields.items() if part.keyword != name}
    if not renamed:
        return lambda values: create(**values)
    return lambda values: create(**{renamed.get(name, name): value for name, value in values.items()})
