"""`ReadingCode`: writes the functions that read a writer's schema as a reader's schema and a class want it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kstreams.decoders import convert
from kstreams.serdes.avro.defaults import default_bytes
from kstreams.serdes.avro.kinds import MISSING, PLAIN, ClassShape, Kind, enum_member
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of, to_timedelta
from kstreams.serdes.avro.mapping import CLASSES, COLLECTIONS, is_direct, is_raw, member_for, tagged, takes_none
from kstreams.serdes.avro.reading_source import ReadingSource
from kstreams.serdes.avro.resolution import branch_for, field_for
from kstreams.serdes.avro.schema import RECORDS, AvroSchema, name_of
from kstreams.serdes.avro.skipping import Skipping
from kstreams.serdes.avro.wire import UnresolvedError

ReadDefault: TypeAlias = Callable[[AvroSchema, Kind], Callable[[bytes], Any]]


class ReadingCode:
    """Writes the functions `one` and `many`.

    Parameters
    ----------
    written, wanted : AvroSchema
        Of the writer, and of the reader.
    source : ReadingSource
    read_default : callable
        `(schema, kind) -> (bytes -> value)`: what reads the defaults of fields that the writer does not have.
    """

    def __init__(
        self, written: AvroSchema, wanted: AvroSchema, source: ReadingSource, read_default: ReadDefault
    ) -> None:
        self._written, self._wanted, self._source = written, wanted, source
        self._read_default, self._skipping = read_default, Skipping(written, source)
        self._functions: dict[Any, str] = {}

    def write(self, kind: Kind, start: int) -> tuple[str, str]:
        """Write both functions for values of a kind that begin behind a frame; their names."""
        source = self._source
        with source.block("def one(d)"):
            source.add(f"p = {start}")
            value = self._value(self._written.root, self._wanted.root, kind)
            self._check_end()
            source.add(f"return {value}")
        with source.block("def many(rows)"):
            source.add("values = []", "add = values.append")
            with source.block("for d in rows"):
                source.add(f"p = {start}")
                value = self._value(self._written.root, self._wanted.root, kind)
                self._check_end()
                source.add(f"add({value})")
            source.add("return values")
        return "one", "many"

    def _check_end(self) -> None:
        self._source.add("if p != len(d): damaged(f'{len(d)} bytes where {p} are needed')")

    def _value(self, old: Any, new: Any, kind: Kind) -> str:
        """Write what reads a value of a part of the writer's schema; the expression that gives it."""
        node = self._written.node(old)
        if isinstance(node, list):
            return self._union(node, new, kind)
        wanted = branch_for(self._written, node, self._wanted, new)
        if wanted is None:
            raise self._cannot(
                f"{name_of(node)} cannot be read as {name_of(self._wanted.node(new))}{_cure(node, kind)}"
            )
        member = member_for(kind, wanted)
        if member is None or (wanted["type"] == "null" and not takes_none(kind)):
            raise self._cannot(f"{name_of(wanted)} cannot be read as {kind}")
        value = self._of_type(node, wanted, member)
        branches = self._wanted.node(new)
        if isinstance(branches, list) and member.is_plain and wanted["type"] in RECORDS:
            return f"({wanted['name']!r}, {value})" if tagged([self._wanted.node(each) for each in branches]) else value
        return value

    def _cannot(self, reason: str) -> UnresolvedError:
        """The error for a part of the schemas that cannot be resolved."""
        place = self._source.path
        return UnresolvedError(f"field {place}: {reason}" if place else reason)

    def _of_type(self, node: Any, wanted: Any, kind: Kind) -> str:
        write = _OF_COMPLEX.get(node["type"])
        return self._leaf(node, wanted, kind) if write is None else write(self, node, wanted, kind)

    def _union(self, branches: list[Any], new: Any, kind: Kind) -> str:
        source, number, value = self._source, self._source.number(), self._source.variable()
        for place, branch in enumerate(branches):
            with source.block(f"{'elif' if place else 'if'} {number} == {place}"):
                try:
                    source.add(f"{value} = {self._value(branch, new, kind)}")
                except UnresolvedError as error:
                    source.add(f"unresolved({str(error)!r})")
        if branches:
            source.check_branch(number)
        return value

    # leaves

    def _leaf(self, node: Any, wanted: Any, kind: Kind) -> str:
        raw = _RAW[node["type"]](self, node, wanted)
        logical = _unit(node, wanted)
        if logical is not None and is_raw(kind, logical):
            logical = None
        value = raw if logical is None else f"{self._source.bound(logical.read)}({raw})"
        return self._as_kind(value, wanted, kind, logical)

    def _as_kind(self, value: str, wanted: Any, kind: Kind, logical: Logical | None) -> str:
        """The value of a leaf or collection as one of a kind."""
        cls = logical.cls if logical else CLASSES[wanted["type"]]
        if is_direct(kind, wanted, logical):
            return value
        if kind.base is float and cls is int and not kind.is_limited:
            return f"float({value})"
        if cls is AvroDuration and not kind.is_limited:
            return f"{self._source.bound(to_timedelta)}({value})"
        return f"{self._source.bound(_conversion(kind))}({value})"

    def _null(self, node: Any, wanted: Any) -> str:
        return "None"

    def _boolean(self, node: Any, wanted: Any) -> str:
        value = self._source.variable()
        self._source.add(f"{value} = d[p]", "p += 1", f"if {value} > 1: damaged(f'{{{value}}} is no boolean')")
        return f"({value} == 1)"

    def _integer(self, node: Any, wanted: Any) -> str:
        value = self._source.number(is_int=node["type"] == "int")
        return f"float({value})" if wanted["type"] in ("float", "double") else value

    def _real(self, node: Any, wanted: Any) -> str:
        value, size = self._source.variable(), 4 if node["type"] == "float" else 8
        self._source.add(f"{value}, = {node['type']}_at(d, p)", f"p += {size}")
        return value

    def _characters(self, node: Any, wanted: Any) -> str:
        value = self._source.slice()
        if wanted["type"] == "bytes":
            return value
        text = self._source.variable()
        self._source.add(f"{text} = str({value}, 'utf-8')")
        return text

    def _fixed(self, node: Any, wanted: Any) -> str:
        return self._source.fixed(node["size"])

    # complex types

    def _enum(self, node: Any, wanted: Any, kind: Kind) -> str:
        number, symbols = self._source.number(), node["symbols"]
        values, missing = dict[int, Any](), dict[int, str]()
        for place, symbol in enumerate(symbols):
            taken = symbol if symbol in wanted["symbols"] else wanted.get("default")
            member = taken if not kind.is_enum or taken is None else enum_member(kind.base, taken)
            if member is None or member is MISSING:
                missing[place] = str(self._cannot(f"{symbol} is no symbol of {wanted['name']} as it is read"))
            else:
                values[place] = member
        source, value = self._source, self._source.variable()
        if missing:
            reasons = source.bound(missing)
            source.add(f"if {number} in {reasons}: unresolved({reasons}[{number}])")
        source.add(f"{value} = {source.bound(values)}.get({number}, {source.bound(MISSING)})")
        source.add(f"if {value} is {source.bound(MISSING)}: damaged(f'there is no symbol {{{number}}}')")
        return value if kind.is_enum else self._as_kind(value, wanted, kind, None)

    def _array(self, node: Any, wanted: Any, kind: Kind) -> str:
        items = kind.arguments[0] if kind.base in COLLECTIONS and kind.arguments else PLAIN
        value, source = self._source.variable(), self._source
        source.add(f"{value} = []", f"{value}_add = {value}.append")
        with source.items(value, take_no_bytes=self._written.takes_no_bytes(node["items"])):
            source.add(f"{value}_add({self._value(node['items'], wanted['items'], items)})")
        if kind.base in COLLECTIONS and not kind.is_limited:
            return value if kind.base is list else f"{kind.base.__name__}({value})"
        return self._as_kind(value, wanted, kind, None)

    def _map(self, node: Any, wanted: Any, kind: Kind) -> str:
        is_dict = kind.base is dict and len(kind.arguments) == 2 and kind.arguments[0].base is str
        items = kind.arguments[1] if is_dict else PLAIN
        value, source = self._source.variable(), self._source
        source.add(f"{value} = {{}}")
        with source.items(value):
            key = self._characters({"type": "string"}, {"type": "string"})
            source.add(f"{value}[{key}] = {self._value(node['values'], wanted['values'], items)}")
        return value if is_dict and not kind.is_limited else self._as_kind(value, wanted, kind, None)

    def _record(self, node: Any, wanted: Any, kind: Kind) -> str:
        if self._written.holds_itself(node):
            return self._call(node, wanted, kind)
        return self._fields(node, wanted, kind)

    def _call(self, node: Any, wanted: Any, kind: Kind) -> str:
        """Write a call of the function that reads a record which may hold itself."""
        pair = id(node), id(wanted), repr(kind.hint)
        source = self._source
        if pair not in self._functions:
            name = self._functions[pair] = f"record{len(self._functions)}"
            with source.apart(), source.block(f"def {name}(d, p)"):
                value = self._fields(node, wanted, kind)
                source.add(f"return {value}, p")
        value = source.variable()
        source.add(f"{value}, p = {self._functions[pair]}(d, p)")
        return value

    def _fields(self, node: Any, wanted: Any, kind: Kind) -> str:
        shape = kind.shape
        values: dict[str, str] = {}
        for field in node["fields"]:
            taken = field_for(field, wanted)
            with self._source.field(field["name"]):
                if taken is None or taken["name"] in values or (shape and taken["name"] not in shape.fields):
                    self._skipping.skip(field["type"])
                    continue
                of_field = shape.fields[taken["name"]].kind if shape else PLAIN
                value, name = self._value(field["type"], taken["type"], of_field), self._source.variable()
                self._source.add(f"{name} = {value}")
                values[taken["name"]] = name
        self._complete(values, wanted, shape)
        if shape is None:
            pairs = ", ".join(f"{field['name']!r}: {values[field['name']]}" for field in wanted["fields"])
            return self._as_kind(f"{{{pairs}}}", wanted, kind, None)
        return self._object(values, shape)

    def _complete(self, values: dict[str, str], wanted: Any, shape: ClassShape | None) -> None:
        """Defaults of the reader's schema for fields that the writer does not have; a class knows its own."""
        for field in wanted["fields"]:
            name = field["name"]
            of_class = shape.fields.get(name) if shape else None
            if name in values or (shape and of_class is None) or (of_class is not None and of_class.has_default):
                continue
            if "default" not in field:
                raise self._cannot(f"{name} is not in {name_of(wanted)} as it was written, and has no default")
            with self._source.field(name):
                values[name] = self._default(field, of_class.kind if of_class else PLAIN)
        for name, of_class in shape.fields.items() if shape else ():
            if shape and name not in values and not of_class.has_default:
                raise self._cannot(f"{name} is in {shape.cls.__name__} and not in the schema, and has no default")

    def _default(self, field: Any, kind: Kind) -> str:
        """The expression of a default: made anew for each record, since it may be a list."""
        data = default_bytes(self._wanted, field["type"], field["default"])
        part = AvroSchema(field["type"], self._wanted.names)
        return f"{self._source.bound(self._read_default(part, kind))}({data!r})"

    def _object(self, values: dict[str, str], shape: ClassShape) -> str:
        make = self._source.bound(shape.make)
        names = list(shape.fields)
        if shape.is_dict:
            return "{" + ", ".join(f"{name!r}: {value}" for name, value in values.items()) + "}"
        present = [name for name in names if name in values]
        if shape.is_bare and present == names:
            return self._bare(values, shape)
        if shape.positional and present == names[: len(present)]:
            return f"{make}({', '.join(values[name] for name in present)})"
        pairs = ", ".join(f"{shape.fields[name].keyword!r}: {values[name]}" for name in present)
        return f"{make}(**{{{pairs}}})"

    def _bare(self, values: dict[str, str], shape: ClassShape) -> str:
        source, made, attributes = self._source, self._source.variable(), self._source.variable()
        source.add(f"{made} = new({source.bound(shape.cls)})", f"{attributes} = {made}.__dict__")
        for name, field in shape.fields.items():
            source.add(f"{attributes}[{field.attribute!r}] = {values[name]}")
        return made


