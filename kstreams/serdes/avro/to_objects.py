"""`Conversions`: functions that convert the dicts and lists of fastavro to objects of a class."""

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
from kstreams.serdes.avro.kinds import MISSING, PLAIN, ClassShape, Kind, enum_member
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of, to_timedelta
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
    named,
    tag_of,
    takes_none,
)
from kstreams.serdes.avro.misfits import FAILURES, FieldError, UnresolvedError, in_field
from kstreams.serdes.avro.schema import NAMED, AvroSchema, SchemaNode
from kstreams.serdes.avro.schema_parts import all_parts, holds_itself

Convert: TypeAlias = Callable[[Any], Any]

_OMITTED: Final = object()
"""The replacement of a default that the class itself supplies."""


def needs_tags(schema: AvroSchema) -> bool:
    """Return True if a union has branches whose values look alike, so that fastavro must add the names of branches."""
    return any(_is_ambiguous(schema, node) for node in all_parts(schema) if isinstance(node, list))


def _is_ambiguous(schema: AvroSchema, branches: list[SchemaNode]) -> bool:
    nodes = [schema.node(branch) for branch in branches]
    classes = [_decoded_class(node) for node in nodes]
    return any(classes.count(cls) > 1 and node["type"] in NAMED for cls, node in zip(classes, nodes, strict=True))


def _decoded_class(node: SchemaNode) -> type:
    """Return the class of values as fastavro reads them."""
    logical = logical_of(node)
    return logical.cls if logical is not None and _knows(node) else CLASSES[node["type"]]


def _knows(node: SchemaNode) -> bool:
    """Return True if fastavro itself converts values of a logical type."""
    return f"{node['type']}-{node.get('logicalType')}" in LOGICAL_READERS


