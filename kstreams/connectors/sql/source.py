"""`SqlSource`: reads the rows of tables or of a query, and again those that were added or changed."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from kstreams.connectors.api import Position, Source, SourceBatch, UnreadableRow
from kstreams.connectors.source_columns import json_of, key_column, type_of_key, without_rows
from kstreams.connectors.sql.database import Database
from kstreams.errors import ConnectorError
from kstreams.expressions import fields_of
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.serdes.arrow_types import arrow_type
from kstreams.serdes.base import failing_rows

if TYPE_CHECKING:
    from kstreams.connectors.sql.query import Query, RowPosition

BULK = "bulk"
_COLUMNS_OF_MODES = {
    BULK: (),
    "incrementing": ("incrementing_column",),
    "timestamp": ("timestamp_column",),
    "timestamp+incrementing": ("timestamp_column", "incrementing_column"),
}
_SPLIT_OF_QUERY = "query"


class SqlSource(Source):
    """A source that reads tables, each as a split, or one query: see `kstreams.sources.sql` for the parameters."""

    has_deletes = False

    def __init__(
        self,
        url: str,
        *,
        tables: tuple[str, ...],
        query: str,
        value: Any,
        key: tuple[str, ...],
        key_type: Any,
        mode: str,
        incrementing_column: str,
        timestamp_column: str,
        timestamp_delay_interval_ms: int,
        wait_for_open_transactions: bool,
        poll_interval_ms: int,
        batch_max_rows: int,
        schema: str | None,
        tasks: int,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(key=key_type or type_of_key(key, value), value=value, tasks=tasks)
        self.database = Database(url)
        self.tables = tables
        self.query = query
        self.key_columns = key
        self.mode = mode
        self.incrementing_column = incrementing_column
        self.timestamp_column = timestamp_column
        self.timestamp_delay_interval_ms = timestamp_delay_interval_ms
        self.wait_for_open_transactions = wait_for_open_transactions
        self.poll_interval_ms = poll_interval_ms
        self.batch_max_rows = batch_max_rows
        self.schema = schema
        self.clock = clock or SystemClock()
        self._check()

    def __repr__(self) -> str:
        rows = ", ".join(map(repr, self.tables)) or f"query={self.query!r}"
        return f"SqlSource({self.database}, {rows}, mode={self.mode!r})"

    def _check(self) -> None:
        if bool(self.tables) == bool(self.query):
            raise ConnectorError(f"{self.database}: pass either table= or query=")
        if self.mode not in _COLUMNS_OF_MODES:
            raise ConnectorError(
                f"mode={self.mode!r} is not known: write one of {', '.join(map(repr, _COLUMNS_OF_MODES))}"
            )
        for name in _COLUMNS_OF_MODES[self.mode]:
            if not getattr(self, name):
                raise ConnectorError(f"{self}: mode {self.mode!r} needs {name}=, the name of a column")
        if self.wait_for_open_transactions and (self.query or self.database.system != "postgresql"):
            raise ConnectorError(f"{self}: wait_for_open_transactions=True needs tables of Postgres")
        if self.value is not dict and not fields_of(self.value):
            raise ConnectorError(f"{self}: value={self.value!r} has no fields. Pass a class with fields, or dict")

    def splits(self) -> Sequence[str]:
        return self.tables or (_SPLIT_OF_QUERY,)

    def open(self, split: str, position: Position | None) -> SqlReader:
        with self.database.needs_packages():
            import sqlalchemy as sa

            from kstreams.connectors.sql.query import Query

        if self.query:
            query_text = self.query.strip().rstrip(";").replace(":", r"\:")
            rows: Any = sa.text(f"({query_text}) AS kstreams_query")
        else:
            schema = None if self.schema is None else sa.quoted_name(self.schema, True)
            rows = sa.table(sa.quoted_name(split, True), schema=schema)
        position_columns = _COLUMNS_OF_MODES[self.mode]
        query = Query(
            self.database,
            rows,
            self._selected_columns(),
            self.key_columns,
            incrementing=self.incrementing_column if "incrementing_column" in position_columns else "",
            timestamp=self.timestamp_column if "timestamp_column" in position_columns else "",
            delay_ms=self.timestamp_delay_interval_ms,
            waits_for_transactions=self.wait_for_open_transactions,
        )
        return SqlReader(self, split, query, position or {})

    def _selected_columns(self) -> tuple[str, ...]:
        """Return the columns to read; none for all of them."""
        if self.value is dict:
            return ()
        of_position = [getattr(self, name) for name in _COLUMNS_OF_MODES[self.mode]]
        return tuple(dict.fromkeys([*(fields_of(self.value) or {}), *self.key_columns, *of_position]))


class SqlReader:
    """Reads one table or query: all rows after a position, then again after each poll interval."""

    def __init__(self, source: SqlSource, split: str, query: Query, position: RowPosition) -> None:
        self._source = source
        self._split = split
        self._query = query
        self._position = position
        self._kinds = {name: arrow_type(hint) for name, hint in (fields_of(source.value) or {}).items()}
        self._batches = self._polls()

    def read(self) -> SourceBatch | None:
        with self._source.database.answers(f"read {self._split}"):
            return next(self._batches)

    def committed(self, position: Position) -> None:
        """Do nothing: the database keeps its rows."""

    def close(self) -> None:
        self._batches.close()

    def _polls(self) -> Generator[SourceBatch | None]:
        yield from self._pause(self._until_next_round())
        while True:
            yield from self._poll()
            yield from self._pause(self._source.poll_interval_ms)

    def _pause(self, pause_ms: int) -> Iterator[None]:
        end_ms = self._source.clock.uptime_ms() + pause_ms
        while self._source.clock.uptime_ms() < end_ms:
            yield None

    def _until_next_round(self) -> int:
        """Return the rest of the interval after the round that the position says to have ended."""
        ended_ms = self._position.get("ended_ms")
        if ended_ms is None:
            return 0
        rest_ms = int(ended_ms) + self._source.poll_interval_ms - self._source.clock.wall_ms()
        return min(max(rest_ms, 0), self._source.poll_interval_ms)

    def _poll(self) -> Iterator[SourceBatch]:
        """Read the rows that there are now. The connection is closed between polls."""
        from kstreams.connectors.sql.connections import connect
        from kstreams.connectors.sql.row_streams import row_stream

        with closing(connect(self._source.database, read_only=True)) as connection:
            statement = self._query.select(self._position, connection)
            for rows in self._whole_positions(row_stream(connection, statement, self._source.batch_max_rows)):
                self._position = self._query.position_after(rows, self._position)
                yield self._batch(rows)
        if self._query.is_bulk:
            self._position = {"ended_ms": self._source.clock.wall_ms()}
            yield SourceBatch(pa.nulls(0), self._position)

    def _whole_positions(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Divide rows so that none has the position of a later one: a position tells nothing within rows of its own."""
        held_back: list[pa.Table] = []
        for table in tables:
            rows = pa.concat_tables([*held_back, table], promote_options="permissive")
            certain = len(rows) - self._query.rows_that_may_have_equals(rows)
            held_back = [rows.slice(certain)]
            if certain:
                yield rows.slice(0, certain)
        yield from (rows for rows in held_back if len(rows))

    def _batch(self, rows: pa.Table) -> SourceBatch:
        try:
            return self._typed_batch(rows)
        except ConnectorError:
            return self._readable(rows)

    def _readable(self, rows: pa.Table) -> SourceBatch:
        errors = dict(failing_rows(self._typed_batch, rows))
        contents = rows.to_struct_array().combine_chunks()
        unreadable = [
            UnreadableRow(json_of(contents[number]), self._position, error) for number, error in errors.items()
        ]
        return replace(self._typed_batch(without_rows(rows, errors)), unreadable=unreadable)

    def _typed_batch(self, rows: pa.Table) -> SourceBatch:
        columns = {name: self._typed(rows, name) for name in rows.column_names}
        names = list(self._kinds) or rows.column_names
        values = pa.StructArray.from_arrays([columns[name] for name in names], names)
        return SourceBatch(values, self._position, key_column(self._source.key_columns, columns), self._times(rows))

    def _typed(self, rows: pa.Table, name: str) -> pa.Array:
        from kstreams.connectors.sql.typed_columns import typed_column

        kind = self._kinds.get(name)
        try:
            return typed_column(rows[name], kind)
        except (pa.ArrowException, msgspec.DecodeError) as error:
            raise ConnectorError(
                f"{self._source}: column {name} of {self._split} has a value that is no {kind}: {error}. "
                "Declare another type for the field, or convert the column by query="
            ) from error

    def _times(self, rows: pa.Table) -> pa.Array | None:
        from kstreams.connectors.sql.typed_columns import event_times

        return event_times(rows[self._query.timestamp]) if self._query.timestamp else None
