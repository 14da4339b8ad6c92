"""`RecordForm`: what the values of records are: the rows themselves, or changes with both rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import SourceBatch
from kstreams.connectors.postgres.position import lsn_of
from kstreams.errors import ConnectorError

if TYPE_CHECKING:
    from kstreams.connectors.postgres.pgoutput import Flags, Numbers
    from kstreams.connectors.postgres.position import DatabaseSnapshot
    from kstreams.connectors.postgres.rows import TableRows, Texts

NO_ROW = -1


@dataclass(frozen=True)
class RowChanges:
    """Changes of the rows of one table, in their order. A changed key is two changes: a delete and a create.

    Parameters
    ----------
    table : str
    old_rows, new_rows : Texts
        The rows before and after changes. Without a full replica identity, old rows have the key only.
    old, new : numpy int64 array, shape (n,)
        The number of the old and of the new row of each change. `NO_ROW` if it has none.
    orders : numpy int64 array, shape (n,)
        Numbers that order the changes of all tables of a batch.
    transactions, lsns, commit_lsns, commit_times_us : numpy int64 array, shape (n,)
    """

    table: str
    old_rows: Texts
    new_rows: Texts
    old: Numbers
    new: Numbers
    orders: Numbers
    transactions: Numbers
    lsns: Numbers
    commit_lsns: Numbers
    commit_times_us: Numbers

    def __len__(self) -> int:
        return len(self.orders)

    def filter(self, is_retained: Flags) -> RowChanges:
        """Return some of the changes."""
        return RowChanges(
            table=self.table,
            old_rows=self.old_rows,
            new_rows=self.new_rows,
            old=self.old[is_retained],
            new=self.new[is_retained],
            orders=self.orders[is_retained],
            transactions=self.transactions[is_retained],
            lsns=self.lsns[is_retained],
            commit_lsns=self.commit_lsns[is_retained],
            commit_times_us=self.commit_times_us[is_retained],
        )

    def key_texts(self, rows: TableRows) -> list[pa.Array]:
        """Return the columns of the keys as text."""
        sides = zip(rows.key_texts(self.old_rows), rows.key_texts(self.new_rows), strict=True)
        return [self._old_or_new(old, new) for old, new in sides]

    def keys(self, rows: TableRows) -> pa.Array:
        """Return the keys."""
        return self._old_or_new(rows.keys(self.old_rows), rows.keys(self.new_rows))

    def _old_or_new(self, old: pa.Array, new: pa.Array) -> pa.Array:
        if not len(old) and len(new) == len(self):
            return new
        numbers = np.where(self.new == NO_ROW, self.old, len(old) + self.new)
        return pa.concat_arrays([old, new]).take(pa.array(numbers))


class RecordForm(Protocol):
    """What the values of records are."""

    row_type: Any
    """The type of rows."""

    needs_full_identity: bool
    """True if the values have the whole row before a change."""

    def of_changes(self, rows: TableRows, changes: RowChanges) -> pa.Array:
        """Return the values for changes."""
        ...

    def of_snapshot(
        self, rows: TableRows, texts: Texts, table: str, snapshot: DatabaseSnapshot, time_ms: int
    ) -> pa.Array:
        """Return the values for rows of a snapshot."""
        ...

    def no_records(self, position: object) -> SourceBatch:
        """Return a batch that moves the position only."""
        ...

    def of_truncation(self, rows: TableRows, changes: RowChanges) -> pa.Array:
        """Return the values for truncations, whose records have no key.

        Raises
        ------
        ConnectorError
            If the form cannot express truncations.
        """
        ...


class RowForm:
    """The rows themselves. A deleted row is null.

    Parameters
    ----------
    row_type : type
    ignores_truncation : bool
        True to leave truncations out. Otherwise they are errors.
    """

    needs_full_identity = False

    def __init__(self, row_type: Any, ignores_truncation: bool) -> None:
        self.row_type = row_type
        self._ignores_truncation = ignores_truncation

    def of_changes(self, rows: TableRows, changes: RowChanges) -> pa.Array:
        values = rows.values(changes.new_rows)
        if np.array_equal(changes.new, np.arange(len(values))):
            return values
        return values.take(pa.array(changes.new, mask=changes.new == NO_ROW))

    def of_snapshot(
        self, rows: TableRows, texts: Texts, table: str, snapshot: DatabaseSnapshot, time_ms: int
    ) -> pa.Array:
        return rows.values(texts)

    def no_records(self, position: object) -> SourceBatch:
        return SourceBatch(values=pa.nulls(0), position=position)

    def of_truncation(self, rows: TableRows, changes: RowChanges) -> pa.Array:
        if self._ignores_truncation:
            return pa.nulls(0)
        raise ConnectorError(
            f"The table {changes.table} was truncated, and this source does not know the keys that were deleted. Read "
            "changes with value=ks.RowChange[...], or reset the application so that it begins with a new snapshot, or "
            "set truncate='ignore' to retain the rows"
        )


class ChangeForm:
    """Changes with the rows before and after them, as `RowChange`.

    Parameters
    ----------
    row_type : type
    name : str
        The name of the connector, which is that of its slot.
    ignores_truncation : bool
    """

    needs_full_identity = True

    def __init__(self, row_type: Any, name: str, ignores_truncation: bool) -> None:
        self.row_type = row_type
        self._name = name
        self._ignores_truncation = ignores_truncation

    def of_changes(self, rows: TableRows, changes: RowChanges) -> pa.Array:
        has_old = changes.old != NO_ROW
        has_new = changes.new != NO_ROW
        operations = np.where(has_old & has_new, "update", np.where(has_new, "create", "delete"))
        return pa.StructArray.from_arrays(
            [
                pa.array(operations, pa.string()),
                rows.values(changes.old_rows).take(pa.array(changes.old, mask=~has_old)),
                rows.values(changes.new_rows).take(pa.array(changes.new, mask=~has_new)),
                self._sources(changes),
                pa.array(changes.commit_times_us // 1000),
            ],
            _FIELDS,
        )

    def of_snapshot(
        self, rows: TableRows, texts: Texts, table: str, snapshot: DatabaseSnapshot, time_ms: int
    ) -> pa.Array:
        count = len(texts)
        values = rows.values(texts)
        times = pa.array(np.full(count, time_ms))
        lsns = pa.array(np.full(count, lsn_of(snapshot.lsn)))
        source = {"ts_ms": times, "snapshot": _repeated("true", count), "lsn": lsns}
        columns = [_repeated("read", count), pa.nulls(count, values.type), values]
        return pa.StructArray.from_arrays([*columns, self._source(table, count, source), times], _FIELDS)

    def no_records(self, position: object) -> SourceBatch:
        return SourceBatch(values=pa.nulls(0), position=position)

    def of_truncation(self, rows: TableRows, changes: RowChanges) -> pa.Array:
        if self._ignores_truncation:
            return pa.nulls(0)
        count = len(changes)
        none = pa.nulls(count, rows.values(changes.old_rows).type)
        times = pa.array(changes.commit_times_us // 1000)
        columns = [_repeated("truncate", count), none, none, self._sources(changes), times]
        return pa.StructArray.from_arrays(columns, _FIELDS)

    def _sources(self, changes: RowChanges) -> pa.Array:
        commits = changes.commit_lsns.tolist()
        lsns = changes.lsns.tolist()
        source = {
            "ts_ms": pa.array(changes.commit_times_us // 1000),
            "txId": pa.array(changes.transactions),
            "lsn": pa.array(changes.lsns),
            "sequence": pa.array([f'["{commit}","{lsn}"]' for commit, lsn in zip(commits, lsns, strict=True)]),
        }
        return self._source(changes.table, len(changes), source)

    def _source(self, table: str, count: int, columns: dict[str, pa.Array]) -> pa.Array:
        schema, _, name = table.partition(".")
        texts = {"connector": "postgresql", "name": self._name, "schema": schema, "table": name}
        constants = {field: _repeated(text, count) for field, text in texts.items()}
        columns = {**constants, **columns}
        arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in _SOURCE]
        return pa.StructArray.from_arrays(arrays, fields=list(_SOURCE))


_FIELDS = ["operation", "before", "after", "source", "ts_ms"]
_SOURCE = pa.schema(
    {
        "connector": pa.string(),
        "name": pa.string(),
        "schema": pa.string(),
        "table": pa.string(),
        "ts_ms": pa.int64(),
        "snapshot": pa.string(),
        "txId": pa.int64(),
        "lsn": pa.int64(),
        "sequence": pa.string(),
    }
)
"""The fields of `kstreams.row_change.ChangeSource`, by their names in JSON."""


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)
