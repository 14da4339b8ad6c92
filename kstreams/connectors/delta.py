"""`DeltaSink`: rows of a Delta table, without a JVM. A commit holds the offset of its task as an app transaction.

A writer holds the snapshot of the table at which it read its offset. A commit of deltalake is checked against all
commits since its snapshot, and fails if one of them has the same app id. So a writer that was replaced cannot commit.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import RefusedRow, Sink, SinkTask
from kstreams.connectors.fitted_rows import FittedRows, last_of_each_key, new_columns, table_schema
from kstreams.connectors.gathered_rows import DELETED, GatheredRows, table_mode
from kstreams.connectors.object_stores import remedy
from kstreams.connectors.rows import PartitionBy, RowColumns, derivations_of, names_of
from kstreams.connectors.table_writer import ATTEMPTS, LakehouseTableWriter, lock_of, reason_of, undeclared_columns
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.kernel.durations import Duration, to_ms

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_CONSTRAINT = "delta.constraints."
_RETRIES = {"max_retries": "3", "retry_timeout": "20s"}
"""deltalake tries for 3 minutes by default; the worker of the connector tries again for ever."""


class DeltaSink(Sink):
    """A Delta table. `ks.sinks.delta` describes the parameters."""

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        mode: str = "append",
        key: str | Sequence[str] | None = None,
        partition_by: PartitionBy | None = None,
        timestamp: str | None = None,
        evolve: bool = False,
        configuration: Mapping[str, str] | None = None,
        commit_interval: Duration = timedelta(seconds=10),
        commit_rows: int = 500_000,
        options: Mapping[str, str] | None = None,
    ) -> None:
        _require_deltalake()
        self.location = os.fspath(location)
        self.mode = table_mode(mode, names_of(key), f"ks.sinks.delta({self.location!r})")
        self.partition_by = derivations_of(partition_by)
        self.columns = RowColumns(key=self.mode.key, timestamp=timestamp, derived=self.partition_by)
        self.evolve = evolve
        self.configuration = dict(configuration or {})
        self.commit_interval_ms = to_ms(commit_interval)
        self.commit_rows = commit_rows
        self._options = {**_RETRIES, **(options or {})} if "://" in self.location else dict(options or {})

    def __repr__(self) -> str:
        return f"delta({self.location!r}, mode={'upsert' if self.mode.upserts else 'append'!r})"

    def open(self, task: SinkTask) -> DeltaSinkWriter:
        return DeltaSinkWriter(self, task)

    def table(self) -> DeltaTable | None:
        """Return the table at its newest version; None if there is none."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError

        with self.answers():
            try:
                return DeltaTable(self.location, storage_options=self._options)
            except TableNotFoundError:
                return None
            except DeltaError as error:
                raise ConnectorError(
                    f"{self.location} is no Delta table: {reason_of(error)}. Name the folder of a table, or a new one."
                ) from error

    def created_table(self, rows: pa.Schema) -> DeltaTable:
        """Create the table for rows, unless another task creates it at the same time."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        schema = _delta_schema(table_schema(rows), self.location)
        with self.answers():
            try:
                DeltaTable.create(
                    self.location,
                    schema,
                    partition_by=list(self.partition_by),
                    configuration=self.configuration,
                    storage_options=self._options,
                )
            except DeltaError:
                if self.table() is None:
                    raise
        table = self.table()
        if table is None:
            raise ConnectorUnavailableError(f"The table {self.location} was created and is gone.")
        return table

    def compact(self) -> int:
        """Merge small files of the table into larger ones, and return how many files were replaced.

        The replaced files stay until `vacuum` of deltalake or Spark removes them. Sinks may write meanwhile.

        Raises
        ------
        ConnectorUnavailableError
            If rows of the files were changed meanwhile. Try again.
        """
        from deltalake.exceptions import CommitFailedError

        table = self.table()
        if table is None:
            return 0
        with self.answers():
            try:
                return int(table.optimize.compact()["numFilesRemoved"])
            except CommitFailedError as error:
                message = f"{self.location} was changed while its files were merged: try again."
                raise ConnectorUnavailableError(message) from error

    @contextmanager
    def answers(self) -> Iterator[None]:
        """Convert errors of deltalake, except for conflicts of commits."""
        from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, SchemaMismatchError

        try:
            yield
        except CommitFailedError:
            raise
        except (DeltaProtocolError, SchemaMismatchError) as error:
            raise ConnectorError(f"The Delta table {self.location} refuses: {reason_of(error)}") from error
        except (OSError, DeltaError) as error:
            if remedy(error):
                raise ConnectorError(
                    f"The Delta table {self.location} is refused: {reason_of(error)}. {remedy(error)}."
                ) from error
            raise ConnectorUnavailableError(f"The Delta table {self.location} fails: {reason_of(error)}") from error


class DeltaSinkWriter(LakehouseTableWriter["DeltaTable"]):
    """Writes one topic partition to a Delta table."""

    def __init__(self, sink: DeltaSink, task: SinkTask) -> None:
        self._sink = sink
        super().__init__(task, sink.location, GatheredRows(sink.columns, sink.mode), sink.table())

    def _create(self, rows: pa.Schema) -> DeltaTable:
        return self._sink.created_table(rows)

    def _schema(self, table: DeltaTable) -> pa.Schema:
        return pa.schema(table.schema().to_arrow())

    def _offset_in(self, table: DeltaTable) -> int | None:
        offset: int | None = table.transaction_version(self._task.id)
        return offset

    def _fitted_to(self, table: DeltaTable) -> FittedRows:
        return _without_violations(super()._fitted_to(table), table.metadata().configuration)

    def _add_columns(self, table: DeltaTable, rows: pa.Schema) -> None:
        from deltalake.exceptions import CommitFailedError, DeltaError

        added = new_columns(rows, self._schema(table))
        if not added.names:
            return
        if not self._sink.evolve:
            raise undeclared_columns("Delta", self._place, added.names)
        with self._sink.answers():
            try:
                table.alter.add_columns(_delta_schema(added, self._sink.location).fields)
            except (CommitFailedError, DeltaError):  # another task may have added them
                self._refresh(table)
                if new_columns(rows, self._schema(table)).names:
                    raise

    def _attempt(self, table: DeltaTable, next_offset: int) -> None:
        from deltalake.exceptions import CommitFailedError

        for attempt in range(ATTEMPTS):
            try:
                with self._sink.answers():
                    self._write(table, next_offset)
                return
            except CommitFailedError:
                time.sleep(self._pause_s(attempt))
                self._refresh(table)
        raise ConnectorUnavailableError(f"{self._sink.location}: other commits came first {ATTEMPTS} times.")

    def _write(self, table: DeltaTable, next_offset: int) -> None:
        if self._sink.mode.upserts:
            self._upsert(table, next_offset)
        else:
            self._append(table, next_offset)

    def _append(self, table: DeltaTable, next_offset: int) -> None:
        from deltalake import write_deltalake

        rows = self._rows_for(table)
        write_deltalake(table, rows, mode="append", commit_properties=self._transaction(next_offset))

    def _upsert(self, table: DeltaTable, next_offset: int) -> None:
        """Upsert and delete. A process merges one after the other, since merges of one table exclude each other."""
        with lock_of(self._sink.location):
            self._refresh(table)
            rows = self._rows_for(table)
            if len(rows):
                self._merge(table, last_of_each_key(rows, self._sink.mode.key), next_offset)
            if table.transaction_version(self._task.id) != next_offset:  # nothing was changed, hence not committed
                table.create_write_transaction(
                    [], "append", table.schema(), commit_properties=self._transaction(next_offset)
                )
                table.update_incremental()

    def _merge(self, table: DeltaTable, rows: pa.Table, next_offset: int) -> None:
        key = self._sink.mode.key
        values = {_quoted(field.name): f"source.{_quoted(field.name)}" for field in table.schema().fields}
        merger = table.merge(
            rows,
            " AND ".join(f"target.{_quoted(name)} = source.{_quoted(name)}" for name in key),
            source_alias="source",
            target_alias="target",
            commit_properties=self._transaction(next_offset),
        )
        merger = merger.when_matched_delete(f"source.{DELETED}")
        merger = merger.when_matched_update(values, predicate=f"NOT source.{DELETED}")
        merger.when_not_matched_insert(values, predicate=f"NOT source.{DELETED}").execute()

    def _transaction(self, next_offset: int) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        return CommitProperties(app_transactions=[Transaction(self._task.id, next_offset)])

    def _refresh(self, table: DeltaTable) -> None:
        with self._sink.answers():
            table.update_incremental()
        self._require_own_offset(table)


def _require_deltalake() -> None:
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise ConnectorError("Delta tables need the package deltalake: pip install 'kstreams-dsl[delta]'") from error


def _delta_schema(schema: pa.Schema, location: str) -> Any:
    from deltalake import Schema

    for field in schema:
        try:
            Schema.from_arrow(pa.schema([field]))
        except Exception as error:  # deltalake raises Exception itself
            raise ConnectorError(
                f"The Delta table {location} cannot have the column {field.name!r}: Delta has no type {field.type}. "
                "Convert the field before the sink."
            ) from error
    return Schema.from_arrow(schema)


def _without_violations(fitted: FittedRows, configuration: Mapping[str, str]) -> FittedRows:
    """Return the rows that hold the CHECK constraints of the table; the others are refused."""
    constraints = {
        name.removeprefix(_CONSTRAINT): expression
        for name, expression in configuration.items()
        if name.startswith(_CONSTRAINT)
    }
    if not constraints or not len(fitted.rows):
        return fitted
    violations = _violations(fitted.rows, constraints)
    refused = [
        RefusedRow(int(fitted.offsets[index]), ValueError(f"the row violates the constraint {name!r}"))
        for index, name in sorted(violations.items())
    ]
    remaining = np.setdiff1d(np.arange(len(fitted.rows)), list(violations))
    return FittedRows(fitted.rows.take(remaining), fitted.offsets[remaining], [*fitted.refused, *refused])


def _violations(rows: pa.Table, constraints: Mapping[str, str]) -> dict[int, str]:
    """Return the constraint that each row violates, by position. DataFusion evaluates it, as for the table itself."""
    from deltalake import DeltaTable, QueryBuilder, write_deltalake

    position = "kstreams_position"
    condition = f"NOT {DELETED} AND " if DELETED in rows.column_names else ""
    with tempfile.TemporaryDirectory(prefix="kstreams-") as folder:
        write_deltalake(folder, rows.append_column(position, pa.array(np.arange(len(rows)))))
        query = QueryBuilder().register("rows", DeltaTable(folder))
        violations: dict[int, str] = {}
        for name, expression in constraints.items():
            result = query.execute(
                f"SELECT {position} FROM rows WHERE {condition}({expression}) IS NOT TRUE"
            ).read_all()
            violations |= dict.fromkeys(pa.table(result).column(0).to_pylist(), name)
    return violations


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
