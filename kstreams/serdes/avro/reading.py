"""`AvroReader`: a function compiled once for a writer's schema, a reader's schema and a class.

fastavro looks at both schemas again for each value; what it looks at is known here before the first record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from kstreams.decoders import convert
from kstreams.errors import SerdeError
from kstreams.serdes.avro.defaults import default_bytes
from kstreams.serdes.avro.kinds import MISSING, PLAIN, ClassShape, Kind, enum_member
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of, to_timedelta
from kstreams.serdes.avro.mapping import CLASSES, COLLECTIONS, is_direct, is_raw, member_for, tagged, takes_none
from kstreams.serdes.avro.resolution import branch_for, field_for
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.source import Source
from kstreams.serdes.avro.wire import (
    DOUBLE,
    FLOAT,
    MOST_EMPTY_ITEMS,
    DamagedError,
    UnresolvedError,
    more,
    more_of_int,
    more_of_length,
)

UNREADABLE = (
    ValueError,  # DamagedError, UnresolvedError, UnicodeDecodeError, pydantic's ValidationError
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
    msgspec.MsgspecError,
    SerdeError,
)
"""What reading damaged bytes raises, or a class that refuses its fields."""


class AvroReader:
    """Reads bytes of a writer's schema as values of a kind, by way of the reader's schema.

    Parameters
    ----------
    written, wanted : AvroSchema
    kind : Kind
        Of the values; `PLAIN`: dicts and what stands in them.
    start : int
        Where the value begins, behind the frame.

    Raises
    ------
    SerdeError
        When no value of the writer's schema can be read; names the field.
    """

    def __init__(self, written: AvroSchema, wanted: AvroSchema, kind: Kind, start: int = 0) -> None:
        self._source = Source(**_NAMES)
        try:
            names = _Compiler(written, wanted, self._source).compile(kind, start)
        except UnresolvedError as error:
            raise SerdeError(str(error)) from None
        self._one, self._many = self._source.functions(*names)

    def one(self, data: bytes) -> Any:
        """The value of bytes; raises SerdeError when they stand for none, or go on behind it."""
        try:
            return self._one(data)
        except UNREADABLE as error:
            raise self._failure(data, error) from error

    def many(self, rows: list[bytes]) -> list[Any]:
        """The values of many; raises SerdeError when one of them stands for none."""
        try:
            values: list[Any] = self._many(rows)
        except UNREADABLE as error:
            raise SerdeError(self._reason(error)) from error
        return values

    def _failure(self, data: bytes, error: Exception) -> SerdeError:
        shown = data[:40]
        return SerdeError(f"{shown!r}{'…' if len(data) > 40 else ''} does not decode: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        place = "" if isinstance(error, UnresolvedError) else self._source.field_of(error)
        reason = "the bytes end too early" if isinstance(error, IndexError | struct.error) else str(error)
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else reason
        return f"field {place}: {reason}" if place else reason


def _damaged(reason: str) -> NoReturn:
    raise DamagedError(reason)


def _unresolved(reason: str) -> NoReturn:
    raise UnresolvedError(reason)


_NAMES: dict[str, Any] = {
    "more": more,
    "more_of_int": more_of_int,
    "more_of_length": more_of_length,
    "float_at": FLOAT.unpack_from,
    "double_at": DOUBLE.unpack_from,
    "damaged": _damaged,
    "unresolved": _unresolved,
}


class _Compiler:
    """Writes the functions. In them `d` are the bytes and `p` is the place in them."""

    def __init__(self, written: AvroSchema, wanted: AvroSchema, source: Source) -> None:
        self._written, self._wanted, self._source = written, wanted, source
        self._functions: dict[Any, str] = {}

    def compile(self, kind: Kind, start: int) -> tuple[str, str]:
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
            raise self._cannot(f"{_named(node)} cannot be read as {_named(self._wanted.node(new))}{_cure(node, kind)}")
        member = member_for(kind, wanted)
        if member is None or (wanted["type"] == "null" and not takes_none(kind)):
            raise self._cannot(f"{_named(wanted)} cannot be read as {kind}")
        value = self._of_type(node, wanted, member)
        branches = self._wanted.node(new)
        if isinstance(branches, list) and member.is_plain and wanted["type"] in ("record", "error"):
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
        source, number, value = self._source, self._number(), self._source.variable()
        for place, branch in enumerate(branches):
            with source.block(f"{'elif' if place else 'if'} {number} == {place}"):
                try:
                    source.add(f"{value} = {self._value(branch, new, kind)}")
                except UnresolvedError as error:
                    source.add(f"unresolved({str(error)!r})")
        if branches:
            with source.block("else"):
                source.add(f"damaged(f'there is no branch {{{number}}} in its union')")
        return value

    # leaves

    def _number(self, *, is_int: bool = False) -> str:
        """Write what reads a number; the variable that holds it."""
        value, rest = self._source.variable(), "more_of_int" if is_int else "more"
        self._source.add(
            f"{value} = d[p]",
            "p += 1",
            f"if {value} > 127: {value}, p = {rest}(d, p, {value})",
            f"{value} = ({value} >> 1) ^ -({value} & 1)",
        )
        return value

    def _length(self) -> str:
        """Write what reads a length; the variable with the place where that ends."""
        end = self._source.variable()
        self._source.add(
            f"{end} = d[p]",
            "p += 1",
            f"if {end} > 127: {end}, p = more_of_length(d, p, {end})",
            f"elif {end} & 1: damaged('a length is negative')",
            f"else: {end} >>= 1",
            f"{end} += p",
        )
        return end

    def _slice(self, size: int | None = None) -> str:
        """Write what takes bytes; the variable that holds them."""
        value = self._source.variable()
        if size is None:
            end = self._length()
            self._source.add(f"{value} = d[p:{end}]", f"p = {end}")
        else:
            self._source.add(f"{value} = d[p:p + {size}]", f"p += {size}")
            self._source.add("if p > len(d): damaged('the bytes end too early')")
        return value

    def _leaf(self, node: Any, wanted: Any, kind: Kind) -> str:
        raw = _RAW[node["type"]](self, node, wanted)
        logical = _unit(node, wanted)
        if logical is not None and is_raw(kind, logical):
            logical = None
        value = raw if logical is None else f"{self._source.bound(logical.read)}({raw})"
        return self._as_kind(value, wanted, kind, logical)

    def _as_kind(self, value: str, wanted: Any, kind: Kind, logical: Logical | None) -> str:
        """The value of a leaf or collection as one of a kind."""
        given = logical.cls if logical else CLASSES[wanted["type"]]
        if is_direct(kind, wanted, logical):
            return value
        if kind.base is float and given is int and not kind.is_limited:
            return f"float({value})"
        if given is AvroDuration and not kind.is_limited:
            return f"{self._source.bound(to_timedelta)}({value})"
        return f"{self._source.bound(_conversion(kind))}({value})"

    def _null(self, node: Any, wanted: Any) -> str:
        return "None"

    def _boolean(self, node: Any, wanted: Any) -> str:
        value = self._source.variable()
        self._source.add(f"{value} = d[p]", "p += 1", f"if {value} > 1: damaged(f'{{{value}}} is no boolean')")
        return f"({value} == 1)"

    def _integer(self, node: Any, wanted: Any) -> str:
        value = self._number(is_int=node["type"] == "int")
        return f"float({value})" if wanted["type"] in ("float", "double") else value

    def _real(self, node: Any, wanted: Any) -> str:
        value, size = self._source.variable(), 4 if node["type"] == "float" else 8
        self._source.add(f"{value}, = {node['type']}_at(d, p)", f"p += {size}")
        return value

    def _characters(self, node: Any, wanted: Any) -> str:
        value = self._slice()
        if wanted["type"] == "bytes":
            return value
        text = self._source.variable()
        self._source.add(f"{text} = str({value}, 'utf-8')")
        return text

    def _fixed(self, node: Any, wanted: Any) -> str:
        return self._slice(node["size"])

    # complex types

    def _enum(self, node: Any, wanted: Any, kind: Kind) -> str:
        number, symbols = self._number(), node["symbols"]
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
            left = source.bound(missing)
            source.add(f"if {number} in {left}: unresolved({left}[{number}])")
        source.add(f"{value} = {source.bound(values)}.get({number}, {source.bound(MISSING)})")
        source.add(f"if {value} is {source.bound(MISSING)}: damaged(f'there is no symbol {{{number}}}')")
        return value if kind.is_enum else self._as_kind(value, wanted, kind, None)

    def _array(self, node: Any, wanted: Any, kind: Kind) -> str:
        items = kind.arguments[0] if kind.base in COLLECTIONS and kind.arguments else PLAIN
        value, source = self._source.variable(), self._source
        source.add(f"{value} = []", f"{value}_add = {value}.append")
        with self._blocks(value, may_be_empty=self._may_be_empty(node["items"])):
            source.add(f"{value}_add({self._value(node['items'], wanted['items'], items)})")
        if kind.base in COLLECTIONS and not kind.is_limited:
            return value if kind.base is list else f"{kind.base.__name__}({value})"
        return self._as_kind(value, wanted, kind, None)

    def _map(self, node: Any, wanted: Any, kind: Kind) -> str:
        is_dict = kind.base is dict and len(kind.arguments) == 2 and kind.arguments[0].base is str
        items = kind.arguments[1] if is_dict else PLAIN
        value, source = self._source.variable(), self._source
        source.add(f"{value} = {{}}")
        with self._blocks(value, may_be_empty=False):
            key = self._characters({"type": "string"}, {"type": "string"})
            source.add(f"{value}[{key}] = {self._value(node['values'], wanted['values'], items)}")
        return value if is_dict and not kind.is_limited else self._as_kind(value, wanted, kind, None)

    def _blocks(self, value: str, *, may_be_empty: bool) -> Any:
        """Write the loop over the items of a collection, which come in blocks."""
        return _Blocks(self._source, value, self._number, may_be_empty=may_be_empty)

    def _may_be_empty(self, part: Any) -> bool:
        """Whether a value may take no bytes at all."""
        node = self._written.node(part)
        if isinstance(node, list):
            return False
        if node["type"] in ("record", "error"):
            return all(self._may_be_empty(field["type"]) for field in node["fields"])
        return bool(node["type"] == "null" or node.get("size") == 0)

    def _record(self, node: Any, wanted: Any, kind: Kind) -> str:
        if holds_itself(self._written, node):
            return self._call(node, wanted, kind)
        return self._fields(node, wanted, kind)

    def _call(self, node: Any, wanted: Any, kind: Kind) -> str:
        """Write a call of the function that reads a record which may hold itself."""
        asked = id(node), id(wanted), repr(kind.hint)
        source = self._source
        if asked not in self._functions:
            name = self._functions[asked] = f"record{len(self._functions)}"
            with source.apart(), source.block(f"def {name}(d, p)"):
                value = self._fields(node, wanted, kind)
                source.add(f"return {value}, p")
        value = source.variable()
        source.add(f"{value}, p = {self._functions[asked]}(d, p)")
        return value

    def _fields(self, node: Any, wanted: Any, kind: Kind) -> str:
        shape = kind.shape
        values: dict[str, str] = {}
        for field in node["fields"]:
            taken = field_for(field, wanted)
            with self._source.field(field["name"]):
                if taken is None or taken["name"] in values or (shape and taken["name"] not in shape.fields):
                    self._skip(field["type"])
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
            known = shape.fields.get(name) if shape else None
            if name in values or (shape and known is None) or (known is not None and known.has_default):
                continue
            if "default" not in field:
                raise self._cannot(f"{name} is not in {node_name(wanted)} as it was written, and has no default")
            with self._source.field(name):
                values[name] = self._default(field, known.kind if known else PLAIN)
        for name, of_class in shape.fields.items() if shape else ():
            if name not in values and not of_class.has_default:
                raise self._cannot(f"{name} is in {kind_name(shape)} and not in the schema, and has no default")

    def _default(self, field: Any, kind: Kind) -> str:
        """The expression of a default: made anew for each record, since it may be a list."""
        data = default_bytes(self._wanted, field["type"], field["default"])
        part = AvroSchema(field["type"], self._wanted.names)
        return f"{self._source.bound(AvroReader(part, part, kind).one)}({data!r})"

    def _object(self, values: dict[str, str], shape: ClassShape) -> str:
        make = self._source.bound(shape.make)
        names = list(shape.fields)
        if shape.is_dict:
            return "{" + ", ".join(f"{name!r}: {value}" for name, value in values.items()) + "}"
        given = [name for name in names if name in values]
        if shape.positional and given == names[: len(given)]:
            return f"{make}({', '.join(values[name] for name in given)})"
        pairs = ", ".join(f"{shape.fields[name].keyword!r}: {values[name]}" for name in given)
        return f"{make}(**{{{pairs}}})"

    def _skip(self, part: Any) -> None:
        """Write what moves past a value that nobody reads."""
        node = self._written.node(part)
        if isinstance(node, list):
            return self._skip_union(node)
        if node["type"] in ("string", "bytes"):
            self._source.add(f"p = {self._length()}")
        elif node["type"] == "array":
            with self._blocks("", may_be_empty=False):
                self._skip(node["items"])
        elif node["type"] == "map":
            with self._blocks("", may_be_empty=False):
                self._source.add(f"p = {self._length()}")
                self._skip(node["values"])
        elif node["type"] in ("record", "error"):
            self._skip_record(node)
        elif node["type"] == "enum":
            self._number()
        else:
            _RAW[node["type"]](self, node, node)
        return None

    def _skip_union(self, branches: list[Any]) -> None:
        number = self._number()
        for place, branch in enumerate(branches):
            with self._source.block(f"{'elif' if place else 'if'} {number} == {place}"):
                self._source.add("pass")
                self._skip(branch)
        with self._source.block("else"):
            self._source.add(f"damaged(f'there is no branch {{{number}}} in its union')")

    def _skip_record(self, node: Any) -> None:
        if not holds_itself(self._written, node):
            for field in node["fields"]:
                with self._source.field(field["name"]):
                    self._skip(field["type"])
            return
        asked = id(node), None, ""
        if asked not in self._functions:
            name = self._functions[asked] = f"skip{len(self._functions)}"
            with self._source.apart(), self._source.block(f"def {name}(d, p)"):
                for field in node["fields"]:
                    self._skip(field["type"])
                self._source.add("return p")
        self._source.add(f"p = {self._functions[asked]}(d, p)")


class _Blocks:
    """The loop over the items of an array or map, as a context in which one item is written."""

    def __init__(self, source: Source, value: str, number: Callable[[], str], *, may_be_empty: bool) -> None:
        self._source, self._value, self._number, self._may_be_empty = source, value, number, may_be_empty

    def __enter__(self) -> None:
        source = self._source
        self._outer = source.block("while True")
        self._outer.__enter__()
        count = self._number()
        source.add(f"if {count} == 0: break")
        with source.block(f"if {count} < 0"):
            source.add(f"{count} = -{count}")
            self._number()
        if self._may_be_empty:
            source.add(f"if {count} + len({self._value}) > {MOST_EMPTY_ITEMS}: damaged('too many items without bytes')")
        self._inner = source.block(f"for _ in range({count})")
        self._inner.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._inner.__exit__(*exc)
        self._outer.__exit__(*exc)


_RAW: dict[str, Callable[[_Compiler, Any, Any], str]] = {
    "null": _Compiler._null,
    "boolean": _Compiler._boolean,
    "int": _Compiler._integer,
    "long": _Compiler._integer,
    "float": _Compiler._real,
    "double": _Compiler._real,
    "string": _Compiler._characters,
    "bytes": _Compiler._characters,
    "fixed": _Compiler._fixed,
}

_OF_COMPLEX: dict[str, Callable[[_Compiler, Any, Any, Kind], str]] = {
    "enum": _Compiler._enum,
    "array": _Compiler._array,
    "map": _Compiler._map,
    "record": _Compiler._record,
    "error": _Compiler._record,
}


def _unit(node: Any, wanted: Any) -> Logical | None:
    """The logical type to read by: the writer's unit where both have one of the same class."""
    logical, own = logical_of(wanted), logical_of(node)
    return own if logical is not None and own is not None and own.cls is logical.cls else logical


