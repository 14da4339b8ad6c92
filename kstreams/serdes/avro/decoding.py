"""`decoder`: returns the function that reads one value with fastavro.

fastavro's compiled reader recurses into nested records until the stack overflows, and it trusts the count of an array
whose items have no bytes. Schemas with such types use fastavro's reader in Python, with a decoder that checks counts.
`schemaless_reader` prepares both schemas before each record, which takes a third of the time, so this module prepares
them once and calls the inner function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastavro._read import _read_data as read_compiled  # type: ignore[attr-defined]
from fastavro._read import read_long  # type: ignore[attr-defined]
from fastavro._read_py import read_data as read_in_python
from fastavro.io.binary_decoder import BinaryDecoder

from kstreams.serdes.avro.schema import PRIMITIVES, AvroSchema, SchemaNode
from kstreams.serdes.avro.schema_parts import all_parts, holds_itself, may_be_empty

ABSENT: Final = object()
"""The value of a field that the writer's schema lacks."""

_NO_TEXT = "bytes that are no text"
"""The name of a type that fastavro does not promote to a string."""
_NUMBERS = ("int", "long", "float", "double")


class Prepared(NamedTuple):
    """A schema in fastavro's form, with its named types."""

    root: SchemaNode
    names: dict[str, SchemaNode]


class Branches(list[SchemaNode]):
    """The branches of a union, which refuse negative indices."""

    def __getitem__(self, number: Any, branch: Callable[[list[Any], Any], Any] = list.__getitem__) -> Any:
        if number < 0:
            raise IndexError(f"there is no branch {number} in its union")
        return branch(self, number)


def for_writer(schema: AvroSchema) -> Prepared:
    """Prepare the schema that values were written with."""
    return _Copy(schema, counts_from_zero=True).whole()


def for_reader(schema: AvroSchema, written: AvroSchema) -> Prepared:
    """Prepare the schema of a reader that differs from the writer's."""
    records = [node for node in all_parts(written) if isinstance(node, dict) and "fields" in node]
    names = {_short(node["name"]): {field["name"] for field in node["fields"]} for node in records}
    return _Copy(schema, marks_defaults=True, written=names).whole()


def for_writing(schema: AvroSchema) -> Prepared:
    """Prepare the schema to write values with."""
    return _Copy(schema).whole()


def first_fields(record: Prepared, count: int) -> Prepared:
    """Return a record schema with only the first `count` fields."""
    return Prepared({**record.root, "fields": record.root["fields"][:count]}, record.names)


class _Copy:
    """The copy of a schema for fastavro."""

    def __init__(
        self,
        schema: AvroSchema,
        *,
        counts_from_zero: bool = False,
        marks_defaults: bool = False,
        written: Mapping[str, set[str]] = MappingProxyType({}),
    ) -> None:
        self._schema = schema
        self._written = written
        self._counts_from_zero = counts_from_zero
        self._marks_defaults = marks_defaults
        self._copies: dict[str, SchemaNode] = {}
        self._open: set[str] = set()

    def whole(self) -> Prepared:
        return Prepared(self._of(self._schema.root), self._copies)

    def _of(self, part: SchemaNode) -> SchemaNode:
        if isinstance(part, list):
            return self._of_union(part)
        return self._of_name(part) if isinstance(part, str) else self._of_node(part)

    def _of_union(self, branches: list[SchemaNode]) -> Branches:
        copies = [self._of(branch) for branch in branches]
        is_read = self._counts_from_zero or self._marks_defaults
        if is_read and "string" in copies and "bytes" in copies:
            self._copies[_NO_TEXT] = {"type": "bytes", "name": "bytes"}
            copies[copies.index("bytes")] = _NO_TEXT
        return Branches(sorted(copies, key=_width) if self._marks_defaults else copies)

    def _of_name(self, name: str) -> SchemaNode:
        """Return the type of a name, or the name itself within the type."""
        if name in PRIMITIVES or name in self._open:
            return name
        return self._copies[name] if name in self._copies else self._of_node(self._schema.names[name])

    def _of_node(self, node: dict[str, SchemaNode]) -> SchemaNode:
        copy = dict(node)
        name = node.get("name")
        if name is not None:
            self._copies[name] = copy
            self._open.add(name)
        for inside in ("items", "values"):
            if inside in node:
                copy[inside] = self._of(node[inside])
        if "symbols" in node and self._counts_from_zero:
            copy["symbols"] = dict(enumerate(node["symbols"]))
        if "fields" in node:
            by_name = self._written.get(_short(node["name"]), set())
            copy["fields"] = [self._field(field, by_name) for field in node["fields"]]
        self._open.discard(str(name))
        return copy

    def _field(self, field: dict[str, SchemaNode], by_name: set[str]) -> dict[str, SchemaNode]:
        """Copy a field. Aliases are dropped if the writer has the field's own name; fastavro would prefer an alias."""
        copy = {**field, "type": self._of(field["type"])}
        if field["name"] in by_name:
            copy.pop("aliases", None)
        if self._marks_defaults:
            copy["default"] = ABSENT
        return copy


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _width(branch: object) -> int:
    """Return the rank of a number type by width; other types sort before all numbers."""
    kind = branch["type"] if isinstance(branch, dict) else branch
    return _NUMBERS.index(kind) if kind in _NUMBERS else -1


MOST_EMPTY_ITEMS: Final = 1 << 20
"""The most items without bytes in an array, since a few bytes could claim any number of them."""

Decode = Callable[[BytesIO], Any]


def is_endless(schema: AvroSchema) -> bool:
    """Return True if a few bytes could decode to values of unlimited size or depth."""
    return any(
        holds_itself(schema, node) or (node["type"] == "array" and may_be_empty(schema, node["items"]))
        for node in all_parts(schema)
        if not isinstance(node, list)
    )


def decoder(written: Prepared, reader: Prepared | None, *, tagged: bool, careful: bool) -> Decode:
    """Return the function that reads a value from a stream.

    Parameters
    ----------
    written, reader : Prepared
        The schemas of writer and reader; `reader` is None if both are the same.
    tagged : bool
        True if values of named types in unions are returned as tuples with the name.
    careful : bool
        True for a schema that `is_endless`.
    """
    root = written.root
    new_root = reader and reader.root
    options = {"return_named_type": tagged}
    names = {"writer": written.names, "reader": reader.names if reader else {}}
    if careful:
        return lambda stream: read_in_python(_Decoder(stream), root, names, new_root, options)  # type: ignore[no-untyped-call]
    return lambda stream: read_compiled(stream, root, names, new_root, options)


class _Decoder(BinaryDecoder):
    """A decoder that reads numbers as the compiled reader does, and limits the number of items."""

    def read_long(self) -> int:
        number: int = read_long(self.fo)
        return number

    read_int = read_long

    def iter_array(self) -> Iterator[None]:
        remaining_items = max(MOST_EMPTY_ITEMS, self.fo.getbuffer().nbytes)
        while self._block_count:
            count = abs(self._block_count)
            if self._block_count < 0:
                self.read_long()
            remaining_items -= count
            if remaining_items < 0:
                raise ValueError("an array has more items than there are bytes")
            for _ in range(count):
                yield
            self._block_count = self.read_long()

    iter_map = iter_array
