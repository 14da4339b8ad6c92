"""`AvroColumnReader` and `AvroColumnWriter`: fields of Avro records as Arrow columns.

Columns are available for records whose fields are numbers, strings, booleans, or unions of one of them and null.
fastavro reads and writes records of every schema as objects. Expressions need no objects: they read the required fields
as Arrow columns, and write columns as records with the same bytes as fastavro.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.serdes.avro.schema import AvroSchema, SchemaNode
from kstreams.serdes.avro.schema_parts import holds_itself
from kstreams.serdes.avro.wire_columns import Places, RecordPieces, Rows

Read: TypeAlias = Callable[[Rows], Any]
"""Reads the next value of each record as an Arrow array, or skips it."""
Write: TypeAlias = "Callable[[RecordPieces, pa.Array, Places | None], None]"
"""Writes the values of an array to some of the records, or to all."""


class NoColumnsError(SerdeError):
    """The error of a part of a schema that has no columnar form."""


class AvroColumnReader:
    """A reader of fields of records that were written with one schema.

    Parameters
    ----------
    schema : AvroSchema
    start : int
        The length of the frame before a record.
    fields : sequence of str
        The fields to read.

    Raises
    ------
    NoColumnsError
        If the schema has a part that cannot be read or skipped in columns.
    """

    def __init__(self, schema: AvroSchema, start: int, fields: Sequence[str]) -> None:
        node = _record(schema, schema.node(schema.root))
        types = {field["name"]: schema.node(field["type"]) for field in node["fields"]}
        self._start = start
        self._fields = {*fields}
        if not self._fields <= types.keys():
            raise NoColumnsError(f"the schema has not all of the fields {', '.join(fields)}")
        self._readers = {name: _reader(schema, part, name in self._fields) for name, part in types.items()}

    def columns(self, column: pa.Array) -> dict[str, pa.Array]:
        """Read the fields of all records in a binary array without nulls.

        Raises
        ------
        SerdeError
            If some bytes are not a record of the schema.
        """
        _, offset_buffer, octet_buffer = column.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32)[column.offset : column.offset + len(column) + 1]
        places = offsets.astype(np.int64)
        rows = Rows(np.frombuffer(octet_buffer or b"", np.uint8), places[:-1] + self._start, places[1:])
        values = {name: read(rows) for name, read in self._readers.items()}
        if (rows.starts != rows.ends).any():
            raise SerdeError("a record has more bytes than its schema says")
        return {name: values[name] for name in self._fields}


class AvroColumnWriter:
    """A writer of records with one schema from the columns of their fields.

    Parameters
    ----------
    schema : AvroSchema
    frame : bytes
        The bytes before each record.

    Raises
    ------
    NoColumnsError
        If the schema has a part without a columnar form.
    """

    def __init__(self, schema: AvroSchema, frame: bytes) -> None:
        node = _record(schema, schema.node(schema.root))
        self._frame = frame
        self._fields = {field["name"]: _writer(schema, schema.node(field["type"])) for field in node["fields"]}

    def written(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Return the records as a binary array.

        Raises
        ------
        SerdeError
            If the columns are not those of the schema, or a value does not fit.
        """
        if columns.keys() != self._fields.keys():
            raise NoColumnsError("the columns are not the fields of the schema")
        pieces = RecordPieces(len(next(iter(columns.values()))))
        pieces.add_same(self._frame)
        for name, write in self._fields.items():
            column = columns[name]
            write(pieces, column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column, None)
        return pieces.joined()


def _record(schema: AvroSchema, node: SchemaNode) -> SchemaNode:
    if isinstance(node, list) or node["type"] != "record" or not node["fields"]:
        raise NoColumnsError("only the fields of records are columns")
    return node


# reading


def _reader(schema: AvroSchema, node: SchemaNode, is_read: bool) -> Read:
    if isinstance(node, list):
        return _optional_reader(schema, node, is_read)
    if not is_read:
        return _passing(schema, node)
    read = _READERS.get(node["type"])
    if read is None or "logicalType" in node:
        raise NoColumnsError(f"{node.get('logicalType', node['type'])} has no columnar form")
    return read


def _passing(schema: AvroSchema, node: SchemaNode) -> Read:
    """Return the reader that skips a value."""
    pass_over = _PASSING.get(node["type"])
    if pass_over is None:
        raise NoColumnsError(f"{node['type']} cannot be passed over in columns")
    return pass_over(schema, node)


def _optional_reader(schema: AvroSchema, branches: list[SchemaNode], is_read: bool) -> Read:
    null, other = _null_and_other(schema, branches)
    read_other = _reader(schema, other, is_read)

    def read(rows: Rows) -> pa.Array:
        chosen = rows.numbers()
        if ((chosen != null) & (chosen != 1 - null)).any():
            raise SerdeError("a union has no such branch")
        present = np.flatnonzero(chosen != null)
        part = rows.only(present)
        values = read_other(part)
        rows.resume(present, part)
        if not is_read or len(present) == len(chosen):
            return values
        places = np.full(len(chosen), -1)
        places[present] = np.arange(len(present))
        return values.take(pa.array(places, mask=places < 0))

    return read


