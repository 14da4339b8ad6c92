"""`PostgresSource`: the changes of tables of PostgreSQL, by logical replication, after a snapshot of their rows."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args, get_origin

from kstreams.connectors.api import Position as JsonPosition
from kstreams.connectors.api import Source, SourceBatch
from kstreams.connectors.postgres.catalog import FULL_IDENTITY, Catalog, Table
from kstreams.connectors.postgres.changes import ChangeReader
from kstreams.connectors.postgres.position import Position
from kstreams.connectors.postgres.records import ChangeForm, RecordForm, RowForm
from kstreams.connectors.postgres.replication_objects import ReplicationObjects
from kstreams.connectors.postgres.rows import TableRows
from kstreams.connectors.postgres.server import Server
from kstreams.connectors.postgres.snapshot import SnapshotReader, TableToRead
from kstreams.errors import ConnectorError
from kstreams.expressions import fields_of
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.row_change import RowChange
from kstreams.serdes import serde_of

if TYPE_CHECKING:
    from kstreams.connectors.postgres.server import Connection

logger = logging.getLogger("kstreams.connectors.postgres")

_MIN_VERSION = 130_000
_MAX_NAME = 63


class PostgresSource(Source):
    """See `kstreams.sources.postgres`. It has one split, which is the replication slot."""

    def __init__(
        self,
        url: str,
        tables: Sequence[str],
        *,
        key: Sequence[str],
        key_type: Any,
        value: Any,
        slot: str | None,
        publication: str | None,
        snapshot: bool,
        truncate: str,
        heartbeat_ms: int,
        clock: Clock | None = None,
    ) -> None:
        default_name = _name_of(tables)
        form = _form(value, tables, slot or default_name, truncate == "ignore")
        super().__init__(key=_key_type(key, key_type, form.row_type), value=value, tasks=1)
        if not tables:
            raise ConnectorError("postgres() has no tables: name one, such as tables='orders'")
        if truncate not in ("fail", "ignore"):
            raise ConnectorError(f"truncate={truncate!r} is neither 'fail' nor 'ignore'")
        if heartbeat_ms <= 0:
            raise ConnectorError("heartbeat is a positive duration")
        self._server = Server(url)
        self._tables = list(tables)
        self._snapshot = snapshot
        self._heartbeat_ms = heartbeat_ms
        self._clock = clock or SystemClock()
        self._objects = ReplicationObjects(publication or slot or default_name, slot or default_name)
        self._form = form
        self._key = tuple(key)
        self._key_type = dict if self.key is dict else serde_of(self.key).type

    def __repr__(self) -> str:
        return f"postgres({str(self._server)!r}, {self._tables!r})"

    def splits(self) -> list[str]:
        return [self._objects.slot]

    def open(self, split: str, position: JsonPosition | None) -> PostgresReader:
        connection = self._server.connect()
        try:
            with self._server.errors():
                return self._open(connection, None if position is None else Position.of_json(position))
        finally:
            connection.close()

    def _open(self, connection: Connection, position: Position | None) -> PostgresReader:
        if connection.info.server_version < _MIN_VERSION:
            raise ConnectorError("Change data capture needs PostgreSQL 13 or newer")
        catalog = Catalog(connection)
        tables = [catalog.table(name) for name in self._tables]
        readers = [TableToRead(table, self._rows(catalog, table, position)) for table in tables]
        system = str(catalog.scalar("SELECT system_identifier::text FROM pg_control_system()"))
        if position is not None:
            _check_position(position, system, tables)
        lsn = self._objects.ensure(connection, tables, position)
        start = Position(system, lsn) if position is None else position
        if not self._snapshot:
            start = replace(start, tables={table.full_name: table.identifier for table in tables})
        to_read = [reader for reader in readers if not start.has_snapshot_of(reader.table.identifier)]
        return PostgresReader(self._server, self._changes_from(tables), self._phase(tables, to_read, start))

    def _rows(self, catalog: Catalog, table: Table, position: Position | None) -> TableRows:
        row_type = self._form.row_type
        if self._key and sorted(self._key) != sorted(table.key):
            raise ConnectorError(
                f"The key of {table.full_name} has the columns {', '.join(table.key)}, and key= names "
                f"{', '.join(self._key)}"
            )
        if position is None:  # later, a column may have been dropped
            for name in fields_of(row_type) or ():
                table.column(name)
        if self._form.needs_full_identity and table.identity != FULL_IDENTITY:
            raise ConnectorError(
                f"Changes of {table.full_name} do not contain the row before a change: ALTER TABLE {table.sql} REPLICA "
                "IDENTITY FULL, or read its rows, with their class as value="
            )
        _warn_of_unchanged(table, row_type)
        types = {
            column.name: catalog.column_type(column.type_id) for column in table.columns if not column.is_generated
        }
        return TableRows(table.full_name, types, table.key, self._key_type, row_type)

    def _phase(
        self, tables: Sequence[Table], to_read: Sequence[TableToRead], position: Position
    ) -> SnapshotReader | ChangeReader:
        if to_read:
            return SnapshotReader(self._server, to_read, self._form, position, self._clock)
        return self._changes_from(tables)(position)

    def _changes_from(self, tables: Sequence[Table]) -> Callable[[Position], ChangeReader]:
        def open_changes(position: Position) -> ChangeReader:
            return ChangeReader(
                self._server,
                tables,
                key_type=self._key_type,
                form=self._form,
                objects=self._objects,
                position=position,
                heartbeat_ms=self._heartbeat_ms,
                clock=self._clock,
            )

        return open_changes


class PostgresReader:
    """Reads the snapshot and then the changes. See `SourceReader`.

    Parameters
    ----------
    server : Server
    open_changes : callable
        `(position) -> ChangeReader`
    phase : SnapshotReader or ChangeReader
    """

    def __init__(
        self,
        server: Server,
        open_changes: Callable[[Position], ChangeReader],
        phase: SnapshotReader | ChangeReader,
    ) -> None:
        self._server = server
        self._open_changes = open_changes
        self._phase = phase

    def read(self) -> SourceBatch | None:
        with self._server.errors():
            if isinstance(self._phase, SnapshotReader) and self._phase.is_complete:
                position = self._phase.position
                self._phase.close()
                self._phase = self._open_changes(position)
            return self._phase.read()

    def committed(self, position: JsonPosition) -> None:
        if isinstance(self._phase, ChangeReader):
            self._phase.committed(Position.of_json(position))

    def close(self) -> None:
        self._phase.close()


def _key_type(key: Sequence[str], key_type: Any, row_type: object) -> Any:
    """Return the type of keys, which are dicts unless they are declared."""
    if key_type is not None:
        return key_type
    if len(key) != 1:
        return dict
    fields = fields_of(row_type)
    if fields is None or key[0] not in fields:
        raise ConnectorError(f"The class of values has no field {key[0]!r}, which is the key: declare key_type=")
    return fields[key[0]]


def _form(value: Any, tables: Sequence[str], name: str, ignores_truncation: bool) -> RecordForm:
    """Return the form of values: changes for `RowChange[T]`, and rows for any other type."""
    is_change = value is RowChange or get_origin(value) is RowChange
    row = next(iter(get_args(value)), dict) if is_change else value
    row_type = dict if row is dict else serde_of(row).type
    if row_type is not dict and fields_of(row_type) is None:
        raise ConnectorError(f"A row has several columns, and {row!r} has no fields: declare a class, or dict")
    if len(tables) > 1 and not is_change:
        raise ConnectorError(
            f"The rows of {', '.join(tables)} may have the same keys: read each table by a source of its own, or read "
            "changes, with value=ks.RowChange[...]"
        )
    if len(tables) > 1 and row_type is dict:
        raise ConnectorError(f"Rows of {', '.join(tables)} have different columns: declare value=ks.RowChange[...]")
    return ChangeForm(row_type, name, ignores_truncation) if is_change else RowForm(row_type, ignores_truncation)


def _check_position(position: Position, system: str, tables: Sequence[Table]) -> None:
    if position.system != system:
        raise ConnectorError(
            f"This is another database server than the one that the source has read (system identifier {system} "
            f"instead of {position.system}), or a restored one: reset the application to begin with a snapshot"
        )
    for table in tables:
        if position.tables.get(table.full_name, table.identifier) != table.identifier:
            raise ConnectorError(
                f"The table {table.full_name} was dropped and created anew: reset the application to begin with a "
                "snapshot"
            )


def _warn_of_unchanged(table: Table, row_type: object) -> None:
    fields = fields_of(row_type)
    long_columns = [
        column.name
        for column in table.columns
        if column.may_be_toasted and column.name not in table.key and (fields is None or column.name in fields)
    ]
    if long_columns and table.identity != FULL_IDENTITY:
        logger.info(
            "updates of %s do not contain unchanged values of more than some 2 kB of %s. The source reads these values "
            "from the table, which may have newer ones already. For the values at the moment of each change: "
            "ALTER TABLE %s REPLICA IDENTITY FULL",
            table.full_name,
            ", ".join(long_columns),
            table.sql,
        )


def _name_of(tables: Sequence[str]) -> str:
    """Return a name for the slot and the publication, of characters that slots may have.

    Examples
    --------
    >>> _name_of(["shop.Orders"])
    'kstreams_shop_orders'
    """
    text = "_".join(tables)
    name = "kstreams_" + re.sub(r"[^a-z0-9_]", "_", text.lower())
    if len(name) <= _MAX_NAME:
        return name
    return f"{name[: _MAX_NAME - 9]}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
