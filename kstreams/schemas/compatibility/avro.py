"""Compatibility of Avro schemas, by the schema resolution of Avro's specification.

It is stricter than Avro's Java library in two cases where readers would get wrong values or none: decimals of another
scale, and a field that the writer does not have, without a default, whose enum has one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.incompatibility import Incompatibility, importing
from kstreams.schemas.references import ResolvedSchema

with importing("Avro schemas"):
    from fastavro.schema import parse_schema

Node: TypeAlias = Any
"""A part of a schema: the name of a type, a list (a union), or a dict (a definition)."""
Incompatibilities = Iterator[Incompatibility]

_PROMOTIONS = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


class AvroType:
    """A type of a parsed schema: its definition, and the named types that it can use.

    Parameters
    ----------
    node : str, list or dict
    names : mapping of full name to definition
    """

    __slots__ = ("_names", "node")

    def __init__(self, node: Node, names: dict[str, Node]) -> None:
        while isinstance(node, str) and node in names:
            node = names[node]
        self.node = node
        self._names = names

    @property
    def kind(self) -> str:
        """`record`, `enum`, `union`, `int`, ..."""
        if isinstance(self.node, list):
            return "union"
        kind = self.node["type"] if isinstance(self.node, dict) else self.node
        return "record" if kind == "error" else str(kind)

    @property
    def name(self) -> str:
        """The full name, or the kind if the type has no name."""
        return str(self.get("name", self.kind))

    @property
    def short_name(self) -> str:
        """The name without namespace."""
        return self.name.rpartition(".")[2]

    def get(self, attribute: str, default: Node = None) -> Node:
        """Return an attribute of the definition."""
        return self.node.get(attribute, default) if isinstance(self.node, dict) else default

    def of(self, node: Node) -> AvroType:
        """Return a type inside this one."""
        return AvroType(node, self._names)

    def branches(self) -> list[AvroType]:
        """Return the branches of a union, or a list of only this type if it is not a union."""
        return [self.of(node) for node in self.node] if isinstance(self.node, list) else [self]

    def is_named_as(self, writer: AvroType) -> bool:
        """True if a writer's type has the same short name, or a name that is an alias of this type."""
        return self.short_name == writer.short_name or writer.name in self._full_aliases()

    def _full_aliases(self) -> set[str]:
        namespace = self.name.rpartition(".")[0]
        return {alias if "." in alias or not namespace else f"{namespace}.{alias}" for alias in self.get("aliases", ())}


def parsed(schema: ResolvedSchema) -> AvroType:
    """Parse a schema. Raises RegistryError if it is not an Avro schema."""
    names: dict[str, Node] = {}
    for _, text in schema.imports:
        _parse(text, names)
    return AvroType(_parse(schema.text, names), names)


def incompatibilities(reader: ResolvedSchema, writer: ResolvedSchema) -> list[Incompatibility]:
    """Return the reasons why the reader cannot read records of the writer. Empty if it can."""
    return differences(parsed(reader), parsed(writer))


