"""`GatheredRows`: the rows of a task since its last commit, for tables that take them at the commit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.connectors.api import Offsets, RefusedRow, SinkBatch
from kstreams.connectors.fitted_rows import FittedRows, fit
from kstreams.connectors.rows import RowColumns
from kstreams.errors import ConnectorError

DELETED = "kstreams_deleted"
"""The column that marks rows whose value is null, where rows are upserted."""


class TableMode(NamedTuple):
    """How rows become rows of a table: appended, or upserted by key columns."""

    key: tuple[str, ...]
    upserts: bool


def table_mode(mode: str, key: tuple[str, ...], declaration: str) -> TableMode:
    """Return the mode of a table by its name.

    Raises
    ------
    ConnectorError
        If there is no such mode, or an upsert has no key.
    """
    if mode not in ("append", "upsert"):
        raise ConnectorError(f"{declaration} has no mode {mode!r}: take 'append' or 'upsert'.")
    if mode == "upsert" and not key:
        raise ConnectorError(f"{declaration} upserts by key columns: name them in `key=`.")
    return TableMode(key, mode == "upsert")


class GatheredRows:
    """Rows and their offsets.

    Parameters
    ----------
    columns : RowColumns
    mode : TableMode
    """

    def __init__(self, columns: RowColumns, mode: TableMode) -> None:
        self._columns = columns
        self._mode = mode
        self._batches: list[pa.RecordBatch] = []
        self._offsets: list[Offsets] = []
        self._refused: list[RefusedRow] = []

    def add(self, batch: SinkBatch) -> None:
        """Take rows. Where rows are appended, those without value are left out."""
        rows = self._columns.of(batch)
        present = batch.values.is_valid()
        if self._mode.upserts:
            rows = rows.append_column(DELETED, pc.invert(present))
            chosen = self._with_key(rows, batch.offsets)
        else:
            chosen = present
        if pc.all(chosen).as_py():
            self._add(rows, batch.offsets)
        else:
            self._add(rows.filter(chosen), batch.offsets[chosen.to_numpy(zero_copy_only=False)])

    def schema(self) -> pa.Schema | None:
        """Return the columns of all rows. None if there are no rows."""
        if not self._batches:
            return None
        schema = pa.unify_schemas([batch.schema for batch in self._batches], promote_options="permissive")
        return pa.schema([field for field in schema if field.name != DELETED])

    def fitted(self, table: pa.Schema) -> FittedRows:
        """Return the rows as those of a table, the last one of each key where rows are upserted."""
        refused = self._refused
        if not self._batches:
            return FittedRows(table.empty_table(), np.array([], np.int64), refused)
        offsets = np.concatenate(self._offsets)
        rows = pa.concat_tables(
            [pa.Table.from_batches([batch]) for batch in self._batches], promote_options="permissive"
        )
        if self._mode.upserts:
            deleted = rows.column(DELETED).to_numpy()
            fitted = fit(rows, offsets, table.append(pa.field(DELETED, pa.bool_())), may_lack_values=deleted)
        else:
            fitted = fit(rows, offsets, table)
        return FittedRows(fitted.rows, fitted.offsets, [*refused, *fitted.refused])

    def clear(self) -> None:
        """Discard the rows."""
        self._batches = []
        self._offsets = []
        self._refused = []

    def _add(self, rows: pa.RecordBatch, offsets: Offsets) -> None:
        if len(rows):
            self._batches.append(rows)
            self._offsets.append(offsets)

    def _with_key(self, rows: pa.RecordBatch, offsets: Offsets) -> pa.Array:
        """Return which rows have a key. The others are refused, since they stand for no row of the table."""
        has_key = pa.repeat(pa.scalar(True), len(rows))
        for name in self._mode.key:
            has_key = pc.and_(has_key, rows.column(rows.schema.get_field_index(name)).is_valid())
        for index in np.flatnonzero(~has_key.to_numpy(zero_copy_only=False)).tolist():
            error = ValueError(f"a record without {', '.join(self._mode.key)} cannot be upserted")
            self._refused.append(RefusedRow(int(offsets[index]), error))
        return has_key
