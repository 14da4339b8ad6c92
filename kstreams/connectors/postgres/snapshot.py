"""`SnapshotReader`: reads the rows that tables have before their changes are read.

Each session reads in one snapshot of the database, in the order of the key. The position names the last key and the
snapshot. After a crash, the next session continues behind that key in a snapshot of its own. The stream of changes,
which begins before all snapshots, then leaves out what a snapshot already includes: see `SnapshotFilter`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from kstreams.connectors.api import SourceBatch
from kstreams.connectors.postgres.catalog import Catalog, Table, literal, quoted
from kstreams.connectors.postgres.position import DatabaseSnapshot, Position, SnapshotRange
from kstreams.connectors.postgres.records import RecordForm
from kstreams.connectors.postgres.rows import TableRows, TextTable, keys_as_json
from kstreams.connectors.postgres.server import CopyStream, Server
from kstreams.kernel.clock import Clock

if TYPE_CHECKING:
    from kstreams.connectors.postgres.pgoutput import Flags, Numbers
    from kstreams.connectors.postgres.server import Connection

logger = logging.getLogger("kstreams.connectors.postgres")

MAX_ROWS = 20_000
MAX_BYTES = 16 << 20
_WAIT_S = 0.5
_TRANSACTIONS_POLL_S = 0.05
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_SETTINGS = "SET LOCAL enable_sort = off; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '10s'"
"""Rows in the order of the key come from its index, so that they come at once and nothing is sorted on disk."""

_SNAPSHOT = """
SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, (extract(epoch FROM now()) * 1000)::int8
"""
_NEXT_TRANSACTION = "SELECT pg_current_xact_id()::text::int8"  # a number after those of all running transactions
_FIRST_RUNNING = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8"


class TableToRead(NamedTuple):
    """A table, and how its rows become records."""

    table: Table
    rows: TableRows


class SnapshotReader:
    """Reads tables, one after the other.

    Parameters
    ----------
    server : Server
    tables : sequence of TableToRead
        The tables whose snapshot is not complete.
    form : RecordForm
    position : Position
    clock : Clock
    """

    def __init__(
        self, server: Server, tables: Sequence[TableToRead], form: RecordForm, position: Position, clock: Clock
    ) -> None:
        self._server = server
        self._clock = clock
        self._tables = list(tables)
        self._form = form
        self.position = position
        self._connection = server.connect()
        self._catalog = Catalog(self._connection)
        # A transaction may be in the write-ahead log before the slot, and not yet be visible: see docs/decisions.
        is_begun = all(position.ranges_of(table.full_name) for table, _ in tables)
        self._first_transaction: int = 0 if is_begun else self._catalog.scalar(_NEXT_TRANSACTION)
        self._sessions: list[_Session] = []

    @property
    def is_complete(self) -> bool:
        """True if all rows were read."""
        return not self._tables

    def read(self) -> SourceBatch:
        """Return the next rows. None have come yet while transactions run that began before the slot was made."""
        if not self._sessions and self._catalog.scalar(_FIRST_RUNNING) < self._first_transaction:
            self._clock.sleep(_TRANSACTIONS_POLL_S)
            return self._form.no_records(self.position.to_json())
        if not self._sessions:
            self._sessions.append(_Session(self._server, self._connection, self._tables))
        return self._read(self._sessions[0])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _read(self, session: _Session) -> SourceBatch:
        current = self._tables[0]
        name = current.table.full_name
        rows = session.read(current, self._last_key(name))
        if rows is None:
            self.position = self.position.with_rows(name, session.snapshot, None)
            self.position = self.position.with_table(name, current.table.identifier)
            del self._tables[0]
            if self.is_complete:
                self._connection.execute("COMMIT")
            logger.info("read the snapshot of the table %s", name)
            return self._form.no_records(self.position.to_json())
        if not len(rows):
            return self._form.no_records(self.position.to_json())
        last_key = [texts[-1].as_py() for texts in current.rows.key_texts(rows)]
        self.position = self.position.with_rows(name, session.snapshot, last_key)
        return SourceBatch(
            values=self._form.of_snapshot(current.rows, rows, name, session.snapshot, session.time_ms),
            keys=current.rows.keys(rows),
            timestamps=pa.array(np.full(len(rows), session.time_ms, np.int64)),
            position=self.position.to_json(),
        )

    def _last_key(self, table: str) -> list[str] | None:
        ranges = self.position.ranges_of(table)
        return ranges[-1].last_key if ranges else None


class _Session:
    """One snapshot of the database.

    The tables are locked first: TRUNCATE and rewriting a table are not subject to snapshots, and wait for this session.
    """

    def __init__(self, server: Server, connection: Connection, tables: Sequence[TableToRead]) -> None:
        self._server = server
        self._connection = connection
        connection.execute(_BEGIN)
        connection.execute(_SETTINGS)
        names = ", ".join(current.table.sql_without_descendants for current in tables)
        connection.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
        transactions, lsn, self.time_ms = connection.execute(_SNAPSHOT).fetchall()[0]
        self.snapshot = DatabaseSnapshot(transactions, lsn)
        self._streams: dict[str, CopyStream] = {}

    def read(self, current: TableToRead, last_key: list[str] | None) -> TextTable | None:
        """Return the next rows of a table, or None after the last one. There may be none yet."""
        name = current.table.full_name
        if name not in self._streams:
            logger.info("reads the snapshot of the table %s%s", name, f" behind the key {last_key}" if last_key else "")
            self._streams[name] = CopyStream(self._server, self._connection.pgconn, _copy(current, last_key))
        lines = self._streams[name].receive(MAX_ROWS, MAX_BYTES, _WAIT_S)
        return None if lines is None else _parsed(b"".join(lines), len(lines), current.rows.columns)


def _copy(current: TableToRead, last_key: list[str] | None) -> str:
    columns = ", ".join(map(quoted, current.rows.columns))
    key = ", ".join(map(quoted, current.rows.key))
    condition = f" WHERE {_is_after(current.rows.key, last_key)}" if last_key else ""
    table = current.table.sql_without_descendants
    return f"COPY (SELECT {columns} FROM {table}{condition} ORDER BY {key}) TO STDOUT (FORMAT csv)"


def _is_after(key: Sequence[str], last_key: Sequence[str]) -> str:
    """Return the condition that a key is behind another one, in the order of the columns' collations."""
    return f"({', '.join(map(quoted, key))}) > ({', '.join(map(literal, last_key))})"


