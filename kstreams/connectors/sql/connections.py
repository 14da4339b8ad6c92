"""`Connection`: a connection to a database within a transaction, by SQLAlchemy or to DuckDB.

A transaction begins with the first statement, and ends with `commit` or `rollback`. `attempt` runs a statement that the
database may refuse without the loss of the statements before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa

from kstreams.connectors.sql.database import Database, driver_error, is_refusal

Parameters = list[dict[str, object]]


class Answer(NamedTuple):
    """The rows of a query, and the number of rows that a change concerns."""

    rows: Sequence[Sequence[Any]]
    rowcount: int


class Connection(Protocol):
    """A connection within a transaction. One thread uses it."""

    dialect: sa.Dialect

    def execute(self, statement: sa.Executable) -> Answer:
        """Run one statement."""
        ...

    def attempt(self, change: Callable[[], None]) -> Exception | None:
        """Run a change. If the database refuses its rows, undo this change alone, and return the error."""
        ...

    def columns(self, table: str, schema: str | None) -> list[str]:
        """Return the columns of a table; none if the table does not exist."""
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


def connect(database: Database, name: str = "", *, read_only: bool = False) -> Connection:
    """Connect to a database.

    Parameters
    ----------
    database : Database
    name : str
        What the connection is for. Postgres ends older connections of the same name: they may hold locks for a process
        that does not run any more.
    read_only : bool
        True if nothing is written. A reader of SQLite then holds back no other reader, and no writer before its commit.
    """
    with database.needs_packages(), database.answers("connect"):
        if database.system == "duckdb":
            return DuckDbConnection(database)
        connection = AlchemyConnection(database, read_only=read_only)
        if name and database.system == "postgresql":
            _end_older_sessions(connection, name)
        return connection


def _end_older_sessions(connection: AlchemyConnection, name: str) -> None:
    session_name = "kstreams-" + hashlib.sha256(name.encode()).hexdigest()[:32]
    activity = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = :name "
        "AND usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()"
    )
    connection.execute(sa.text(activity).bindparams(name=session_name))
    connection.execute(sa.text("SELECT set_config('application_name', :name, false)").bindparams(name=session_name))
    connection.commit()


class AlchemyConnection:
    """A connection by SQLAlchemy, to any database that it has a dialect for."""

    def __init__(self, database: Database, *, read_only: bool) -> None:
        engine = sa.create_engine(database.sqlalchemy_url, poolclass=sa.NullPool, hide_parameters=True)
        if database.system == "sqlite":
            _begin_sqlite_transactions(engine, "BEGIN" if read_only else "BEGIN IMMEDIATE")
        self.dialect = engine.dialect
        self.alchemy = engine.connect()
        if database.system == "postgresql":
            self.alchemy.execute(sa.text("SET TIME ZONE 'UTC'"))
            self.alchemy.commit()

    @property
    def driver(self) -> Any:
        """The connection of the driver."""
        return self.alchemy.connection.driver_connection

    def execute(self, statement: sa.Executable) -> Answer:
        result = self.alchemy.execute(statement)
        rows: Sequence[Sequence[Any]] = result.fetchall() if result.returns_rows else []
        return Answer(rows, result.rowcount)

    def execute_many(self, statement: sa.Executable, parameters: Parameters) -> None:
        """Run a statement once for each set of parameters."""
        if parameters:
            self.alchemy.execute(statement, parameters)

    def attempt(self, change: Callable[[], None]) -> Exception | None:
        try:
            with self.alchemy.begin_nested():
                change()
        except Exception as error:
            if is_refusal(driver_error(error)):
                return error
            raise
        return None

    def columns(self, table: str, schema: str | None) -> list[str]:
        inspector = sa.inspect(self.alchemy)
        if not inspector.has_table(table, schema=schema):
            return []
        return [column["name"] for column in inspector.get_columns(table, schema=schema)]

    def commit(self) -> None:
        self.alchemy.commit()

    def rollback(self) -> None:
        self.alchemy.rollback()

    def close(self) -> None:
        self.alchemy.invalidate()  # a connection that is lost cannot roll back
        self.alchemy.close()


def _begin_sqlite_transactions(engine: sa.Engine, statement: str) -> None:
    """Let SQLite begin transactions by a statement: as a writer, if the transaction writes.

    Python's driver begins none before a change, so that savepoints would be transactions of their own. One that begins
    as a reader fails at its first change if another process has written since.
    """

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        connection.exec_driver_sql(statement)


class DuckDbConnection:
    """A connection to DuckDB, for statements that SQLAlchemy has written for Postgres.

    DuckDB has no savepoints: after a refusal, the transaction is rolled back and its earlier changes are made again.
    """

    def __init__(self, database: Database) -> None:
        import duckdb

        self.dialect = database.dialect()
        self.driver = duckdb.connect(database.path)
        self.driver.execute("SET TimeZone = 'UTC'")
        self._changes: list[Callable[[], None]] = []
        self._began = False

    def execute(self, statement: sa.Executable) -> Answer:
        self.begin()
        compiled = statement.compile(dialect=self.dialect)  # type: ignore[attr-defined]
        if not compiled.params:
            return self._answer(str(compiled), [])
        return self._answer(str(compiled), [compiled.params[name] for name in compiled.positiontup])

    def _answer(self, text: str, parameters: list[object]) -> Answer:
        cursor = self.driver.execute(text, parameters)
        return Answer(cursor.fetchall() if cursor.description else [], cursor.rowcount)

    def begin(self) -> None:
        """Begin a transaction, unless one has begun."""
        if not self._began:
            self.driver.begin()
            self._began = True

    def attempt(self, change: Callable[[], None]) -> Exception | None:
        self.begin()
        try:
            change()
        except Exception as error:
            if not is_refusal(error):
                raise
            self._undo_last()
            return error
        self._changes.append(change)
        return None

    def _undo_last(self) -> None:
        self.driver.rollback()
        self.driver.begin()
        for change in self._changes:
            change()

    def columns(self, table: str, schema: str | None) -> list[str]:
        self.begin()
        rows = self.driver.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = ? AND table_schema = "
            "coalesce(?, current_schema()) AND table_catalog = current_database() ORDER BY ordinal_position",
            [table, schema],
        ).fetchall()
        return [name for (name,) in rows]

    def commit(self) -> None:
        if self._began:
            self.driver.commit()
        self._end()

    def rollback(self) -> None:
        if self._began:
            self.driver.rollback()
        self._end()

    def _end(self) -> None:
        self._began = False
        self._changes.clear()

    def close(self) -> None:
        self.driver.close()
