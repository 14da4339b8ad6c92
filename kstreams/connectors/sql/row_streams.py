"""Row streams: the rows of a statement as Arrow tables of limited length. By COPY, from DuckDB, or from a cursor."""

from __future__ import annotations

import io
import select
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa

from kstreams.connectors.sql.connections import AlchemyConnection, Connection, DuckDbConnection

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn


def row_stream(connection: Connection, statement: sa.Select[Any], max_rows: int) -> Iterator[pa.Table]:
    """Return the rows of a statement as tables of at most `max_rows` rows. The rows are not read at once."""
    if isinstance(connection, DuckDbConnection):
        return _from_duckdb(connection, statement, max_rows)
    if isinstance(connection, AlchemyConnection) and connection.dialect.driver == "psycopg":
        return _by_copy(connection, statement, max_rows)
    if isinstance(connection, AlchemyConnection):
        return _from_cursor(connection, statement, max_rows)
    raise TypeError(f"no stream of rows from {type(connection).__name__}")


def _from_duckdb(connection: DuckDbConnection, statement: sa.Select[Any], max_rows: int) -> Iterator[pa.Table]:
    compiled = statement.compile(dialect=connection.dialect)
    parameters = [compiled.params[name] for name in compiled.positiontup or ()]
    relation = connection.driver.sql(str(compiled), params=parameters)
    if relation is not None:
        for batch in relation.to_arrow_reader(max_rows):
            yield pa.Table.from_batches([batch])


def _from_cursor(connection: AlchemyConnection, statement: sa.Select[Any], max_rows: int) -> Iterator[pa.Table]:
    options = {"stream_results": True, "yield_per": max_rows}
    result = connection.alchemy.execute(statement, execution_options=options)
    names = list(result.keys())
    for rows in result.partitions():
        columns = [_column(values) for values in zip(*rows, strict=True)]
        yield pa.Table.from_arrays(columns, names)


def _column(values: Sequence[Any]) -> pa.Array:
    """Return the values that a driver has returned as a column. Values that Arrow has no type for become text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        texts = [value if value is None or isinstance(value, str) else str(value) for value in values]
        return pa.array(texts, pa.string())


_TYPES_OF_OIDS = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int16(), 23: pa.int32(), 26: pa.int64(), 700: pa.float32(),
    701: pa.float64(), 1082: pa.date32(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", "UTC"),
}  # fmt: skip
"""Arrow types of the types of Postgres by their numbers in `pg_type`. All others are read as text."""

_BYTEA = 17


def _by_copy(connection: AlchemyConnection, statement: sa.Select[Any], max_rows: int) -> Iterator[pa.Table]:
    """Read CSV by COPY, which Arrow parses several times as fast as a driver converts values."""
    compiled = statement.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
    query = str(compiled).replace("%%", "%")
    with connection.driver.cursor() as cursor:
        columns = cursor.execute(f"SELECT * FROM ({query}) AS described LIMIT 0").description
        names = [column.name for column in columns]
        kinds = {column.name: _TYPES_OF_OIDS.get(column.type_code, pa.string()) for column in columns}
        raw = [column.name for column in columns if column.type_code == _BYTEA]
    lines = _copied_lines(connection.driver.pgconn, f"COPY ({query}) TO STDOUT (FORMAT csv)")
    while text := b"".join(islice(lines, max_rows)):
        yield _without_hexadecimal(_parsed(text, names, kinds), raw)


def _copied_lines(connection: PGconn, statement: str) -> Iterator[bytes]:
    """Return the lines of a COPY by libpq itself: psycopg's `Copy.read` takes nine times as long for a line."""
    import psycopg
    from psycopg import pq

    result = connection.exec_(statement.encode())
    if result.status == pq.ExecStatus.COPY_OUT:
        readable = select.poll()
        readable.register(connection.socket, select.POLLIN)
        while (answer := connection.get_copy_data(1))[0] >= 0:
            if answer[0]:
                yield bytes(answer[1])
            else:
                readable.poll()
                connection.consume_input()
        result = connection.get_result() or result
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise psycopg.errors.error_from_result(result)


def _parsed(text: bytes, names: list[str], kinds: dict[str, pa.DataType]) -> pa.Table:
    return pyarrow.csv.read_csv(
        io.BytesIO(text),
        read_options=pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=kinds,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _without_hexadecimal(table: pa.Table, raw: list[str]) -> pa.Table:
    for name in raw:
        texts = table[name].to_pylist()
        values = [None if text is None else bytes.fromhex(text.removeprefix(r"\x")) for text in texts]
        table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.binary()))
    return table
