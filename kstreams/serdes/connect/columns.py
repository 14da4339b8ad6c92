"""`PayloadColumns`: fields of payloads as Arrow columns, with a schema before each payload or without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.serdes.connect.wrapped import split_schema
from kstreams.serdes.json_columns import JsonColumns


class PayloadColumns:
    """Reader of some fields of payloads as Arrow columns. A schema before a payload is not read.

    Parameters
    ----------
    kind : type
    fields : sequence of str
        The fields to read. The type of each is int, float, str or bool, or one of these or None.

    Raises
    ------
    SerdeError
        If the type or one of the fields has no columnar form. The message has the reason.

    Examples
    --------
    >>> data = pa.array([b'{"schema":{"type":"struct","fields":[]},"payload":{"a":1}}'], pa.binary())
    >>> PayloadColumns(dict[str, int], ["a"]).decode(data)["a"].to_pylist()
    [1]
    """

    def __init__(self, kind: Any, fields: Sequence[str]) -> None:
        self._columns = JsonColumns(kind, fields)

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """Return one column per field. A null value gives null fields. Raises SerdeError if a value does not decode."""
        present = column.drop_null() if column.null_count else column
        if len(present) and pc.any(pc.match_substring(present, '"schema"')).as_py():
            column = pa.array(
                [None if data is None else split_schema(data).payload for data in column.to_pylist()], pa.binary()
            )
        return self._columns.decode(column)