def _parsed(lines: bytes, count: int, names: Sequence[str]) -> TextTable:
    if not count:
        return TextTable({}, 0)
    table = csv.read_csv(
        pa.BufferReader(lines),
        csv.ReadOptions(column_names=list(names), block_size=len(lines) + 1, use_threads=False),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    ).combine_chunks()
    return TextTable({name: _array(table.column(name)) for name in names}, count)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class SnapshotFilter:
    """Finds the changes that a snapshot already includes, by their transaction and by the range of their key.

    Parameters
    ----------
    connection : psycopg connection
        For comparing keys, which only the server can do in the order of its collations.
    table : Table
    ranges : sequence of SnapshotRange
        The ranges of the table, in the order of its keys.
    """

    def __init__(self, connection: Connection, table: Table, ranges: Sequence[SnapshotRange]) -> None:
        self._connection = connection
        self._table = table
        self._ranges = ranges

    def is_included(self, transactions: Numbers, keys: Sequence[pa.Array]) -> Flags:
        """Return for each change whether the snapshot includes it.

        Parameters
        ----------
        transactions : numpy int64 array, shape (n,)
        keys : sequence of pyarrow string array, each of length n
            The columns of the key.
        """
        distinct, numbers = np.unique(transactions, return_inverse=True)
        by_range = np.array(
            [[part.snapshot.includes(int(number)) for number in distinct] for part in self._ranges], dtype=bool
        ).reshape(len(self._ranges), len(distinct))
        count = by_range.sum(axis=0)[numbers]
        included: Flags = count == len(self._ranges)
        depends_on_key = np.flatnonzero((count > 0) & ~included)
        if len(depends_on_key):
            positions = self._range_of([column.take(pa.array(depends_on_key)) for column in keys])
            included[depends_on_key] = by_range[positions, numbers[depends_on_key]]
        return included

    def is_truncation_included(self, transaction: int) -> bool | None:
        """Return whether the snapshot includes a truncation. None if only some ranges do."""
        included = {part.snapshot.includes(transaction) for part in self._ranges}
        return included.pop() if len(included) == 1 else (False if not included else None)

    def _range_of(self, keys: Sequence[pa.Array]) -> Numbers:
        """Return the number of the range in which each key lies."""
        bounds = [part.last_key for part in self._ranges if part.last_key is not None]
        conditions = " + ".join(f"({_is_after(self._table.key, bound)})::int" for bound in bounds) or "0"
        rows = literal(keys_as_json(self._table.key, keys))
        query = (
            f"SELECT {conditions} FROM json_populate_recordset(NULL::{self._table.sql}, {rows}) WITH ORDINALITY "
            "ORDER BY ordinality"
        )
        numbers = [row[0] for row in self._connection.execute(query).fetchall()]
        return np.array(numbers, np.int64)