class Conversions:
    """The conversions of the parts of a reader's schema. None in place of a conversion leaves values unchanged.

    Parameters
    ----------
    schema : AvroSchema
    written : AvroSchema or None
        The writer's schema if it differs: fields may be missing, and values may have the form of another type.
    tagged : bool
        True if values of named types in unions have the name.
    """

    def __init__(self, schema: AvroSchema, written: AvroSchema | None, *, tagged: bool) -> None:
        self._schema = schema
        self._tagged = tagged
        self._resolves = written is not None
        parts = [node for node in all_parts(written) if isinstance(node, dict)] if written else []
        self._records = [node for node in parts if is_record(node)]
        self._has_logical = any(map(logical_of, parts))
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
            raise UnresolvedError(f"{named(node)} cannot be read as {kind}")
        return _OF_COMPLEX.get(node["type"], Conversions._leaf)(self, node, member)

    # leaves

    def _leaf(self, node: object, kind: Kind) -> Convert | None:
        logical = logical_of(node)
        if logical is not None and is_raw(kind, logical):
            return _to_raw(logical) if _knows(node) else None
        read = self._without_logical(node) if logical is None else self._logical(node, logical)
        return _chained(read, _to_kind(node, kind, logical))

    def _without_logical(self, node: SchemaNode) -> Convert | None:
        cls = CLASSES[node["type"]]
        check = _of_class(cls) if self._has_logical and cls in (int, str, bytes) else None
        return _chained(check, _of_32_bits if node["type"] == "int" else None)

    def _logical(self, node: object, logical: Logical) -> Convert | None:
        """Return the conversion of a logical type. fastavro converts only some types, by the writer's schema."""
        if logical.cls is Decimal:
            return _exact_decimal(node, logical)
        if _knows(node) and not self._resolves:
            return None
        return lambda value: logical.read(value) if type(value) is logical.raw else value

    def _enum(self, node: SchemaNode, kind: Kind) -> Convert | None:
        if not kind.is_enum:
            return _to_kind(node, kind, None)
        members = {symbol: enum_member(kind.base, symbol) for symbol in node["symbols"]}
        return _Members(kind, {symbol: member for symbol, member in members.items() if member is not MISSING})

    # collections

    def _array(self, node: SchemaNode, kind: Kind) -> Convert | None:
        of_item = self.of(node["items"], items_of(kind))
        items = None if of_item is None else lambda values: list(map(of_item, values))
        if kind.base in COLLECTIONS and not kind.is_limited:
            return items if kind.base is list else _chained(items, kind.base)
        return _chained(items, _to_kind(node, kind, None))

    def _map(self, node: SchemaNode, kind: Kind) -> Convert | None:
        of_item = self.of(node["values"], kind.arguments[1] if is_map(kind) else PLAIN)
        items = None if of_item is None else lambda values: {key: of_item(value) for key, value in values.items()}
        return items if is_map(kind) and not kind.is_limited else _chained(items, _to_kind(node, kind, None))

    # unions

    def _union(self, branches: list[SchemaNode], kind: Kind) -> Convert | None:
        nodes = [self._schema.node(branch) for branch in branches]
        converters = [self._branch(node, nodes, kind) for node in nodes]
        if not (self._resolves or self._tagged or any(converters)):
            return None
        by_tag = {tag_of(node): of_branch for node, of_branch in zip(nodes, converters, strict=True)}
        by_class = self._by_class(nodes, converters)

        def choose(value: object) -> Any:
            if type(value) is tuple:
                tag, value = value
                of_branch = by_tag[tag]
            else:
                of_branch = by_class[type(value)]
            return value if of_branch is None else of_branch(value)

        return choose

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

    def _by_class(self, nodes: list[SchemaNode], converters: list[Convert | None]) -> dict[type, Convert | None]:
        """Return the conversions of values without a tag by class; records are told apart by their fields."""
        by_class: dict[type, Convert | None] = {}
        for node, of_branch in zip(nodes, converters, strict=True):
            for cls in (_decoded_class(node), CLASSES[node["type"]]):
                by_class.setdefault(cls, of_branch)
        records = {
            frozenset(field["name"] for field in node["fields"]): of_branch
            for node, of_branch in reversed(list(zip(nodes, converters, strict=True)))
            if is_record(node)
        }
        if len(records) > 1:
            by_class[dict] = lambda value: _applied(records[frozenset(value)], value)
        return by_class

    # records

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
        writers = [other for other in self._records if _may_be_written_as(node, other)]
        steps = [
            (name, converters[name], self._default(node, field, shape))
            for name, field in zip(converters, fields, strict=True)
            if converters[name] is not None or not all(_has(other, field) for other in writers)
        ]
        change = _changing(steps) if steps else None
        return _chained(change, _to_kind(node, kind, None) if shape is None else _making(node, shape, list(converters)))

    def _field(self, field: SchemaNode, shape: ClassShape | None) -> Convert | None:
        try:
            return self.of(field["type"], shape.fields[field["name"]].kind if shape else PLAIN)
        except UnresolvedError as error:
            raise in_field(field["name"], error) from None

    def _default(self, node: SchemaNode, field: SchemaNode, shape: ClassShape | None) -> Callable[[], Any]:
        """Return the function for a field that the writer lacks; the default of the class takes precedence."""
        name = field["name"]
        if shape is not None and shape.fields[name].has_default:
            return lambda: _OMITTED
        if "default" not in field:
            return partial(_refuse, f"{name} is not in {node['name']} as it was written, and has no default")
        value = default_value(self._schema, field["type"], field["default"])
        return lambda: deepcopy(value)


class _Members:
    """The members of an enum by symbol."""

    def __init__(self, kind: Kind, members: dict[str, Any]) -> None:
        self._kind = kind
        self._members = members

    def __call__(self, symbol: str) -> Any:
        try:
            return self._members[symbol]
        except KeyError:
            raise UnresolvedError(f"{symbol} is no member of {self._kind}") from None


_OF_COMPLEX: dict[str, Callable[[Conversions, SchemaNode, Kind], Convert | None]] = {
    "enum": Conversions._enum,
    "array": Conversions._array,
    "map": Conversions._map,
    "record": Conversions._record,
    "error": Conversions._record,
}


def _applied(change: Convert | None, value: object) -> Any:
    return value if change is None else change(value)


