"""`AvroColumns`: fields of records as Arrow columns; the others are moved past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from kstreams.serdes.json_columns import JsonColumns


class AvroColumns(JsonColumns):
    """Reads fields of records into Arrow columns.

    Parameters
    ----------
    kind : type
        The class of the values, as for `JsonColumns`.
    fields : sequence of str
    reader : callable
        Of a class the function that reads a binary array as a list of its objects.
    """

    def __init__(
        self, kind: Any, fields: Sequence[str], reader: Callable[[Any], Callable[[pa.Array], list[Any]]]
    ) -> None:
        super().__init__(kind, fields)
        self._read = reader(self.row)

    def rows(self, column: pa.Array) -> list[Any]:
        return self._read(column)
