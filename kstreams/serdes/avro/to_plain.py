"""`PlainValues`: the conversions of objects to the values that fastavro writes, with one conversion per class.

fastavro also writes values that do not fit: a string as true, 2 ** 40 as an int, a time without its microseconds. So
this module checks values by class, and refuses a value that would read back as another value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kstreams.serdes.avro.field_errors import FAILURES, FieldError, in_field
from kstreams.serdes.avro.kinds import MISSING, PLAIN, Kind, RecordShape, enum_member
from kstreams.serdes.avro.logical import AvroDuration, LogicalType, logical_of
from kstreams.serdes.avro.mapping import (
    CLASSES,
    COLLECTIONS,
    default_value,
    is_map,
    is_raw,
    is_record,
    items_of,
    member_for,
    schema_in_words,
    tag_of,
    takes_none,
)
from kstreams.serdes.avro.schema import AvroSchema, SchemaNode, short_name
from kstreams.serdes.avro.schema_parts import holds_itself

Convert: TypeAlias = Callable[[Any], Any]


class ConversionByClass(dict[type, Convert | None]):
    """The conversion of each class of values, chosen for the first value of the class. None leaves values unchanged.

    Parameters
    ----------
    choose : callable
        `class -> conversion`. Raises FieldError for a class that does not fit.
    exact : iterable of type
        The classes that fit exactly. In a union, the branch for which a class is exact is preferred.
    """

    def __init__(self, choose: Callable[[type], Convert | None], exact: Iterable[type] = ()) -> None:
        super().__init__()
        self._choose = choose
        self.exact = frozenset(exact)

    def __missing__(self, cls: type) -> Convert | None:
        convert = self[cls] = self._choose(cls)
        return convert

    def of(self, value: Any) -> Any:
        """Convert a value. Raises FieldError if it does not fit."""
        convert = self[type(value)]
        return value if convert is None else convert(value)


class PlainValues:
    """The conversions for the parts of a schema.

    Parameters
    ----------
    schema : AvroSchema
    careful : bool
        True to check numbers and strings that fastavro itself refuses too, so that errors name the field.
    """

    def __init__(self, schema: AvroSchema, *, careful: bool = False) -> None:
        self._schema = schema
        self._careful = careful
        self._recursive: dict[tuple[int, str], ConversionByClass] = {}
        self.needs_reading_back = False
        """True if only reading a value back tells if it fits, since msgspec checks more than classes."""

    def of(self, part: SchemaNode, kind: Kind) -> ConversionByClass:
        """Return the conversions of values of a kind.

        Raises
        ------
        FieldError
            If no value of the kind fits the part.
        """
        node = self._schema.node(part)
        if isinstance(node, list):
            return self._union([self._schema.node(branch) for branch in node], kind)
        member = member_for(kind, node)
        if member is None:
            raise FieldError(f"{kind} cannot be written as {schema_in_words(node)}")
        return _COMPLEX_CONVERSIONS.get(node["type"], PlainValues._leaf)(self, node, member)

    def _union(self, nodes: list[SchemaNode], kind: Kind) -> ConversionByClass:
        branches = [
            (tag_of(node), self.of(node, kind))
            for node in nodes
            if member_for(kind, node) is not None and (node["type"] != "null" or takes_none(kind))
        ]
        if not branches:
            raise FieldError(f"{kind} fits no branch of the union")
        records = [node["name"] for node in nodes if is_record(node)]
        tagged = {tag: table for tag, table in branches if tag in records and len(records) > 1}
        return ConversionByClass(lambda cls: _union_conversion(branches, tagged, cls))

    def _leaf(self, node: SchemaNode, kind: Kind) -> ConversionByClass:
        logical = logical_of(node)
        if logical is None or is_raw(kind, logical):
            conversions = _LEAVES[node["type"]](node)
            if self._careful and node["type"] in _CAREFUL_CHECKS:
                conversions = dict.fromkeys(conversions, _CAREFUL_CHECKS[node["type"]])
            exact = {CLASSES[node["type"]]} if node["type"] != "float" else ()
            return self._checked_leaf(
                node, kind, None, ConversionByClass(_by_base(schema_in_words(node), conversions), exact)
            )
        classes = (AvroDuration, dt.timedelta) if logical.cls is AvroDuration else (logical.cls,)
        table = ConversionByClass(_by_base(schema_in_words(node), dict.fromkeys(classes, logical.write)), classes)
        return self._checked_leaf(node, kind, logical, table)

    def _checked_leaf(
        self, node: SchemaNode, kind: Kind, logical: LogicalType | None, table: ConversionByClass
    ) -> ConversionByClass:
        """Return the conversions of a leaf if its kind matches the schema. Otherwise msgspec converts values first."""
        cls = logical.cls if logical else CLASSES[node["type"]]
        if not kind.is_limited and (kind.is_plain or kind.base is cls or (kind.base, cls) in _READ_AS_OTHER_CLASS):
            return table
        self.needs_reading_back = True
        if kind.base is Literal or getattr(kind.base, "__module__", "") in _KNOWN_MODULES:
            return table
        return _by_msgspec(table)

    def _enum(self, node: SchemaNode, kind: Kind) -> ConversionByClass:
        if not kind.is_enum:
            table = ConversionByClass(_by_base(schema_in_words(node), {str: _symbol_check(node)}), [str])
            return self._checked_leaf(node, kind, None, table)
        symbols = {enum_member(kind.base, symbol): symbol for symbol in node["symbols"]}
        return _exactly(kind.base, _member_symbol(symbols, node))

    def _array(self, node: SchemaNode, kind: Kind) -> ConversionByClass:
        item_conversions = self.of(node["items"], items_of(kind))
        cls = kind.base if kind.base in COLLECTIONS else list
        return self._collection(kind, cls, lambda values: [item_conversions.of(value) for value in values])

    def _map(self, node: SchemaNode, kind: Kind) -> ConversionByClass:
        value_conversions = self.of(node["values"], kind.arguments[1] if is_map(kind) else PLAIN)
        key_conversions = self.of("string", PLAIN)

        def convert(values: dict[str, Any]) -> dict[str, Any]:
            return {key_conversions.of(key): value_conversions.of(value) for key, value in values.items()}

        return self._collection(kind, dict, convert, is_declared=is_map(kind))

    def _collection(self, kind: Kind, cls: type, convert: Convert, *, is_declared: bool = True) -> ConversionByClass:
        table = _exactly(cls, convert)
        if kind.is_plain or (is_declared and kind.base is cls and not kind.is_limited):
            return table
        self.needs_reading_back = True
        return _by_msgspec(table)

    def _record(self, node: object, kind: Kind) -> ConversionByClass:
        if not holds_itself(self._schema, node):
            return self._fields(node, kind)
        key = id(node), repr(kind.hint)
        if key not in self._recursive:
            cls = kind.shape.cls if kind.shape and not kind.shape.is_dict else dict
            self._recursive[key] = ConversionByClass(lambda cls: conversions[cls], [cls])
            conversions = self._fields(node, kind)
        return self._recursive[key]

    def _fields(self, node: SchemaNode, kind: Kind) -> ConversionByClass:
        shape = kind.shape
        if shape is None and not kind.is_plain:
            self.needs_reading_back = True
            table = self._of_dict(node, None)
            return _by_msgspec(table)
        return self._of_dict(node, shape) if shape is None or shape.is_dict else self._of_object(node, shape)

    def _field(self, field: SchemaNode, shape: RecordShape | None) -> ConversionByClass:
        name = field["name"]
        try:
            return self.of(field["type"], shape.fields[name].kind if shape and name in shape.fields else PLAIN)
        except FieldError as error:
            raise in_field(name, error) from None

    def _default(self, field: SchemaNode) -> Any:
        """Return the default of a field that the class lacks."""
        if "default" not in field:
            raise FieldError("it is in the schema and not in the class, and has no default", field["name"])
        return default_value(self._schema, field["type"], field["default"])

    def _of_object(self, node: SchemaNode, shape: RecordShape) -> ConversionByClass:
        class_fields = [field for field in node["fields"] if field["name"] in shape.fields]
        defaults = {field["name"]: self._default(field) for field in node["fields"] if field not in class_fields}
        fields = [(field["name"], self._field(field, shape)) for field in class_fields]
        check_unwritten_fields = _unwritten_fields_check(node, shape)
        parts_of = _attribute_getter([shape.fields[name].attribute for name, _ in fields])

        def convert_object(value: object) -> dict[str, Any]:
            check_unwritten_fields(value)
            datum = dict(defaults)
            name = ""
            try:
                for (name, table), part in zip(fields, parts_of(value), strict=True):
                    convert = table[type(part)]
                    datum[name] = part if convert is None else convert(part)
            except FAILURES as error:
                raise in_field(name, error) from error.__cause__
            return datum

        return _exactly(shape.cls, convert_object)

    def _of_dict(self, node: SchemaNode, shape: RecordShape | None) -> ConversionByClass:
        fields = [(field["name"], self._field(field, shape)) for field in node["fields"]]
        names = frozenset(name for name, _ in fields)
        defaults = {
            field["name"]: default_value(self._schema, field["type"], field["default"])
            for field in node["fields"]
            if "default" in field
        }

        def convert_dict(value: dict[str, Any]) -> dict[str, Any]:
            if value.keys() != names:
                _require_fields(value, names, defaults)
            datum = {}
            name = ""
            try:
                for name, table in fields:
                    if name in value:
                        part = value[name]
                        convert = table[type(part)]
                        datum[name] = part if convert is None else convert(part)
                    else:
                        datum[name] = defaults[name]
            except FAILURES as error:
                raise in_field(name, error) from error.__cause__
            return datum

        return ConversionByClass(_by_base("dict", {dict: convert_dict}), [dict])


_COMPLEX_CONVERSIONS: Final[dict[str, Callable[[PlainValues, SchemaNode, Kind], ConversionByClass]]] = {
    "enum": PlainValues._enum,
    "array": PlainValues._array,
    "map": PlainValues._map,
    "record": PlainValues._record,
    "error": PlainValues._record,
}


def _union_conversion(
    branches: list[tuple[str, ConversionByClass]], tagged: dict[str, ConversionByClass], cls: type
) -> Convert | None:
    """Return the conversion of a class in a union. The first branch that accepts the class converts, with its tag."""
    if cls is type(None) and any(tag == "null" for tag, _ in branches):
        return None
    exact = [(tag, table) for tag, table in branches if cls in table.exact]
    fitting = [(tag, table[cls]) for tag, table in exact or branches if _accepts(table, cls)]
    if not fitting and cls is tuple and tagged:
        return _by_tag(tagged)
    if not fitting:
        raise FieldError(f"a {cls.__name__} is no value of its union")
    if len(fitting) > 1:
        return _first_success(fitting)
    [(tag, convert)] = fitting
    return _with_tag(tag, convert)


def _accepts(table: ConversionByClass, cls: type) -> bool:
    try:
        table[cls]
    except FieldError:
        return False
    return True


def _with_tag(tag: str, convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: (tag, value)
    return lambda value: (tag, convert(value))


def _first_success(fitting: list[tuple[str, Convert | None]]) -> Convert:
    """Return the conversion that tries branches in order, for a class that fits several branches."""

    def convert(value: object) -> Any:
        for tag, convert_branch in fitting:
            try:
                return tag, value if convert_branch is None else convert_branch(value)
            except FAILURES:
                continue
        raise FieldError(f"{value!r} is no value of its union")

    return convert


def _by_tag(tagged: dict[str, ConversionByClass]) -> Convert:
    """Return the conversion of (name, dict) in a union of records. The name may lack the namespace."""
    tables = {short_name(name): (name, table) for name, table in tagged.items()}
    tables |= {name: (name, table) for name, table in tagged.items()}

    def convert(value: Any) -> Any:
        if len(value) != 2 or value[0] not in tables:
            raise FieldError(f"{value!r} is no value of its union: write (name of the record, dict)")
        name, table = tables[value[0]]
        return name, table.of(value[1])

    return convert


def _exactly(cls: type, convert: Convert) -> ConversionByClass:
    """Return the conversions that accept one class, but no subclasses, which would read back as the class itself."""

    def choose(value_class: type) -> Convert:
        if value_class is not cls:
            raise FieldError(f"a {value_class.__name__} is no {cls.__name__}")
        return convert

    return ConversionByClass(choose, [cls])


def _by_base(name: str, conversions: dict[type, Convert | None]) -> Callable[[type], Convert | None]:
    """Return the function that chooses the conversion of a class, or of its nearest base class."""

    def choose(cls: type) -> Convert | None:
        base = next((base for base in cls.__mro__ if base in conversions), None)
        if base is None:
            raise FieldError(f"a {cls.__name__} is no {name}")
        convert = conversions[base]
        return _TO_BASE_CLASS[base] if convert is None and base is not cls else convert

    return choose


def _by_msgspec(table: ConversionByClass) -> ConversionByClass:
    """Return conversions that apply msgspec first. Reading back tells if the result fits."""

    def convert(value: object) -> Any:
        return table.of(msgspec.to_builtins(value, builtin_types=_BUILTIN_CLASSES, str_keys=True))

    return ConversionByClass(lambda cls: convert)


_TO_BASE_CLASS: Final[dict[type, Convert]] = {int: int, float: float, str: str.__str__, bytes: bytes}
"""The conversions of a subclass to the base class itself."""

_BUILTIN_CLASSES: Final = (dt.datetime, dt.date, dt.time, dt.timedelta, bytes, bytearray, memoryview)
_KNOWN_MODULES: Final = ("decimal", "uuid", "datetime", AvroDuration.__module__)
_READ_AS_OTHER_CLASS: Final = ((int, float), (dt.timedelta, AvroDuration))
"""Pairs of a kind and the class of another kind whose values it can be read from."""


def _int_check(bits: int) -> Convert:
    low = -(1 << bits - 1)
    high = 1 << bits - 1

    def check(value: int) -> int:
        if not low <= value < high:
            raise FieldError(f"{value} has more than {bits} bits")
        return int(value)

    return check


def _to_exact_float(value: int) -> float:
    number = float(value)
    if number != value:
        raise FieldError(f"{value} is no float")
    return number


def _check_text(value: str) -> str:
    value.encode()
    return str.__str__(value)


def _size_check(size: int) -> Convert:
    def check(value: Any) -> bytes:
        if len(value) != size:
            raise FieldError(f"the value has {len(value)} bytes, and the schema has {size}")
        return bytes(value)

    return check


def _symbol_check(node: SchemaNode) -> Convert:
    symbols = frozenset(node["symbols"])

    def check(value: str) -> str:
        if value not in symbols:
            raise FieldError(f"{value!r} is no symbol of {node['name']}")
        return str.__str__(value)

    return check


def _member_symbol(symbols: dict[Any, str], node: SchemaNode) -> Convert:
    def symbol_of(member: Any) -> str:
        if member not in symbols:
            raise FieldError(f"{member!r} is no symbol of {node['name']}")
        return symbols[member]

    return symbol_of


_LEAVES: Final[dict[str, Callable[[SchemaNode], dict[type, Convert | None]]]] = {
    "null": lambda node: {type(None): None},
    "boolean": lambda node: {bool: None},
    "int": lambda node: {int: _int_check(32)},
    "long": lambda node: {int: None},
    "float": lambda node: {float: None, int: _to_exact_float},
    "double": lambda node: {float: None, int: _to_exact_float},
    "bytes": lambda node: {bytes: None, bytearray: bytes, memoryview: bytes},
    "fixed": lambda node: dict.fromkeys((bytes, bytearray, memoryview), _size_check(node["size"])),
    "string": lambda node: {str: None},
}
_CAREFUL_CHECKS: Final[dict[str, Convert]] = {"long": _int_check(64), "string": _check_text}


def _attribute_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that reads these attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _unwritten_fields_check(node: SchemaNode, shape: RecordShape) -> Callable[[Any], None]:
    """Return the check of the fields that the schema lacks. A value other than the default would be lost."""
    names = {field["name"] for field in node["fields"]}
    unwritten_fields = [field for field in shape.fields.values() if field.name not in names]
    for field in unwritten_fields:
        if field.default is MISSING:
            raise FieldError(f"the schema {node['name']} has no such field, and the field has no default", field.name)

    def check(value: object) -> None:
        for field in unwritten_fields:
            part = getattr(value, field.attribute)
            if part != field.default:
                raise FieldError(f"the schema has no such field, so {part!r} would be lost", field.name)

    return check


def _require_fields(value: dict[str, Any], names: frozenset[str], defaults: dict[str, Any]) -> None:
    """Raise FieldError for fields of a dict that the schema lacks, and for missing fields without a default."""
    for name in value.keys() - names:
        raise FieldError(f"the schema has no field {name!r}")
    for name in names - value.keys() - defaults.keys():
        raise FieldError("it is missing, and has no default", name)