def _chained(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _refuse(reason: str, *value: object) -> NoReturn:
    raise UnresolvedError(reason)


def _of_class(cls: type) -> Convert:
    """Return a check for values that fastavro converts by a logical type that only the writer's schema has."""

    def check(value: object) -> Any:
        if type(value) is not cls:
            raise UnresolvedError(f"a {type(value).__name__} was written, and a {cls.__name__} is read")
        return value

    return check


def _of_32_bits(value: int) -> int:
    """Check an int: fastavro reads it like a long, so damaged bytes may give a number that is too large."""
    if not -0x80000000 <= value < 0x80000000:
        raise FieldError(f"{value} has more than 32 bits")
    return value


def _exact_decimal(node: SchemaNode, logical: Logical) -> Convert:
    """Return a check of decimals: fastavro rounds decimals with too many digits, which changes the exponent."""
    exponent = -node.get("scale", 0)

    def check(value: Any) -> Any:
        if type(value) is not Decimal:
            return logical.read(value)
        if value.as_tuple().exponent != exponent:
            raise UnresolvedError(
                f"{value} does not fit {node['precision']} digits, {-exponent} of them behind the point"
            )
        return value

    return check


def _to_raw(logical: Logical) -> Convert:
    return lambda value: logical.write(value) if type(value) is logical.cls else value


def _to_kind(node: SchemaNode, kind: Kind, logical: Logical | None) -> Convert | None:
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
    """Return True if a record of the writer's schema may be read as a record of the reader's schema."""
    aliases = node.get("aliases", ())
    short = written["name"].rpartition(".")[2]
    return short == node["name"].rpartition(".")[2] or short in aliases or written["name"] in aliases


def _has(written: SchemaNode, field: SchemaNode) -> bool:
    """Return True if a record of the writer's schema has a field of the reader's schema."""
    names = field["name"], *field.get("aliases", ())
    return any(other["name"] in names for other in written["fields"])


def _require_fields(node: SchemaNode, shape: ClassShape | None) -> None:
    names = {field["name"] for field in node["fields"]}
    if shape is None:
        return
    for name, field in shape.fields.items():
        if name not in names and not field.has_default:
            raise UnresolvedError(f"it is in {shape.cls.__name__} and not in the schema, and has no default", name)


def _changing(steps: list[tuple[str, Convert | None, Callable[[], Any]]]) -> Convert:
    """Return the function that fills and converts the fields of a dict in place."""

    def change(datum: dict[str, object]) -> dict[str, Any]:
        name = ""
        try:
            for name, of_field, default in steps:
                value = datum[name]
                if value is ABSENT:
                    value = default()
                    if value is _OMITTED:
                        del datum[name]
                        continue
                datum[name] = value if of_field is None else of_field(value)
        except FAILURES as error:
            raise in_field(name, error) from error.__cause__
        return datum

    return change


def _making(node: SchemaNode, shape: ClassShape, names: list[str]) -> Convert | None:
    """Return the function that creates an object from a dict with these fields; fields with defaults may be missing."""
    keywords = {name: shape.fields[name].keyword for name in names}

    def by_keywords(datum: dict[str, object]) -> Any:
        return shape.make(**{keyword: datum[name] for name, keyword in keywords.items() if name in datum})

    def bare(datum: dict[str, Any]) -> Any:
        if len(datum) != len(names):
            return by_keywords(datum)
        instance: Any = object.__new__(shape.cls)
        instance.__dict__.update(datum)
        return instance

    if shape.is_bare and len(node["fields"]) == len(names) == len(shape.fields):
        return bare
    if shape.is_dict:
        return None if len(names) == len(node["fields"]) else by_keywords
    order = [name for name in shape.fields if name in keywords]
    if not shape.positional or order != list(shape.fields)[: len(order)] or len(order) < 2:
        return by_keywords
    make = shape.make
    values_of = itemgetter(*order)
    count = len(node["fields"])

    def by_places(datum: dict[str, Any]) -> Any:
        return make(*values_of(datum)) if len(datum) == count else by_keywords(datum)

    return by_places
