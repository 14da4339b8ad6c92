"""`AvroColumnReader` and `AvroColumnWriter`: fields of Avro records as Arrow columns.

Columns are available for records whose fields are numbers, strings, booleans, or unions of one of these types and null.
fastavro reads and writes records of every schema as objects. Expressions need no objects: they read the required fields
as Arrow columns, and write columns as records. The bytes are the same as those of fastavro.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.serdes.avro.schema import AvroSchema, SchemaNode
from kstreams.serdes.avro.schema_parts import holds_itself
from kstreams.serdes.avro.wire_columns import Int64Array, RecordCursors, RecordPieces

Read: TypeAlias = Callable[[RecordCursors], Any]
"""Reads or skips the next value of each record. Returns an Arrow array, or None for skipped values."""
Write: TypeAlias = "Callable[[RecordPieces, pa.Array, Int64Array | None], None]"
"""Writes the values of an array to the records with these row numbers, or to all records."""


class NoColumnsError(SerdeError):
    """The error of a schema with a part that has no columnar form."""


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
            raise NoColumnsError(f"the schema lacks the fields {', '.join(sorted(self._fields - types.keys()))}")
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
        positions = offsets.astype(np.int64)
        cursors = RecordCursors(
            np.frombuffer(octet_buffer or b"", np.uint8), positions[:-1] + self._start, positions[1:]
        )
        values = {name: read(cursors) for name, read in self._readers.items()}
        if (cursors.starts != cursors.ends).any():
            raise SerdeError("a record has more bytes than its schema describes")
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

    def encode(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Encode columns as a binary array of records.

        Raises
        ------
        SerdeError
            If the columns are not the fields of the schema, or a value does not fit.
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
        raise NoColumnsError("only records with fields have a columnar form")
    return node


def _reader(schema: AvroSchema, node: SchemaNode, is_read: bool) -> Read:
    if isinstance(node, list):
        return _optional_reader(schema, node, is_read)
    if not is_read:
        return _skipper(schema, node)
    read = _READERS.get(node["type"])
    if read is None or "logicalType" in node:
        raise NoColumnsError(f"{node.get('logicalType', node['type'])} has no columnar form")
    return read


def _skipper(schema: AvroSchema, node: SchemaNode) -> Read:
    """Return the reader that skips a value."""
    skipper_of = _SKIPPERS.get(node["type"])
    if skipper_of is None:
        raise NoColumnsError(f"{node['type']} cannot be skipped in columns")
    return skipper_of(schema, node)


def _optional_reader(schema: AvroSchema, branches: list[SchemaNode], is_read: bool) -> Read:
    null_index, other = _null_and_other(schema, branches)
    read_other = _reader(schema, other, is_read)

    def read(cursors: RecordCursors) -> pa.Array:
        branch_of_row = cursors.numbers()
        if ((branch_of_row != null_index) & (branch_of_row != 1 - null_index)).any():
            raise SerdeError("a value has a branch that its union does not have")
        present_rows = np.flatnonzero(branch_of_row != null_index)
        present_cursors = cursors.select(present_rows)
        values = read_other(present_cursors)
        cursors.resume(present_rows, present_cursors)
        if not is_read or len(present_rows) == len(branch_of_row):
            return values
        indices = np.full(len(branch_of_row), -1)
        indices[present_rows] = np.arange(len(present_rows))
        return values.take(pa.array(indices, mask=indices < 0))

    return read


def _null_and_other(schema: AvroSchema, branches: list[SchemaNode]) -> tuple[int, SchemaNode]:
    """Return the index of null in a union of null and another type, and the other type."""
    nodes = [schema.node(branch) for branch in branches]
    kinds = [None if isinstance(node, list) else node["type"] for node in nodes]
    if len(nodes) != 2 or kinds.count("null") != 1:
        raise NoColumnsError("only unions of null and one other type have a columnar form")
    null_index = kinds.index("null")
    return null_index, nodes[1 - null_index]


def _read_booleans(cursors: RecordCursors) -> pa.Array:
    octets = cursors.octets(1)[:, 0]
    if (octets > 1).any():
        raise SerdeError("a boolean is neither 0 nor 1")
    return pa.array(octets.astype(np.bool_))


def _read_floats(cursors: RecordCursors) -> pa.Array:
    return pa.array(cursors.octets(4).view("<f4")[:, 0].astype(np.float64))


_READERS: dict[str, Read] = {
    "int": lambda cursors: pa.array(cursors.numbers(bits=32)),
    "long": lambda cursors: pa.array(cursors.numbers()),
    "float": _read_floats,
    "double": lambda cursors: pa.array(cursors.octets(8).view("<f8")[:, 0]),
    "boolean": _read_booleans,
    "string": RecordCursors.texts,
}


def _record_skipper(schema: AvroSchema, node: SchemaNode) -> Read:
    if holds_itself(schema, node):
        raise NoColumnsError(f"{node['name']} is recursive, and cannot be skipped in columns")
    field_skippers = [_reader(schema, schema.node(field["type"]), False) for field in node["fields"]]

    def skip(cursors: RecordCursors) -> None:
        for skip_field in field_skippers:
            skip_field(cursors)

    return skip


def _symbol_skipper(schema: AvroSchema, node: SchemaNode) -> Read:
    def skip(cursors: RecordCursors) -> None:
        symbols = cursors.numbers(bits=32)
        if ((symbols < 0) | (symbols >= len(node["symbols"]))).any():
            raise SerdeError(f"a value has a symbol that {node['name']} does not have")

    return skip


_SKIPPERS: dict[str, Callable[[AvroSchema, SchemaNode], Read]] = {
    "null": lambda schema, node: lambda cursors: None,
    "int": lambda schema, node: lambda cursors: cursors.numbers(bits=32),
    "long": lambda schema, node: RecordCursors.numbers,
    "float": lambda schema, node: lambda cursors: cursors.skip(4),
    "double": lambda schema, node: lambda cursors: cursors.skip(8),
    "boolean": lambda schema, node: lambda cursors: cursors.skip(1),
    "string": lambda schema, node: lambda cursors: cursors.skip(cursors.lengths()),
    "bytes": lambda schema, node: lambda cursors: cursors.skip(cursors.lengths()),
    "fixed": lambda schema, node: lambda cursors: cursors.skip(node["size"]),
    "enum": _symbol_skipper,
    "record": _record_skipper,
}


def _writer(schema: AvroSchema, node: SchemaNode) -> Write:
    if isinstance(node, list):
        return _optional_writer(schema, node)
    arrow_type, write = _WRITERS.get(node["type"], (None, None))
    if write is None or "logicalType" in node:
        raise NoColumnsError(f"{node.get('logicalType', node['type'])} cannot be written from columns")

    def write_checked(pieces: RecordPieces, column: pa.Array, rows: Int64Array | None) -> None:
        if column.type != arrow_type or column.null_count:
            raise SerdeError(f"a column of {column.type} with {column.null_count} nulls is no {node['type']}")
        write(pieces, column, rows)

    return write_checked


def _optional_writer(schema: AvroSchema, branches: list[SchemaNode]) -> Write:
    null_index, other = _null_and_other(schema, branches)
    write_other = _writer(schema, other)

    def write(pieces: RecordPieces, column: pa.Array, rows: Int64Array | None) -> None:
        is_present = column.is_valid().to_numpy(zero_copy_only=False)
        pieces.add_numbers(np.where(is_present, 1 - null_index, null_index))
        write_other(pieces, column.drop_null(), np.flatnonzero(is_present))

    return write


def _write_ints(pieces: RecordPieces, column: pa.Array, rows: Int64Array | None) -> None:
    pieces.add_numbers(column.cast(pa.int32()).to_numpy().astype(np.int64), rows)  # the cast raises beyond 32 bits


def _write_doubles(pieces: RecordPieces, column: pa.Array, rows: Int64Array | None) -> None:
    pieces.add_fixed(column.to_numpy().astype("<f8").view(np.uint8).reshape(-1, 8), rows)


def _write_booleans(pieces: RecordPieces, column: pa.Array, rows: Int64Array | None) -> None:
    pieces.add_fixed(column.to_numpy(zero_copy_only=False).astype(np.uint8)[:, None], rows)


_WRITERS: dict[str, tuple[pa.DataType, Write]] = {
    "int": (pa.int64(), _write_ints),
    "long": (pa.int64(), lambda pieces, column, rows: pieces.add_numbers(column.to_numpy(), rows)),
    "double": (pa.float64(), _write_doubles),
    "boolean": (pa.bool_(), _write_booleans),
    "string": (pa.string(), lambda pieces, column, rows: pieces.add_texts(column, rows)),
}
