"""SQL over stores, by DuckDB: each store that a query names is a table of that name."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError


def answer(query: str, stores: Collection[str], table_of: Callable[[str], pa.Table]) -> pa.Table:
    """The result of a SELECT.

    It sees these stores and nothing else: no file, no variable of the program.

    Parameters
    ----------
    query : str
    stores : collection of str
        Names; those that are no plain words stand in double quotes in a query.
    table_of : callable
        The table of a store; called for those that the query names.

    Raises
    ------
    StateError
        When DuckDB is not installed or cannot answer.
    """
    duckdb = _duckdb()
    with duckdb.connect(config={"enable_external_access": False, "python_enable_replacements": False}) as connection:
        for name in _named(connection, query, stores):
            connection.register(name, table_of(name))
        try:
            table: pa.Table = connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise _unanswered(str(error), stores) from error
    return _with_integers(table)


def _with_integers(table: pa.Table) -> pa.Table:
    """DuckDB's sums of integers have 128 bits: as integers again, where all of a column fit."""
    for place, column in enumerate(table.schema):
        if pa.types.is_decimal(column.type) and not column.type.scale:
            with suppress(pa.ArrowInvalid):
                table = table.set_column(place, column.name, table.column(place).cast(pa.int64()))
    return table


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise StateError("SQL needs DuckDB: install it with `pip install 'kstreams-dsl[sql]'`") from error
    return duckdb


def _named(connection: Any, query: str, stores: Collection[str]) -> list[str]:
    """The stores that a query names; as everywhere in SQL, upper and lower case are the same."""
    [(text,)] = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(text)
    if parsed["error"]:
        raise _unanswered(parsed["error_message"], stores)
    tables = {name.casefold() for name in _tables(parsed)}
    return [name for name in stores if name.casefold() in tables]


def _tables(part: Any) -> Iterator[str]:
    """The names of all tables in a part of a parsed query."""
    within = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    if isinstance(part, dict) and part.get("type") == "BASE_TABLE":
        yield part["table_name"]
    for each in within:
        yield from _tables(each)


def _unanswered(reason: str, stores: Collection[str]) -> StateError:
    return StateError(
        f"the query has no answer: {reason.rstrip()}\nThe stores are: {', '.join(sorted(stores)) or 'none'}"
    )
