"""`decoder`: what reads one value with fastavro.

fastavro's compiled reader follows nested records until the process has no stack left, and takes an array of items
without bytes to be as long as its count says. Schemas with such types go through its reader in Python, with a decoder
that looks at counts. `schemaless_reader` looks at both schemas before each record, which takes a third of the time: so
what it calls then is called here.
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

from kstreams.serdes.avro.schema import PRIMITIVES, AvroSchema
from kstreams.serdes.avro.schema_parts import all_parts, holds_itself, may_be_empty

ABSENT: Final = object()
"""Stands for a field that the writer does not have."""

_NO_TEXT = "bytes that are no text"
"""The name of a type that fastavro does not promote."""
_NUMBERS = ("int", "long", "float", "double")


class Prepared(NamedTuple):
    """A schema, and the named types within it."""

    root: Any
    names: dict[str, Any]


class Branches(list[Any]):
    """The branches of a union, which count from 0 on."""

    def __getitem__(self, number: Any, branch: Callable[[list[Any], Any], Any] = list.__getitem__) -> Any:
        if number < 0:
            raise IndexError(f"there is no branch {number} in its union")
        return branch(self, number)


def for_writer(schema: AvroSchema) -> Prepared:
    """The schema that values were written with."""
    return _Copy(schema, counts_from_zero=True).whole()


def for_reader(schema: AvroSchema, written: AvroSchema) -> Prepared:
    """Another schema that they are read with."""
    records = [node for node in all_parts(written) if isinstance(node, dict) and "fields" in node]
    names = {_short(node["name"]): {field["name"] for field in node["fields"]} for node in records}
    return _Copy(schema, marks_defaults=True, written=names).whole()


def for_writing(schema: AvroSchema) -> Prepared:
    """The schema that values are to be written with."""
    return _Copy(schema).whole()


def first_fields(record: Prepared, count: int) -> Prepared:
    """A record with the first of its fields alone."""
    return Prepared({**record.root, "fields": record.root["fields"][:count]}, record.names)


class _Copy:
    """One copy of a schema."""

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
        self._copies: dict[str, Any] = {}
        self._open: set[str] = set()

    def whole(self) -> Prepared:
        return Prepared(self._of(self._schema.root), self._copies)

    def _of(self, part: Any) -> Any:
        if isinstance(part, list):
            return self._of_union(part)
        return self._of_name(part) if isinstance(part, str) else self._of_node(part)

    def _of_union(self, branches: list[Any]) -> Branches:
        made = [self._of(branch) for branch in branches]
        is_read = self._counts_from_zero or self._marks_defaults
        if is_read and "string" in made and "bytes" in made:
            self._copies[_NO_TEXT] = {"type": "bytes", "name": "bytes"}
            made[made.index("bytes")] = _NO_TEXT
        return Branches(sorted(made, key=_width) if self._marks_defaults else made)

    def _of_name(self, name: str) -> Any:
        """The type of a name; within itself its name."""
        if name in PRIMITIVES or name in self._open:
            return name
        return self._copies[name] if name in self._copies else self._of_node(self._schema.names[name])

    def _of_node(self, node: dict[str, Any]) -> Any:
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

    def _field(self, field: dict[str, Any], by_name: set[str]) -> dict[str, Any]:
        """A field that is written under its own name is not looked for under others, as fastavro would."""
        copy = {**field, "type": self._of(field["type"])}
        if field["name"] in by_name:
            copy.pop("aliases", None)
        if self._marks_defaults:
            copy["default"] = ABSENT
        return copy


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _width(branch: object) -> int:
    """How wide a number is; other types stand before all numbers."""
    kind = branch["type"] if isinstance(branch, dict) else branch
    return _NUMBERS.index(kind) if kind in _NUMBERS else -1


MOST_EMPTY_ITEMS: Final = 1 << 20
"""How many items an array may have that take no bytes: a few bytes could claim any number of them."""

Decode = Callable[[BytesIO], Any]


def is_endless(schema: AvroSchema) -> bool:
    """Whether a few bytes of a schema could stand for values without end."""
    return any(
        holds_itself(schema, node) or (node["type"] == "array" and may_be_empty(schema, node["items"]))
        for node in all_parts(schema)
        if not isinstance(node, list)
    )


def decoder(written: Prepared, reader: Prepared | None, *, tagged: bool, careful: bool) -> Decode:
    """What reads a value from a stream.

    Parameters
    ----------
    written, wanted : Prepared
        The schemas of writer and reader; `wanted` is None where it is the same.
    tagged : bool
        Whether values of named types in unions come with the name, as a tuple.
    careful : bool
        For a schema that is endless.
    """
    root = written.root
    new_root = reader and reader.root
    options = {"return_named_type": tagged}
    names = {"writer": written.names, "reader": reader.names if reader else {}}
    if careful:
        return lambda stream: read_in_python(_Decoder(stream), root, names, new_root, options)  # type: ignore[no-untyped-call]
    return lambda stream: read_compiled(stream, root, names, new_root, options)


class _Decoder(BinaryDecoder):
    """Reads numbers as the compiled reader does, and no more items than there can be."""

    def read_long(self) -> int:
        number: int = read_long(self.fo)
        return number

    read_int = read_long

    def iter_array(self) -> Iterator[None]:
        most = max(MOST_EMPTY_ITEMS, self.fo.getbuffer().nbytes)
        while self._block_count:
            count = abs(self._block_count)
            if self._block_count < 0:
                self.read_long()
            most -= count
            if most < 0:
                raise ValueError("an array has more items than there are bytes")
            for _ in range(count):
                yield
            self._block_count = self.read_long()

    iter_map = iter_array
