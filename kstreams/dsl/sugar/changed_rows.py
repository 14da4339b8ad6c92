"""Tables of changes: the rows of a database table, from the changes that change data capture reports.

The *position* of a change is twice its LSN, plus 1 unless it is a row of a snapshot: the first change after a snapshot
may have the LSN of the snapshot. The positions of one row grow, since PostgreSQL lets one transaction at a time change
a row. Those of several rows do not: a transaction that commits later may have changed its row earlier. So a copy is
found by the position of its key.

A connector that is killed during a snapshot, or loses its position, takes another snapshot. No change says which rows
were deleted meanwhile. When the snapshot is complete, the rows that it did not report are deleted.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from kstreams.errors import ConnectorError
from kstreams.processor.api.contexts import ProcessorContext
from kstreams.processor.api.processor import Processor
from kstreams.record import Record
from kstreams.row_change import RowChange
from kstreams.serdes import Serde
from kstreams.serdes.debezium.positioned_row import PositionedRow, PositionedRowSerde
from kstreams.state.api import StoreBuilder
from kstreams.state.stores import Home, Stores

logger = logging.getLogger(__name__)

_NO_POSITION = -1
_NEW_KEY = "__debezium.newkey"
_OLD_KEY = "__debezium.oldkey"
"""The headers of the delete and of the insert that report a changed key."""
_FIRST = "first"
_SNAPSHOT = "snapshot"
_INCREMENTAL = "incremental"
_LAST = ("last", "last_in_data_collection")
"""The places in a snapshot after which no row of the table follows."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Supplies the processors that turn changes into rows, and their stores.

    Parameters
    ----------
    store : str
        The name of the store of rows. The positions of deleted rows are in "<store>-deleted".
    key, row : Serde
    delete_retention_ms : int
        How long the positions of deleted rows are retained, in stream time.
    truncates : bool
        True to delete all rows of the partition at a truncation, False to fail.
    replaces : bool
        True if a snapshot reports all rows of the table, so that other rows are deleted.
    home : {"rocksdb", "memory"}
        Where the stores are.
    """

    store: str
    key: Serde
    row: Serde
    delete_retention_ms: int
    truncates: bool
    replaces: bool
    home: Home

    @property
    def deleted_store(self) -> str:
        """The name of the store of the positions of deleted rows."""
        return f"{self.store}-deleted"

    @property
    def moved_store(self) -> str:
        """The name of the store of rows whose key changed, by the position of the change."""
        return f"{self.store}-moved"

    @property
    def snapshot_store(self) -> str:
        """The name of the store of the position of a snapshot that is not complete."""
        return f"{self.store}-snapshot"

    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the stores of rows, of deleted and of moved rows, and of the position of a snapshot."""
        home = self.home
        rows = Stores.key_value(self.store, key=self.key, value=PositionedRowSerde(self.row), store=home)
        retention = 2 * self.delete_retention_ms + 1
        deleted = Stores.window(self.deleted_store, retention, 1, key=self.key, value=int, store=home)
        moved = Stores.window(self.moved_store, retention, 1, key=int, value=self.row, store=home)
        return rows, deleted, moved, Stores.key_value(self.snapshot_store, key=str, value=int, store=home)

    def __call__(self) -> Processor:
        return _ApplyChanges(self)


