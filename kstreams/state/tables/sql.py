"""SQL over stores, with DuckDB: each store is a table with the name of the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError

_SETTINGS = {
    "enable_external_access": False,
    "python_enable_replacements": False,
    "memory_limit": "25%",  # of the machine's memory: the default of 80 % would take it from the running application
    "temp_directory": "",  # never spill to disk: the default is `.tmp` in the current folder
}


def answer(query: str, stores: Collection[str], table_of: Callable[[str], pa.Table]) -> pa.Table:
    """Return the result of a SELECT.

    The query can read these stores and nothing else: no file, no variable of the program. If several columns have one
    name, later ones get a number, as `value` and `value_1`. The query may use a quarter of the machine's memory.

    Parameters
    ----------
    query : str
    stores : collection of str
        Names of stores. A query puts a name that is not an SQL identifier in double quotes.
    table_of : callable
        Returns the table of a store. It is called for the stores in the query.

    Raises
    ------
    StateError
        If DuckDB is not installed or cannot answer the query.
    """
    duckdb = _duckdb()
    with duckdb.connect(config=_SETTINGS) as connection:
        for name in _stores_in_query(connection, query, stores):
            connection.register(name, table_of(name))
        try:
            table: pa.Table = connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise _query_error(str(error), stores) from error
    return _with_int64_sums(table.rename_columns(list(_with_unique_names(table.column_names))))


def _with_unique_names(names: list[str]) -> Iterator[str]:
    """Yield the names with numbers appended to repeated ones, so that a row as a dict has all columns."""
    original_names = set(names)
    unique_names = set[str]()
    for name in names:
        number = 0
        unique_name = name
        while unique_name in unique_names or (number and unique_name in original_names):
            number += 1
            unique_name = f"{name}_{number}"
        unique_names.add(unique_name)
        yield unique_name


def _with_int64_sums(table: pa.Table) -> pa.Table:
    """Cast columns of 128 bits, which DuckDB uses for sums of integers, to int64 if all values fit."""
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and not field.type.scale:
            with suppress(pa.ArrowInvalid):
                table = table.set_column(index, field.name, table.column(index).cast(pa.int64()))
    return table


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise StateError("SQL needs DuckDB: install it with `pip install 'kstreams-dsl[sql]'`") from error
    return duckdb


def _stores_in_query(connection: Any, query: str, stores: Collection[str]) -> list[str]:
    """Return the stores that a query reads. Names are case-insensitive, as in SQL."""
    [(text,)] = connection.execute("select json_serialize_sql(?)", [query]).fetchall()
    parsed = json.loads(text)
    if parsed["error"]:
        raise _query_error(parsed["error_message"], stores)
    if len(parsed["statements"]) != 1:
        raise _query_error(f"it has {len(parsed['statements'])} statements: give one SELECT", stores)
    tables = {name.casefold() for name in _tables_in(parsed)}
    folded_names = {name: name.casefold() for name in stores if name.casefold() in tables}
    ambiguous = [name for name, folded in folded_names.items() if list(folded_names.values()).count(folded) > 1]
    if ambiguous:
        raise _query_error(f"{' and '.join(ambiguous)} are one name in SQL: read them by to_arrow()", stores)
    return list(folded_names)


def _tables_in(part: object) -> Iterator[str]:
    """Yield the names of all tables in a part of a parsed query."""
    if isinstance(part, dict) and part.get("type") == "BASE_TABLE":
        yield part["table_name"]
    children = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for child in children:
        yield from _tables_in(child)


def _query_error(reason: str, stores: Collection[str]) -> StateError:
    return StateError(
        f"the query has no answer: {reason.rstrip()}\nThe stores are: {', '.join(sorted(stores)) or 'none'}"
    )
