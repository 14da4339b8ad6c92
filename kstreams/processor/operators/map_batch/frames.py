"""Records as columns for functions over batches: Arrow tables, Polars or pandas frames; and rows of what they return.

Polars and pandas are loaded when the first function asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias, is_typeddict

import pyarrow as pa

from kstreams.errors import TopologyError
from kstreams.expressions.types import fields_of, split_optional
from kstreams.serdes import serde_of

Format: TypeAlias = Literal["arrow", "polars", "pandas"]


@dataclass(frozen=True, slots=True)
class Frames:
    """Makes what a function over batches gets.

    Parameters
    ----------
    format : {"arrow", "polars", "pandas"}
    kind : type or None
        Of the values. One with named fields gives a column for each; a `dict` one for each of its keys in a batch;
        any other a column "value".
    key : type or None
        Of the keys.
    with_key, with_timestamp : bool
        Whether there are columns "key" and "timestamp" (int64, ms) too.
    """

    format: Format
    kind: Any = None
    key: Any = None
    with_key: bool = False
    with_timestamp: bool = False

    def table(self, keys: Sequence[Any], values: Sequence[Any], timestamps: Sequence[int]) -> pa.Table:
        """The columns of records, as Arrow."""
        return self.table_of(_columns(self.kind, values), lambda: keys, lambda: pa.array(timestamps, pa.int64()))

    def table_of(self, values: dict[str, Any], keys: Callable[[], Any], timestamps: Callable[[], pa.Array]) -> pa.Table:
        """The columns of values that are columns already."""
        columns = dict(values)
        if self.with_key:
            columns["key"] = pa.array(keys(), _arrow_type(self.key))
        if self.with_timestamp:
            columns["timestamp"] = timestamps()
        return pa.table(columns)

    @property
    def is_columnar(self) -> bool:
        """Whether what columns there are follows from the type alone, and each has an Arrow type."""
        return self.fields is not None or _arrow_type(self.kind) is not None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The columns of a value with named fields; None of any other."""
        return _fields(self.kind)

    def frame(self, table: pa.Table) -> Any:
        """The same columns in the format that the function asks for."""
        return _FRAMES[self.format](table)


def rows_of(result: Any, count: int, kind: Any) -> list[Any]:
    """The values that a function gave for so many records.

    Parameters
    ----------
    result : object
        A column (Arrow, NumPy, Polars, pandas, or a list), or a table or frame whose columns are the fields of `kind`.
    count : int
        How many there must be.
    kind : type or None
        Of the values.

    Raises
    ------
    ValueError
        When there are more or fewer.

    Examples
    --------
    >>> rows_of(pa.array([1, 2]), 2, int), rows_of(pa.table({"a": [1]}), 1, dict)
    ([1, 2], [{'a': 1}])
    """
    found = _listed(result)
    if len(found) != count:
        raise ValueError(f"the function gave {len(found)} rows for {count} records: give one for each, in their order")
    return [kind(**row) for row in found] if _fields(kind) is not None and _are_rows(found) else found


def check_format(name: str) -> None:
    """Raise a TopologyError for a format that there is not, or whose library is not installed."""
    if name not in _FRAMES:
        raise TopologyError(f'format={name!r} is none of "arrow", "polars" and "pandas"')
    if name != "arrow":
        try:
            import_module(name)
        except ImportError as error:
            raise TopologyError(f'format="{name}" needs {name}: install it with `pip install {name}`') from error


def _columns(kind: Any, values: Sequence[Any]) -> dict[str, Any]:
    fields = None if kind is None else fields_of(kind)
    if fields is not None:
        read = dict.get if is_typeddict(kind) else getattr
        return {name: _column(values, name, read, _arrow_type(field)) for name, field in fields.items()}
    if getattr(kind, "__origin__", kind) is dict and any(values):
        names = dict.fromkeys(name for value in values for name in value or ())
        return {name: _column(values, name, dict.get, None) for name in names}
    return {"value": pa.array(values, _arrow_type(kind))}


def _column(
    values: Sequence[Any], name: str, read: Callable[[Any, str], Any], arrow_type: pa.DataType | None
) -> pa.Array:
    return pa.array([None if value is None else read(value, name) for value in values], arrow_type)


def _arrow_type(kind: Any) -> pa.DataType | None:
    """The Arrow type of a Python type; None where it follows from the values."""
    plain = split_optional(kind).kind
    return serde_of(plain).arrow_type if plain in (int, float, str, bool, bytes) else None


def _fields(kind: Any) -> tuple[str, ...] | None:
    fields = None if kind is None else fields_of(kind)
    return None if fields is None else tuple(fields)


def _are_rows(found: list[Any]) -> bool:
    return bool(found) and isinstance(found[0], dict)


def _listed(result: Any) -> list[Any]:
    for name, rows in _ROWS.items():
        if hasattr(result, name):
            return list(rows(result))
    return list(result)


_ROWS: dict[str, Callable[[Any], Iterable[Any]]] = {
    "to_pylist": lambda arrow: arrow.to_pylist(),
    "to_dicts": lambda polars: polars.to_dicts(),
    "iterrows": lambda pandas: pandas.to_dict("records"),
    "tolist": lambda column: column.tolist(),
    "to_list": lambda polars: polars.to_list(),
}
_FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "polars": lambda table: import_module("polars").from_arrow(table),
    "pandas": lambda table: table.to_pandas(),
}
