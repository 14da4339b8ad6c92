"""`decoder`: the function that reads one value with fastavro.

fastavro's compiled reader recurses into nested records until the stack overflows, and it trusts the count of an array
whose items have no bytes. Schemas with such types use fastavro's reader in Python, with a decoder that checks counts.
fastavro's `schemaless_reader` prepares both schemas before each record, which takes a third of the time. So this module
prepares them once and calls the inner function itself.
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

from kstreams.serdes.avro.schema import PRIMITIVES, AvroSchema, SchemaNode, short_name
from kstreams.serdes.avro.schema_parts import all_parts, holds_itself, may_be_empty

ABSENT: Final = object()
"""The value of a field that the writer's schema lacks."""

_BYTES_BESIDE_STRING = "bytes that are no text"
"""The name of a type that fastavro does not promote to a string."""
_NUMBERS = ("int", "long", "float", "double")


class Prepared(NamedTuple):
    """A schema in fastavro's form, with its named types."""

    root: SchemaNode
    names: dict[str, SchemaNode]


class Branches(list[SchemaNode]):
    """The branches of a union. A negative index is an error."""

    def __getitem__(self, number: Any, branch: Callable[[list[Any], Any], Any] = list.__getitem__) -> Any:
        if number < 0:
            raise IndexError(f"there is no branch {number} in its union")
        return branch(self, number)


def prepare_written(schema: AvroSchema) -> Prepared:
    """Prepare the schema that values were written with, to read them."""
    return _FastavroCopy(schema, is_written=True).prepared()


def prepare_reader(schema: AvroSchema, written: AvroSchema) -> Prepared:
    """Prepare the schema of a reader that differs from the schema that values were written with."""
    records = [node for node in all_parts(written) if isinstance(node, dict) and "fields" in node]
    written_fields = {short_name(node["name"]): {field["name"] for field in node["fields"]} for node in records}
    return _FastavroCopy(schema, is_reader=True, written_fields=written_fields).prepared()


def prepare_writing(schema: AvroSchema) -> Prepared:
    """Prepare a schema to write values with it."""
    return _FastavroCopy(schema).prepared()


def first_fields(record: Prepared, count: int) -> Prepared:
    """Return a record schema with only the first `count` fields."""
    return Prepared({**record.root, "fields": record.root["fields"][:count]}, record.names)


class _FastavroCopy:
    """The copy of a schema that fastavro reads or writes with.

    Parameters
    ----------
    schema : AvroSchema
    is_written : bool
        True for the schema that values were written with. Its symbols have explicit indices, so that a negative index
        is an error.
    is_reader : bool
        True for the schema of a reader. The default of every field is `ABSENT`, which marks missing fields.
    written_fields : mapping of str to set of str
        The names of the written fields of each record, by the short name of the record.
    """

    def __init__(
        self,
        schema: AvroSchema,
        *,
        is_written: bool = False,
        is_reader: bool = False,
        written_fields: Mapping[str, set[str]] = MappingProxyType({}),
    ) -> None:
        self._schema = schema
        self._written_fields = written_fields
        self._is_written = is_written
        self._is_reader = is_reader
        self._copies: dict[str, SchemaNode] = {}
        self._enclosing_names: set[str] = set()

    def prepared(self) -> Prepared:
        return Prepared(self._copy_part(self._schema.root), self._copies)

    def _copy_part(self, part: SchemaNode) -> SchemaNode:
        if isinstance(part, list):
            return self._copy_union(part)
        return self._copy_name(part) if isinstance(part, str) else self._copy_definition(part)

    def _copy_union(self, branches: list[SchemaNode]) -> Branches:
        copies = [self._copy_part(branch) for branch in branches]
        if (self._is_written or self._is_reader) and "string" in copies and "bytes" in copies:
            self._copies[_BYTES_BESIDE_STRING] = {"type": "bytes", "name": "bytes"}
            copies[copies.index("bytes")] = _BYTES_BESIDE_STRING
        return Branches(sorted(copies, key=_width) if self._is_reader else copies)

    def _copy_name(self, name: str) -> SchemaNode:
        """Return the copy of a named type, or its name inside the type itself."""
        if name in PRIMITIVES or name in self._enclosing_names:
            return name
        return self._copies[name] if name in self._copies else self._copy_definition(self._schema.names[name])

    def _copy_definition(self, node: dict[str, SchemaNode]) -> SchemaNode:
        copy = dict(node)
        name = node.get("name")
        if name is not None:
            self._copies[name] = copy
            self._enclosing_names.add(name)
        for attribute in ("items", "values"):
            if attribute in node:
                copy[attribute] = self._copy_part(node[attribute])
        if "symbols" in node and self._is_written:
            copy["symbols"] = dict(enumerate(node["symbols"]))
        if "fields" in node:
            written_names = self._written_fields.get(short_name(node["name"]), set())
            copy["fields"] = [self._copy_field(field, written_names) for field in node["fields"]]
        self._enclosing_names.discard(str(name))
        return copy

    def _copy_field(self, field: dict[str, SchemaNode], written_names: set[str]) -> dict[str, SchemaNode]:
        """Copy a field, without aliases if the writer has a field with its name. fastavro would prefer an alias."""
        copy = {**field, "type": self._copy_part(field["type"])}
        if field["name"] in written_names:
            copy.pop("aliases", None)
        if self._is_reader:
            copy["default"] = ABSENT
        return copy


def _width(branch: object) -> int:
    """Return the rank of a number type by its width. Other types sort before all numbers."""
    kind = branch["type"] if isinstance(branch, dict) else branch
    return _NUMBERS.index(kind) if kind in _NUMBERS else -1


_MAX_EMPTY_ITEMS: Final = 1 << 20
"""The limit of items without bytes in an array. Without a limit, a few bytes could claim any number of items."""

Decode = Callable[[BytesIO], Any]


def is_endless(schema: AvroSchema) -> bool:
    """True if a few bytes could decode to a value of unlimited size or depth."""
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
        The schemas of writer and reader. `reader` is None if both are the same.
    tagged : bool
        True if values of named types in unions are returned as tuples of the name and the value.
    careful : bool
        True for a schema for which `is_endless` is true.
    """
    root = written.root
    reader_root = reader and reader.root
    options = {"return_named_type": tagged}
    names = {"writer": written.names, "reader": reader.names if reader else {}}
    if careful:
        return lambda stream: read_in_python(_CheckedDecoder(stream), root, names, reader_root, options)  # type: ignore[no-untyped-call]
    return lambda stream: read_compiled(stream, root, names, reader_root, options)


class _CheckedDecoder(BinaryDecoder):
    """A decoder that reads numbers as the compiled reader does, and limits the number of items."""

    def read_long(self) -> int:
        number: int = read_long(self.fo)
        return number

    read_int = read_long

    def iter_array(self) -> Iterator[None]:
        remaining_items = max(_MAX_EMPTY_ITEMS, self.fo.getbuffer().nbytes)
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
