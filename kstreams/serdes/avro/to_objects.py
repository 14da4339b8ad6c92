"""`Conversions`: the functions that convert the dicts and lists of fastavro to objects of a class."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Final, NoReturn, TypeAlias

from fastavro.read import LOGICAL_READERS

from kstreams.kernel.decoders import convert
from kstreams.serdes.avro.decoding import ABSENT
from kstreams.serdes.avro.field_errors import FAILURES, FieldError, UnresolvedError, in_field
from kstreams.serdes.avro.kinds import MISSING, PLAIN, Kind, RecordShape, enum_member
from kstreams.serdes.avro.logical import AvroDuration, LogicalType, logical_of, to_timedelta
from kstreams.serdes.avro.mapping import (
    CLASSES,
    COLLECTIONS,
    default_value,
    has_several_records,
    is_direct,
    is_map,
    is_raw,
    is_record,
    items_of,
    member_for,
    schema_in_words,
    tag_of,
    takes_none,
)
from kstreams.serdes.avro.schema import NAMED, AvroSchema, SchemaNode, short_name
from kstreams.serdes.avro.schema_parts import all_parts, holds_itself

Convert: TypeAlias = Callable[[Any], Any]

_OMITTED: Final = object()
"""The default of a missing field for which the class itself has a default."""


def needs_tags(schema: AvroSchema) -> bool:
    """True if a union has branches with values of one class, so that fastavro must add the names of the branches."""
    return any(_is_ambiguous(schema, node) for node in all_parts(schema) if isinstance(node, list))


def _is_ambiguous(schema: AvroSchema, branches: list[SchemaNode]) -> bool:
    nodes = [schema.node(branch) for branch in branches]
    classes = [_decoded_class(node) for node in nodes]
    return any(classes.count(cls) > 1 and node["type"] in NAMED for cls, node in zip(classes, nodes, strict=True))


def _decoded_class(node: SchemaNode) -> type:
    """Return the class of values as fastavro reads them."""
    logical = logical_of(node)
    return logical.cls if logical is not None and _is_converted_by_fastavro(node) else CLASSES[node["type"]]


def _is_converted_by_fastavro(node: SchemaNode) -> bool:
    """True if fastavro itself converts values of a logical type."""
    return f"{node['type']}-{node.get('logicalType')}" in LOGICAL_READERS


class Conversions:
    """The conversions for the parts of a reader's schema. None instead of a conversion leaves values unchanged.

    Parameters
    ----------
    schema : AvroSchema
    written : AvroSchema or None
        The writer's schema if it differs from the reader's. Fields may then be missing, and values may have the form of
        another type.
    tagged : bool
        True if values of named types in unions are tagged with the name.
    """

    def __init__(self, schema: AvroSchema, written: AvroSchema | None, *, tagged: bool) -> None:
        self._schema = schema
        self._tagged = tagged
        self._resolves = written is not None
        parts = [node for node in all_parts(written) if isinstance(node, dict)] if written else []
        self._records = [node for node in parts if is_record(node)]
        self._has_logical_types = any(map(logical_of, parts))
        self._recursive: dict[tuple[int, str], Convert | None] = {}

    def of(self, part: SchemaNode, kind: Kind) -> Convert | None:
        """Return the conversion to values of a kind.

        Raises
        ------
        UnresolvedError
            If values of this part do not fit the kind.
        """
        node = self._schema.node(part)
        if isinstance(node, list):
            return self._union(node, kind)
        convert = self._of_member(node, kind)
        if self._tagged and self._resolves and node["type"] in NAMED:
            return lambda value: _applied(convert, value[1] if type(value) is tuple else value)
        return convert

    def _of_member(self, node: SchemaNode, kind: Kind) -> Convert | None:
        member = member_for(kind, node)
        if member is None or (node["type"] == "null" and not takes_none(kind)):
            raise UnresolvedError(f"{schema_in_words(node)} cannot be read as {kind}")
        return _COMPLEX_CONVERSIONS.get(node["type"], Conversions._leaf)(self, node, member)

    def _leaf(self, node: object, kind: Kind) -> Convert | None:
        logical = logical_of(node)
        if logical is not None and is_raw(kind, logical):
            return _to_raw(logical) if _is_converted_by_fastavro(node) else None
        read = self._without_logical(node) if logical is None else self._logical(node, logical)
        return _chained(read, _to_kind(node, kind, logical))

    def _without_logical(self, node: SchemaNode) -> Convert | None:
        cls = CLASSES[node["type"]]
        check = _class_check(cls) if self._has_logical_types and cls in (int, str, bytes) else None
        return _chained(check, _check_32_bits if node["type"] == "int" else None)

    def _logical(self, node: object, logical: LogicalType) -> Convert | None:
        """Return the conversion of a logical type. fastavro itself converts some types by the writer's schema."""
        if logical.cls is Decimal:
            return _decimal_check(node, logical)
        if _is_converted_by_fastavro(node) and not self._resolves:
            return None
        return lambda value: logical.read(value) if type(value) is logical.raw else value

    def _enum(self, node: SchemaNode, kind: Kind) -> Convert | None:
        if not kind.is_enum:
            return _to_kind(node, kind, None)
        members = {symbol: enum_member(kind.base, symbol) for symbol in node["symbols"]}
        return _EnumMembers(kind, {symbol: member for symbol, member in members.items() if member is not MISSING})

    def _array(self, node: SchemaNode, kind: Kind) -> Convert | None:
        convert_item = self.of(node["items"], items_of(kind))
        convert_items = None if convert_item is None else lambda values: list(map(convert_item, values))
        if kind.base in COLLECTIONS and not kind.is_limited:
            return convert_items if kind.base is list else _chained(convert_items, kind.base)
        return _chained(convert_items, _to_kind(node, kind, None))

    def _map(self, node: SchemaNode, kind: Kind) -> Convert | None:
        convert_value = self.of(node["values"], kind.arguments[1] if is_map(kind) else PLAIN)
        convert_values = (
            None
            if convert_value is None
            else lambda values: {key: convert_value(value) for key, value in values.items()}
        )
        if is_map(kind) and not kind.is_limited:
            return convert_values
        return _chained(convert_values, _to_kind(node, kind, None))

    def _union(self, branches: list[SchemaNode], kind: Kind) -> Convert | None:
        nodes = [self._schema.node(branch) for branch in branches]
        converters = [self._branch(node, nodes, kind) for node in nodes]
        if not (self._resolves or self._tagged or any(converters)):
            return None
        converter_of_tag = {tag_of(node): converter for node, converter in zip(nodes, converters, strict=True)}
        converter_of_class = self._converters_by_class(nodes, converters)

        def convert_by_branch(value: object) -> Any:
            if type(value) is tuple:
                tag, value = value
                converter = converter_of_tag[tag]
            else:
                converter = converter_of_class[type(value)]
            return value if converter is None else converter(value)

        return convert_by_branch

    def _branch(self, node: SchemaNode, nodes: list[SchemaNode], kind: Kind) -> Convert | None:
        """Return the conversion of a branch. If the branch does not fit, its conversion raises for every value."""
        try:
            convert = self._of_member(node, kind)
        except UnresolvedError as error:
            return partial(_refuse, str(error))
        member = member_for(kind, node)
        if is_record(node) and has_several_records(nodes) and member is not None and member.is_plain:
            return lambda value: (node["name"], _applied(convert, value))
        return convert

    def _converters_by_class(
        self, nodes: list[SchemaNode], converters: list[Convert | None]
    ) -> dict[type, Convert | None]:
        """Return the conversions of values without a tag, by class. The fields of a record determine its branch."""
        converter_of_class: dict[type, Convert | None] = {}
        for node, converter in zip(nodes, converters, strict=True):
            for cls in (_decoded_class(node), CLASSES[node["type"]]):
                converter_of_class.setdefault(cls, converter)
        converter_of_fields = {
            frozenset(field["name"] for field in node["fields"]): converter
            for node, converter in reversed(list(zip(nodes, converters, strict=True)))
            if is_record(node)
        }
        if len(converter_of_fields) > 1:
            converter_of_class[dict] = lambda value: _applied(converter_of_fields[frozenset(value)], value)
        return converter_of_class

    def _record(self, node: object, kind: Kind) -> Convert | None:
        if not holds_itself(self._schema, node):
            return self._fields(node, kind)
        key = id(node), repr(kind.hint)
        if key not in self._recursive:
            self._recursive[key] = None
            self._recursive[key] = self._fields(node, kind)
        return lambda value: _applied(self._recursive[key], value)

    def _fields(self, node: SchemaNode, kind: Kind) -> Convert | None:
        shape = kind.shape
        _require_fields(node, shape)
        fields = [field for field in node["fields"] if shape is None or field["name"] in shape.fields]
        converters = {field["name"]: self._field(field, shape) for field in fields}
        written_records = [record for record in self._records if _may_be_written_as(node, record)]
        steps = [
            (name, converters[name], self._default(node, field, shape))
            for name, field in zip(converters, fields, strict=True)
            if converters[name] is not None or not all(_has_field(record, field) for record in written_records)
        ]
        convert_fields = _field_conversion(steps) if steps else None
        if shape is None:
            return _chained(convert_fields, _to_kind(node, kind, None))
        return _chained(convert_fields, _object_factory(node, shape, list(converters)))

    def _field(self, field: SchemaNode, shape: RecordShape | None) -> Convert | None:
        try:
            return self.of(field["type"], shape.fields[field["name"]].kind if shape else PLAIN)
        except UnresolvedError as error:
            raise in_field(field["name"], error) from None

    def _default(self, node: SchemaNode, field: SchemaNode, shape: RecordShape | None) -> Callable[[], Any]:
        """Return the default of a field that the writer lacks, as a function. The default of the class has priority."""
        name = field["name"]
        if shape is not None and shape.fields[name].has_default:
            return lambda: _OMITTED
        if "default" not in field:
            return partial(_refuse, f"{name} is not in {node['name']} as it was written, and has no default")
        value = default_value(self._schema, field["type"], field["default"])
        return lambda: deepcopy(value)


