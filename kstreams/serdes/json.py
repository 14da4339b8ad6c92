"""`JsonSerde`: values of one type as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import json_decoder
from kstreams.serdes.base import FieldColumns
from kstreams.serdes.json_columns import JsonColumns, decode_lines, encode_lines
from kstreams.serdes.non_finite import json_forms, read_non_finite
from kstreams.serdes.typed import UNWRITABLE, TypedSerde

_FEW_ROWS = 8  # up to this number, rows are converted faster one by one


class JsonSerde(TypedSerde):
    """Values of one type as JSON. Reading checks the type, and every written value can be read.

    `kstreams.serdes.non_finite` describes how NaN and infinities are written and read.

    Parameters
    ----------
    kind : type
        A msgspec Struct, dataclass, TypedDict, list, dict, union or `typing.Any`.

    Examples
    --------
    >>> JsonSerde(dict[str, int]).serialize({"a": 1})
    b'{"a":1}'
    """

    format = "JSON"
    encoder = msgspec.json.Encoder()
    decoder = staticmethod(json_decoder)

    def deserialize(self, data: bytes) -> Any:
        try:
            return super().deserialize(data)
        except SerdeError:
            with suppress(ValueError, RecursionError, msgspec.MsgspecError):
                return read_non_finite(data, self.type)
            raise

    def other_forms(self, value: object) -> Iterator[bytes]:
        yield from json_forms(msgspec.to_builtins(value, str_keys=True))  # converts only when the first form is needed

    def field_columns(self, fields: Sequence[str]) -> FieldColumns:
        return JsonColumns(self.type, fields)

    def encode_rows(self, values: list[Any]) -> pa.Array:
        lines = None
        if len(values) > _FEW_ROWS and self._may_use_lines() and self._are_plain(values):
            with suppress(*UNWRITABLE):  # encoding row by row raises an error that names the value
                lines = encode_lines(self.encoder, values)
        return super().encode_rows(values) if lines is None else lines

    def decode_rows(self, column: pa.Array) -> list[Any]:
        if len(column) > _FEW_ROWS and column.type == pa.binary() and self._may_use_lines():
            with suppress(SerdeError):  # decoding row by row raises an error that names the value
                rows = decode_lines(self._decoder, column.drop_null() if column.null_count else column)
                return _with_nulls(rows, column) if column.null_count else rows
        return super().decode_rows(column)

    def _may_use_lines(self) -> bool:
        """True if one call may convert many values. A subclass may have overridden the conversion of one value."""
        return type(self) is JsonSerde


def _with_nulls(rows: list[object], column: pa.Array) -> list[object]:
    """Return a list of the column's length: the rows in order, and None where the column is null."""
    remaining_rows = iter(rows)
    return [next(remaining_rows) if is_valid else None for is_valid in column.is_valid().to_pylist()]