class _ApplyChanges(Processor):
    """Applies changes to the rows of one partition, and forwards each row that changed."""

    def __init__(self, settings: ChangedRows) -> None:
        self._settings = settings

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._rows = context.get_state_store(self._settings.store)
        self._deleted = context.get_state_store(self._settings.deleted_store)
        self._moved = context.get_state_store(self._settings.moved_store)
        self._snapshots = context.get_state_store(self._settings.snapshot_store)
        self._snapshot: int = self._snapshots.get(_SNAPSHOT) or _NO_POSITION
        self._checked_snapshot = _NO_POSITION

    def process(self, record: Record) -> None:
        change = record.value
        if change is None:
            self._apply_tombstone(record)
        elif change.operation == "truncate":
            self._truncate(record, change)
        elif record.key is None:
            raise ConnectorError(
                f"a change of {_table(change)} has no key: give the table a primary key, or name its key columns in "
                "the connector's message.key.columns"
            )
        else:
            self._apply(record, change)

    def _apply(self, record: Record, change: RowChange) -> None:
        is_of_snapshot = change.operation == "read" and change.source.snapshot != _INCREMENTAL
        if is_of_snapshot:
            self._begin_snapshot(_position(change))
        elif _position(change) > self._snapshot:  # no copy of a change before the snapshot
            self._complete_snapshot(record)
        if change.operation == "delete":
            self._delete(record, change)
        else:
            self._put(record, change)
        if is_of_snapshot and change.source.snapshot in _LAST and _position(change) == self._snapshot:
            self._complete_snapshot(record)

    def _begin_snapshot(self, position: int) -> None:
        """Note the position of another snapshot. The first one finds no rows that it could lack."""
        if position == self._checked_snapshot:
            return
        self._checked_snapshot = position
        if self._snapshots.get(_FIRST) is None:
            self._snapshots.put(_FIRST, position)
        first = next(iter(self._rows.all()), None)
        if not self._settings.replaces:
            return
        if position > self._snapshot and first is not None and first[1].position != position:
            self._snapshot = position
            self._snapshots.put(_SNAPSHOT, position)

    def _complete_snapshot(self, record: Record) -> None:
        """Delete the rows that a snapshot did not report, once all its rows have come."""
        position = self._snapshot
        if position == _NO_POSITION:
            return
        self._snapshot = _NO_POSITION
        self._snapshots.delete(_SNAPSHOT)
        self._remove_before(position, record)

    def _put(self, record: Record, change: RowChange) -> None:
        stored = self._rows.get(record.key)
        position = _position(change)
        if self._is_copy(position, stored, record):
            self._await_tombstone(record.key, stored, False)
            return
        row = change.after
        if change.unavailable:
            earlier = self._earlier_row(record, change, stored)
            if earlier is None:
                return
            row = _with_stored_columns(change, earlier)
        latest = position if position >= 0 or stored is None else stored.position
        self._rows.put(record.key, PositionedRow(row, latest))
        self._context.forward(record.with_value(row))

    def _delete(self, record: Record, change: RowChange) -> None:
        stored = self._rows.get(record.key)
        position = _position(change)
        if self._is_copy(position, stored, record):
            self._await_tombstone(record.key, stored, True)
            return
        if stored is not None and _header(record, _NEW_KEY):
            self._moved.put(position, stored.row, record.timestamp)
        self._remove(record, stored, position)

    def _earlier_row(self, record: Record, change: RowChange, stored: PositionedRow | None) -> Any:
        """Return the row that has the columns that a change does not report. None if the row is deleted next."""
        if stored is not None:
            return stored.row
        if change.operation == "update" and self._snapshots.get(_FIRST) is not None:
            # The row was deleted while the snapshot was taken. Changes of that time are reported after the snapshot.
            logger.warning("%s has no row %r to update: its delete is to follow", _table(change), record.key)
            return None
        retention_ms = self._settings.delete_retention_ms
        first = max(0, record.timestamp - retention_ms)
        moved = self._moved.fetch(_position(change), first, record.timestamp + retention_ms)
        _, row = next(iter(moved), (0, None))
        if row is None:
            raise ConnectorError(_unknown_columns(record, change))
        return row

    def _apply_tombstone(self, record: Record) -> None:
        """Delete a row whose delete event is gone: compaction retains the tombstone alone."""
        stored = self._rows.get(record.key)
        if stored is None:
            return
        if stored.awaits_tombstone:
            self._await_tombstone(record.key, stored, False)
            return
        # The position is unknown. The change that the row had may come again after the tombstone, and counts then.
        self._remove(record, stored, stored.position - 1)

    def _remove(self, record: Record, stored: PositionedRow | None, position: int) -> None:
        if position > _NO_POSITION:
            self._deleted.put(record.key, position, record.timestamp)
        if stored is not None:
            self._rows.delete(record.key)
            self._context.forward(record.with_value(None))

    def _is_copy(self, position: int, stored: PositionedRow | None, record: Record) -> bool:
        if position < 0:
            return False
        last = self._deleted_at(record) if stored is None else stored.position
        return position <= last

    def _deleted_at(self, record: Record) -> int:
        retention_ms = self._settings.delete_retention_ms
        first = max(0, record.timestamp - retention_ms)
        deleted: Iterator[tuple[int, int]] = self._deleted.fetch(record.key, first, record.timestamp + retention_ms)
        return max((position for _, position in deleted), default=_NO_POSITION)

    def _await_tombstone(self, key: object, stored: PositionedRow | None, awaits: bool) -> None:
        """Note whether the tombstone of a dropped copy follows. A tombstone itself has no position."""
        if stored is not None and stored.awaits_tombstone is not awaits:
            self._rows.put(key, PositionedRow(stored.row, stored.position, awaits))

    def _truncate(self, record: Record, change: RowChange) -> None:
        if not self._settings.truncates:
            raise ConnectorError(
                f"{_table(change)} was truncated, and only one partition has the event: use DELETE in the database, or "
                "leave truncation out of the connector (skipped.operations=t); if the topic has one partition, write "
                "ks.Debezium(..., truncate='delete')"
            )
        self._remove_before(_position(change), record)

    def _remove_before(self, position: int, record: Record) -> None:
        """Delete the rows whose last change is before a position."""
        rows = [(key, stored) for key, stored in self._rows.all() if stored.position < position]
        for key, stored in rows:
            self._remove(record.with_key(key), stored, position)