class _EnumMembers:
    """The conversion of symbols to the members of an enum."""

    def __init__(self, kind: Kind, members: dict[str, Any]) -> None:
        self._kind = kind
        self._members = members

    def __call__(self, symbol: str) -> Any:
        try:
            return self._members[symbol]
        except KeyError:
            raise UnresolvedError(f"{symbol} is no member of {self._kind}") from None


_COMPLEX_CONVERSIONS: dict[str, Callable[[Conversions, SchemaNode, Kind], Convert | None]] = {
    "enum": Conversions._enum,
    "array": Conversions._array,
    "map": Conversions._map,
    "record": Conversions._record,
    "error": Conversions._record,
}


def _applied(conversion: Convert | None, value: object) -> Any:
    return value if conversion is None else conversion(value)


def _chained(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _refuse(reason: str, *value: object) -> NoReturn:
    raise UnresolvedError(reason)


def _class_check(cls: type) -> Convert:
    """Return a check of the class of values.

    fastavro converts values by the writer's logical type, even if the reader's schema has no logical type.
    """

    def check(value: object) -> Any:
        if type(value) is not cls:
            raise UnresolvedError(f"a {type(value).__name__} was written, and a {cls.__name__} is read")
        return value

    return check


def _check_32_bits(value: int) -> int:
    """Check an int. fastavro reads an int like a long, so damaged bytes may give a number that is too large."""
    if not -0x80000000 <= value < 0x80000000:
        raise FieldError(f"{value} has more than 32 bits")
    return value


def _decimal_check(node: SchemaNode, logical: LogicalType) -> Convert:
    """Return a check of decimals. fastavro rounds decimals with too many digits, which changes the exponent."""
    exponent = -node.get("scale", 0)

    def check(value: Any) -> Any:
        if type(value) is not Decimal:
            return logical.read(value)
        if value.as_tuple().exponent != exponent:
            raise UnresolvedError(
                f"{value} does not fit {node['precision']} digits, {-exponent} of them after the decimal point"
            )
        return value

    return check


def _to_raw(logical: LogicalType) -> Convert:
    return lambda value: logical.write(value) if type(value) is logical.cls else value


def _to_kind(node: SchemaNode, kind: Kind, logical: LogicalType | None) -> Convert | None:
    """Return the conversion of a leaf or a collection to a kind."""
    if is_direct(kind, node, logical):
        return None
    cls = logical.cls if logical else CLASSES[node["type"]]
    if kind.base is float and cls is int and not kind.is_limited:
        return float
    if cls is AvroDuration and not kind.is_limited:
        return to_timedelta
    return lambda value: convert(value, kind.hint)


def _may_be_written_as(node: SchemaNode, written: SchemaNode) -> bool:
    """True if a record of the writer's schema may be read as a record of the reader's schema."""
    aliases = node.get("aliases", ())
    written_name = short_name(written["name"])
    return written_name == short_name(node["name"]) or written_name in aliases or written["name"] in aliases


def _has_field(written: SchemaNode, field: SchemaNode) -> bool:
    """True if a record of the writer's schema has a field of the reader's schema."""
    names = (field["name"], *field.get("aliases", ()))
    return any(written_field["name"] in names for written_field in written["fields"])


def _require_fields(node: SchemaNode, shape: RecordShape | None) -> None:
    """Raise UnresolvedError if the schema lacks a field of the class that has no default."""
    if shape is None:
        return
    names = {field["name"] for field in node["fields"]}
    for name, field in shape.fields.items():
        if name not in names and not field.has_default:
            raise UnresolvedError(f"it is in {shape.cls.__name__} and not in the schema, and has no default", name)


def _field_conversion(steps: list[tuple[str, Convert | None, Callable[[], Any]]]) -> Convert:
    """Return the function that converts the fields of a dict in place, and adds the defaults of missing fields."""

    def convert_fields(datum: dict[str, object]) -> dict[str, Any]:
        name = ""
        try:
            for name, convert_field, default in steps:
                value = datum[name]
                if value is ABSENT:
                    value = default()
                    if value is _OMITTED:
                        del datum[name]
                        continue
                datum[name] = value if convert_field is None else convert_field(value)
        except FAILURES as error:
            raise in_field(name, error) from error.__cause__
        return datum

    return convert_fields


def _object_factory(node: SchemaNode, shape: RecordShape, names: list[str]) -> Convert | None:
    """Return the function that creates an object from a dict with these fields. Fields with defaults may be missing."""
    keywords = {name: shape.fields[name].keyword for name in names}

    def by_keywords(datum: dict[str, object]) -> Any:
        return shape.create(**{keyword: datum[name] for name, keyword in keywords.items() if name in datum})

    def without_init(datum: dict[str, Any]) -> Any:
        if len(datum) != len(names):
            return by_keywords(datum)
        instance: Any = object.__new__(shape.cls)
        instance.__dict__.update(datum)
        return instance

    if shape.can_skip_init and len(node["fields"]) == len(names) == len(shape.fields):
        return without_init
    if shape.is_dict:
        return None if len(names) == len(node["fields"]) else by_keywords
    ordered_names = [name for name in shape.fields if name in keywords]
    are_first_fields = ordered_names == list(shape.fields)[: len(ordered_names)]
    if not (shape.is_positional and are_first_fields and len(ordered_names) > 1):
        return by_keywords
    create = shape.create
    values_of = itemgetter(*ordered_names)
    field_count = len(node["fields"])

    def by_position(datum: dict[str, Any]) -> Any:
        return create(*values_of(datum)) if len(datum) == field_count else by_keywords(datum)

    return by_position
