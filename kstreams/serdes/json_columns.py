"""JSON values as columns: only the fields that are asked for are decoded, all values of a batch in one call."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.decoders import json_decoder
from kstreams.errors import SerdeError
from kstreams.serdes.class_fields import field_types, layout_of
from kstreams.serdes.json_lines import of_lines


class JsonColumns:
    """Reads fields of JSON objects into Arrow columns.

    The objects are checked as far as they are read: what stands in other fields is skipped, not looked at.

    Parameters
    ----------
    kind : type
        The type of the values: a msgspec Struct, dataclass, TypedDict or `dict[str, T]`.
    fields : sequence of str
        Which fields to read; each an int, float, str or bool, or one of them or None.

    Raises
    ------
    SerdeError
        When the type or one of the fields has no columnar form; says why.

    Examples
    --------
    >>> raw = pa.array([b'{"a":1,"b":"x"}', None, b'{"a":2,"b":"y"}'], pa.binary())
    >>> JsonColumns(dict[str, int], ["a"]).decode(raw)["a"].to_pylist()
    [1, None, 2]
    """

    def __init__(self, kind: Any, fields: Sequence[str]) -> None:
        known = layout_of(kind)
        self.types = {name: field.type for name, field in field_types(kind, fields).items()}
        row = msgspec.defstruct("Row", [known[name] for name in fields], gc=False)
        self._decoder = json_decoder(row)

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """The fields of an Arrow binary array of JSON; null where the value is null.

        Raises
        ------
        SerdeError
            When a value does not decode; which one, the record path tells.
        """
        present = column.drop_null() if column.null_count else column
        rows = of_lines(self._decoder, present)
        columns = {name: _column(rows, name, kind) for name, kind in self.types.items()}
        if column.null_count:
            places = pc.cumulative_sum(pc.cast(column.is_valid(), pa.int64()))
            places = pc.if_else(column.is_valid(), pc.subtract(places, 1), None)
            columns = {name: found.take(places) for name, found in columns.items()}
        return columns


def _column(rows: list[Any], name: str, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(list(map(attrgetter(name), rows)), kind)
    except (pa.ArrowException, OverflowError) as error:
        raise SerdeError(f"the field {name!r} holds a value that {kind} does not: {error}") from error