def holds_itself(schema: AvroSchema, node: Any) -> bool:
    """Whether a record may hold one of its own kind."""
    seen: set[int] = set()
    waiting = [field["type"] for field in node["fields"]]
    while waiting:
        part = schema.node(waiting.pop())
        if part is node:
            return True
        if id(part) in seen:
            continue
        seen.add(id(part))
        waiting += parts_of(part)
    return False


def parts_of(node: Any) -> list[Any]:
    """The parts that a part of a schema is made of."""
    if isinstance(node, list):
        return node
    if node["type"] in ("record", "error"):
        return [field["type"] for field in node["fields"]]
    return [node[name] for name in ("items", "values") if name in node]


def _named(node: Any) -> str:
    """A part of a schema, for errors."""
    if isinstance(node, list):
        return "a union"
    return str(node.get("name") or node.get("logicalType") or node["type"])


def node_name(node: Any) -> str:
    """The name of a record."""
    return str(node["name"])


def kind_name(shape: ClassShape | None) -> str:
    """The name of a class."""
    return shape.cls.__name__ if shape else ""


def _conversion(kind: Kind) -> Callable[[Any], Any]:
    """What makes a value of a kind of a plain one, or raises for one that fits it not."""
    return lambda value: convert(value, kind.hint)


def _cure(node: Any, kind: Kind) -> str:
    """What helps where a record has another name than its class."""
    if kind.shape is None or node["type"] not in ("record", "error"):
        return ""
    return (
        f": records are told by their names, so give the class this one, as in ks.Avro({kind}, name={node['name']!r})"
    )
