"""The formats of files that a sink writes: Parquet, JSON lines and CSV, each a writer of record batches to a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.connectors.files.folders import NewFile
from kstreams.errors import ConnectorError

_TO_ESCAPE = r'["\\\x00-\x1f]'
"""The characters of a text that JSON escapes."""

_json = msgspec.json.Encoder()


class TableWriter(Protocol):
    """Writes record batches of one schema."""

    def write(self, table: pa.Table) -> None:
        """Write rows."""
        ...

    def close(self) -> None:
        """Write the end of the file. The stream stays open."""
        ...


class FileFormat:
    """A format with its suffix, its compressions and its writer.

    Parameters
    ----------
    suffix : str
        The end of the names of its files.
    open : callable
        Takes a stream, a schema and a compression, and returns a `TableWriter`.
    compressions : dict of str to str
        The suffix that each compression appends to the name.
    compression : str
        The default.
    """

    def __init__(
        self,
        suffix: str,
        open: Callable[[NewFile, pa.Schema, str], TableWriter],
        compressions: dict[str, str],
        compression: str,
    ) -> None:
        self.suffix = suffix
        self.open = open
        self.compressions = compressions
        self.compression = compression


def format_named(name: str, compression: str | None) -> tuple[FileFormat, str]:
    """Return a format and its compression.

    Raises
    ------
    ConnectorError
        If there is no such format, or it has no such compression.
    """
    if name not in FORMATS:
        raise ConnectorError(f"There is no file format {name!r}: take one of {', '.join(FORMATS)}.")
    file_format = FORMATS[name]
    chosen = compression or file_format.compression
    if chosen not in file_format.compressions:
        raise ConnectorError(
            f"{name} files have no compression {chosen!r}: take one of {', '.join(file_format.compressions)}."
        )
    return file_format, chosen


def _parquet(stream: NewFile, schema: pa.Schema, compression: str) -> TableWriter:
    import pyarrow.parquet as pq

    writer: TableWriter = pq.ParquetWriter(stream, schema, compression=compression)
    return writer


class _Text:
    """Lines of text, compressed as a whole."""

    def __init__(self, stream: NewFile, compression: str) -> None:
        self._stream: Any = stream
        self._compressed = compression != "none"
        if self._compressed:
            self._stream = pa.CompressedOutputStream(pa.PythonFile(_Unclosed(stream), mode="w"), compression)

    def write(self, data: Any) -> None:
        self._stream.write(data)

    def close(self) -> None:
        if self._compressed:
            self._stream.close()


class _Unclosed:
    """A stream that stays open when Arrow closes the file on it."""

    def __init__(self, stream: NewFile) -> None:
        self._stream = stream
        self.closed = False

    def write(self, data: bytes) -> int:
        return self._stream.write(data)

    def flush(self) -> None:
        """Do nothing: the owner flushes."""

    def close(self) -> None:
        self.closed = True


class JsonLines:
    """One JSON object per row. NaN and infinities are null, bytes are Base64, times are ISO 8601."""

    def __init__(self, stream: NewFile, schema: pa.Schema, compression: str) -> None:
        self._text = _Text(stream, compression)

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            if len(batch):
                self._text.write(json_lines(batch))

    def close(self) -> None:
        self._text.close()


class CsvLines:
    """Comma-separated values with a header. Null is empty, and an empty text is `""`; nested values are JSON."""

    def __init__(self, stream: NewFile, schema: pa.Schema, compression: str) -> None:
        self._text = _Text(stream, compression)
        self._has_header = False

    def write(self, table: pa.Table) -> None:
        from pyarrow import csv

        rows = pa.BufferOutputStream()
        csv.write_csv(_flat(table), rows, csv.WriteOptions(include_header=not self._has_header))
        self._has_header = True
        self._text.write(rows.getvalue())

    def close(self) -> None:
        self._text.close()


def json_lines(batch: pa.RecordBatch) -> pa.Buffer:
    r"""Return rows as lines of JSON.

    Examples
    --------
    >>> rows = pa.RecordBatch.from_pylist([{"a": 1, "b": 'say "x"'}, {"a": None, "b": "y"}])
    >>> json_lines(rows).to_pybytes()
    b'{"a":1,"b":"say \\"x\\""}\n{"a":null,"b":"y"}\n'
    """
    parts: list[Any] = []
    for position, name in enumerate(batch.schema.names):
        parts.append(("," if position else "{") + _json.encode(name).decode() + ":")
        parts.append(_json_text(batch.column(position)).fill_null("null"))
    if not parts:
        return pa.py_buffer(b"{}\n" * len(batch))
    lines = pc.binary_join_element_wise(*map(_large, [*parts, "}\n", ""]))
    return _characters(lines)


def _large(part: Any) -> Any:
    return pa.scalar(part, pa.large_string()) if isinstance(part, str) else part.cast(pa.large_string())


def _characters(lines: pa.Array) -> pa.Buffer:
    """Return the bytes of all texts of a column without nulls that was just computed."""
    _, offsets, characters = lines.buffers()
    bounds = memoryview(offsets).cast("q")
    first = bounds[lines.offset]
    return characters.slice(first, bounds[lines.offset + len(lines)] - first)


def _json_text(column: pa.Array) -> pa.Array:
    """Return the JSON of each value; null stays null."""
    for is_kind, convert in _JSON_TEXT:
        if is_kind(column.type):
            return convert(column)
    return _converted_singly(column)


def _converted_singly(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else _json.encode(value).decode() for value in column.to_pylist()], "string")


def _quoted(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, _TO_ESCAPE)).as_py():
        return _converted_singly(column)
    return pc.binary_join_element_wise('"', column.cast(pa.string()), '"', "")


def _of_float(column: pa.Array) -> pa.Array:
    finite = pc.if_else(pc.is_finite(column), column, None)
    return pc.replace_substring_regex(finite.cast(pa.string()), r"^(-?\d+)$", r"\1.0")


def _of_timestamp(column: pa.Array) -> pa.Array:
    return _quoted(pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1))


def _as_text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_JSON_TEXT: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]]] = [
    (_is_text, _quoted),
    (pa.types.is_integer, _as_text),
    (pa.types.is_boolean, _as_text),
    (pa.types.is_floating, _of_float),
    (pa.types.is_timestamp, _of_timestamp),
    (pa.types.is_date, lambda column: _quoted(_as_text(column))),
]


def _flat(table: pa.Table) -> pa.Table:
    """Return a table whose nested columns are JSON texts."""
    for position, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = pa.chunked_array([_converted_singly(chunk) for chunk in table.column(position).chunks], pa.string())
            table = table.set_column(position, field.name, texts)
    return table


_TEXT_COMPRESSIONS = {"none": "", "gzip": ".gz", "zstd": ".zst"}

FORMATS = {
    "parquet": FileFormat(".parquet", _parquet, dict.fromkeys(("zstd", "snappy", "lz4", "gzip", "none"), ""), "zstd"),
    "json": FileFormat(".json", JsonLines, _TEXT_COMPRESSIONS, "none"),
    "csv": FileFormat(".csv", CsvLines, _TEXT_COMPRESSIONS, "none"),
}
"""The formats by their names."""