_RAW: dict[str, Callable[[ReadingCode, Any, Any], str]] = {
    "null": ReadingCode._null,
    "boolean": ReadingCode._boolean,
    "int": ReadingCode._integer,
    "long": ReadingCode._integer,
    "float": ReadingCode._real,
    "double": ReadingCode._real,
    "string": ReadingCode._characters,
    "bytes": ReadingCode._characters,
    "fixed": ReadingCode._fixed,
}

_OF_COMPLEX: dict[str, Callable[[ReadingCode, Any, Any, Kind], str]] = {
    "enum": ReadingCode._enum,
    "array": ReadingCode._array,
    "map": ReadingCode._map,
    "record": ReadingCode._record,
    "error": ReadingCode._record,
}


def _unit(node: Any, wanted: Any) -> Logical | None:
    """The logical type to read by: the writer's unit where both have one of the same class."""
    logical, own = logical_of(wanted), logical_of(node)
    return own if logical is not None and own is not None and own.cls is logical.cls else logical


def _conversion(kind: Kind) -> Callable[[Any], Any]:
    """What makes a value of a kind of a plain one, or raises for one that fits it not."""
    return lambda value: convert(value, kind.hint)


def _cure(node: Any, kind: Kind) -> str:
    """What helps where a record has another name than its class."""
    if kind.shape is None or node["type"] not in RECORDS:
        return ""
    return (
        f": records are told by their names, so give the class this one, as in ks.Avro({kind}, name={node['name']!r})"
    )
