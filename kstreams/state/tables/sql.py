"""SQL over stores, by DuckDB: each store that a query names is a table of that name."""

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
    "memory_limit": "25%",  # of the machine: by default 80 %, beside an application at work
    "temp_directory": "",  # by default `.tmp` in the current folder, which it fills with what memory does not hold
}


def answer(query: str, stores: Collection[str], table_of: Callable[[str], pa.Table]) -> pa.Table:
    """The result of a SELECT.

    It sees these stores and nothing else: no file, no variable of the program. Columns of one name are told apart, as
    `value` and `value_1`. It takes a quarter of the memory of the machine at most.

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
    with duckdb.connect(config=_SETTINGS) as connection:
        for name in _named(connection, query, stores):
            connection.register(name, table_of(name))
        try:
            table: pa.Table = connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise _unanswered(str(error), stores) from error
    return _with_integers(table.rename_columns(list(_told_apart(table.column_names))))


def _told_apart(names: list[str]) -> Iterator[str]:
    """The names, with numbers where one is there already: who makes a dict of a row would lose its column."""
    used_names = set(names)
    folded_names = set[str]()
    for name in names:
        number = 0
        original = name
        while original in folded_names or (number and original in used_names):
            number += 1
            original = f"{name}_{number}"
        folded_names.add(original)
        yield original


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
    if len(parsed["statements"]) != 1:
        raise _unanswered(f"it has {len(parsed['statements'])} statements: give one SELECT", stores)
    tables = {name.casefold() for name in _tables(parsed)}
    table_names = {name: name.casefold() for name in stores if name.casefold() in tables}
    alike = [name for name, folded in table_names.items() if list(table_names.values()).count(folded) > 1]
    if alike:
        raise _unanswered(f"{' and '.join(alike)} are one name in SQL: read them by to_arrow()", stores)
    return list(table_names)


def _tables(part: object) -> Iterator[str]:
    """The names of all tables in a part of a parsed query."""
    within = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    if isinstance(part, dict) and part.get("type") == "BASE_TABLE":
        yield part["table_name"]
    for scope in within:
        yield from _tables(scope)


def _unanswered(reason: str, stores: Collection[str]) -> StateError:
    return StateError(
        f"the query has no answer: {reason.rstrip()}\nThe stores are: {', '.join(sorted(stores)) or 'none'}"
    )