def _null_and_other(schema: AvroSchema, branches: list[SchemaNode]) -> tuple[int, SchemaNode]:
    """Return the index of null in a union with one other type, and that type."""
    nodes = [schema.node(branch) for branch in branches]
    kinds = [None if isinstance(node, list) else node["type"] for node in nodes]
    if len(nodes) != 2 or kinds.count("null") != 1:
        raise NoColumnsError("of unions, columns know those of null and one type")
    null = kinds.index("null")
    return null, nodes[1 - null]


def _booleans(rows: Rows) -> pa.Array:
    octets = rows.octets(1)[:, 0]
    if (octets > 1).any():
        raise SerdeError("a truth value is neither 0 nor 1")
    return pa.array(octets.astype(np.bool_))


def _floats(rows: Rows) -> pa.Array:
    return pa.array(rows.octets(4).view("<f4")[:, 0].astype(np.float64))


_READERS: dict[str, Read] = {
    "int": lambda rows: pa.array(rows.numbers(bits=32)),
    "long": lambda rows: pa.array(rows.numbers()),
    "float": _floats,
    "double": lambda rows: pa.array(rows.octets(8).view("<f8")[:, 0]),
    "boolean": _booleans,
    "string": Rows.texts,
}


def _past_record(schema: AvroSchema, node: SchemaNode) -> Read:
    if holds_itself(schema, node):
        raise NoColumnsError(f"{node['name']} may hold itself")
    past_fields = [_reader(schema, schema.node(field["type"]), False) for field in node["fields"]]

    def past(rows: Rows) -> None:
        for past_field in past_fields:
            past_field(rows)

    return past


def _past_symbol(schema: AvroSchema, node: SchemaNode) -> Read:
    def past(rows: Rows) -> None:
        symbols = rows.numbers(bits=32)
        if ((symbols < 0) | (symbols >= len(node["symbols"]))).any():
            raise SerdeError(f"{node['name']} has no such symbol")

    return past


_PASSING: dict[str, Callable[[AvroSchema, SchemaNode], Read]] = {
    "null": lambda schema, node: lambda rows: None,
    "int": lambda schema, node: lambda rows: rows.numbers(bits=32),
    "long": lambda schema, node: Rows.numbers,
    "float": lambda schema, node: lambda rows: rows.skip(4),
    "double": lambda schema, node: lambda rows: rows.skip(8),
    "boolean": lambda schema, node: lambda rows: rows.skip(1),
    "string": lambda schema, node: lambda rows: rows.skip(rows.lengths()),
    "bytes": lambda schema, node: lambda rows: rows.skip(rows.lengths()),
    "fixed": lambda schema, node: lambda rows: rows.skip(node["size"]),
    "enum": _past_symbol,
    "record": _past_record,
}


# writing


def _writer(schema: AvroSchema, node: SchemaNode) -> Write:
    if isinstance(node, list):
        return _optional_writer(schema, node)
    kind, write = _WRITERS.get(node["type"], (None, None))
    if write is None or "logicalType" in node:
        raise NoColumnsError(f"{node['type']} is not written of columns")

    def checked(pieces: RecordPieces, column: pa.Array, rows: Places | None) -> None:
        if column.type != kind or column.null_count:
            raise SerdeError(f"a column of {column.type} with {column.null_count} nulls is no {node['type']}")
        write(pieces, column, rows)

    return checked


def _optional_writer(schema: AvroSchema, branches: list[SchemaNode]) -> Write:
    null, other = _null_and_other(schema, branches)
    write_other = _writer(schema, other)

    def write(pieces: RecordPieces, column: pa.Array, rows: Places | None) -> None:
        is_there = column.is_valid().to_numpy(zero_copy_only=False)
        pieces.add_numbers(np.where(is_there, 1 - null, null))
        write_other(pieces, column.drop_null(), np.flatnonzero(is_there))

    return write


def _write_ints(pieces: RecordPieces, column: pa.Array, rows: Places | None) -> None:
    pieces.add_numbers(column.cast(pa.int32()).to_numpy().astype(np.int64), rows)  # raises beyond 32 bits


def _write_doubles(pieces: RecordPieces, column: pa.Array, rows: Places | None) -> None:
    pieces.add_fixed(column.to_numpy().astype("<f8").view(np.uint8).reshape(-1, 8), rows)


def _write_booleans(pieces: RecordPieces, column: pa.Array, rows: Places | None) -> None:
    pieces.add_fixed(column.to_numpy(zero_copy_only=False).astype(np.uint8)[:, None], rows)


_WRITERS: dict[str, tuple[pa.DataType, Write]] = {
    "int": (pa.int64(), _write_ints),
    "long": (pa.int64(), lambda pieces, column, rows: pieces.add_numbers(column.to_numpy(), rows)),
    "double": (pa.float64(), _write_doubles),
    "boolean": (pa.bool_(), _write_booleans),
    "string": (pa.string(), lambda pieces, column, rows: pieces.add_texts(column, rows)),
}
