"""Compatibility of Avro schemas, by the schema resolution of Avro's specification.

The comparison is stricter than Avro's Java library in two cases, where readers would get wrong values or none:

- The decimals of reader and writer have different scales.
- The writer lacks a field, and only the enum of the field has a default, not the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
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
    """A type inside a parsed schema, for comparisons: its definition, and the named types that it can refer to.

    Parameters
    ----------
    node : str, list or dict
    names : mapping of full name to definition
    """

    __slots__ = ("_names", "node")

    def __init__(self, node: Node, names: Mapping[str, Node]) -> None:
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
        """Return the type of a part of this type's definition."""
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
    return list(_AvroComparison().compare("", reader, writer))


def _parse(text: str, names: dict[str, Node]) -> Node:
    try:
        node = parse_schema(json.loads(text), names)
    except Exception as error:  # fastavro raises TypeError, KeyError and its own errors
        raise RegistryError(f"this is no Avro schema: {error}") from None
    if isinstance(node, dict):
        node.pop("__named_schemas", None)
    return node


class _AvroComparison:
    """One comparison of two schemas. It remembers the pairs of records that were compared already."""

    def __init__(self) -> None:
        self._compared: set[tuple[str, str]] = set()

    def compare(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        """Yield the incompatibilities of two types."""
        if "union" in (reader.kind, writer.kind):
            return self._compare_unions(path, reader, writer)
        if reader.kind != writer.kind:
            return self._check_promotion(path, reader, writer)
        return self._COMPARISONS.get(reader.kind, _AvroComparison._compare_same_kind)(self, path, reader, writer)

    def _compare_same_kind(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        yield from _compare_scales(path, reader, writer)

    def _check_promotion(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if reader.kind not in _PROMOTIONS.get(writer.kind, ()):
            yield _incompatibility(path, f"{_description(writer)} cannot be read as {_description(reader)}")

    def _compare_unions(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        for written in writer.branches():
            yield from self._compare_branch(path, reader, written)

    def _compare_branch(self, path: str, reader: AvroType, written: AvroType) -> Incompatibilities:
        """Yield the incompatibilities of a reader's type with one branch of the writer."""
        if reader.kind != "union":
            yield from self.compare(path, reader, written)
            return
        same_name = [
            branch
            for branch in reader.branches()
            if branch.kind == written.kind and _has_matching_name(branch, written)
        ]
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
            yield _incompatibility(path, reason)

    def _compare_records(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if not reader.is_named_as(writer):
            yield _incompatibility(
                path, f"the record {writer.name} cannot be read as {reader.name}, which has no such alias"
            )
            return
        if (reader.name, writer.name) in self._compared:
            return
        self._compared.add((reader.name, writer.name))
        written_fields = {field["name"]: field for field in writer.get("fields", ())}
        for field in reader.get("fields", ()):
            field_path = f"{path or reader.name}.{field['name']}"
            source = _written_field(field, written_fields)
            if source is not None:
                yield from self.compare(field_path, reader.of(field["type"]), writer.of(source["type"]))
            elif "default" not in field:
                yield _incompatibility(field_path, "is read, but was not written, and has no default")

    def _compare_enums(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if not reader.is_named_as(writer):
            yield _incompatibility(
                path, f"the enum {writer.name} cannot be read as {reader.name}, which has no such alias"
            )
            return
        unknown = [symbol for symbol in writer.get("symbols") if symbol not in reader.get("symbols")]
        if unknown and reader.get("default") is None:
            yield _incompatibility(path, f"the enum {reader.name} lacks {', '.join(unknown)}, and has no default")

    def _compare_fixed(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        if not reader.is_named_as(writer):
            yield _incompatibility(
                path, f"the fixed {writer.name} cannot be read as {reader.name}, which has no such alias"
            )
        elif reader.get("size") != writer.get("size"):
            yield _incompatibility(path, f"{writer.get('size')} bytes were written, and {reader.get('size')} are read")
        else:
            yield from _compare_scales(path, reader, writer)

    def _compare_arrays(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        return self.compare(f"{path}[]", reader.of(reader.get("items")), writer.of(writer.get("items")))

    def _compare_maps(self, path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
        return self.compare(f"{path}[]", reader.of(reader.get("values")), writer.of(writer.get("values")))

    _COMPARISONS: dict[str, Callable[[_AvroComparison, str, AvroType, AvroType], Incompatibilities]] = {
        "record": _compare_records,
        "enum": _compare_enums,
        "fixed": _compare_fixed,
        "array": _compare_arrays,
        "map": _compare_maps,
    }


def _has_matching_name(reader: AvroType, written: AvroType) -> bool:
    """True if the writer's type has no name, or a name that the reader's type matches."""
    return written.get("name") is None or reader.is_named_as(written)


def _written_field(field: dict[str, Node], written_fields: dict[str, Node]) -> Node:
    """Return the writer's field that a field of the reader is read from. None if the writer has no such field."""
    names = (field["name"], *field.get("aliases", ()))
    return next((written_fields[name] for name in names if name in written_fields), None)


def _compare_scales(path: str, reader: AvroType, writer: AvroType) -> Incompatibilities:
    if "decimal" == reader.get("logicalType") == writer.get("logicalType"):
        scale = writer.get("scale", 0)
        if reader.get("scale", 0) != scale:
            reason = f"decimals with {scale} digits after the point were written, and {reader.get('scale', 0)} are read"
            yield _incompatibility(path, reason)


def _description(schema_type: AvroType) -> str:
    if schema_type.kind == "union":
        return " or ".join(branch.name for branch in schema_type.branches())
    return f"the {schema_type.kind} {schema_type.name}" if schema_type.get("name") else schema_type.kind


def _incompatibility(path: str, reason: str) -> Incompatibility:
    return Incompatibility(path or "(root)", reason)