def differences(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Return the reasons why a reader's type cannot hold values of a writer's type."""
    return list(_Comparison().compare("", reader, writer))


def _parse(text: str, names: dict[str, Node]) -> Node:
    try:
        node = parse_schema(json.loads(text), names)
    except Exception as error:  # fastavro raises TypeError, KeyError and its own errors
        raise RegistryError(f"this is no Avro schema: {error}") from None
    if isinstance(node, dict):
        node.pop("__named_schemas", None)
    return node


class _Comparison:
    """One comparison of two schemas, with the pairs of named types that were compared already."""

    def __init__(self) -> None:
        self._compared: set[tuple[str, str]] = set()

    def compare(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        """Yield the incompatibilities of two types."""
        if "union" in (reader.kind, writer.kind):
            return self._unions(path, reader, writer)
        if reader.kind != writer.kind:
            return self._promotion(path, reader, writer)
        return self._COMPLEX.get(reader.kind, _Comparison._same)(self, path, reader, writer)

    def _same(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        yield from _decimals(path, reader, writer)

    def _promotion(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if reader.kind not in _PROMOTIONS.get(writer.kind, ()):
            yield _at(path, f"{_description(writer)} cannot be read as {_description(reader)}")

    def _unions(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        for written in writer.branches():
            yield from self._branch(path, reader, written)

    def _branch(self, path: str, reader: AvroType, written: AvroType) -> Incompatibilities:
        """Yield the incompatibilities of a reader's type with one branch of the writer."""
        if reader.kind != "union":
            yield from self.compare(path, reader, written)
            return
        same_name = [branch for branch in reader.branches() if branch.kind == written.kind and _may_be(branch, written)]
        reasons: list[Incompatibility] = []
        for branch in same_name or reader.branches():
            compared_before = set(self._compared)
            reasons = list(self.compare(path, branch, written))
            if not reasons:
                return
            self._compared = compared_before
        if same_name:
            yield from reasons
        else:
            reason = f"{_description(written)} is written, and the union is read as {_description(reader)} alone"
            yield _at(path, reason)

    def _record(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if not reader.is_named_as(writer):
            yield _at(path, f"the record {writer.name} cannot be read as {reader.name}, which has no such alias")
            return
        if (reader.name, writer.name) in self._compared:
            return
        self._compared.add((reader.name, writer.name))
        written = {field["name"]: field for field in writer.get("fields", ())}
        for field in reader.get("fields", ()):
            place = f"{path or reader.name}.{field['name']}"
            source = _source(field, written)
            if source is not None:
                yield from self.compare(place, reader.of(field["type"]), writer.of(source["type"]))
            elif "default" not in field:
                yield _at(place, "is read, but was not written, and has no default")

    def _enum(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if not reader.is_named_as(writer):
            yield _at(path, f"the enum {writer.name} cannot be read as {reader.name}, which has no such alias")
            return
        unknown = [symbol for symbol in writer.get("symbols") if symbol not in reader.get("symbols")]
        if unknown and reader.get("default") is None:
            yield _at(path, f"the enum {reader.name} lacks {', '.join(unknown)}, and has no default")

    def _fixed(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if not reader.is_named_as(writer):
            yield _at(path, f"the fixed {writer.name} cannot be read as {reader.name}, which has no such alias")
        elif reader.get("size") != writer.get("size"):
            yield _at(path, f"{writer.get('size')} bytes were written, and {reader.get('size')} are read")
        else:
            yield from _decimals(path, reader, writer)

    def _array(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        return self.compare(f"{path}[]", reader.of(reader.get("items")), writer.of(writer.get("items")))

    def _map(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        return self.compare(f"{path}[]", reader.of(reader.get("values")), writer.of(writer.get("values")))

    _COMPLEX: dict[str, Callable[[_Comparison, str, AvroType, AvroType], Incompatibilities]] = {
        "record": _record,
        "enum": _enum,
        "fixed": _fixed,
        "array": _array,
        "map": _map,
    }


def _may_be(reader: AvroType, written: AvroType) -> bool:
    return "name" not in (written.node if isinstance(written.node, dict) else ()) or reader.is_named_as(written)


def _source(field: dict[str, Node], written: dict[str, Node]) -> Node:
    """Return the field of the writer that fills a field of the reader; None if there is none."""
    names = (field["name"], *field.get("aliases", ()))
    return next((written[name] for name in names if name in written), None)


def _decimals(path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
    if "decimal" == reader.get("logicalType") == writer.get("logicalType"):
        scale = writer.get("scale", 0)
        if reader.get("scale", 0) != scale:
            reason = f"decimals with {scale} digits after the point were written, and {reader.get('scale', 0)} are read"
            yield _at(path, reason)


def _description(schema_type: AvroType) -> str:
    if schema_type.kind == "union":
        return " or ".join(branch.name for branch in schema_type.branches())
    return f"the {schema_type.kind} {schema_type.name}" if schema_type.get("name") else schema_type.kind


def _at(path: str, reason: str) -> Incompatibility:
    return Incompatibility(path or "(root)", reason)
