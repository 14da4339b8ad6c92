"""`PlainValues`: converts objects of a class to the values that fastavro writes, with one conversion per class.

fastavro also writes values that do not fit: a string as true, 2 ** 40 as an int, a time without its microseconds. So
this module checks values by class, and refuses a value that would not be read back as it is.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kstreams.serdes.avro.kinds import MISSING, PLAIN, ClassShape, Kind, enum_member
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of
from kstreams.serdes.avro.mapping import (
    CLASSES,
    COLLECTIONS,
    default_value,
    is_map,
    is_raw,
    is_record,
    items_of,
    member_for,
    named,
    tag_of,
    takes_none,
)
from kstreams.serdes.avro.misfits import FAILURES, FieldError, in_field
from kstreams.serdes.avro.schema import AvroSchema, SchemaNode
from kstreams.serdes.avro.schema_parts import holds_itself

Change: TypeAlias = Callable[[Any], Any]


class ByClass(dict[type, Change | None]):
    """The conversions by class, each chosen for the first value of its class. None: values are written unchanged.

    Parameters
    ----------
    choose : callable
        `class -> conversion`; raises FieldError for a class that does not fit.
    exact : iterable of type
        The classes that fit exactly: a branch of a union with such a class is preferred.
    """

    def __init__(self, choose: Callable[[type], Change | None], exact: Iterable[type] = ()) -> None:
        super().__init__()
        self._choose = choose
        self.exact = frozenset(exact)

    def __missing__(self, cls: type) -> Change | None:
        change = self[cls] = self._choose(cls)
        return change

    def of(self, value: Any) -> Any:
        """Convert a value. Raises FieldError if it does not fit."""
        change = self[type(value)]
        return value if change is None else change(value)


class PlainValues:
    """The conversions of the parts of a schema.

    Parameters
    ----------
    schema : AvroSchema
    careful : bool
        True to check also numbers and strings that fastavro itself refuses, so that errors name the field.
    """

    def __init__(self, schema: AvroSchema, *, careful: bool = False) -> None:
        self._schema = schema
        self._careful = careful
        self._recursive: dict[tuple[int, str], ByClass] = {}
        self.is_uncertain = False
        """True if a value must be read back to know if it fits, since msgspec checks more than classes."""

    def of(self, part: SchemaNode, kind: Kind) -> ByClass:
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
            raise FieldError(f"{kind} cannot be written as {named(node)}")
        return _OF_COMPLEX.get(node["type"], PlainValues._leaf)(self, node, member)

    # unions

    def _union(self, nodes: list[SchemaNode], kind: Kind) -> ByClass:
        branches = [
            (tag_of(node), self.of(node, kind))
            for node in nodes
            if member_for(kind, node) is not None and (node["type"] != "null" or takes_none(kind))
        ]
        if not branches:
            raise FieldError(f"{kind} fits no branch of the union")
        records = [node["name"] for node in nodes if is_record(node)]
        tagged = {tag: table for tag, table in branches if tag in records and len(records) > 1}
        return ByClass(lambda cls: _choice(branches, tagged, cls))

    # leaves

    def _leaf(self, node: SchemaNode, kind: Kind) -> ByClass:
        logical = logical_of(node)
        if logical is None or is_raw(kind, logical):
            changes = _LEAVES[node["type"]](node)
            if self._careful and node["type"] in _CAREFUL:
                changes = dict.fromkeys(changes, _CAREFUL[node["type"]])
            exact = {CLASSES[node["type"]]} if node["type"] != "float" else ()
            return self._certain(node, kind, None, ByClass(_by_base(named(node), changes), exact))
        classes = (AvroDuration, dt.timedelta) if logical.cls is AvroDuration else (logical.cls,)
        table = ByClass(_by_base(named(node), dict.fromkeys(classes, logical.write)), classes)
        return self._certain(node, kind, logical, table)

    def _certain(self, node: SchemaNode, kind: Kind, logical: Logical | None, table: ByClass) -> ByClass:
        """Return the conversions of a leaf if its kind matches the schema; otherwise convert with msgspec first."""
        cls = logical.cls if logical else CLASSES[node["type"]]
        if not kind.is_limited and (kind.is_plain or kind.base is cls or (kind.base, cls) in _CLOSE):
            return table
        self.is_uncertain = True
        if kind.base is Literal or getattr(kind.base, "__module__", "") in _KNOWN_MODULES:
            return table
        return _by_msgspec(table)

    def _enum(self, node: SchemaNode, kind: Kind) -> ByClass:
        if not kind.is_enum:
            table = ByClass(_by_base(named(node), {str: _symbol(node)}), [str])
            return self._certain(node, kind, None, table)
        symbols = {enum_member(kind.base, symbol): symbol for symbol in node["symbols"]}
        return _exactly(kind.base, _member(symbols, node))

    # collections

    def _array(self, node: SchemaNode, kind: Kind) -> ByClass:
        items = self.of(node["items"], items_of(kind))
        cls = kind.base if kind.base in COLLECTIONS else list
        return self._collection(kind, cls, lambda values: [items.of(value) for value in values])

    def _map(self, node: SchemaNode, kind: Kind) -> ByClass:
        items = self.of(node["values"], kind.arguments[1] if is_map(kind) else PLAIN)
        texts = self.of("string", PLAIN)

        def change(values: dict[str, Any]) -> dict[str, Any]:
            return {texts.of(key): items.of(value) for key, value in values.items()}

        return self._collection(kind, dict, change, is_certain=is_map(kind))

    def _collection(self, kind: Kind, cls: type, change: Change, *, is_certain: bool = True) -> ByClass:
        table = _exactly(cls, change)
        if kind.is_plain or (is_certain and kind.base is cls and not kind.is_limited):
            return table
        self.is_uncertain = True
        return _by_msgspec(table)

    # records

    def _record(self, node: object, kind: Kind) -> ByClass:
        if not holds_itself(self._schema, node):
            return self._fields(node, kind)
        key = id(node), repr(kind.hint)
        if key not in self._recursive:
            cls = kind.shape.cls if kind.shape and not kind.shape.is_dict else dict
            self._recursive[key] = ByClass(lambda cls: converters[cls], [cls])
            converters = self._fields(node, kind)
        return self._recursive[key]

    def _fields(self, node: SchemaNode, kind: Kind) -> ByClass:
        shape = kind.shape
        if shape is None and not kind.is_plain:
            self.is_uncertain = True
            table = self._of_dict(node, None)
            return _by_msgspec(table)
        return self._of_dict(node, shape) if shape is None or shape.is_dict else self._of_object(node, shape)

    def _field(self, field: SchemaNode, shape: ClassShape | None) -> ByClass:
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

    def _of_object(self, node: SchemaNode, shape: ClassShape) -> ByClass:
        present = [field for field in node["fields"] if field["name"] in shape.fields]
        defaults = {field["name"]: self._default(field) for field in node["fields"] if field not in present}
        fields = [(field["name"], self._field(field, shape)) for field in present]
        check_others = _others_hold_defaults(node, shape)
        parts_of = _attributes([shape.fields[name].attribute for name, _ in fields])

        def change(value: object) -> dict[str, Any]:
            check_others(value)
            datum = dict(defaults)
            name = ""
            try:
                for (name, table), part in zip(fields, parts_of(value), strict=True):
                    convert = table[type(part)]
                    datum[name] = part if convert is None else convert(part)
            except FAILURES as error:
                raise in_field(name, error) from error.__cause__
            return datum

        return _exactly(shape.cls, change)

    def _of_dict(self, node: SchemaNode, shape: ClassShape | None) -> ByClass:
        fields = [(field["name"], self._field(field, shape)) for field in node["fields"]]
        names = frozenset(name for name, _ in fields)
        defaults = {
            field["name"]: default_value(self._schema, field["type"], field["default"])
            for field in node["fields"]
            if "default" in field
        }

        def change(value: dict[str, Any]) -> dict[str, Any]:
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

        return ByClass(_by_base("dict", {dict: change}), [dict])


_OF_COMPLEX: Final[dict[str, Callable[[PlainValues, SchemaNode, Kind], ByClass]]] = {
    "enum": PlainValues._enum,
    "array": PlainValues._array,
    "map": PlainValues._map,
    "record": PlainValues._record,
    "error": PlainValues._record,
}


# unions


def _choice(branches: list[tuple[str, ByClass]], tagged: dict[str, ByClass], cls: type) -> Change | None:
    """Return the conversion of a class in a union: that of the first branch that takes the class, with its tag."""
    if cls is type(None) and any(tag == "null" for tag, _ in branches):
        return None
    exact = [(tag, table) for tag, table in branches if cls in table.exact]
    fitting = [(tag, table[cls]) for tag, table in exact or branches if _takes(table, cls)]
    if not fitting and cls is tuple and tagged:
        return _by_tag(tagged)
    if not fitting:
        raise FieldError(f"a {cls.__name__} is no value of its union")
    return _in_branch(*fitting[0]) if len(fitting) == 1 else _in_first(fitting)


def _takes(table: ByClass, cls: type) -> bool:
    try:
        table[cls]
    except FieldError:
        return False
    return True


def _in_branch(tag: str, change: Change | None) -> Change:
    if change is None:
        return lambda value: (tag, value)
    return lambda value: (tag, change(value))


def _in_first(fitting: list[tuple[str, Change | None]]) -> Change:
    """Return the conversion that tries branches in order, if the class does not decide the branch."""

    def change(value: object) -> Any:
        for tag, of_branch in fitting:
            try:
                return tag, value if of_branch is None else of_branch(value)
            except FAILURES:
                continue
        raise FieldError(f"{value!r} is no value of its union")

    return change


def _by_tag(tagged: dict[str, ByClass]) -> Change:
    """Return the conversion of (name, dict) in a union of records; the name may lack the namespace."""
    tables = {name.rpartition(".")[2]: (name, table) for name, table in tagged.items()}
    tables |= {name: (name, table) for name, table in tagged.items()}

    def change(value: Any) -> Any:
        if len(value) != 2 or value[0] not in tables:
            raise FieldError(f"{value!r} is no value of its union: write (name of the record, dict)")
        name, table = tables[value[0]]
        return name, table.of(value[1])

    return change


# classes


def _exactly(cls: type, change: Change) -> ByClass:
    """Return the conversions of one class without its subclasses, which would not be read back as such."""

    def choose(other: type) -> Change:
        if other is not cls:
            raise FieldError(f"a {other.__name__} is no {cls.__name__}")
        return change

    return ByClass(choose, [cls])


def _by_base(name: str, changes: dict[type, Change | None]) -> Callable[[type], Change | None]:
    """Return the function that chooses the conversion of a class, or of its nearest base class."""

    def choose(cls: type) -> Change | None:
        base = next((base for base in cls.__mro__ if base in changes), None)
        if base is None:
            raise FieldError(f"a {cls.__name__} is no {name}")
        change = changes[base]
        return _SIMPLE[base] if change is None and base is not cls else change

    return choose


def _by_msgspec(table: ByClass) -> ByClass:
    """Return conversions that apply msgspec first; reading back tells if the result fits."""

    def change(value: object) -> Any:
        return table.of(msgspec.to_builtins(value, builtin_types=_BUILTIN, str_keys=True))

    return ByClass(lambda cls: change)


_SIMPLE: Final[dict[type, Change]] = {int: int, float: float, str: str.__str__, bytes: bytes}
"""The conversions of a subclass to the simple class itself."""

_BUILTIN: Final = (dt.datetime, dt.date, dt.time, dt.timedelta, bytes, bytearray, memoryview)
_KNOWN_MODULES: Final = ("decimal", "uuid", "datetime", AvroDuration.__module__)
_CLOSE: Final = ((int, float), (dt.timedelta, AvroDuration))
"""Kinds whose values may be read as values of another class."""


# leaves


def _int_of(bits: int) -> Change:
    low = -(1 << bits - 1)
    high = 1 << bits - 1

    def check(value: int) -> int:
        if not low <= value < high:
            raise FieldError(f"{value} has more than {bits} bits")
        return int(value)

    return check


def _exact_float(value: int) -> float:
    number = float(value)
    if number != value:
        raise FieldError(f"{value} is no float")
    return number


def _text(value: str) -> str:
    value.encode()
    return str.__str__(value)


def _of_size(size: int) -> Change:
    def check(value: Any) -> bytes:
        if len(value) != size:
            raise FieldError(f"{len(value)} bytes are not {size}")
        return bytes(value)

    return check


def _symbol(node: SchemaNode) -> Change:
    symbols = frozenset(node["symbols"])

    def check(value: str) -> str:
        if value not in symbols:
            raise FieldError(f"{value!r} is no symbol of {node['name']}")
        return str.__str__(value)

    return check


def _member(symbols: dict[Any, str], node: SchemaNode) -> Change:
    def symbol_of(member: Any) -> str:
        if member not in symbols:
            raise FieldError(f"{member!r} is no symbol of {node['name']}")
        return symbols[member]

    return symbol_of


_LEAVES: Final[dict[str, Callable[[SchemaNode], dict[type, Change | None]]]] = {
    "null": lambda node: {type(None): None},
    "boolean": lambda node: {bool: None},
    "int": lambda node: {int: _int_of(32)},
    "long": lambda node: {int: None},
    "float": lambda node: {float: None, int: _exact_float},
    "double": lambda node: {float: None, int: _exact_float},
    "bytes": lambda node: {bytes: None, bytearray: bytes, memoryview: bytes},
    "fixed": lambda node: dict.fromkeys((bytes, bytearray, memoryview), _of_size(node["size"])),
    "string": lambda node: {str: None},
}
_CAREFUL: Final[dict[str, Change]] = {"long": _int_of(64), "string": _text}


# fields


def _attributes(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that reads these attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _others_hold_defaults(node: SchemaNode, shape: ClassShape) -> Callable[[Any], None]:
    """Return the check of fields that the schema lacks: values other than their defaults would be lost."""
    names = {field["name"] for field in node["fields"]}
    unnamed_fields = [field for field in shape.fields.values() if field.name not in names]
    for field in unnamed_fields:
        if field.default is MISSING:
            raise FieldError(f"the schema {node['name']} has no such field, and it has no default", field.name)

    def check(value: object) -> None:
        for field in unnamed_fields:
            part = getattr(value, field.attribute)
            if part != field.default:
                raise FieldError(f"the schema has no such field, so that {part!r} would be lost", field.name)

    return check


def _require_fields(value: dict[str, Any], names: frozenset[str], defaults: dict[str, Any]) -> None:
    """Raise FieldError for fields of a dict that the schema lacks, and for missing fields without a default."""
    for name in value.keys() - names:
        raise FieldError(f"the schema has no field {name!r}")
    for name in names - value.keys() - defaults.keys():
        raise FieldError("it is missing, and has no default", name)
