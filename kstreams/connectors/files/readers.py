"""The formats of files that a source reads: CSV, JSON lines, text and Parquet."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple, Protocol

import pyarrow as pa

from kstreams.connectors.api import Position, UnreadableRow
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.files.lines import (
    LineBlocks,
    decompressed,
    last_newline,
    last_newline_outside_quotes,
)
from kstreams.connectors.source_columns import json_of, without_rows
from kstreams.errors import ConnectorError, SerdeError
from kstreams.serdes import serde_of
from kstreams.serdes.arrow_types import arrow_type
from kstreams.serdes.base import failing_rows


class ReadRows(NamedTuple):
    """Consecutive rows of a file, and those between them that do not fit the type."""

    values: pa.Array
    unreadable: Sequence[UnreadableRow] = ()


class Rows(Protocol):
    """The rows of one open file."""

    @property
    def position(self) -> Position:
        """Where the file continues after the last rows."""
        ...

    def next(self) -> ReadRows | None:
        """Return the next rows, or None if there are none now."""
        ...


class FileReading(Protocol):
    """A format that a source reads."""

    def open(self, file: BinaryIO, name: str, position: Position | None, *, grows: bool) -> Rows:
        """Return the rows of a file from a position on."""
        ...


class Block(NamedTuple):
    """Whole records of a file, and the byte after them."""

    content: bytes
    end: int


def _fields(value: Any, format_name: str) -> list[pa.Field]:
    """Return the columns of a class of values; none for dict."""
    if value is dict:
        return []
    struct = arrow_type(value)
    if struct is None or not struct.num_fields or not pa.types.is_struct(struct):
        raise ConnectorError(f"{value!r} is no type of {format_name} rows: give a class with fields, or dict")
    return list(struct)


class ParsedLines:
    """Rows that are parsed of blocks of lines.

    Parameters
    ----------
    next_block : callable
        Returns the next block, which is empty if there is none now.
    name : str
        The name of the file.
    parse : callable
        Takes whole records, and returns their rows.
    split : callable
        Divides a block into records, to find those that cannot be parsed.
    """

    def __init__(
        self,
        next_block: Callable[[], Block],
        name: str,
        parse: Callable[[bytes], pa.Array],
        split: Callable[[bytes], Iterable[bytes]],
    ) -> None:
        self._next_block = next_block
        self._name = name
        self._parse = parse
        self._split = split
        self.position: Position = None
        """The byte after the last block."""

    def next(self) -> ReadRows | None:
        """Return the rows of the next block."""
        block = self._next_block()
        if not block.content:
            return None
        self.position = block.end
        try:
            return ReadRows(self._parse(block.content))
        except (SerdeError, pa.ArrowException) as error:
            return self._readable(block, error)

    def _readable(self, block: Block, error: Exception) -> ReadRows:
        begin = block.end - len(block.content)
        records = list(self._split(block.content))
        errors = dict(failing_rows(lambda part: self._parse(b"".join(part)), records))
        if not errors:
            raise ConnectorError(f"{self._name} at byte {begin} cannot be read: {error}") from error
        begins = [begin, *(begin + size for size in accumulate(map(len, records)))]
        unreadable = [
            UnreadableRow(records[number].rstrip(b"\r\n"), {"byte": begins[number]}, cause)
            for number, cause in sorted(errors.items())
        ]
        readable = b"".join(record for number, record in enumerate(records) if number not in errors)
        return ReadRows(self._parse(readable) if readable else pa.nulls(0), unreadable)


class CsvRows:
    """The rows of a CSV file, and the blocks that they are in, without the header."""

    def __init__(self, reading: CsvReading, blocks: LineBlocks, name: str, columns: list[str]) -> None:
        self._reading = reading
        self._blocks = blocks
        self._columns = columns or reading.columns
        self._lines = ParsedLines(self._next_block, name, self._parse, reading.records)

    @property
    def position(self) -> Position:
        """The byte after the last block, and the columns."""
        return {"byte": self._blocks.position, "columns": self._columns}

    def next(self) -> ReadRows | None:
        """Return the rows of the next block."""
        return self._lines.next()

    def _next_block(self) -> Block:
        block = self._blocks.next()
        if block and not self._columns:
            header = next(self._reading.records(block))
            self._columns = self._reading.parse_header(header)
            block = block[len(header) :] or self._blocks.next()
        return Block(block, self._blocks.position)

    def _parse(self, block: bytes) -> pa.Array:
        return self._reading.rows(block, self._columns)


class CsvReading:
    """CSV with a header, or with the columns of a type.

    Parameters
    ----------
    value : type
        A class whose fields are columns, or dict: all columns as texts.
    delimiter, quote : str
    header : bool
        False if the first line is a row. The columns are then the fields of the type, in their order.
    null_values : sequence of str
        The texts that are null.
    """

    def __init__(self, value: Any, *, delimiter: str, quote: str, header: bool, null_values: Sequence[str]) -> None:
        self._fields = _fields(value, "CSV")
        self._delimiter = delimiter
        self._quote = quote
        self._header = header
        self._null_values = list(null_values)
        if not self._fields and not header:
            raise ConnectorError("CSV without a header needs a class whose fields name the columns")

    def open(self, file: BinaryIO, name: str, position: Position | None, *, grows: bool) -> Rows:
        """Return the rows of a file from a position on, which holds the columns of the header too."""
        state = position or {"byte": 0, "columns": []}
        end_of_records = last_newline_outside_quotes(self._quote)
        blocks = LineBlocks(decompressed(file, name), name, state["byte"], end_of_records, grows=grows)
        return CsvRows(self, blocks, name, state["columns"])

    @property
    def columns(self) -> list[str]:
        """The columns of a file without a header."""
        return [] if self._header else [field.name for field in self._fields]

    def parse_header(self, header: bytes) -> list[str]:
        """Return the names in a header."""
        from pyarrow import csv

        table = csv.read_csv(pa.BufferReader(header), parse_options=self._parse_options())
        return [name.removeprefix("\ufeff") for name in table.column_names]

    def _parse_options(self) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(delimiter=self._delimiter, quote_char=self._quote, newlines_in_values=True)

    def rows(self, block: bytes, names: list[str]) -> pa.Array:
        """Parse a block of whole records."""
        from pyarrow import csv

        types = self._column_types() or dict.fromkeys(names, pa.string())
        table = csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
            parse_options=self._parse_options(),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                include_missing_columns=True,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=self._null_values,
            ),
        )
        columns = {name: table[name].combine_chunks() for name in types}
        columns |= {field.name: _converted(columns[field.name], field.type) for field in self._fields}
        return pa.StructArray.from_arrays(list(columns.values()), list(columns))

    def _column_types(self) -> dict[str, pa.DataType]:
        """Return the types as which columns are parsed: times as texts, which may have a zone or not."""
        return {field.name: pa.string() if pa.types.is_timestamp(field.type) else field.type for field in self._fields}

    def records(self, block: bytes) -> Iterator[bytes]:
        """Divide a block into records."""
        quote = self._quote.encode()
        record = b""
        for line in io.BytesIO(block):
            record += line
            if record.count(quote) % 2 == 0:
                yield record
                record = b""
        if record:
            yield record


def _converted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:  # without a zone: UTC
        return column.cast(pa.timestamp(kind.unit)).cast(kind)


class JsonLinesReading:
    """A JSON value per line.

    Parameters
    ----------
    value : type
    """

    def __init__(self, value: Any) -> None:
        serde_of(value)  # refuses types without a serde
        self._value = value

    def open(self, file: BinaryIO, name: str, position: Position | None, *, grows: bool) -> Rows:
        """Return the rows of a file from a byte on."""
        blocks = LineBlocks(decompressed(file, name), name, position or 0, last_newline, grows=grows)
        columns = ValueColumns(serde_of(self._value))

        def rows(block: bytes) -> pa.Array:
            lines = [line for line in block.split(b"\n") if line.strip()]
            return columns.decode(pa.array(lines, pa.binary()))

        return ParsedLines(_blocks_of(blocks), name, rows, _lines)


class TextReading:
    """A text per line, without its end."""

    def open(self, file: BinaryIO, name: str, position: Position | None, *, grows: bool) -> Rows:
        """Return the lines of a file from a byte on."""
        blocks = LineBlocks(decompressed(file, name), name, position or 0, last_newline, grows=grows)
        return ParsedLines(_blocks_of(blocks), name, _texts, _lines)


def _blocks_of(blocks: LineBlocks) -> Callable[[], Block]:
    return lambda: Block(blocks.next(), blocks.position)


def _texts(block: bytes) -> pa.Array:
    return pa.array([line.rstrip(b"\r") for line in block.removesuffix(b"\n").split(b"\n")], pa.binary()).cast(
        pa.string()
    )


def _lines(block: bytes) -> list[bytes]:
    return block.splitlines(keepends=True)


class ParquetReading:
    """Parquet files, which are whole when they appear.

    Parameters
    ----------
    value : type
        A class whose fields are columns, or dict for all columns.
    """

    def __init__(self, value: Any) -> None:
        self._fields = _fields(value, "Parquet")

    def open(self, file: BinaryIO, name: str, position: Position | None, *, grows: bool) -> Rows:
        """Return the rows of a file from a row on."""
        return ParquetRows(file, name, position or 0, self._fields)


class ParquetRows:
    """The rows of a Parquet file from a row on."""

    def __init__(self, file: BinaryIO, name: str, position: int, fields: list[pa.Field]) -> None:
        from pyarrow import parquet

        self._name = name
        self._fields = fields
        self._file = parquet.ParquetFile(file)
        self._batches = self._rows_from(position)
        self.position = position

    def next(self) -> ReadRows | None:
        """Return the rows of the next batch."""
        batch = next(self._batches, None)
        if batch is None:
            return None
        begin = self.position
        self.position += len(batch)
        rows = batch.to_struct_array()
        try:
            return ReadRows(self._typed(rows))
        except KeyError as error:
            raise ConnectorError(f"{self._name} does not fit the type of values: {error}") from error
        except pa.ArrowException:
            return self._readable(rows, begin)

    def _typed(self, rows: pa.StructArray) -> pa.StructArray:
        if not self._fields:
            return rows
        columns = [rows.field(field.name).cast(field.type) for field in self._fields]
        return pa.StructArray.from_arrays(columns, fields=self._fields)

    def _readable(self, rows: pa.StructArray, begin: int) -> ReadRows:
        errors = dict(failing_rows(self._typed, rows))
        unreadable = [
            UnreadableRow(json_of(rows[number]), {"row": begin + number}, cause) for number, cause in errors.items()
        ]
        return ReadRows(self._typed(without_rows(rows, errors)), unreadable)

    def _rows_from(self, position: int) -> Iterator[pa.RecordBatch]:
        metadata = self._file.metadata
        before = 0
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            skipped = max(position - before, 0)
            before += rows
            if skipped < rows:
                yield from self._rows_of(group, skipped)

    def _rows_of(self, group: int, skipped: int) -> Iterator[pa.RecordBatch]:
        for batch in self._file.iter_batches(_BATCH_ROWS, row_groups=[group]):
            part = batch.slice(min(skipped, len(batch)))
            skipped -= len(batch) - len(part)
            if len(part):
                yield part


_BATCH_ROWS = 10_000
