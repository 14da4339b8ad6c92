"""The results of functions over batches: columns or tables, of which rows are made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from kstreams.expressions.types import fields_of

_EXPECTED_RESULT = (
    "return one value for each record, as a column, a list, or a table whose columns are the fields of the value"
)


def rows_of(result: object, count: int, kind: object) -> list[Any]:
    """Return the values in a function's result.

    Parameters
    ----------
    result : object
        A column (Arrow, NumPy, Polars, pandas, narwhals, or a list), or a table or frame whose columns are the fields
        of `kind`.
    count : int
        The number of records, which is the required number of values.
    kind : type or None
        The type of the values.

    Raises
    ------
    TypeError
        If the result is neither a column nor a table, or not a table of `kind`.
    ValueError
        If there are more or fewer values than records.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows_of(pa.array([1, 2]), 2, int), rows_of(pa.table({"a": [1]}), 1, dict)
    ([1, 2], [{'a': 1}])
    """
    rows = _without_pandas_nulls(_items(result))
    if len(rows) != count:
        raise ValueError(f"the function gave {len(rows)} rows for {count} records: give one for each, in their order")
    if not rows or not isinstance(rows[0], dict):
        return rows
    if kind in _SCALARS:
        raise TypeError(
            f"the function returned a table for values of {kind.__name__}: return one column, such as table['name']"
        )
    return rows if kind is None or fields_of(kind) is None else _objects(rows, kind)


_SCALARS = (int, float, str, bool, bytes)


def _objects(rows: list[dict[str, Any]], kind: Any) -> list[Any]:
    try:
        return [kind(**row) for row in rows]
    except TypeError as error:
        names = ", ".join(map(repr, rows[0]))
        raise TypeError(
            f"the function gave the columns {names}, of which no {kind.__name__} can be made: {error}"
        ) from error


def _items(result: object) -> list[Any]:
    """Return the items of a column, or the rows of a table as dicts."""
    if hasattr(result, "to_native"):  # a frame of narwhals
        result = result.to_native()
    for name, rows in _ROWS.items():
        if hasattr(result, name) and not isinstance(result, type):
            return _list(rows(result), result)
    return _list(result, result)


_ROWS: dict[str, Callable[[Any], Iterable[Any]]] = {
    "to_pylist": lambda arrow: arrow.to_pylist(),
    "to_dicts": lambda polars: polars.to_dicts(),
    "iterrows": lambda pandas: pandas.to_dict("records"),
    "tolist": lambda column: column.tolist(),
    "to_list": lambda polars: polars.to_list(),
}


def _list(rows: object, result: object) -> list[Any]:
    suggestion = next((suggestion for applies, suggestion in _SUGGESTIONS if applies(result)), None)
    if suggestion is not None or not hasattr(rows, "__iter__") or isinstance(rows, type):
        raise TypeError(f"the function returned {_description(result)}{suggestion or f': {_EXPECTED_RESULT}'}")
    return list(rows)


_SUGGESTIONS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda result: hasattr(result, "collect"), ": return .collect() of it"),
    (lambda result: isinstance(result, Mapping), ": make a table of it, as pa.table(...)"),
    (lambda result: isinstance(result, Set), ", which has no order: return a list"),
    (lambda result: isinstance(result, str | bytes), f": {_EXPECTED_RESULT}"),
)
"""For results that are not columns: a condition, and the end of the error, which says what to return."""


def _description(result: object) -> str:
    """Return the type of a result, and the result itself if it is short."""
    if result is None:
        return "None"
    text = repr(result)
    name = type(result).__name__
    if len(text) < 40 and not text.startswith(("{", "<")):
        return f"the {name} {text}"
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _without_pandas_nulls(rows: list[Any]) -> list[Any]:
    """Return the rows with None in place of `pandas.NA` and `pandas.NaT`, which no serde knows."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return rows
    nulls = {type(pandas.NA), type(pandas.NaT)}
    if nulls.isdisjoint(map(type, rows)) and dict not in set(map(type, rows)):
        return rows
    return [_with_none(nulls, row) for row in rows]


def _with_none(nulls: Set[type], row: object) -> Any:
    if isinstance(row, dict) and not nulls.isdisjoint(map(type, row.values())):
        return {name: None if type(value) in nulls else value for name, value in row.items()}
    return None if type(row) in nulls else row
