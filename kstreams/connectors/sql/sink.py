"""`SqlSink`: writes records to a table, exactly once: rows and the offset after them are one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import RefusedRow, Sink, SinkBatch, SinkTask
from kstreams.connectors.sql.changes import (
    KEY_OF_RECORD,
    KEY_OF_VALUE,
    Changes,
    changes_of,
    changes_of_same_keys,
    concatenated,
    last_of_each_key,
    rows_without_key,
)
from kstreams.connectors.sql.database import Database
from kstreams.errors import ConnectorError, ConnectorUnavailableError

if TYPE_CHECKING:
    from kstreams.connectors.sql.offsets import TargetOffsets
    from kstreams.connectors.sql.table import TargetTable

INSERT = "insert"
UPSERT = "upsert"
_ROWS_AT_ONCE = 50_000
_BYTES_AT_ONCE = 64 << 20
"""A writer holds no more rows and bytes than these before it sends them to the database."""

_COMMIT_BYTES = 16 << 20
"""Rows of so many bytes in the topic have fewer than `_BYTES_AT_ONCE` in memory."""


class SqlSink(Sink):
    """A sink that writes to a table: see `kstreams.sinks.sql` for the parameters.

    A writer commits as soon as it has sent rows. Otherwise the writer of another partition, which shares its thread,
    could wait for the locks of these rows for ever.
    """

    commit_rows = _ROWS_AT_ONCE
    commit_bytes = _COMMIT_BYTES

    def __init__(
        self,
        url: str,
        table: str,
        *,
        mode: str,
        key: tuple[str, ...] = (),
        pk_mode: str = KEY_OF_RECORD,
        delete_enabled: bool = True,
        schema: str | None = None,
        auto_create: bool = True,
        auto_evolve: bool = False,
        offsets_table: str = "kstreams_offsets",
    ) -> None:
        self.database = Database(url)
        self.table = table
        self.mode = _one_of("mode", mode, (INSERT, UPSERT))
        self.key = key
        self.pk_mode = _one_of("pk_mode", pk_mode, (KEY_OF_RECORD, KEY_OF_VALUE))
        self.delete_enabled = delete_enabled
        self.schema = schema
        self.auto_create = auto_create
        self.auto_evolve = auto_evolve
        self.offsets_table = offsets_table
        if mode == UPSERT and not key:
            raise ConnectorError(f"{self}: mode='upsert' needs the columns of the key: pass key='id' or key=['a', 'b']")

    def __repr__(self) -> str:
        return f"SqlSink({self.database}, {self.table!r}, mode={self.mode!r})"

    @property
    def upsert(self) -> bool:
        """True if a row replaces the one of its key."""
        return self.mode == UPSERT

    def open(self, task: SinkTask) -> SqlWriter:
        with self.database.needs_packages():
            from kstreams.connectors.sql.offsets import TargetOffsets
            from kstreams.connectors.sql.table import TargetTable
        table = TargetTable(self.table, self.schema, self.key)
        return SqlWriter(self, task, table, TargetOffsets(self.offsets_table, self.schema))


def _one_of(name: str, value: str, values: tuple[str, ...]) -> str:
    if value not in values:
        raise ConnectorError(f"{name}={value!r} is not known: write one of {', '.join(map(repr, values))}")
    return value


class SqlWriter:
    """Writes one topic partition to a table."""

    def __init__(self, sink: SqlSink, task: SinkTask, table: TargetTable, offsets: TargetOffsets) -> None:
        from kstreams.connectors.sql.connections import connect
        from kstreams.connectors.sql.loaders import loader_of

        self._sink = sink
        self._table = table
        self._offsets = offsets
        self._connection = connect(sink.database, f"{sink.schema}.{sink.offsets_table} {task.id}")
        try:
            with sink.database.answers(f"read the offset of {task.id}"):
                offsets.create(self._connection)
                self._claim = offsets.claim(self._connection, task.id)
        except BaseException:
            self.close()
            raise
        self._loader = loader_of(self._connection, table, upsert=sink.upsert)
        self._columns = pa.schema([])
        self._waiting: list[Changes] = []
        self._refused: list[RefusedRow] = []
        self._transaction_has_rows = False

    def next_offset(self) -> int | None:
        return self._claim.next_offset

    def write(self, batch: SinkBatch) -> None:
        if len(batch) == 0:
            return
        self._waiting.append(self._acceptable(changes_of(batch, self._sink.key, self._sink.pk_mode)))
        rows = sum(len(changes.offsets) for changes in self._waiting)
        if rows >= _ROWS_AT_ONCE or sum(changes.rows.nbytes for changes in self._waiting) >= _BYTES_AT_ONCE:
            self._send()

    def flush(self) -> list[RefusedRow]:
        self._send()
        refused = sorted(self._refused, key=lambda row: row.offset)
        self._refused = []
        return refused

    def commit(self, next_offset: int) -> None:
        self._send()
        if self._refused:
            raise ConnectorError(f"{self._sink}: rows were refused, and flush was not called before commit")
        with self._fencing(f"commit offset {next_offset}"):
            self._offsets.advance(self._connection, self._claim, next_offset)
            self._connection.commit()
        self._transaction_has_rows = False

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()

    def _acceptable(self, changes: Changes) -> Changes:
        """Return the changes that the table can take: rows with a key, and deletes if the sink deletes."""
        sink = self._sink
        if not (sink.upsert and sink.delete_enabled):
            changes = changes.take(np.flatnonzero(~changes.deleted))
        without_key = rows_without_key(changes, sink.key)
        if len(without_key) == 0:
            return changes
        error = ConnectorError(
            f"the record has no value for the key ({', '.join(sink.key)}) of table {sink.table}, "
            f"by pk_mode={sink.pk_mode!r}"
        )
        refused_offsets = changes.offsets[without_key].tolist()
        self._refused.extend(RefusedRow(offset, error) for offset in refused_offsets)
        return changes.without_offsets(refused_offsets)

    def _send(self) -> None:
        """Bring the rows that wait to the database.

        Several changes of a key become the last one. If the database refuses it, the one before it is sent.
        """
        changes = self._take_waiting()
        if changes is None:
            return
        with self._fencing(f"write to table {self._sink.table}"):
            self._prepare(changes.rows.schema)
            self._begin()
            while len(changes.offsets):
                effective = last_of_each_key(changes, self._sink.key) if self._sink.upsert else changes
                refused = self._apply(effective)
                self._refused.extend(refused)
                changes = self._earlier(changes, [row.offset for row in refused])

    def _begin(self) -> None:
        if not self._transaction_has_rows:
            self._loader.begin()
            self._transaction_has_rows = True

    def _take_waiting(self) -> Changes | None:
        waiting = [changes for changes in self._waiting if len(changes.offsets)]
        self._waiting = []
        return concatenated(waiting) if waiting else None

    def _earlier(self, changes: Changes, refused_offsets: list[int]) -> Changes:
        """Return the changes before refused ones of the same keys."""
        if not (refused_offsets and self._sink.upsert):
            return changes.take(np.empty(0, np.int64))
        return changes_of_same_keys(changes, refused_offsets, self._sink.key).without_offsets(refused_offsets)

    def _apply(self, changes: Changes) -> list[RefusedRow]:
        deleted = changes.take(np.flatnonzero(changes.deleted))
        changed = changes.take(np.flatnonzero(~changes.deleted))
        return [*self._load(changed, delete=False), *self._load(deleted, delete=True)]

    def _load(self, changes: Changes, *, delete: bool) -> list[RefusedRow]:
        """Load rows. If the database refuses some, find them by halves, and load all others."""
        if len(changes.offsets) == 0:
            return []
        rows = changes.rows.select(self._sink.key) if delete else changes.rows
        load = self._loader.delete if delete else self._loader.change
        error = self._connection.attempt(lambda: load(rows))
        if error is None:
            return []
        if len(changes.offsets) == 1:
            return [RefusedRow(int(changes.offsets[0]), error)]
        return [row for half in changes.halves() for row in self._load(half, delete=delete)]

    def _prepare(self, columns: pa.Schema) -> None:
        """Create the table or its new columns if the sink may, and tell the loader the columns of the rows."""
        if columns == self._columns:
            return
        existing = self._connection.columns(self._table.name, self._table.schema)
        if not existing:
            self._create(columns)
        elif self._new_columns(columns, existing):
            self._evolve(columns, existing)
        self._loader.prepare(columns)
        self._columns = columns

    def _create(self, columns: pa.Schema) -> None:
        statement = self._table.create(columns)
        if not self._sink.auto_create:
            text = " ".join(str(statement.compile(dialect=self._connection.dialect)).split())
            raise ConnectorError(f"{self._sink}: the table does not exist. Create it ({text}), or set auto_create=True")
        try:
            self._connection.execute(statement)
            self._commit_declaration()
        except Exception:  # another task may have created it since
            self._connection.rollback()
            if self._transaction_has_rows or not self._connection.columns(self._table.name, self._table.schema):
                raise

    def _commit_declaration(self) -> None:
        """Let other tasks see the table, unless rows without their offset would be committed with it."""
        if not self._transaction_has_rows:
            self._connection.commit()

    def _new_columns(self, columns: pa.Schema, existing: list[str]) -> list[pa.Field]:
        return [field for field in columns if field.name not in existing]

    def _evolve(self, columns: pa.Schema, existing: list[str]) -> None:
        dialect = self._connection.dialect
        statements = [self._table.add_column(field, dialect) for field in self._new_columns(columns, existing)]
        if not self._sink.auto_evolve:
            text = "; ".join(statement.text.replace(r"\:", ":") for statement in statements)
            raise ConnectorError(f"{self._sink}: the table lacks columns. Add them ({text}), or set auto_evolve=True")
        for statement in statements:
            self._connection.execute(statement)
        self._commit_declaration()

    @contextmanager
    def _fencing(self, doing: str) -> Iterator[None]:
        """Translate errors. If the connection is lost because another writer was opened, raise FencedError."""
        try:
            with self._sink.database.answers(doing):
                yield
        except ConnectorUnavailableError:
            self._raise_if_fenced()
            raise

    def _raise_if_fenced(self) -> None:
        from kstreams.connectors.sql.connections import connect
        from kstreams.connectors.sql.offsets import fenced

        self.close()
        connection = connect(self._sink.database)
        try:
            with self._sink.database.answers("read the epoch of the task"):
                if not self._offsets.is_current(connection, self._claim):
                    raise fenced(self._claim)
        finally:
            connection.close()