def _position(change: RowChange) -> int:
    """Return the position of a change, or -1 without an LSN."""
    lsn = change.source.lsn
    return _NO_POSITION if lsn is None else 2 * lsn + (change.operation != "read")


def _table(change: RowChange) -> str:
    parts = (change.source.schema, change.source.table)
    return f"table {'.'.join(filter(None, parts))}"


def _header(record: Record, name: str) -> bool:
    return any(header == name for header, _ in record.headers)


def _unknown_columns(record: Record, change: RowChange) -> str:
    columns = ", ".join(change.unavailable)
    start = f"the change of {_table(change)} with key {record.key!r} does not report {columns} (TOAST), "
    if _header(record, _OLD_KEY):
        return (
            f"{start}and the row before its key changed is in another partition: let the topic have one partition, or "
            "set REPLICA IDENTITY FULL"
        )
    return (
        f"{start}and no earlier change of the row was read: let the connector take a snapshot, or set REPLICA IDENTITY "
        "FULL"
    )


def _with_stored_columns(change: RowChange, earlier: Any) -> Any:
    """Return the row with the earlier values of the columns that the change does not report."""
    names = change.unavailable
    for is_of_form, replaced, value_of in _FORMS:
        if is_of_form(change.after):
            return replaced(change.after, {name: value_of(earlier, name) for name in names})
    raise ConnectorError(f"a row of {type(change.after).__name__} has no columns that can be replaced")


def _is_struct(row: object) -> bool:
    return isinstance(row, msgspec.Struct)


_Form = tuple[Callable[[Any], bool], Callable[[Any, dict[str, Any]], Any], Callable[[Any, str], Any]]
_FORMS: tuple[_Form, ...] = (
    (lambda row: isinstance(row, dict), lambda row, columns: {**row, **columns}, lambda row, name: row[name]),
    (_is_struct, lambda row, columns: msgspec.structs.replace(row, **columns), getattr),
    (dataclasses.is_dataclass, lambda row, columns: dataclasses.replace(row, **columns), getattr),
    (lambda row: hasattr(row, "_replace"), lambda row, columns: row._replace(**columns), getattr),
    (
        lambda row: hasattr(row, "model_copy"),
        lambda row, columns: row.model_copy(update=columns),
        getattr,
    ),
)
