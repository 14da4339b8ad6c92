"""Typed JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from kstreams.decoders import json_decoder
from kstreams.errors import SerdeError
from kstreams.serdes.json_lines import as_lines, of_lines
from kstreams.serdes.typed import TypedSerde

_FEW = 8  # rows that are converted faster one by one


class JsonSerde(TypedSerde):
    """Values of one type as JSON; what is read is checked against the type.

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

    def encode_rows(self, values: list[Any]) -> pa.Array:
        found = None
        if len(values) > _FEW and self._is_plain():
            with suppress(TypeError, ValueError, OverflowError, msgspec.MsgspecError):  # which one, the rows tell
                found = as_lines(self.encoder, values)
        return super().encode_rows(values) if found is None else found

    def decode_rows(self, column: pa.Array) -> list[Any]:
        if len(column) > _FEW and column.type == pa.binary() and self._is_plain():
            with suppress(SerdeError):  # which one, the rows tell
                rows = of_lines(self._decoder, column.drop_null() if column.null_count else column)
                return _spread(rows, column) if column.null_count else rows
        return super().decode_rows(column)

    def _is_plain(self) -> bool:
        """Whether each value is written and read as here: a subclass may do it in its own way."""
        return type(self) is JsonSerde


def _spread(rows: list[Any], column: pa.Array) -> list[Any]:
    """One after the other where the column has a value, None where it is null."""
    left = iter(rows)
    return [next(left) if is_there else None for is_there in column.is_valid().to_pylist()]
