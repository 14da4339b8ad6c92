"""`LakehouseTableWriter`: writes a topic partition to a lakehouse table, which takes rows and offset at the commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Generic, TypeVar

import pyarrow as pa

from kstreams.connectors.api import RefusedRow, SinkBatch, SinkTask
from kstreams.connectors.fitted_rows import FittedRows
from kstreams.connectors.gathered_rows import GatheredRows
from kstreams.errors import ConnectorError, FencedError

ATTEMPTS = 20
"""How often a commit is tried while those of other tasks come first."""

T = TypeVar("T")


class LakehouseTableWriter(ABC, Generic[T]):
    """Gathers rows until the commit. A subclass knows the tables of one format.

    Parameters
    ----------
    task : SinkTask
    place : str
        The name of the table, for errors.
    rows : GatheredRows
    table : table or None
        None if there is no table yet. It is created for the first rows.
    """

    def __init__(self, task: SinkTask, place: str, rows: GatheredRows, table: T | None) -> None:
        self._task = task
        self._place = place
        self._rows = rows
        self._table = table
        self._next_offset = None if table is None else self._offset_in(table)
        self._fitted: FittedRows | None = None

    def next_offset(self) -> int | None:
        return self._next_offset

    def write(self, batch: SinkBatch) -> None:
        self._rows.add(batch)
        self._fitted = None

    def flush(self) -> Sequence[RefusedRow]:
        schema = self._rows.schema()
        if schema is None and self._table is None:
            return self._rows.fitted(pa.schema([])).refused
        if self._table is None:
            self._table = self._create(schema)
            self._require_own_offset(self._table)
        if schema is not None:
            self._add_columns(self._table, schema)
        self._fitted = self._fitted_to(self._table)
        return self._fitted.refused

    def commit(self, next_offset: int) -> None:
        if self._fitted is None:
            self.flush()
        if self._table is not None:
            self._attempt(self._table, next_offset)
            self._next_offset = next_offset
        self._rows.clear()
        self._fitted = None

    def close(self) -> None:
        self._rows.clear()
        self._fitted = None

    @abstractmethod
    def _offset_in(self, table: T) -> int | None:
        """Return the offset of the task in a table. None if the table holds none."""

    @abstractmethod
    def _schema(self, table: T) -> pa.Schema:
        """Return the columns of a table."""

    @abstractmethod
    def _create(self, rows: pa.Schema) -> T:
        """Create the table for rows, unless another task creates it at the same time."""

    @abstractmethod
    def _add_columns(self, table: T, rows: pa.Schema) -> None:
        """Add the columns of rows that a table does not have."""

    @abstractmethod
    def _attempt(self, table: T, next_offset: int) -> None:
        """Commit at the newest snapshot, and again while other tasks come first."""

    def _fitted_to(self, table: T) -> FittedRows:
        """Return the rows with the columns of a table."""
        return self._rows.fitted(self._schema(table))

    def _rows_for(self, table: T) -> pa.Table:
        """Return the rows with the columns of a table, to which another task may have added some."""
        if self._fitted is None or {*self._schema(table).names}.difference(self._fitted.rows.column_names):
            self._fitted = self._fitted_to(table)
        return self._fitted.rows

    def _require_own_offset(self, table: T) -> None:
        offset = self._offset_in(table)
        if offset != self._next_offset:
            raise FencedError(
                f"{self._place}: another writer of {self._task.id} has committed offset {offset}, "
                f"after this one has read {self._next_offset}."
            )

    def _pause_s(self, attempt: int) -> float:
        """Return how long to wait after an attempt that has failed. Tasks differ in it."""
        return 0.01 * attempt * (1 + self._task.partition % 7)


def undeclared_columns(kind: str, place: str, names: Sequence[str]) -> ConnectorError:
    """Return the error for columns that a table does not have, where no evolution is declared."""
    return ConnectorError(
        f"The {kind} table {place} has no column {', '.join(names)}. Select the fields before the sink, or declare "
        "`evolve=True` so that columns are added."
    )


@lru_cache(maxsize=256)
def lock_of(place: str) -> Lock:
    """Return the lock with which the tasks of this process take turns at a table."""
    return Lock()


def reason_of(error: BaseException) -> str:
    """Return the first two lines of an error's text."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])
