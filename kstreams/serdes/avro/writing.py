"""`AvroWriter`: a function compiled once for a schema and a class, which writes values and looks at them as it goes.

A value that would not be read back as it is has no bytes: the generated function raises, and the error names the field.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from typing import Any, Literal, Union

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.avro.defaults import default_bytes
from kstreams.serdes.avro.kinds import MISSING, PLAIN, ClassShape, Kind, enum_member
from kstreams.serdes.avro.logical import AvroDuration, Logical, logical_of
from kstreams.serdes.avro.mapping import CLASSES, COLLECTIONS, is_raw, member_for, takes_none
from kstreams.serdes.avro.reading import AvroReader, holds_itself
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.source import Source
from kstreams.serdes.avro.wire import (
    DOUBLE,
    FLOAT,
    INTS,
    LONGS,
    MisfitError,
    as_bytes,
    as_float,
    as_int,
    as_text,
    misfit,
    of_size,
)
from kstreams.serdes.same_value import same_value

UNWRITABLE = (
    ValueError,  # MisfitError, UnicodeEncodeError
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
    msgspec.MsgspecError,
)


class AvroWriter:
    """Writes values of a kind with a schema.

    Parameters
    ----------
    schema : AvroSchema
    kind : Kind
        Of the values; `PLAIN`: dicts and what stands in them.
    frame : bytes
        Stands in front of what is written.

    Raises
    ------
    SerdeError
        When no value of the kind can be written with the schema; names the field.
    """

    def __init__(self, schema: AvroSchema, kind: Kind, frame: bytes = b"") -> None:
        self._kind, self._source = kind, Source(**_NAMES)
        compiler = _Compiler(schema, self._source)
        try:
            names = compiler.compile(kind, frame)
        except MisfitError as error:
            raise SerdeError(str(error)) from None
        self._one, self._many = self._source.functions(*names)
        self._check = AvroReader(schema, schema, kind, len(frame)) if compiler.is_uncertain else None

    def one(self, value: Any) -> bytes:
        """The bytes of a value; raises SerdeError for one that the schema, or the class, has no place for."""
        try:
            data: bytes = self._one(value)
        except UNWRITABLE as error:
            raise self._failure(value, error) from error
        if self._check is not None:
            self._require_same(value, self._check.one(data))
        return data

    def many(self, values: list[Any]) -> list[bytes]:
        """The bytes of many; raises SerdeError when one of them has none."""
        if self._check is not None:
            return [self.one(value) for value in values]
        try:
            rows: list[bytes] = self._many(values)
        except UNWRITABLE as error:
            raise SerdeError(self._reason(error)) from error
        return rows

    def _require_same(self, value: Any, read: Any) -> None:
        if not same_value(value, read):
            raise SerdeError(f"{value!r} would be read back as {read!r}")

    def _failure(self, value: Any, error: Exception) -> SerdeError:
        return SerdeError(f"{_shown(value)} does not fit {self._kind}: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        place = self._source.field_of(error)
        reason = f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else reason
        return f"field {place}: {reason}" if place else reason


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return f"a {type(value).__name__}"


def _unknown_fields(value: dict[str, Any], names: frozenset[str]) -> None:
    """Raise for fields of a dict that the schema does not have."""
    unknown = [name for name in value if name not in names]
    if unknown:
        raise MisfitError(f"the schema has no field {unknown[0]!r}")


_BUILTIN = (dt.datetime, dt.date, dt.time, dt.timedelta, bytes, bytearray, memoryview)
_PARTS: tuple[Any, ...] = (*_BUILTIN,)


def _plain(value: Any) -> Any:
    """A value as dicts, lists and leaves."""
    return msgspec.to_builtins(value, builtin_types=_PARTS, str_keys=True)


_NAMES: dict[str, Any] = {
    "LONGS": LONGS,
    "INTS": INTS,
    "float_bytes": FLOAT.pack,
    "double_bytes": DOUBLE.pack,
    "as_int": as_int,
    "as_float": as_float,
    "as_text": as_text,
    "as_bytes": as_bytes,
    "of_size": of_size,
    "misfit": misfit,
    "unknown_fields": _unknown_fields,
    "join": b"".join,
    "MISSING": MISSING,
}


class _Compiler:
    """Writes the functions. A part gives the expressions of its bytes, which are joined in the end."""

    def __init__(self, schema: AvroSchema, source: Source) -> None:
        self._schema, self._source = schema, source
        self._functions: dict[Any, str] = {}
        self.is_uncertain = False
        """Whether only reading back tells if a value fits: msgspec checks more than classes."""

    def compile(self, kind: Kind, frame: bytes) -> tuple[str, str]:
        source = self._source
        with source.block("def one(v)"):
            source.add(f"return {_joined([repr(frame), *self._value(self._schema.root, kind, 'v')])}")
        with source.block("def many(values)"):
            source.add("rows = []", "add = rows.append")
            with source.block("for v in values"):
                source.add(f"add({_joined([repr(frame), *self._value(self._schema.root, kind, 'v')])})")
            source.add("return rows")
        return "one", "many"

    def _value(self, part: Any, kind: Kind, value: str) -> list[str]:
        """Write what checks a value, which a variable holds; the expressions of its bytes."""
        node = self._schema.node(part)
        if isinstance(node, list):
            return self._union(node, kind, value)
        member = member_for(kind, node)
        if member is None:
            raise self._cannot(f"{kind} cannot be written as {_named(node)}")
        return _BY_TYPE[node["type"]](self, node, member, value)

    def _cannot(self, reason: str) -> MisfitError:
        place = self._source.path
        return MisfitError(f"field {place}: {reason}" if place else reason)

    # unions

    def _union(self, branches: list[Any], kind: Kind, value: str) -> list[str]:
        nodes = [self._schema.node(branch) for branch in branches]
        others = [place for place, node in enumerate(nodes) if node["type"] != "null"]
        if len(nodes) == len(others) + 1 and len(others) == 1 and takes_none(kind):
            return self._optional(nodes, others[0], _without_none(kind), value)
        return self._branches(nodes, kind, value)

    def _optional(self, nodes: list[Any], place: int, kind: Kind, value: str) -> list[str]:
        source, data = self._source, self._source.variable()
        with source.block(f"if {value} is None"):
            source.add(f"{data} = {LONGS[1 - place]!r}")
        with source.block("else"):
            parts = self._value(nodes[place], kind, value)
            source.add(f"{data} = {_joined([repr(LONGS[place]), *parts])}")
        return [data]

    def _branches(self, nodes: list[Any], kind: Kind, value: str) -> list[str]:
        source, data = self._source, self._source.variable()
        first = True
        for place, node in enumerate(nodes):
            member = member_for(kind, node)
            if member is None or (node["type"] == "null" and not takes_none(kind)):
                continue
            condition, inner = self._condition(node, nodes, member, value)
            with source.block(f"{'if' if first else 'elif'} {condition}"):
                parts = self._value(node, member, inner)
                source.add(f"{data} = {_joined([repr(LONGS[place]), *parts])}")
            first = False
        if first:
            raise self._cannot(f"{kind} fits no branch of the union")
        with source.block("else"):
            source.add(f"misfit({value}, 'value of its union')")
        return [data]

    def _condition(self, node: Any, nodes: list[Any], kind: Kind, value: str) -> tuple[str, str]:
        """When a value is one of a branch, and what then stands for it."""
        test = self._test(node, nodes, kind, value)
        if node["type"] in ("record", "error") and kind.is_plain:
            names = self._source.bound((node["name"], node["name"].rpartition(".")[2]))
            is_tagged = f"type({value}) is tuple and len({value}) == 2 and {value}[0] in {names}"
            inner = self._source.variable()
            return (f"({inner} := {value}[1] if {is_tagged} else {value} if {test} else MISSING) is not MISSING", inner)
        return test, value

    def _test(self, node: Any, nodes: list[Any], kind: Kind, value: str) -> str:
        """The condition that a value is one of a branch, and of no other."""
        logical, name = logical_of(node), node["type"]
        if logical is not None and not is_raw(kind, logical):
            return self._test_of_class(logical.cls, value)
        if name in _BITS:
            return f"type({value}) is int and {-(1 << _BITS[name])} <= {value} < {1 << _BITS[name]}"
        if name in ("float", "double"):
            has_int = any(other["type"] in _BITS for other in nodes)
            return f"type({value}) is float" if has_int else f"type({value}) in {self._source.bound((float, int))}"
        if name in ("record", "error"):
            return self._test_of_record(node, kind, value)
        if name == "enum" and not kind.is_enum:
            return f"type({value}) is str and {value} in {self._source.bound(frozenset(node['symbols']))}"
        return self._test_of_class(kind.base if kind.is_enum or kind.base in COLLECTIONS else CLASSES[name], value)

    def _test_of_class(self, cls: type, value: str) -> str:
        return f"type({value}) is {self._source.bound(cls)}"

    def _test_of_record(self, node: Any, kind: Kind, value: str) -> str:
        if kind.shape is not None and not kind.shape.is_dict:
            return self._test_of_class(kind.shape.cls, value)
        names = frozenset(field["name"] for field in node["fields"])
        required = frozenset(field["name"] for field in node["fields"] if "default" not in field)
        sets = self._source.bound(required), self._source.bound(names)
        return f"type({value}) is dict and {sets[0]} <= {value}.keys() <= {sets[1]}"

    # leaves

    def _null(self, node: Any, kind: Kind, value: str) -> list[str]:
        self._source.add(f"if {value} is not None: misfit({value}, 'None')")
        return []

    def _boolean(self, node: Any, kind: Kind, value: str) -> list[str]:
        value = self._of_kind(value, node, kind, None)
        return [f"(b'\\x01' if {value} is True else b'\\x00' if {value} is False else misfit({value}, 'bool'))"]

    def _integer(self, node: Any, kind: Kind, value: str) -> list[str]:
        number = self._raw(node, kind, value)
        table = "INTS" if node["type"] == "int" else "LONGS"
        if number == value:
            number = self._exact(value, "int", "as_int")
        return [f"{table}[{number}]"]

    def _real(self, node: Any, kind: Kind, value: str) -> list[str]:
        number = self._exact(self._of_kind(value, node, kind, None), "float", "as_float")
        return [f"{node['type']}_bytes({number})"]

    def _text(self, node: Any, kind: Kind, value: str) -> list[str]:
        text, data = self._raw(node, kind, value), self._source.variable()
        if text == value:
            text = self._exact(value, "str", "as_text")
        self._source.add(f"{data} = {text}.encode()")
        return [f"LONGS[len({data})]", data]

    def _bytes(self, node: Any, kind: Kind, value: str) -> list[str]:
        data = self._raw(node, kind, value)
        if data == value:
            data = self._exact(value, "bytes", "as_bytes")
        return [f"LONGS[len({data})]", data]

    def _fixed(self, node: Any, kind: Kind, value: str) -> list[str]:
        data = self._raw(node, kind, value)
        if data == value:
            data = self._exact(value, "bytes", "as_bytes")
        return [f"of_size({data}, {node['size']})"]

    def _exact(self, value: str, cls: str, other: str) -> str:
        """A variable with a value of exactly this class."""
        exact = self._source.variable()
        self._source.add(f"{exact} = {value} if type({value}) is {cls} else {other}({value})")
        return exact

    def _raw(self, node: Any, kind: Kind, value: str) -> str:
        """The variable with what a value is without its logical type; the same without one."""
        logical = logical_of(node)
        if logical is None or is_raw(kind, logical):
            return self._of_kind(value, node, kind, None)
        given, raw = self._of_kind(value, node, kind, logical), self._source.variable()
        self._source.add(f"{raw} = {self._source.bound(logical.write)}({given})")
        return raw

    def _of_kind(self, value: str, node: Any, kind: Kind, logical: Logical | None) -> str:
        """The variable with what is written of a value of a kind that is not the plain one of its schema."""
        given = logical.cls if logical else CLASSES[node["type"]]
        if kind.is_limited or not (kind.is_plain or kind.base in (given, None) or _is_close(kind, given)):
            return self._uncertain(value, kind)
        return value

    def _uncertain(self, value: str, kind: Kind) -> str:
        """What msgspec makes of a value; whether it may be written, reading it back tells."""
        self.is_uncertain = True
        if kind.base in (Literal, *_PARTS) or (isinstance(kind.base, type) and kind.base.__module__ in _KNOWN_MODULES):
            return value
        plain = self._source.variable()
        self._source.add(f"{plain} = {self._source.bound(_plain)}({value})")
        return plain

    # complex types

    def _enum(self, node: Any, kind: Kind, value: str) -> list[str]:
        places = {symbol: LONGS[place] for place, symbol in enumerate(node["symbols"])}
        if kind.is_enum:
            members = {enum_member(kind.base, symbol): data for symbol, data in places.items()}
            members.pop(MISSING, None)
            return [f"{self._source.bound(members)}[{value}]"]
        return [f"{self._source.bound(places)}[{self._of_kind(value, node, kind, None)}]"]

    def _array(self, node: Any, kind: Kind, value: str) -> list[str]:
        base = kind.base if kind.base in COLLECTIONS else list
        items = kind.arguments[0] if kind.base in COLLECTIONS and kind.arguments else PLAIN
        value = self._collection(value, kind, base)
        parts, item = self._begin(value)
        with self._source.block(f"for {item} in {value}"):
            self._append(parts, self._value(node["items"], items, item))
        return self._end(parts)

    def _map(self, node: Any, kind: Kind, value: str) -> list[str]:
        is_dict = kind.base is dict and len(kind.arguments) == 2 and kind.arguments[0].base is str
        items = kind.arguments[1] if is_dict else PLAIN
        value = self._collection(
            value, kind if is_dict or kind.is_plain else Kind(kind.hint, None, is_limited=True), dict
        )
        parts, item = self._begin(value)
        key = self._source.variable()
        with self._source.block(f"for {key}, {item} in {value}.items()"):
            written = self._text({"type": "string"}, Kind(str, str), key)
            self._append(parts, [*written, *self._value(node["values"], items, item)])
        return self._end(parts)

    def _collection(self, value: str, kind: Kind, base: type) -> str:
        if kind.is_limited or not (kind.is_plain or kind.base is base):
            value = self._uncertain(value, kind)
        name = base.__name__
        self._source.add(f"if type({value}) is not {name}: misfit({value}, {name!r})")
        return value

    def _begin(self, value: str) -> tuple[str, str]:
        parts = self._source.variable()
        self._source.add(f"{parts} = [LONGS[len({value})]]")
        return parts, self._source.variable()

    def _append(self, parts: str, written: list[str]) -> None:
        if len(written) == 1:
            self._source.add(f"{parts}.append({written[0]})")
        elif written:
            self._source.add(f"{parts} += ({', '.join(written)})")

    def _end(self, parts: str) -> list[str]:
        """A block with all items, and an empty one behind it; an empty collection is the latter alone."""
        self._source.add(f"if {parts}[0] != b'\\x00': {parts}.append(b'\\x00')")
        return [f"join({parts})"]

    def _record(self, node: Any, kind: Kind, value: str) -> list[str]:
        if not holds_itself(self._schema, node):
            return self._fields(node, kind, value)
        asked, source = (id(node), repr(kind.hint)), self._source
        if asked not in self._functions:
            name = self._functions[asked] = f"record{len(self._functions)}"
            with source.apart(), source.block(f"def {name}(v)"):
                source.add(f"return {_joined(self._fields(node, kind, 'v'))}")
        return [f"{self._functions[asked]}({value})"]

    def _fields(self, node: Any, kind: Kind, value: str) -> list[str]:
        shape = kind.shape
        if shape is None and not kind.is_plain:
            value, kind = self._uncertain(value, kind), PLAIN
        if shape is None or shape.is_dict:
            return self._of_dict(node, shape, value)
        cls = self._source.bound(shape.cls)
        self._source.add(f"if type({value}) is not {cls}: misfit({value}, {shape.cls.__name__!r})")
        parts: list[str] = []
        for field in node["fields"]:
            known = shape.fields.get(field["name"])
            with self._source.field(field["name"]):
                if known is None:
                    parts.append(repr(self._default(field)))
                    continue
                name = self._source.variable()
                self._source.add(f"{name} = {value}.{known.attribute}")
                parts += self._value(field["type"], known.kind, name)
        self._refuse_others(node, shape, value)
        return parts

    def _refuse_others(self, node: Any, shape: ClassShape, value: str) -> None:
        """Fields of the class that the schema does not have would be lost, unless they hold their defaults."""
        names = {field["name"] for field in node["fields"]}
        for known in shape.fields.values():
            if known.name in names:
                continue
            with self._source.field(known.name):
                if known.default is MISSING:
                    raise self._cannot(f"the schema {node['name']} has no such field, and it has no default")
                default, reason = self._source.bound(known.default), "value that the schema keeps: it has no such field"
                self._source.add(
                    f"if {value}.{known.attribute} != {default}: misfit({value}.{known.attribute}, {reason!r})"
                )

    def _of_dict(self, node: Any, shape: ClassShape | None, value: str) -> list[str]:
        source, names = self._source, frozenset(field["name"] for field in node["fields"])
        source.add(f"if not isinstance({value}, dict): misfit({value}, 'dict')")
        source.add(f"if len({value}) != {len(names)}: unknown_fields({value}, {source.bound(names)})")
        parts: list[str] = []
        for field in node["fields"]:
            known = shape.fields.get(field["name"]) if shape else None
            with source.field(field["name"]):
                parts += self._entry(field, known.kind if known else PLAIN, value)
        return parts

    def _entry(self, field: Any, kind: Kind, value: str) -> list[str]:
        """One field of a dict; one that is missing has the default of the schema."""
        source, item = self._source, self._source.variable()
        if "default" not in field:
            source.add(f"{item} = {value}[{field['name']!r}]")
            return self._value(field["type"], kind, item)
        data = source.variable()
        source.add(f"{item} = {value}.get({field['name']!r}, MISSING)")
        with source.block(f"if {item} is MISSING"):
            source.add(f"{data} = {self._default(field)!r}")
        with source.block("else"):
            source.add(f"{data} = {_joined(self._value(field['type'], kind, item))}")
        return [data]

    def _default(self, field: Any) -> bytes:
        if "default" not in field:
            raise self._cannot("it is in the schema and not in the class, and has no default")
        return default_bytes(self._schema, field["type"], field["default"])


_BITS = {"int": 31, "long": 63}
"""Of integers, without their sign."""

_KNOWN_MODULES = ("decimal", "uuid", "datetime", "kstreams.serdes.avro.logical")

_BY_TYPE: dict[str, Callable[[_Compiler, Any, Kind, str], list[str]]] = {
    "null": _Compiler._null,
    "boolean": _Compiler._boolean,
    "int": _Compiler._integer,
    "long": _Compiler._integer,
    "float": _Compiler._real,
    "double": _Compiler._real,
    "string": _Compiler._text,
    "bytes": _Compiler._bytes,
    "fixed": _Compiler._fixed,
    "enum": _Compiler._enum,
    "array": _Compiler._array,
    "map": _Compiler._map,
    "record": _Compiler._record,
    "error": _Compiler._record,
}


def _joined(parts: list[str]) -> str:
    """One expression for the bytes of several."""
    return parts[0] if len(parts) == 1 else f"join(({', '.join(parts)}))" if parts else "b''"


def _without_none(kind: Kind) -> Kind:
    if kind.base is not Union:
        return kind
    others = tuple(member for member in kind.arguments if member.base is not type(None))
    return others[0] if len(others) == 1 else Kind(kind.hint, Union, others)


def _is_close(kind: Kind, given: type) -> bool:
    """Whether the writer of a class takes values of another one, and they are read back as such."""
    return (kind.base is float and given is int) is False and (
        (kind.base is int and given is float) or (kind.base is dt.timedelta and given is AvroDuration)
    )


def _named(node: Any) -> str:
    return str(node.get("name") or node.get("logicalType") or node["type"])
