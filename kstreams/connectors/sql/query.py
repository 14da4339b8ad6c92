"""`Query`: the statement that reads the rows after a position, and the position after rows.

A position is (timestamp, id), or one of the two, as in Kafka Connect's JDBC source. In mode `bulk` it is the number of
rows of the current round, or the time at which the last round has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from kstreams.connectors.sql.connections import Connection
from kstreams.connectors.sql.database import Database

RowPosition: TypeAlias = Mapping[str, Any]
_MS_PER_DAY = 86_400_000
_WRITTEN_BEFORE_OPEN_TRANSACTIONS = "age(xmin) > age(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS xid))"
"""`xmin` is the transaction that wrote the row, the other one the oldest that runs. Ages compare across a wrap."""

_DUCKDB_NOW = "SELECT strftime(now() AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f')"


@dataclass(frozen=True)
class Query:
    """Reads the rows of a table or of a query in the order of their positions.

    Parameters
    ----------
    database : Database
    rows : FromClause or TextClause
        The table, or the query in parentheses.
    columns : tuple of str
        The columns to read; none for all.
    key : tuple of str
    incrementing, timestamp : str
        The columns that form the position; empty if the mode does not use them.
    delay_ms : int
        How long a row waits for rows with an earlier timestamp that are committed later.
    waits_for_transactions : bool
        True if a row waits for the transactions of Postgres that began to write before it was written.
    """

    database: Database
    rows: sa.FromClause | sa.TextClause
    columns: tuple[str, ...]
    key: tuple[str, ...]
    incrementing: str
    timestamp: str
    delay_ms: int
    waits_for_transactions: bool = False

    @property
    def is_bulk(self) -> bool:
        """True if each round reads all rows."""
        return not (self.incrementing or self.timestamp)

    def select(self, position: RowPosition, connection: Connection) -> sa.Select[Any]:
        """Return the statement that reads the rows after a position."""
        columns = [_column(name) for name in self.columns] or [sa.literal_column("*")]
        statement = sa.select(*columns).select_from(self.rows)
        if self.is_bulk:
            return statement.order_by(*map(_column, self.key)).offset(position.get("rows") or None)
        if self.timestamp:
            statement = statement.where(self._is_old_enough(connection))
        if self.waits_for_transactions:
            statement = statement.where(sa.text(_WRITTEN_BEFORE_OPEN_TRANSACTIONS))
        if position:
            statement = statement.where(self._is_after(position))
        return statement.order_by(*[_column(name) for name in (self.timestamp, self.incrementing) if name])

    def _is_after(self, position: RowPosition) -> sa.ColumnElement[bool]:
        if not self.timestamp:
            return _column(self.incrementing) > sa.bindparam(None, position["incrementing"])
        last = self._bound(position["timestamp"])
        is_later = _column(self.timestamp) > last
        if not self.incrementing:
            return is_later
        has_same_time = _column(self.timestamp) == last
        return sa.or_(is_later, sa.and_(has_same_time, _column(self.incrementing) > position["incrementing"]))

    def _bound(self, value: Any) -> sa.BindParameter[Any]:
        """Return a timestamp of a position as the database compares it. SQLite compares times as they are stored."""
        if not isinstance(value, str) or self.database.system == "sqlite":
            return sa.bindparam(None, value)
        moment = datetime.fromisoformat(value)
        return sa.bindparam(None, moment, sa.DateTime(timezone=moment.tzinfo is not None))

    def _is_old_enough(self, connection: Connection) -> sa.ColumnElement[bool]:
        if self.database.system == "sqlite":
            now = sa.func.julianday("now") - self.delay_ms / _MS_PER_DAY
            return sa.func.julianday(_column(self.timestamp), "auto") < now
        limit = _now(self.database, connection) - timedelta(milliseconds=self.delay_ms)
        return _column(self.timestamp) < sa.bindparam(None, limit, sa.DateTime(timezone=limit.tzinfo is not None))

    def position_after(self, rows: pa.Table, position: RowPosition) -> RowPosition:
        """Return the position after rows, which are as the database has returned them."""
        if self.is_bulk:
            return {"rows": position.get("rows", 0) + len(rows)} if self.key else {"rows": 0}
        columns = {"timestamp": self.timestamp, "incrementing": self.incrementing}
        return {name: _plain(rows[column][-1].as_py()) for name, column in columns.items() if column}

    def rows_that_may_have_equals(self, rows: pa.Table) -> int:
        """Return how many of the last rows have the same position: rows that follow may have it, too."""
        if self.is_bulk or self.incrementing:
            return 0
        times = rows[self.timestamp]
        return int(pc.sum(pc.equal(times, times[-1])).as_py())


def _column(name: str) -> sa.ColumnClause[Any]:
    return sa.column(sa.quoted_name(name, True))


def _now(database: Database, connection: Connection) -> datetime:
    """Return the database's time of day."""
    if database.system == "duckdb":
        [(text,)] = connection.execute(sa.text(_DUCKDB_NOW.replace(":", r"\:"))).rows
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    clocks = {"postgresql": sa.func.clock_timestamp(), "mysql": sa.func.utc_timestamp(6)}
    [(now,)] = connection.execute(sa.select(clocks.get(database.system, sa.func.current_timestamp()))).rows
    return now  # type: ignore[no-any-return]


def _plain(value: object) -> object:
    """Return a value of a position as JSON holds it."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return int(value) if isinstance(value, Decimal) else value
