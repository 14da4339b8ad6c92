"""`TableSource`: the rows of an Arrow table, of a data frame, or of a function that returns Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.connectors.api import Position, Source, SourceBatch, SourceReader
from kstreams.errors import ConnectorError
from kstreams.expressions.types import fields_of

Batches: TypeAlias = "Callable[[], Iterable[pa.RecordBatch]]"
"""Returns all rows from the first one, in the same order each time."""

_BATCH_ROWS = 10_000


class TableSource(Source):
    """The rows of a table. The position is the number of rows that were read.

    Parameters
    ----------
    batches : callable
    value : type
    key, timestamp : str
        Columns. Empty for none.
    """

    has_deletes = False

    def __init__(self, batches: Batches, value: Any, key: str, timestamp: str) -> None:
        fields = fields_of(value)
        if fields is not None and key and key not in fields:
            raise ConnectorError(f"{value.__name__} has no field {key!r} for keys; it has {', '.join(fields)}")
        key_type = str if fields is None else fields.get(key, bytes)
        super().__init__(key=key_type if key else bytes, value=value)
        self.batches = batches
        self.key_column = key
        self.timestamp_column = timestamp

    def splits(self) -> Iterable[str]:
        """Return the one split."""
        return ["rows"]

    def open(self, split: str, position: Position | None) -> SourceReader:
        """Return a reader from a row on."""
        return TableReader(self, position or 0)

    def __repr__(self) -> str:
        return "arrow(...)"


class TableReader:
    """Reads the rows of a table.

    Parameters
    ----------
    source : TableSource
    position : int
        The number of rows to skip.
    """

    def __init__(self, source: TableSource, position: int) -> None:
        self._source = source
        self._position = position
        self._batches = _after(source.batches(), position)

    def read(self) -> SourceBatch | None:
        """Return up to 10,000 rows. None at the end."""
        batch = next(self._batches, None)
        if batch is None:
            return None
        self._position += len(batch)
        return SourceBatch(
            values=pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)),
            position=self._position,
            keys=self._keys(batch) if self._source.key_column else None,
            timestamps=self._column(batch, self._source.timestamp_column) if self._source.timestamp_column else None,
        )

    def committed(self, position: Position) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def _keys(self, batch: pa.RecordBatch) -> pa.Array:
        keys = self._column(batch, self._source.key_column)
        return keys.cast(pa.string()) if self._source.key is str else keys

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        if name not in batch.schema.names:
            raise ConnectorError(f"the table has no column {name!r}; it has {', '.join(batch.schema.names)}")
        return batch.column(name)


def _after(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield what follows the first rows, in batches of limited size."""
    for batch in batches:
        skipped = min(rows, len(batch))
        rows -= skipped
        for start in range(skipped, len(batch), _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def batches_of(data: Any) -> Batches:
    """Return a function that returns the rows of a table, a data frame, or of the result of a function."""
    if isinstance(data, pa.Table):
        table: pa.Table = data
    elif callable(data):
        return partial(_batches_of_result, data)
    else:
        table = _table_of_frame(data)
    return partial(_batches_of_table, table)


def _table_of_frame(data: Any) -> pa.Table:
    import narwhals

    try:
        return narwhals.from_native(data, eager_only=True).to_arrow()
    except TypeError as error:
        raise ConnectorError(
            f"{type(data).__name__} is no table: pass an Arrow table, a Polars or pandas frame, or a function that "
            f"returns Arrow batches ({error})"
        ) from error


def _batches_of_table(table: pa.Table) -> Iterable[pa.RecordBatch]:
    yield from table.to_batches()


def _batches_of_result(function: Callable[[], Any]) -> Iterable[pa.RecordBatch]:
    data = function()
    for part in [data] if isinstance(data, pa.Table) else data:
        yield from part.to_batches() if isinstance(part, pa.Table) else [part]
